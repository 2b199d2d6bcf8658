"""Trained scores and `alike` from the command line, from training to a live run."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from grv.apps import cli
from grv.backends.scorers.trained.model import load_model
from grv.ledger.entries import Started
from grv.ledger.sqlite import SqliteLedger

Said = Callable[..., str]
WORDS = [f"word{i}" for i in range(20)]
CODE = """
import random

WORDS = [f"word{i}" for i in range(20)]
numbers = {}


def write(problem):
    number = numbers[problem.id] = numbers.get(problem.id, -1) + 1
    with open("paid", "a") as file:
        file.write(f"{problem.id} {number}\\n")
    chance = random.Random(f"{problem.id} {number}")
    words = chance.sample(WORDS, 4)
    return " ".join([*words, "good"] if chance.random() < 0.2 else words)


def is_right(problem, text):
    return "good" in text


def letters(problem, text):
    return len(text) % 3
"""


def write_log(path: Path, problems: int = 24, *, texts: bool = True, labels: str = "both") -> None:
    chance = random.Random(0)
    with path.open("w") as file:
        for at in range(problems):
            for number in range(20):
                passed = {"both": chance.random() < 0.3 or number == 9, "none": None}.get(
                    labels, labels == "passes"
                )
                words = chance.sample(WORDS, 4)
                if passed and chance.random() < 0.9:
                    words.append("good")
                record = {"problem": f"p{at}", "candidate": number, "passed": passed}
                record |= {"text": " ".join(words)} if texts else {}
                record |= {"judge": bool(passed) + chance.gauss(0, 1), "kind": number % 4}
                file.write(json.dumps(record) + "\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_log(Path("log.jsonl"))
    Path("my.py").write_text(CODE)
    lines = [json.dumps({"problem": f"q{at}", "prompt": "Write it."}) for at in range(12)]
    Path("problems.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.fixture
def said(folder: Path, capsys: pytest.CaptureFixture[str]) -> Said:
    def run(*arguments: str) -> str:
        code = cli.run(arguments)
        out, err = capsys.readouterr()
        assert code == 0, err
        return out

    return run


@pytest.fixture
def complaint(folder: Path, capsys: pytest.CaptureFixture[str]) -> Said:
    def run(*arguments: str) -> str:
        code = cli.run(arguments)
        out, err = capsys.readouterr()
        assert (code, out) == (2, "")
        assert err.startswith("grv: ")
        assert err.count("\n") == 1
        return err.removeprefix("grv: ").rstrip("\n")

    return run


@pytest.mark.slow
def test_a_score_is_trained_judged_and_replayed(said: Said) -> None:
    text = said("learn", "log.jsonl", "--scorer", "--score", "judge", "-o", "scorer.json")

    lines = text.splitlines()
    assert lines[0] == f"scorer.json: a score, hash {load_model('scorer.json').hash}"
    assert lines[1].startswith("evidence: 480 verdicts on 24 problems, ")
    assert lines[2].startswith("given scores, on a common scale: ")
    assert lines[3].startswith("a pass ranks above a failure of its problem 0.")
    assert "(cross-fitted; chance 0.5)" in lines[3]
    assert lines[4].startswith("learned with it, at 1,10: 0.")
    assert lines[-1] == "use it with --score trained:scorer.json --alike judge"
    table = said("compare", "log.jsonl", "--score", "scorer.json", "--policy", "varied")
    assert "score trained" in table


def test_failures_may_count_by_another_column(said: Said, complaint: Said) -> None:
    how = ("compare", "log.jsonl", "--score", "judge", "--policy", "varied")
    said(*how, "--json", "plain.json")
    said(*how, "--alike", "kind", "--json", "alike.json")
    settings = [json.loads(Path(n).read_text())["settings"] for n in ("plain.json", "alike.json")]
    assert ["alike" in each for each in settings] == [False, True]
    assert settings[1]["alike"] == "kind"
    assert "no score 'kid'" in complaint(*how, "--alike", "kid")


@pytest.mark.slow
def test_a_prior_remembers_by_what_failures_are_counted(said: Said, complaint: Said) -> None:
    text = said("learn", "log.jsonl", "--score", "judge", "--alike", "kind", "-o", "prior.json")
    assert "failures count against candidates with the same kind" in text
    how = ("compare", "log.jsonl", "--score", "judge", "--policy", "learned('prior.json')")
    assert complaint(*how) == "prior.json counts failures by 'kind': give --alike kind"
    said(*how, "--alike", "kind")


LIVE = (
    "solve",
    "problems.jsonl",
    "--generator",
    "my.py:write",
    "--verifier",
    "my.py:is_right",
    "--policy",
    "verify-all",
    "--concurrency",
    "1",
)


def scorers(path: str) -> list[str]:
    ledger = SqliteLedger(path, read_only=True)
    try:
        first = [ledger.read(each.id)[0] for each in ledger.searches()]
        return [each.scorer for each in first if isinstance(each, Started)]
    finally:
        ledger.close()


@pytest.mark.slow
def test_a_run_trains_on_itself_and_another_goes_on_from_there(said: Said) -> None:
    said(*LIVE, "--score", "trained:first.ledger", "--out", "first")
    first, paid = scorers("first.ledger"), Path("paid").read_text()
    assert len(first) == 12
    assert first[0] == "cold"

    said(*LIVE, "--score", "trained:first.ledger", "--out", "first")
    assert Path("paid").read_text() == paid, "the same command pays nothing again"
    Path("first").unlink()
    said(*LIVE, "--score", "trained:first.ledger", "--out", "first")
    assert Path("paid").read_text() == paid, "nor if the answers are lost"

    said(*LIVE, "--score", "trained:first.ledger", "--out", "second")
    assert "cold" not in scorers("second.ledger")
    assert "verdicts on 12 problems" in said("learn", "first.ledger", "--scorer", "-o", "s.json")


@pytest.mark.slow
def test_a_live_run_counts_failures_by_another_score(said: Said) -> None:
    said(*LIVE, "--score", "length", "--alike", "my.py:letters", "--out", "first")

    said("runs", "export", "first.ledger", "-o", "first.csv")
    head, row = (line.split(",") for line in Path("first.csv").read_text().splitlines()[:2])
    values = dict(zip(head, row, strict=True))
    assert float(values["alike"]) == -float(values["score"]) % 3
    assert "for the score length, hash" in said("learn", "first.ledger", "-o", "prior.json")
    given = ("--scorer", "--score", "my.py:letters")
    assert "given scores, on a common scale: " in said(
        "learn", "first.ledger", *given, "-o", "scorer.json"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("log.jsonl", "--scorer", "-o", "s.txt"), "s.txt: the name of a scorer ends in .json"),
        (("log.jsonl", "--scorer", "--name", "x", "-o", "s.json"), "--name and --alike are for"),
        (("bare.jsonl", "--scorer", "-o", "s.json"), "bare.jsonl: no column 'text', which a score"),
        (("dark.jsonl", "--scorer", "-o", "s.json"), "dark.jsonl: no candidate has a label"),
        (("good.jsonl", "--scorer", "-o", "s.json"), "good.jsonl: no problem has both a pass and"),
        (("vain.jsonl", "--scorer", "-o", "s.json"), "vain.jsonl: no candidate passed"),
        (("log.jsonl", "--scorer", "--score", "no", "-o", "s.json"), "no score 'no'; there are "),
        (("empty.ledger", "--scorer", "-o", "s.json"), "empty.ledger: this ledger has no candidat"),
    ],
    ids=str,
)
def test_bad_input_is_one_line(complaint: Said, arguments: tuple[str, ...], message: str) -> None:
    write_log(Path("bare.jsonl"), 2, texts=False)
    for name, labels in (("dark", "none"), ("good", "passes"), ("vain", "fails")):
        write_log(Path(f"{name}.jsonl"), 2, labels=labels)
    SqliteLedger("empty.ledger").close()

    assert message in complaint("learn", *arguments)
    assert not Path("s.json").exists()


def test_one_problem_is_trained_on_but_not_judged(said: Said) -> None:
    write_log(Path("one.jsonl"), 1)
    text = said("learn", "one.jsonl", "--scorer", "-o", "s.json")
    assert "little evidence: fewer than 200 verdicts; it may rank badly" in text


@pytest.mark.parametrize(
    ("score", "message"),
    [
        ("trained:log.jsonl", "trained:log.jsonl: not a ledger; give a ledger, or a file of grv"),
        ("trained:none.ledger", "trained:none.ledger: no such ledger"),
        ("trained:plain.json", "plain.json: not a scorer; make one with grv learn --scorer"),
        ("trained", "trained needs LEDGER: write trained:LEDGER"),
        ("cascade(length, trained:x, top=2)", "a trained score must be the first one"),
    ],
)
def test_a_live_run_refuses_what_is_no_scorer(complaint: Said, score: str, message: str) -> None:
    Path("plain.json").write_text("{}")
    assert message in complaint(*LIVE, "--score", score, "--out", "answers")
    assert not Path("paid").exists()
