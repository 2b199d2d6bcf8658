"""The score `auto`: log-probabilities if the generator returns them, otherwise a trained score.

The first candidate of a search that has a text decides, so nobody pays to find out that a score is
missing. It is on record, so a search that is resumed keeps its score.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from ..protocols import Arrived, Draft, Problem, Score, Scorer
from .logprob import NO_LOGPROBS, LogprobScorer
from .trained.model import TrainedModel
from .trained.scorer import COLD, PairedScorer, PinnedScorer, TrainedScorer

AUTO = "auto"
RANKS_LAST = "this response has no log-probabilities, unlike the first one of its search"
# What a search with `auto` is ranked by.
BY_LOGPROB = "logprob"
BY_TRAINED = "trained"
BY_GIVEN = "alike"  # no log-probabilities, no model yet, and another score was given
UNRANKED = "none"  # as before, without another score: all candidates have the score 0


class AutoScorer:
    """Log-probabilities if the generator returns them; otherwise trained on the run's own verdicts.

    Choose it unless you know a better score. It costs nothing. Without log-probabilities the first
    candidates have no score; after 6 finished problems of a ledger there is a trained one.

    Args:
        given: the name of another score and its scorer. A trained score uses it as a feature, and
            failures are counted by its exact values.

    Examples:
        >>> import grv
        >>> solution = grv.solve_now(
        ...     "four",
        ...     generator=lambda problem: "4",
        ...     scorer=grv.scorers.Auto(),
        ...     verifier=lambda problem, text: text == "4",
        ...     budget=50,
        ... )
        >>> solution.text, solution.score
        ('4', 'none')
    """

    reads_logprobs: ClassVar[bool] = True

    def __init__(self, given: tuple[str, Scorer] | None = None) -> None:
        self._given = given
        self._trained = TrainedScorer(None, given)

    def __repr__(self) -> str:
        return "AutoScorer()" if self._given is None else f"AutoScorer({self._given[0]!r})"

    async def pinned(self, recorded: str = "", own: TrainedModel | None = None) -> PinnedAutoScorer:
        """The scorer of one search: with the recorded model, or else with the newest of the run."""
        trained = await self._trained.pinned(recorded, own)
        plain = LogprobScorer()
        paired = None if self._given is None else PairedScorer(plain, self._given[1])
        cold = UNRANKED if self._given is None else BY_GIVEN
        return PinnedAutoScorer(paired or plain, trained, cold)

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """Scores as if no other candidates had arrived, without a trained model."""
        return await (await self.pinned(COLD)).score(problem, drafts)

    async def aclose(self) -> None:
        """Close the connections of the given score's scorer."""
        await self._trained.aclose()


class PinnedAutoScorer:
    """The score `auto` of one search.

    Args:
        logprob: scores if there are log-probabilities.
        trained: scores if there are none.
        cold: what ranks then as long as there is no model: `UNRANKED` or `BY_GIVEN`.

    Attributes:
        content: what a ledger records of it: the model to use if there are no log-probabilities.
        is_repeatable: whether scoring costs nothing: no other score is given.
    """

    def __init__(self, logprob: Scorer, trained: PinnedScorer, cold: str = UNRANKED) -> None:
        self._logprob = logprob
        self._trained = trained
        self._cold = cold
        self.content = trained.content
        self.is_repeatable = isinstance(logprob, LogprobScorer)

    def __repr__(self) -> str:
        return f"PinnedAutoScorer({self._trained!r})"

    def ranked_by(self, drafts: Iterable[Draft]) -> str:
        """What ranks the search with these drafts, in order of arrival; empty if none has a text.

        One of `BY_LOGPROB`, `BY_TRAINED`, `BY_GIVEN` and `UNRANKED`.
        """
        first = next((draft for draft in drafts if draft.text.strip()), None)
        if first is None:
            return ""
        if first.logprobs:
            return BY_LOGPROB
        return self._cold if self.content == COLD else BY_TRAINED

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """Scores as if no other candidates had arrived."""
        return await self.score_arrivals(problem, (), [Arrived(draft) for draft in drafts])

    async def score_arrivals(
        self, problem: Problem, earlier: Sequence[Arrived], new: Sequence[Arrived]
    ) -> Sequence[Score]:
        """One score per new candidate; the first candidate of all decides which score."""
        drafts = (arrived.draft for arrivals in (earlier, new) for arrived in arrivals)
        if self.ranked_by(drafts) == BY_LOGPROB:
            scores = await self._logprob.score(problem, [arrived.draft for arrived in new])
            return [
                replace(score, reason=RANKS_LAST) if score.reason == NO_LOGPROBS else score
                for score in scores
            ]
        return await self._trained.score_arrivals(problem, earlier, new)
