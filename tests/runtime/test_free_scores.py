"""Scores that follow from the drafts alone are written with the next entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

import grv
from grv.backends.protocols import Arrived, Draft, Problem, Score, Usage
from grv.backends.scorers.auto import AutoScorer
from grv.backends.scorers.logprob import LogprobScorer
from grv.core.errors import LedgerError
from grv.core.values import Costs, Measured
from grv.ledger.entries import Entry, Intended, Scored, kind_of
from grv.ledger.ledger import Append, MemoryLedger
from grv.runtime.prices import Meter, Prices

METER = Meter(Prices({"m": {"completion": 2e6}}, {"verify_second": 20.0}), "m")


class _Own:
    """The score of a user: to make it again may cost something."""

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        return [Score(1.0) for _ in drafts]


def _to_verify(entries: Sequence[Entry]) -> bool:
    """Whether an attempt to verify begins."""
    return any(isinstance(entry, Intended) and entry.call == "verify" for entry in entries)


class _WatchedLedger(MemoryLedger):
    """Keeps what was written together; it may die before the first verification."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[list[Entry]] = []
        self.dies = False

    def append_all(self, groups: Sequence[Append]) -> Sequence[Exception | None]:
        entries = [entry for group in groups for entry in group.entries]
        if self.dies and _to_verify(entries):
            raise LedgerError("the process died")
        self.writes.append(entries)
        return super().append_all(groups)


def _search(ledger: MemoryLedger, scorer: Any, drafts: list[str], **more: Any) -> grv.Solution:
    class Writer:
        async def generate(self, problem: Problem, n: int, *, first: int = 0) -> list[Draft]:
            drafts.append("generated")
            return [Draft(f"text {first + at}", (-0.5, -0.25), Usage(10, 5)) for at in range(n)]

    options = {"policy": "fixed(2, 1)", "costs": Costs(1, 10), **more}
    return grv.solve_now(
        Problem("p", "a prompt"),
        generator=Writer(),
        scorer=scorer,
        verifier=lambda problem, text: text == "text 1",
        budget=100,
        ledger=ledger,
        **options,
    )


def _alone(ledger: _WatchedLedger) -> bool:
    """Whether scores were written without an attempt to verify."""
    with_scores = [w for w in ledger.writes if any(isinstance(entry, Scored) for entry in w)]
    return not all(map(_to_verify, with_scores))


@pytest.mark.parametrize("scorer", [LogprobScorer(), AutoScorer()])
def test_a_free_score_is_written_with_the_verification_that_it_leads_to(scorer: Any) -> None:
    ledger = _WatchedLedger()
    _search(ledger, scorer, [])
    (write,) = (w for w in ledger.writes if any(isinstance(entry, Scored) for entry in w))
    assert [kind_of(entry) for entry in write][-4:] == ["scored", "scored", "told", "intended"]
    assert _to_verify(write)


@pytest.mark.parametrize(
    ("scorer", "more"),
    [
        (_Own(), {}),
        (AutoScorer(("own", _Own())), {}),
        (LogprobScorer(), {"costs": Costs(1, 10, score=0.5)}),
        (LogprobScorer(), {"costs": Measured(1, 10), "meter": METER, "most": Costs(1, 10)}),
    ],
    ids=["own", "auto with another score", "with a price", "measured"],
)
def test_other_scores_are_durable_before_they_are_used(scorer: Any, more: dict[str, Any]) -> None:
    ledger = _WatchedLedger()
    _search(ledger, scorer, [], **more)
    assert _alone(ledger)


def test_free_scores_that_were_not_written_are_made_again() -> None:
    ledger = _WatchedLedger()
    ledger.dies = True
    drafts: list[str] = []
    with pytest.raises(LedgerError, match="died"):
        _search(ledger, LogprobScorer(), drafts)
    assert not any(isinstance(entry, Scored) for write in ledger.writes for entry in write)

    ledger.dies = False
    solution = _search(ledger, LogprobScorer(), drafts)
    assert drafts == ["generated"]
    assert (solution.bill.generated, solution.bill.verified) == (2, 1)


def test_a_scorer_without_log_probabilities_is_free_too() -> None:
    scorer = anyio.run(AutoScorer().pinned, "cold")
    assert scorer.is_repeatable
    arrived = [Arrived(Draft("a")), Arrived(Draft(" "))]
    first = anyio.run(scorer.score_arrivals, Problem("p", ""), (), arrived)
    assert first == anyio.run(scorer.score_arrivals, Problem("p", ""), (), arrived)
