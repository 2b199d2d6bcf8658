"""The simplest score: the length of a text."""

from __future__ import annotations

from collections.abc import Sequence

from ..protocols import Draft, Problem, Score


class LengthScorer:
    """Prefers shorter texts, or longer ones, in characters. An empty text has no score.

    Choose it if nothing else is known: wrong answers are often longer.

    Examples:
        >>> import grv
        >>> grv.scorers.Length(longer=True)
        LengthScorer(longer=True)
    """

    def __init__(self, *, longer: bool = False) -> None:
        self.longer = longer

    def __repr__(self) -> str:
        return f"LengthScorer(longer={self.longer})"

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """One score per draft."""
        return [self._score(draft.text) for draft in drafts]

    def _score(self, text: str) -> Score:
        if not text.strip():
            return Score(None, reason="the text is empty")
        return Score(float(len(text) if self.longer else -len(text)))
