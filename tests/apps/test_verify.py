"""`grv verify`, where it matters as a process: killed, interrupted, started again."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from grv.backends.verifiers.verdict_store import VerdictStore
from support.commands import ended, here, start

CHECK = {"kind": "function", "entry_point": "f", "tests": [{"args": [1], "expected": 2}]}
RIGHT, WRONG = "def f(x): return x + 1", "def f(x): return x"


def run(*arguments: str | Path) -> tuple[int, str, str]:
    ran = here(*arguments)
    return ran.code, ran.out, ran.err


def problems(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def labels(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def slow(count: int, seconds: float = 0.05) -> list[str]:
    body = "import time\ndef f(x):\n    time.sleep({})\n    return x + {}"
    return [body.format(seconds, 1 + (i % 2) * (i + 1)) for i in range(count)]


@pytest.mark.slow
def test_every_candidate_gets_its_label(tmp_path: Path) -> None:
    file = problems(
        tmp_path / "in",
        {"problem": "a", "check": CHECK, "candidates": [RIGHT, WRONG, "no ("]},
        {"problem": "b", "check": CHECK, "candidates": []},
    )
    ran = ended(start("verify", file, "--out", tmp_path / "out", "--workers", "1"))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("3 candidates of 2 problems: 1 passed, 2 failed, 0 broken\n")
    assert "isolation jail: landlock" in ran.out
    found = {label["candidate"]: label for label in labels(tmp_path / "out")}
    assert [found[i]["verdict"] for i in range(3)] == ["passed", "failed", "failed"]
    assert found[2]["reason"] == "refuted: does not parse: line 1: '(' was never closed"
    assert "1 refuted without verification" in ran.out
    names = ["problem", "candidate", "verdict", "reason", "seconds", "key", "of", "isolation"]
    assert list(found[0]) == list(found[2]) == names


@pytest.mark.slow
def test_started_again_it_does_nothing_twice(tmp_path: Path) -> None:
    file = problems(tmp_path / "in", {"problem": "a", "check": CHECK, "candidates": slow(6)})
    run("verify", file, "-o", tmp_path / "out")
    before = (tmp_path / "out").read_bytes()
    code, out, _ = run("verify", file, "-o", tmp_path / "out")
    assert code == 0
    assert "0 verified in" in out
    assert (tmp_path / "out").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_killed_in_the_middle_it_loses_and_repeats_nothing(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    texts = slow(40)
    file = problems(tmp_path / "in", {"problem": "a", "check": CHECK, "candidates": texts})
    out = tmp_path / "out"
    process = start("verify", file, "-o", out, "--workers", "2")
    deadline = time.monotonic() + 60
    while (not out.exists() or out.read_bytes().count(b"\n") < 8) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == code
    kept = labels(out)
    assert 8 <= len(kept) < 40
    with out.open("ab") as file_again:
        file_again.write(b'{"problem": "a", "candi')  # as if it had been torn
    assert run("verify", file, "-o", out, "--workers", "2")[0] == 0
    after = labels(out)
    assert after[: len(kept)] == kept
    assert Counter(label["candidate"] for label in after) == Counter(range(40))
    assert all((label["verdict"] == "passed") == (label["candidate"] % 2 == 0) for label in after)


def test_broken_verdicts_are_exit_code_one_and_tried_again(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    check = {"kind": "command", "argv": ["sh", "-c", f"test -e {flag} || exit 9"]}
    file = problems(tmp_path / "in", {"problem": "a", "check": check, "candidates": ["x"]})
    code, out, err = run("verify", file, "--allow-commands", "-o", tmp_path / "out")
    assert code == 1
    assert "1 broken" in out
    assert "broken: a, candidate 0" in err
    flag.touch()
    assert run("verify", file, "--allow-commands", "-o", tmp_path / "out")[0] == 0
    assert [label["verdict"] for label in labels(tmp_path / "out")] == ["passed"]


@pytest.mark.slow
def test_the_cache_is_closed_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stores = []

    class Kept(VerdictStore):
        """A store that is not closed by being forgotten."""

        def __init__(self, path: Path) -> None:
            super().__init__(path)
            stores.append(self)

    monkeypatch.setattr("grv.backends.verifiers.verdict_store.VerdictStore", Kept)
    file = problems(tmp_path / "in", {"problem": "a", "check": CHECK, "candidates": [RIGHT]})
    ran = run("verify", file, "-o", tmp_path / "out", "--cache", tmp_path / "cache")
    assert (ran[0], len(stores)) == (0, 1), ran
    # SQLite removes the file of recent changes when the last user closes the database.
    assert sorted(path.name for path in tmp_path.glob("cache*")) == ["cache"]


@pytest.mark.slow
def test_evidence_and_cache_on_request(tmp_path: Path) -> None:
    file = problems(tmp_path / "in", {"problem": "a", "check": CHECK, "candidates": [WRONG]})
    for name in ("one", "two"):
        run("verify", file, "-o", tmp_path / name, "--evidence", "--cache", tmp_path / "cache")
    (first,), (second,) = labels(tmp_path / "one"), labels(tmp_path / "two")
    assert first["evidence"]["expected"] == "2"
    assert second["evidence"]["remembered"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--isolation", "none"],
            "--isolation none: give one of strict, jail, unsafe, podman, docker, gvisor",
        ),
        (["--timeout", "0"], "--timeout 0: give a number from 0.001 to 100,000,000"),
        (["--memory", "x"], "--memory x: give a whole number from 1 to 1,000,000,000"),
        (["--workers", "0"], "--workers 0: give a whole number from 1 to 1,024"),
    ],
)
def test_bad_options_are_said_in_one_line(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    file = problems(tmp_path / "in", {"problem": "a", "check": CHECK, "candidates": []})
    assert run("verify", file, "-o", tmp_path / "out", *arguments) == (2, "", f"grv: {message}\n")


def test_bad_files_are_said_in_one_line_before_any_work(tmp_path: Path) -> None:
    file = problems(
        tmp_path / "in",
        {"problem": "a", "check": CHECK, "candidates": [RIGHT]},
        {"problem": "b", "check": {"kind": "stdin"}, "candidates": []},
    )
    code, _, err = run("verify", file, "-o", tmp_path / "out")
    assert (code, err) == (2, "grv: problem b, check.tests: is missing\n")
    assert not (tmp_path / "out").exists()
    code, _, err = run("verify", file, "-o", file)
    assert code == 2
    assert "given twice" in err


@pytest.mark.slow
def test_a_label_belongs_to_the_text_and_the_check_it_is_of(tmp_path: Path) -> None:
    def given(text: str, check: dict[str, Any]) -> Path:
        return problems(tmp_path / "in", {"problem": "a", "check": check, "candidates": [text]})

    run("verify", given(RIGHT, CHECK), "-o", tmp_path / "out")
    before = (tmp_path / "out").read_bytes()
    other = CHECK | {"tests": [{"args": [1], "expected": 1}]}
    for text, check in ((WRONG, CHECK), (RIGHT, other)):
        code, _, err = run("verify", given(text, check), "-o", tmp_path / "out")
        assert code == 2
        assert "with another text, check or limits; give another --out" in err
    assert run("verify", given(RIGHT, CHECK), "-o", tmp_path / "out")[0] == 0
    assert (tmp_path / "out").read_bytes() == before


def test_a_label_that_is_of_no_text_is_not_continued(tmp_path: Path) -> None:
    file = problems(tmp_path / "in", {"problem": "a", "check": CHECK, "candidates": [WRONG]})
    forged = '{"problem": "a", "candidate": 0, "verdict": "passed", "isolation": "strict"}\n'
    (tmp_path / "out").write_text(forged)
    code, _, err = run("verify", file, "-o", tmp_path / "out")
    assert code == 2
    assert "candidate 0 that does not say which text it is of; give another --out" in err
    assert (tmp_path / "out").read_text() == forged


@pytest.mark.slow
def test_a_label_is_joined_only_with_the_text_that_it_is_of(tmp_path: Path) -> None:
    file = problems(tmp_path / "in", {"problem": "a", "check": CHECK, "candidates": [RIGHT]})
    run("verify", file, "-o", tmp_path / "out.jsonl")
    for text, expected in ((RIGHT, 0), (WRONG, 2)):
        record = {"problem": "a", "candidate": 0, "text": text, "score": 1}
        (tmp_path / "texts.jsonl").write_text(json.dumps(record))
        for first, second in (("texts", "out"), ("out", "texts")):
            files = [tmp_path / f"{first}.jsonl", tmp_path / f"{second}.jsonl"]
            code, _, err = run("convert", *files, "-o", tmp_path / "log.jsonl")
            assert code == expected
            assert ("or its label is of another text" in err) == bool(expected)


@pytest.mark.slow
def test_labels_of_another_file_are_not_added_to(tmp_path: Path) -> None:
    file = problems(tmp_path / "in", {"problem": "a", "check": CHECK, "candidates": [RIGHT]})
    other = problems(tmp_path / "in2", {"problem": "b", "check": CHECK, "candidates": [RIGHT]})
    run("verify", file, "-o", tmp_path / "out")
    code, _, err = run("verify", other, "-o", tmp_path / "out")
    assert code == 2
    assert "has a label for problem a, candidate 0, which is not in" in err
