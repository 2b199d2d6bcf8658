"""Checks of kind "command": what the command is given, and what its end means."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from grv.backends.protocols import Problem
from grv.backends.verifiers.checks import parse_check
from grv.backends.verifiers.command import CommandCheck
from grv.core.errors import UsageError
from grv.core.values import Verdict


def python(program: str, *arguments: str, timeout_seconds: float = 60) -> CommandCheck:
    argv = [sys.executable, "-I", "-c", program, *arguments]
    return CommandCheck(argv, timeout_seconds=timeout_seconds)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [(0, Verdict.PASSED), (1, Verdict.FAILED), (2, Verdict.BROKEN), (127, Verdict.BROKEN)],
)
def test_the_exit_status_is_the_verdict(status: int, verdict: Verdict) -> None:
    finding = python(f"raise SystemExit({status})").compare("text")
    assert finding.verdict is verdict
    assert finding.evidence["exit"] == status
    assert finding.usage.seconds > 0


def test_the_text_arrives_on_standard_input_and_in_the_file() -> None:
    check = python(
        "import sys; text = open(sys.argv[1].removeprefix('--file='), 'rb').read()\n"
        "raise SystemExit(text != sys.stdin.buffer.read() or text.decode() != 'naïve\\0 42')",
        "--file={}",
    )
    assert check.compare("naïve\0 42").verdict is Verdict.PASSED


def test_the_path_replaces_the_braces_wherever_they_stand() -> None:
    check = python("import sys; print(sys.argv[1:])", "{}", "a{}b", "c", "{ }")
    shown = check.compare("text").evidence["stdout"]
    assert shown.count("candidate.txt") == 2
    assert "'c', '{ }'" in shown


def test_nothing_goes_through_a_shell(tmp_path: Path) -> None:
    made = tmp_path / "made"
    finding = CommandCheck(["echo", f"; touch {made}", "$(id)", "`id`"]).compare("$(id); `id`")
    assert finding.verdict is Verdict.PASSED
    assert finding.evidence["stdout"] == f"; touch {made} $(id) `id`\n"
    assert not made.exists()


def test_a_huge_text_is_no_matter_whether_it_is_read_or_not() -> None:
    text = "x" * 20_000_000
    assert python("raise SystemExit(0)").compare(text).verdict is Verdict.PASSED
    read = "import sys; raise SystemExit(len(sys.stdin.read()) != 20_000_000)"
    assert python(read).compare(text).verdict is Verdict.PASSED


def test_a_text_with_half_a_character_is_given_with_a_question_mark() -> None:
    check = python("import sys; print(sys.stdin.read())")
    assert check.compare("a\ud800b").evidence["stdout"] == "a?b\n"


def test_a_flood_of_output_is_read_and_only_its_end_kept() -> None:
    check = python(
        "import sys\n"
        "for _ in range(300): sys.stdout.write('x' * 65536); sys.stderr.write('y' * 9)\n"
        "sys.stderr.write('the end'); raise SystemExit(3)"
    )
    finding = check.compare("text")
    assert finding.verdict is Verdict.BROKEN
    assert finding.reason == "checker exited with status 3"
    assert len(finding.evidence["stdout"]) <= 4000
    assert finding.evidence["stderr"].endswith("the end")
    json.dumps(dict(finding.evidence))


def test_a_command_killed_by_a_signal_could_not_tell() -> None:
    finding = python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)").compare("text")
    assert (finding.verdict, finding.reason) == (Verdict.BROKEN, "checker was killed by signal 11")


def test_a_command_that_is_not_there_could_not_tell(tmp_path: Path) -> None:
    finding = CommandCheck([str(tmp_path / "none")]).compare("text")
    assert (finding.verdict, finding.reason) == (Verdict.BROKEN, "checker could not start")
    assert "none" in str(finding.evidence)


def test_a_command_that_is_not_there_could_not_tell_under_nohup_either(tmp_path: Path) -> None:
    script = (
        "import signal, sys\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from grv.backends.verifiers.command import CommandCheck\n"
        "print(CommandCheck([sys.argv[1]]).compare('text').reason)\n"
    )
    missing = str(tmp_path / "none")
    ran = subprocess.run([sys.executable, "-c", script, missing], capture_output=True, text=True)
    assert ran.stdout == "checker could not start\n", ran.stderr


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


def written(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not (path.exists() and path.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)


FORKING = (
    "import os, signal, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "child = os.fork()\n"
    "if child == 0: time.sleep(1000)\n"
    "print(child, flush=True)\n"
)


@pytest.mark.alone
def test_a_command_that_takes_too_long_is_broken_and_its_group_killed() -> None:
    started = time.monotonic()
    finding = python(FORKING + "time.sleep(1000)", timeout_seconds=1).compare("text")
    assert time.monotonic() - started < 10
    assert (finding.verdict, finding.reason) == (Verdict.BROKEN, "timeout")
    assert gone(int(finding.evidence["stdout"]))


@pytest.mark.alone
def test_a_child_that_holds_the_outputs_keeps_nobody_waiting_and_is_not_left_behind() -> None:
    started = time.monotonic()
    finding = python(FORKING + "raise SystemExit(1)").compare("text")
    assert time.monotonic() - started < 10
    assert finding.verdict is Verdict.FAILED
    assert gone(int(finding.evidence["stdout"]))


def test_closed_outputs_are_no_matter() -> None:
    closing = "import os; [os.close(n) for n in (0, 1, 2)]; os._exit(1)"
    assert python(closing).compare("text").verdict is Verdict.FAILED


def test_no_file_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    python("import sys; open(sys.argv[1] + '.more', 'w').close()", "{}").compare("text")
    # The folder of this process stays until the process ends.
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.slow
def test_many_at_once_do_not_mix() -> None:
    check = python(
        "import sys; text = sys.stdin.read(); print(text); raise SystemExit(int(text) % 2)"
    )

    with ThreadPoolExecutor(12) as threads:
        found = list(threads.map(check.compare, map(str, range(12))))
    outputs = [(finding.evidence["stdout"], finding.verdict.value) for finding in found]
    assert outputs == [(f"{n}\n", ["passed", "failed"][n % 2]) for n in range(12)]


@pytest.mark.parametrize(
    "check",
    [
        {},
        {"argv": "ls"},
        {"argv": []},
        {"argv": [""]},
        {"argv": ["ls", 1]},
        {"argv": ["a\0b"]},
        {"argv": ["ls"], "shell": True},
        {"argv": ["ls"], "limits": {"seconds": 0}},
    ],
)
def test_a_bad_record_is_the_callers_mistake(check: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        parse_check(Problem("p", check={"kind": "command", **check}))


def test_a_record_sets_the_command_and_its_time() -> None:
    record = {"kind": "command", "argv": ["sleep", "9"], "limits": {"seconds": 0.2}}
    check = CommandCheck.of(Problem("p", check=record))
    assert isinstance(check, CommandCheck)
    assert check.compare("text").reason == "timeout"


def test_equal_texts_have_equal_keys_and_others_have_others() -> None:
    check = CommandCheck(["true"])
    assert check.key("a") == check.key("a") != check.key("b")
    assert check.key("\ud800") is not None


def test_no_descriptor_is_left_open() -> None:
    check = python("pass")
    check.compare("text")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        check.compare("text")
    assert len(os.listdir("/proc/self/fd")) <= before
