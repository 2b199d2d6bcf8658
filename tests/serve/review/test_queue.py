"""The queue: who waits, in which order, and what a reviewer may see."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest

from grv.core.values import Verdict
from grv.ledger.entries import Ended, Found, Intended, Made, Parked, Scored, Started
from grv.ledger.sqlite import SqliteLedger
from grv.serve.review.queue import ItemId, PassRates, Queue, ReviewItem
from support.pages import HUMAN


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    with closing(SqliteLedger(tmp_path / "ledger")) as opened:
        yield opened


def park(
    ledger: SqliteLedger,
    search: str,
    scores: dict[int, float],
    *,
    costs: tuple[float, ...] = (1, 10, 0),
    check: object = HUMAN,
) -> None:
    started = Started(search, {"costs": [*costs]}, f"Prompt of {search}", json.dumps(check))
    ledger.append(search, [started])
    for id, score in scores.items():
        ledger.append(search, [Made(id, f"text {id}"), Scored(id, score)])
        ledger.append(search, [Intended("verify", (id,), 10.0), Parked("verify", (id,), "note")])


def waiting(ledger: SqliteLedger) -> list[str]:
    return [str(each) for each in Queue(ledger).waiting()]


def test_what_saves_most_money_comes_first(ledger: SqliteLedger) -> None:
    park(ledger, "past", {at: at / 10 for at in range(30)})
    for at in range(30):  # those with high scores pass
        verdict = Verdict.PASSED if at >= 15 else Verdict.FAILED
        ledger.append("past", [Found(at, verdict, reviewer="ann")])
    park(ledger, "cheap", {0: 2.9, 1: 0.1})
    park(ledger, "dear", {0: 0.1, 1: 2.9}, costs=(1, 100, 0))

    assert waiting(ledger) == ["dear:1", "dear:0", "cheap:0", "cheap:1"]


def test_the_chance_follows_the_scores_and_starts_with_one_half() -> None:
    assert PassRates().of(3.0) == 0.5
    many = tuple((float(at), at >= 50) for at in range(100))
    rates = PassRates(many, 50, 100)
    assert rates.of(90.0) > 0.9
    assert rates.of(10.0) < 0.1
    assert rates.of(None) == pytest.approx(0.5)


def test_only_unfinished_searches_that_people_verify_are_in_the_queue(ledger: SqliteLedger) -> None:
    park(ledger, "human", {0: 1.0})
    park(ledger, "batch", {0: 1.0}, check={"kind": "http", "url": "http://localhost"})
    park(ledger, "ended", {0: 1.0})
    ledger.append("ended", [Ended("out of budget", None, 1, 0, 1.0)])
    park(ledger, "decided", {0: 1.0})
    ledger.append("decided", [Found(0, Verdict.FAILED, reviewer="ann")])

    assert waiting(ledger) == ["human:0"]


def test_a_reviewer_sees_neither_score_nor_verdicts(ledger: SqliteLedger) -> None:
    park(ledger, "human", {0: 1.0})
    item = Queue(ledger).item(ItemId("human", 0))

    assert item is not None
    assert {each.name for each in fields(ReviewItem)} == {
        "id",
        "problem",
        "prompt",
        "text",
        "check",
    }
    assert (item.prompt, item.text) == ("Prompt of human", "text 0")
    assert (item.check.question, item.check.rubric) == ("Is it right?", ("It adds.",))
    assert Queue(ledger).item(ItemId("human", 7)) is None
    assert Queue(ledger).item(ItemId("nothing", 0)) is None
