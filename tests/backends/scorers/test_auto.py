"""The score `auto`: the first candidate of a search decides what ranks it."""

from __future__ import annotations

import asyncio

from grv.backends.protocols import Arrived, Draft, Problem, Score
from grv.backends.scorers.auto import RANKS_LAST, AutoScorer
from grv.backends.scorers.trained.scorer import COLD

WITH = Draft("a", logprobs=(-0.5, -0.1))
WITHOUT = Draft("b")


def scores(*drafts: Draft) -> list[Score]:
    """The scores of drafts that arrive one after the other."""

    async def work() -> list[Score]:
        scorer = await AutoScorer().pinned(COLD)
        found: list[Score] = []
        earlier: list[Arrived] = []
        for draft in drafts:
            new = Arrived(draft)
            found += await scorer.score_arrivals(Problem("p"), earlier, [new])
            earlier.append(new)
        return found

    return asyncio.run(work())


def test_a_later_candidate_without_log_probabilities_ranks_last() -> None:
    first, second = scores(WITH, WITHOUT)
    assert first.value is not None
    assert second.value is None
    assert second.reason == RANKS_LAST
