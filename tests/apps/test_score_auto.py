"""`--score auto`, the default: log-probabilities, or else a score trained on the run's verdicts."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from grv.ledger.entries import Scored, Started
from grv.ledger.sqlite import SqliteLedger
from grv.testing.servers import (
    FakeAnthropic,
    FakeGemini,
    FakeOpenai,
    FakeResponses,
    FakeServer,
)
from support.commands import Ran, ended, here, records, start

BY_LOGPROB = "score: log-probabilities"
TRAINED = "score: none for 6 problems, trained on the verdicts in this ledger for 4 problems"


def text(prompt: str, index: int) -> str:
    """Every third candidate is right, and says so."""
    right = index % 3 == 2
    return "Surely it is \\boxed{42}." if right else f"It may be \\boxed{{{100 + index}}}."


def write(number: int = 10, name: str = "problems") -> None:
    check = {"kind": "math", "answer": "42"}
    lines = [
        json.dumps({"problem": f"p{at}", "prompt": f"What is {at} + {42 - at}?", "check": check})
        for at in range(number)
    ]
    Path(name).write_text("\n".join(lines) + "\n")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write()
    return tmp_path


def command(name: str, server: FakeServer, *more: object) -> list[object]:
    where = ["--generator", f"{name}:fake", "--base-url", server.url, "--out", "out"]
    return ["solve", "problems", *where, "--budget", 400, "--at-once", 1, *more]


def solve(name: str, server: FakeServer, *more: object) -> Ran:
    return here(*command(name, server, *more))


def entries(path: str = "out.ledger") -> list[Sequence[Any]]:
    """The entries of each search, in the order of their starts."""
    ledger = SqliteLedger(path, read_only=True)
    try:
        return [ledger.read(each.id) for each in ledger.searches()]
    finally:
        ledger.close()


def scorers(path: str = "out.ledger") -> list[str]:
    """The score that each search started with."""
    every = [[each for each in some if isinstance(each, Started)] for some in entries(path)]
    return [started[-1].scorer for started in every]


SERVERS = {
    "openai": ("openai", FakeOpenai, {}, BY_LOGPROB),
    "openai that ignores logprobs and n": (
        "openai",
        FakeOpenai,
        {"logprobs": False, "most": 1},
        TRAINED,
    ),
    "openai that refuses logprobs": (
        "openai",
        FakeOpenai,
        {"refuses": ["logprobs", "top_logprobs"]},
        TRAINED,
    ),
    "responses": ("responses", FakeResponses, {}, BY_LOGPROB),
    "anthropic": ("anthropic", FakeAnthropic, {}, TRAINED),
    "gemini": ("gemini", FakeGemini, {}, BY_LOGPROB),
    "gemini that refuses logprobs": (
        "gemini",
        FakeGemini,
        {"refuses": ["responseLogprobs"]},
        TRAINED,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind", "options", "said"), SERVERS.values(), ids=SERVERS)
def test_the_default_command_solves_with_every_server(
    name: str, kind: type[FakeServer], options: dict[str, Any], said: str
) -> None:
    with kind(text, **options) as server:
        ran = solve(name, server)
        refused = [each for each in server.received if each.status == 400]
    assert ran.code == 0
    assert {answer["outcome"] for answer in records(Path("out"))} == {"solved"}
    assert {answer["unscored"] for answer in records(Path("out"))} == {0}
    assert said in ran.out.splitlines()
    first = [line for line in ran.err.splitlines() if line.startswith("score: ")]
    assert [line.partition(";")[0].partition(" (")[0] for line in first] == (
        []
        if said == BY_LOGPROB
        else ["score: none yet", "score: trained on the verdicts in this ledger"]
    )
    assert len(refused) == (1 if "refuses" in options else 0)


def test_a_named_score_of_log_probabilities_stops_with_the_first_response() -> None:
    with FakeOpenai(text, logprobs=False) as server:
        ran = solve("openai", server, "--score", "logprob")
        assert len(server.received) == 1
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "no log-probabilities): " in ran.err
    with FakeAnthropic(text) as anthropic:
        ran = solve("anthropic", anthropic, "--score", "logprob-min")
        assert not anthropic.received
    assert ran.err == (
        "grv: --score logprob-min: anthropic:fake has no log-probabilities: leave --score out, or"
        " choose another one, such as --score length\n"
    )


@pytest.mark.slow
def test_a_run_of_the_former_default_goes_on_and_pays_nothing_twice() -> None:
    write(2)
    wrong = lambda prompt, index: f"It is \\boxed{{{100 + index}}}."  # noqa: E731
    with FakeOpenai(wrong) as server:
        assert solve("openai", server, "--score", "logprob", "--budget", 60).code == 1
        paid = server.made
        assert solve("openai", server, "--budget", 60).code == 1
        assert server.made == paid


WITHOUT = {
    "openai": {"logprobs": False, "most": 1},
    "anthropic": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT)
def test_a_killed_run_goes_on_with_the_scores_that_it_started_with(name: str) -> None:
    """Killed while a problem with a trained score is searched."""
    write(12)
    kinds = {"openai": FakeOpenai, "anthropic": FakeAnthropic}
    with kinds[name](slow, **WITHOUT[name]) as server:
        process = start(*command(name, server))
        while process.poll() is None and not (trained() and unfinished()):
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        ended(process)
        before = entries()
        assert solve(name, server).code == 0
    after = entries()
    for old, new in zip(before, after, strict=False):
        assert list(new[: len(old)]) == list(old), "nothing is written again"
        models = {each.scorer for each in new if isinstance(each, Started)}
        assert len(models) == 1, "the search keeps its model"
        assert scored(new)[: len(scored(old))] == scored(old)
    assert len(after) == 12
    assert here("runs", "check", "out.ledger").code == 0


def slow(prompt: str, index: int) -> str:
    time.sleep(0.05)
    return text(prompt, index)


def trained() -> bool:
    return Path("out.ledger").exists() and any(each != "cold" for each in scorers())


def unfinished() -> bool:
    ledger = SqliteLedger("out.ledger", read_only=True)
    try:
        return any(each.outcome is None for each in ledger.searches())
    finally:
        ledger.close()


def scored(some: Sequence[Any]) -> list[tuple[int, float | None]]:
    return [(each.candidate, each.score) for each in some if isinstance(each, Scored)]


@pytest.mark.slow
def test_a_log_without_log_probabilities_has_scores_of_0_and_says_what_to_do() -> None:
    with FakeOpenai(text, logprobs=False) as server:
        where = ["--generator", "openai:fake", "--base-url", server.url, "--out", "log.jsonl"]
        ran = here("collect", "problems", *where, "-n", 6)
    assert ran.code == 0
    assert {record["score"] for record in records(Path("log.jsonl"))} == {0}
    assert "score: none" in ran.out.splitlines()
    assert "grv learn log.jsonl.ledger --scorer -o scorer.json" in ran.out
    assert set(scorers("log.jsonl.ledger")) == {"cold"}
    assert here("learn", "log.jsonl.ledger", "--scorer", "-o", "scorer.json").code == 0


@pytest.mark.slow
def test_several_generators_share_a_trained_score() -> None:
    costs = ["--costs", "small=1,10", "--costs", "large=5,10"]
    with FakeOpenai(text, logprobs=False) as small, FakeOpenai(text, logprobs=False) as large:
        given = ["--generator", "small=openai:fake", "--generator", "large=openai:fake"]
        where = ["--base-url", f"small={small.url}", "--base-url", f"large={large.url}"]
        ran = here(
            "solve",
            "problems",
            *given,
            *where,
            *costs,
            "--budget",
            900,
            "--at-once",
            1,
            "--out",
            "out",
        )
    assert ran.code == 0
    assert TRAINED in ran.out.splitlines()
    assert [each == "cold" for each in scorers()] == [True] * 6 + [False] * 4


def test_auto_must_be_the_first_score() -> None:
    with FakeOpenai(text) as server:
        for score in (("--score", "length", "--alike", "auto"),):
            ran = solve("openai", server, *score)
            assert (ran.code, ran.err.count("\n")) == (2, 1)
            assert "auto must be the first score" in ran.err
