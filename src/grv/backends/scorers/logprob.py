"""Score a draft by the log-probabilities of its own tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

from ...core.errors import UsageError
from ..protocols import Draft, Problem, Score, scored

HOW: Mapping[str, Callable[[Sequence[float]], float]] = MappingProxyType(
    {
        "mean": lambda values: math.fsum(values) / len(values),
        "sum": math.fsum,
        "min": min,
    }
)


NO_LOGPROBS = "the generator returned no log-probabilities"


class LogprobScorer:
    """The mean, sum or minimum of a draft's log-probabilities. An empty text has no score.

    Choose it as the first score: it costs nothing if the server returns log-probabilities.

    Examples:
        >>> import grv
        >>> grv.scorers.Logprob("min")
        LogprobScorer('min')
    """

    reads_logprobs: ClassVar[bool] = True
    is_repeatable: ClassVar[bool] = True

    def __init__(self, how: str = "mean") -> None:
        if how not in HOW:
            raise UsageError(f"how must be one of {', '.join(HOW)}, not {how!r}")
        self.how = how

    def __repr__(self) -> str:
        return f"LogprobScorer({self.how!r})"

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """One score per draft."""
        return [self._score(draft) for draft in drafts]

    def _score(self, draft: Draft) -> Score:
        if not draft.text.strip():
            return Score(None, reason="the text is empty")
        if not draft.logprobs:
            return Score(None, reason=NO_LOGPROBS)
        if not all(map(math.isfinite, draft.logprobs)):
            return Score(None, reason="a log-probability is not a number")
        return scored(HOW[self.how](draft.logprobs))
