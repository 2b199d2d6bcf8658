"""The scorer `trained:LEDGER`: a score that is fitted to verdicts, and fitted again as they grow.

A search keeps the model that it started with, also when it is resumed: `pinned` returns it. So the
scores of a search are comparable, and a new model never makes a search pay again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar

from ...callables import in_thread
from ...protocols import Arrived, Draft, Problem, Score, Scorer
from .features import Arrival, Others, answers_are_programs
from .model import TrainedModel, model_of

COLD = "cold"  # recorded for a search that started before there was a model


class TrainedScorer:
    """A score fitted to verdicts. Choose it if you have the ledger of earlier searches.

    `load_model` reads a model that `grv learn --scorer` wrote.

    Args:
        latest: returns the newest model; None if there is none yet. It may take a while. If it is
            None itself, the models are those of the run's own ledger.
        given: the name of another score and its scorer, if the model uses one. Failures are then
            counted by its exact values.

    Examples:
        >>> import grv
        >>> scorer = grv.scorers.Trained(lambda: None)  # no model yet
        >>> scorer
        TrainedScorer()
    """

    reads_logprobs: ClassVar[bool] = True

    def __init__(
        self,
        latest: Callable[[], TrainedModel | None] | None,
        given: tuple[str, Scorer] | None = None,
    ) -> None:
        self._latest = latest
        self._given = given

    def __repr__(self) -> str:
        return "TrainedScorer()" if self._given is None else f"TrainedScorer({self._given[0]!r})"

    async def pinned(self, recorded: str = "", own: TrainedModel | None = None) -> PinnedScorer:
        """The scorer of one search: with the recorded model, or else with the newest one.

        Args:
            recorded: the content of the scorer that the search started with; empty at its start.
            own: the newest model of the run's own ledger.
        """
        model = own
        if recorded:
            model = None if recorded == COLD else model_of(recorded, "the recorded scorer")
        elif self._latest is not None:
            model = await in_thread(self._latest)
        return PinnedScorer(model, self._given)

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """Scores by the newest model, as if no other candidates had arrived."""
        arrived = [Arrived(draft) for draft in drafts]
        return await (await self.pinned()).score_arrivals(problem, (), arrived)

    async def aclose(self) -> None:
        """Close the connections of the given score's scorer."""
        close = None if self._given is None else getattr(self._given[1], "aclose", None)
        if close is not None:
            await close()


class PinnedScorer:
    """A trained score that does not change.

    Without a model, the score is the given one, or else the mean log-probability of the tokens, or
    else 0 for all.

    Attributes:
        content: what a ledger records of it.
    """

    def __init__(self, model: TrainedModel | None, given: tuple[str, Scorer] | None = None) -> None:
        self._model = model
        self._given = given
        self.content = COLD if model is None else model.to_text()

    def __repr__(self) -> str:
        return f"PinnedScorer({COLD if self._model is None else self._model.hash})"

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """Scores as if no other candidates had arrived."""
        return await self.score_arrivals(problem, (), [Arrived(draft) for draft in drafts])

    async def score_arrivals(
        self, problem: Problem, earlier: Sequence[Arrived], new: Sequence[Arrived]
    ) -> Sequence[Score]:
        """One score per new candidate, each compared with those before it."""
        given: Sequence[Score] = [Score(None)] * len(new)
        if self._given is not None:
            given = await self._given[1].score(problem, [each.draft for each in new])
        model = self._model
        if model is None:
            return [self._cold(each.draft, score) for each, score in zip(new, given, strict=True)]
        return await in_thread(lambda: self._scores(model, problem, earlier, new, given))

    def _scores(
        self,
        model: TrainedModel,
        problem: Problem,
        earlier: Sequence[Arrived],
        new: Sequence[Arrived],
        given: Sequence[Score],
    ) -> list[Score]:
        others = Others(problem.prompt, programs=answers_are_programs(problem.check))
        for each in earlier:
            others.add(_arrival(each))
        name = "" if self._given is None else self._given[0]
        found = []
        for each, score in zip(new, given, strict=True):
            arrival = _arrival(each, {} if score.value is None else {name: score.value})
            value = model.score(others.features(arrival))
            found.append(_unless_empty(each.draft, score, value))
            others.add(arrival)
        return found

    def _cold(self, draft: Draft, given: Score) -> Score:
        """The score of a candidate as long as there is no model."""
        if self._given is not None and draft.text.strip():
            return Score(given.value, given.usage, given.reason)
        return _unless_empty(draft, given, _mean(draft.logprobs))


def _unless_empty(draft: Draft, given: Score, value: float) -> Score:
    """The score of one candidate; an empty text has none."""
    if not draft.text.strip():
        return Score(None, given.usage, "the text is empty", given.value)
    return Score(value, given.usage, alike=given.value)


def _arrival(arrived: Arrived, given: dict[str, float] | None = None) -> Arrival:
    return Arrival(arrived.draft.text, arrived.draft.logprobs, arrived.key, given or {})


def _mean(logprobs: Sequence[float] | None) -> float:
    known = [each for each in logprobs or () if math.isfinite(each)]
    return math.fsum(known) / len(known) if known else 0.0


class PairedScorer:
    """A score that ranks, and another one by whose exact values failures are counted."""

    def __init__(self, scorer: Scorer, alike: Scorer) -> None:
        self._both = scorer, alike

    def __repr__(self) -> str:
        return f"PairedScorer({self._both[0]!r}, {self._both[1]!r})"

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """One score per draft, with both numbers."""
        ranking, alike = [await each.score(problem, drafts) for each in self._both]
        return [
            Score(one.value, one.usage + other.usage, one.reason or other.reason, other.value)
            for one, other in zip(ranking, alike, strict=True)
        ]

    async def aclose(self) -> None:
        """Close the connections of both."""
        for each in self._both:
            close = getattr(each, "aclose", None)
            if close is not None:
                await close()
