"""The frame around every command: help, exit codes, interruptions, readers that go away."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from grv import __version__
from grv.apps import cli, doctor
from grv.apps.options.all_commands import COMMANDS, GROUPS
from support.commands import as_from_a_terminal

GRV = str(Path(sys.executable).with_name("grv"))

OPTIONS = {
    "demo": ["--replay", "--serve", "--port", "--first", "--ledger"],
    "compare": [
        "--rewards",
        "--score",
        "--costs",
        "--policy",
        "--orders",
        "--seed",
        "--order-scheme",
        "--width",
        "--keys",
        "--no-keys",
        "--unlabelled",
        "--unsolvable",
        "--json",
        "--csv",
        "--job",
        "--allow-commands",
        "--alike",
        "--refute",
        "--no-refute",
        "--answers",
        "--total-budget",
        "--schedule",
        "--generator",
        "--value",
        "--latency",
        "--baseline",
        "--pairs",
        "--no-pairs",
        "--jobs",
        "--ramp",
        "--no-ramp",
        "--random-phase",
        "--no-random-phase",
        "--overlap",
        "--no-overlap",
        "--wait-price",
        "--deadline",
        "--errors",
        "--wrong",
    ],
    "oracle": [
        "--rewards",
        "--score",
        "--costs",
        "--orders",
        "--seed",
        "--unlabelled",
        "--json",
        "--jobs",
    ],
    "shells": ["--costs", "--shells", "--json"],
    "star": ["--eta", "--centre", "--bins", "--score", "--time-limit", "--json"],
    "simulate": [
        "--policy",
        "--costs",
        "--candidates",
        "--problems",
        "--orders",
        "--seed",
        "--width",
        "--json",
        "--list",
        "--jobs",
    ],
    "convert": [
        "--out",
        "--problem",
        "--candidate",
        "--passed",
        "--score",
        "--key",
        "--list",
        "--text",
        "--filter",
        "--hour",
        "--importer",
        "--predictions",
    ],
}


def started(
    *arguments: str, stdout: int | None = subprocess.PIPE, stderr: int = subprocess.PIPE
) -> subprocess.Popen[str]:
    """A command of its own, which heeds Ctrl-C even where this process was told not to."""
    return subprocess.Popen(
        [GRV, *arguments],
        stdout=stdout,
        stderr=stderr,
        text=True,
        preexec_fn=as_from_a_terminal,
    )


def long_log(path: Path) -> str:
    with path.open("w") as file:
        print("problem,candidate,passed,score", file=file)
        for problem in range(200):
            for candidate in range(100):
                print(problem, candidate, int(candidate % 97 == 3), candidate, sep=",", file=file)
    return str(path)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.run(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_names_every_command(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, flag)

    assert all(f"  {command} " in text for command in OPTIONS)
    assert "grv demo" in text
    assert "Exit codes: 0 done" in text


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys) == shown(capsys, "--help")


def test_every_command_is_in_one_group_of_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)
    assert cli.run(["--help"]) == 0
    out = capsys.readouterr().out
    assert out.index("Start here:") < out.index("  solve ") < out.index("Study:")


def test_the_help_of_solve_begins_with_what_is_essential(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = shown(capsys, "solve", "--help")
    sections = re.findall(r"^([A-Z][a-z ]+):$", out, re.MULTILINE)
    assert sections[:4] == ["Arguments", "Essential", "Options", "Models and scores"]
    essential = out[out.index("\nEssential:") : out.index("\nOptions:")]
    flags = ("--generator", "--out", "--base-url", "--costs", "--budget", "--total-budget")
    assert all(f"{flag} " in essential for flag in flags)


@pytest.mark.parametrize("group", ["runs", "theory"])
def test_a_group_without_a_command_shows_its_help(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run([group]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"Usage: grv {group} ")
    assert "\nCommands:\n" in err


@pytest.mark.parametrize("command", OPTIONS)
def test_the_help_of_a_command_names_its_options_and_shows_examples(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(capsys, command, "--help")

    for option in OPTIONS[command]:
        assert re.search(rf"{option}\b", text), option
    assert set(re.findall(r"--[a-z-]+", text)) == {*OPTIONS[command], "--help"}
    if OPTIONS[command]:
        assert f"\n  grv {command} " in text


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "--version") == f"grv {__version__}\n"


def test_the_command_is_installed() -> None:
    done = subprocess.run([GRV, "--version"], capture_output=True, text=True, check=True)

    assert done.stdout == f"grv {__version__}\n"


def test_the_module_is_the_command_too() -> None:
    call = [sys.executable, "-m", "grv", "shells", "--costs", "0,0"]
    done = subprocess.run(call, capture_output=True, text=True)

    assert done.returncode == 2
    assert done.stderr.startswith("grv: ")


@pytest.mark.slow
def test_ctrl_c_while_a_file_is_read_says_one_line_and_leaves_no_file(tmp_path: Path) -> None:
    log, out = tmp_path / "samples.jsonl", tmp_path / "out.csv"
    os.mkfifo(log)
    running = started("convert", str(log), "-o", str(out))

    with log.open("wb"):  # opens as soon as the command reads, and gives it nothing
        running.send_signal(signal.SIGINT)
        said, complained = running.communicate(timeout=60)

    assert running.returncode == 130
    assert (said, complained) == ("", "grv: interrupted\n")
    assert sorted(tmp_path.iterdir()) == [log]


@pytest.mark.slow
def test_ctrl_c_in_the_middle_of_the_work_says_one_line_and_leaves_no_file(tmp_path: Path) -> None:
    log, out = long_log(tmp_path / "log.csv"), tmp_path / "out.json"
    out.write_text("old")
    here, there = pty.openpty()
    running = started("compare", log, "--orders", "5000", "--json", str(out), stderr=there)
    os.close(there)

    seen = b""
    while b"comparing" not in seen:  # the bar is there: the work has begun
        seen += os.read(here, 1000)
    running.send_signal(signal.SIGINT)
    try:
        said, _ = running.communicate(timeout=60)
    finally:
        running.kill()
        running.wait()
    seen = drained(here)

    assert running.returncode == 130
    assert said == ""
    assert b"Traceback" not in seen
    assert seen.rstrip().endswith(b"grv: interrupted")
    assert out.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2


def test_ctrl_c_in_the_middle_of_an_import_is_not_lost(tmp_path: Path) -> None:
    (tmp_path / "swallows.py").write_text(
        "import os, signal\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    sum(range(1000))\n"
        "except BaseException:  # as extension modules do, which clear errors\n"
        "    pass\n"
    )
    program = (
        "import signal, time\n"
        "from grv.__main__ import interrupt\n"
        "signal.signal(signal.SIGINT, interrupt)\n"
        "signal.signal(signal.SIGALRM, interrupt)\n"
        "try:\n"
        "    import swallows\n"
        "    print('imported', flush=True)\n"
        "    time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=50
    )

    assert done.stdout.endswith("interrupted\n")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("kind", "code", "told"),
    [
        ("MemoryError", 2, "grv: out of memory: lower --workers"),
        ("ValueError", 0, "Exception in thread"),
    ],
)
def test_a_thread_that_dies_without_memory_ends_the_command(
    kind: str, code: int, told: str
) -> None:
    program = (
        "import sys, threading\n"
        "from grv import __main__\n"
        "from grv.apps import cli\n"
        "def work():\n"
        f"    raise {kind}\n"
        "def run():\n"
        "    done = threading.Event()\n"
        "    threading.Thread(target=work, daemon=True).start()\n"
        "    done.wait(60 if sys.argv[1] == 'MemoryError' else 1)\n"
        "    return 0\n"
        "cli.run = run\n"
        "__main__.main()\n"
    )
    call = [sys.executable, "-c", program, kind]
    done = subprocess.run(call, capture_output=True, text=True, timeout=50)

    assert done.returncode == code, done
    assert done.stderr.startswith(told)


def drained(terminal: int) -> bytes:
    """What is left to read of a terminal that nobody writes to any more."""
    seen = b""
    try:
        while more := os.read(terminal, 1000):
            seen += more
    except OSError:  # Linux: the other end is closed
        pass
    os.close(terminal)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["demo", "--replay"], ["shells"], ["--help"]])
def test_a_reader_that_goes_away_is_no_error(arguments: Sequence[str]) -> None:
    running = started(*arguments)
    assert running.stdout is not None
    running.stdout.close()  # as `head` does, long before the command has something to say

    assert running.stderr is not None
    with running.stderr as stream:
        assert stream.read() == ""
    assert running.wait(timeout=60) == 0


@pytest.mark.slow
def test_the_first_line_can_be_had_alone() -> None:
    done = subprocess.run(
        f"'{GRV}' demo --replay | head -1", shell=True, capture_output=True, text=True, check=True
    )

    assert done.stdout.startswith("sample.csv comes with grv: 40 problems")
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_an_output_that_is_full_is_said_in_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [GRV, "shells"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )

    assert done.returncode == 2
    assert done.stderr == "grv: output: No space left on device\n"


@pytest.mark.slow
def test_progress_is_for_terminals_only(tmp_path: Path) -> None:
    log = long_log(tmp_path / "log.csv")
    done = subprocess.run(
        [GRV, "compare", log, "--policy", "adaptive"], capture_output=True, text=True, check=True
    )

    assert done.stderr == ""
    assert done.stdout.startswith(f"{log}: 200 problems")


def test_a_bug_is_said_in_one_line_and_its_traceback_can_be_had(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(doctor, "doctor", broken)
    assert cli.run(["doctor"]) == 2
    assert capsys.readouterr().err == (
        "grv: this is a bug in grv: ZeroDivisionError: oh (set GRV_DEBUG=1 for the traceback)\n"
    )
    monkeypatch.setenv("GRV_DEBUG", "1")
    assert cli.run(["doctor"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_command_loads_no_other_command() -> None:
    code = "import json, sys; from grv.apps.cli import run; run(['shells', '--help'])"
    code += "; print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = {*json.loads(done.stdout.splitlines()[-1])}
    assert "grv.apps.shells" in loaded
    assert not {"grv.apps.solve", "grv.apps.serve", "grv.apps.report"} & loaded


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("grv", ["numpy", "scipy", "pyarrow", "typer", "rich", "click"]),
        ("grv.policies", ["numpy", "scipy", "pyarrow", "typer", "rich"]),
        ("grv.apps.cli", ["numpy", "scipy", "pyarrow"]),
    ],
)
def test_what_is_imported_stays_light(module: str, unwanted: list[str]) -> None:
    code = f"import json, sys, {module}; print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert not {*unwanted} & {*json.loads(done.stdout)}


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["0>&-", "1>&-", "2>&-", "0>&- 1>&- 2>&-"])
def test_a_command_works_without_standard_streams(tmp_path: Path, closed: str) -> None:
    check = {"kind": "math", "answer": "1"}
    line = {"problem": "p", "check": check, "candidates": ["1", "2"]}
    (tmp_path / "in.jsonl").write_text(json.dumps(line) + "\n")
    command = f"exec {shlex.quote(str(GRV))} verify in.jsonl --out out.jsonl {closed}"
    assert subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, check=False).returncode == 0
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    found = [json.loads(each)["verdict"] for each in lines]
    assert sorted(found) == ["failed", "passed"]
