"""`grv learn`: a prior from logs and ledgers, and what is said when it does not fit."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grv.apps import cli
from grv.backends.generators.completions import seed_of
from grv.core.values import Verdict
from grv.learning.prior_file import load_prior
from grv.ledger.entries import Ended, Found, Made, Scored, Started
from grv.ledger.sqlite import SqliteLedger
from support.commands import here as grv
from support.commands import write_problems
from support.servers import FaultyServer, Received

Said = Callable[..., str]


def write_log(path: Path, *, problems: int = 6, seed: int = 0, labels: float = 1.0) -> None:
    chance = random.Random(seed)
    lines = ["problem,candidate,passed,a,b"]
    for problem in range(problems):
        for candidate in range(25):
            passed = chance.random() < 0.25 or candidate == 0
            label = str(passed).lower() if chance.random() < labels else ""
            a, b = (chance.gauss(1.5 * passed, 1) for _ in range(2))
            lines.append(f"p{problem},{candidate},{label},{a:.3f},{b:.3f}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_log(Path("log.csv"))
    write_log(Path("other.csv"), problems=4, seed=1)
    return tmp_path


@pytest.fixture
def said(folder: Path, capsys: pytest.CaptureFixture[str]) -> Said:
    """What a command prints, which must be about nothing wrong."""

    def run(*arguments: str) -> str:
        code = cli.run(arguments)
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        return out

    return run


@pytest.fixture
def complaint(folder: Path, capsys: pytest.CaptureFixture[str]) -> Said:
    """What is wrong with a command, in one line."""

    def run(*arguments: str) -> str:
        code = cli.run(arguments)
        out, err = capsys.readouterr()
        assert (code, out) == (2, "")
        assert err.startswith("grv: ")
        assert err.count("\n") == 1
        return err.removeprefix("grv: ").rstrip("\n")

    return run


def test_it_says_what_it_learned_from_and_how_to_use_it(said: Said) -> None:
    text = said("learn", "log.csv", "--score", "a", "-o", "prior.json")

    prior = load_prior("prior.json")
    hash = prior.hash
    assert text.splitlines() == [
        f"prior.json: for the score a, hash {hash}",
        "evidence: 6 problems, 6 of them with a pass; 150 labels of 150 candidates, worth"
        " 150 independent ones",
        "little evidence: fewer than 20 problems with a pass; its estimates may be far off",
        "use it with --policy \"learned('prior.json')\"",
    ]
    assert prior.evidence.sources == ("log.csv",)


@pytest.mark.slow
def test_what_was_learned_is_a_row_of_a_comparison(said: Said) -> None:
    said("learn", "log.csv", "--score", "a", "-o", "prior.json")
    policies = ("--policy", "learned('prior.json')", "--policy", "adaptive")

    table = said("compare", "other.csv", "--score", "a", *policies)

    assert "learned('prior.json')  1,10" in table


@pytest.mark.slow
def test_several_logs_are_one_history(said: Said) -> None:
    text = said("learn", "log.csv", "other.csv", "--score", "a", "-o", "prior.json")

    assert "evidence: 10 problems" in text


def test_labels_may_be_missing(said: Said) -> None:
    write_log(Path("partly.csv"), labels=0.3)

    text = said("learn", "partly.csv", "--score", "a", "-o", "prior.json")

    labels = int(text.split(" labels of 150 candidates")[0].split()[-1])
    assert 25 < labels < 70
    assert "censored, some labels missing: 6 problems" in text


@pytest.mark.slow
def test_a_combination_of_scores_ranks_like_a_score(said: Said) -> None:
    text = said("learn", "log.csv", "--score", "a", "--score", "b", "-o", "both.json")
    assert "both.json: for the score combined(a, b), hash" in text
    assert "combination, on a common scale: " in text

    table = said(
        "compare",
        "other.csv",
        "--score",
        "both.json",
        "--policy",
        "learned('both.json')",
        "--policy",
        "adaptive",
    )

    assert "score combined(a, b)" in table


def test_a_prior_is_for_one_score(said: Said, complaint: Said) -> None:
    said("learn", "log.csv", "--score", "a", "-o", "prior.json")
    policy = ("--policy", "learned('prior.json')")

    assert complaint("compare", "other.csv", "--score", "b", *policy) == (
        "prior.json is for the score 'a', not 'b': use --score a, or learn another prior"
    )
    assert complaint("compare", "other.csv", "--score", "prior.json", *policy) == (
        "prior.json does not combine scores; use --score a"
    )


def test_a_score_may_go_by_another_name(said: Said) -> None:
    text = said("learn", "log.csv", "--score", "a", "--name", "logprob", "-o", "prior.json")

    assert "for the score logprob," in text


def test_scores_unlike_the_history_are_warned_of_once(
    said: Said, capsys: pytest.CaptureFixture[str]
) -> None:
    said("learn", "log.csv", "--score", "a", "-o", "prior.json")
    record = json.loads(Path("prior.json").read_text())
    record["scale"]["values"] = [1000 + value for value in record["scale"]["values"]]
    Path("prior.json").write_text(json.dumps(record))

    with pytest.MonkeyPatch.context() as patch:
        import warnings

        patch.setattr(warnings, "filters", [("default", None, Warning, None, 0)])
        code = cli.run(
            ["compare", "other.csv", "--score", "a", "--policy", "learned('prior.json')"]
        )

    out, err = capsys.readouterr()
    assert code == 0
    assert "learned('prior.json')" in out
    assert err == (
        "grv: warning: prior.json: the scores of some problems differ from its history; for those"
        " problems the default policy decides, inside the guard (see the reasons of their steps)\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("log.csv",), "--out FILE is required"),
        (("-o", "p.json"), "LOG... is required"),
        (("log.csv", "-o", "p.json"), "several scores: 'a', 'b'; choose one with --score"),
        (("log.csv", "--score", "c", "-o", "p.json"), "no score 'c'; there are 'a', 'b'"),
        (("log.csv", "--score", "a", "-o", "p.txt"), "p.txt: the name of a prior ends in .json"),
        (("log.csv", "--score", "a", "-o", "log.csv"), "log.csv: given twice"),
        (("no.csv", "--score", "a", "-o", "p.json"), "no.csv: cannot be read"),
        (
            ("log.csv", "--score", "a", "--score", "a", "-o", "p.json"),
            "--score: the same score is given twice",
        ),
        (("vain.csv", "--score", "a", "-o", "p.json"), "vain.csv: no candidate passed"),
        (("dark.csv", "--score", "a", "-o", "p.json"), "dark.csv: no candidate has a label"),
        (("bare.csv", "--score", "a", "-o", "p.json"), "bare.csv: no candidate has the score 'a'"),
        (("log.csv", "./log.csv", "--score", "a", "-o", "p.json"), "the same file is given twice"),
        (("log.csv", "c.csv", "-o", "p.json"), "several scores: "),
        (("c.csv", "d.csv", "-o", "p.json"), "the files have different scores: 'c' in c.csv, 'd'"),
    ],
    ids=str,
)
def test_bad_input_is_one_line(complaint: Said, arguments: tuple[str, ...], message: str) -> None:
    for name, row in (("vain", "false,1"), ("dark", ",1"), ("bare", "true,")):
        Path(f"{name}.csv").write_text(f"problem,candidate,passed,a\nx,0,{row}\n")
    for name in "cd":
        Path(f"{name}.csv").write_text(f"problem,candidate,passed,{name}\nx,0,true,1\n")

    assert message in complaint("learn", *arguments)
    assert not Path("p.json").exists()


def test_an_interrupt_leaves_no_partial_prior(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("grv.comparing.tune.learned_trials", interrupted)

    assert cli.run(["learn", "log.csv", "--score", "a", "-o", "prior.json"]) == 130
    assert capsys.readouterr() == ("", "grv: interrupted\n")
    assert sorted(path.name for path in folder.iterdir()) == ["log.csv", "other.csv"]


def search(ledger: SqliteLedger, name: str, scorer: str, verdicts: str) -> None:
    """A search whose candidates were verified with these results, from the first on."""
    marks = {"+": Verdict.PASSED, "-": Verdict.FAILED, "?": Verdict.BROKEN}
    entries = [Started(name, {"score": scorer})]
    made = [Made(i, f"text {i}") for i in range(8)]
    scored = [Scored(i, None if i == 7 else (i * 5 % 8) + len(name)) for i in range(8)]
    found = [Found(i, marks[mark]) for i, mark in enumerate(verdicts)]
    ended = Ended("solved", 0, 8, len(verdicts), 1.0)
    ledger.append(f"{name}-{scorer}", [*entries, *made, *scored, *found, ended])


def test_a_ledger_is_a_history_with_labels_up_to_the_pass(
    said: Said, complaint: Said, folder: Path
) -> None:
    ledger = SqliteLedger("runs.ledger")
    for name, verdicts in (("a", "--+"), ("bb", "+"), ("ccc", "-?-+"), ("dddd", "--")):
        search(ledger, name, "logprob", verdicts)
    ledger.close()

    text = said("learn", "runs.ledger", "-o", "prior.json")

    assert text.startswith("prior.json: for the score logprob, hash ")
    assert "evidence: 4 problems, 3 of them with a pass; 9 labels of 32 candidates, worth 9" in text
    ledger = SqliteLedger("runs.ledger")
    search(ledger, "a", "length", "+")
    ledger.close()
    assert "choose one of 'logprob', 'length' with --score" in complaint(
        "learn", "runs.ledger", "-o", "prior.json"
    )
    assert "no score 'judge'; there are 'logprob', 'length'" in complaint(
        "learn", "runs.ledger", "--score", "judge", "-o", "prior.json"
    )
    assert "evidence: 1 problem," in said(
        "learn", "runs.ledger", "--score", "length", "-o", "prior.json"
    )
    SqliteLedger("empty.ledger").close()
    assert complaint("learn", "empty.ledger", "-o", "prior.json") == (
        "empty.ledger: this ledger has no searches"
    )


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    def text(request: Received, seed: int) -> str:
        name = request.prompt.removeprefix("Solve ").removesuffix(".")
        number = (seed - seed_of(0, name, 0)) * 7 % 11
        return f"{name} {number} {'right' if number == 3 else 'wrong'}"

    with FaultyServer(text=text) as running:
        yield running


@pytest.mark.slow
def test_a_live_run_is_learned_from_and_goes_by_what_was_learned(
    folder: Path, server: FaultyServer
) -> None:
    problems = write_problems(folder / "problems", ["a", "b", "c"], seen=folder / "seen")
    live = [
        "solve",
        problems,
        "--allow-commands",
        "--generator",
        "openai:m",
        "--base-url",
        server.url,
    ]
    assert grv(*live, "--out", "first").code == 0
    learned = grv("learn", "first.ledger", "-o", "prior.json")
    assert (learned.code, learned.err) == (0, "")
    policy = ["--policy", "learned('prior.json')"]

    ran = grv(*live, "--out", "second", *policy)

    assert ran.code == 0, ran.err
    hash = load_prior("prior.json").hash
    shown = grv("runs", "show", "second.ledger", "a").out
    assert f"policy learned(prior='prior.json', hash='{hash}')" in shown
    assert "verifying the best one saves " in shown
    wrong = grv(*live, "--out", "third", *policy, "--score", "length")
    assert wrong.code == 2
    assert "prior.json is for the score 'auto', not 'length'" in wrong.err
