"""What scoring a candidate can cost at most, so that a budget in dollars can reserve it.

A model that scores reads the prompt and the candidate, and has at most one token per byte of them.
A candidate of N tokens has any number of bytes, so one with more than `BYTES_PER_TOKEN` times N is
not sent to the model, and has no score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..protocols import Draft, Problem, Score, Scorer

BYTES_PER_TOKEN = 8  # twice as many as a usual text has
_TOO_LONG = "it is too long for what the budget in dollars reserves: give --most G,V"


@dataclass(frozen=True)
class Effort:
    """The most that a model does to score one candidate.

    Attributes:
        calls: requests.
        own_bytes: bytes of each request besides the prompt and the candidate.
        candidate_factor: how often a byte of the candidate may be sent in a request.
        answer_tokens: tokens of all its answers together.
    """

    calls: int = 1
    own_bytes: int = 0
    candidate_factor: int = 1
    answer_tokens: int = 0

    def prompt_tokens(self, prompt: int, candidate: int) -> int:
        """The most tokens of all requests, given the bytes of the prompt and of the candidate."""
        return self.calls * (prompt + candidate * self.candidate_factor + self.own_bytes)


class BoundedScorer:
    """Scores candidates up to a number of bytes; a longer one has no score.

    Args:
        scorer: scores the others.
        longest: the most bytes.
    """

    def __init__(self, scorer: Scorer, longest: int) -> None:
        self._scorer = scorer
        self._longest = longest

    def __repr__(self) -> str:
        return repr(self._scorer)

    @property
    def notices(self) -> Sequence[str]:
        """Those of the scorer."""
        own: Sequence[str] = getattr(self._scorer, "notices", ())
        return own

    @property
    def reads_logprobs(self) -> bool:
        """Whether the scorer reads log-probabilities."""
        return bool(getattr(self._scorer, "reads_logprobs", False))

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """One score per draft."""
        fits = [len(draft.text.encode(errors="replace")) <= self._longest for draft in drafts]
        sent = [draft for draft, fit in zip(drafts, fits, strict=True) if fit]
        scores = iter(await self._scorer.score(problem, sent) if sent else ())
        return [next(scores) if fit else Score(None, reason=_TOO_LONG) for fit in fits]

    async def aclose(self) -> None:
        """Close the connections of the scorer."""
        close = getattr(self._scorer, "aclose", None)
        if close is not None:
            await close()
