"""Score a candidate by what the program that made it said at its end."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..protocols import Draft, Problem, Score

_END = 4000  # characters of a log that count
_TESTS = r"(?:tests?|checks?|suite|specs?)"
_PASSING = re.compile(
    rf"\b{_TESTS}\b[^.\n]{{0,60}}\b(?:pass(?:es|ed|ing)?|green|succeed(?:s|ed)?)\b"
    rf"|\b(?:pass(?:es|ed|ing)?|green)\b[^.\n]{{0,40}}\b{_TESTS}\b"
    r"|\b\d+ passed\b",
    re.IGNORECASE,
)
_FAILING = re.compile(
    rf"\b{_TESTS}\b[^.\n]{{0,60}}\b(?:fail(?:s|ed|ing|ures?)?|red|broken)\b"
    rf"|\b(?:fail(?:s|ed|ing|ures?)?)\b[^.\n]{{0,40}}\b{_TESTS}\b"
    r"|\b[1-9]\d* failed\b"
    r"|\b(?:could not|couldn't|cannot|can't|unable to|did not|didn't|not able to)\b"
    rf"[^.\n]{{0,60}}\b(?:fix|finish|complete|solve|run|{_TESTS})\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:no|0|zero|without|none of the|any)\s+(?:\w+\s+){0,2}$", re.IGNORECASE)


class ClaimScorer:
    """Prefers candidates whose agent says that the tests pass: 1, nothing said 0, they fail -1.

    Choose it for candidates that agents make. It reads the end of the log of the run, which costs
    nothing. Agents claim success more often than they have it: `grv report` says what the claim is
    worth on yours.

    Examples:
        >>> import grv
        >>> grv.scorers.Claim().of("I fixed the parser. All tests pass.")
        1.0
        >>> grv.scorers.Claim().of("Two tests still fail; I could not fix them.")
        -1.0
    """

    def __repr__(self) -> str:
        return "ClaimScorer()"

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """One score per draft. Without a log of a run, nothing is claimed."""
        return [Score(self.of(draft.log)) for draft in drafts]

    def of(self, log: str) -> float:
        """What a log claims at its end."""
        end = log[-_END:]
        failing = [match for match in _FAILING.finditer(end) if not _is_denied(end, match)]
        if failing:
            return -1.0
        return 1.0 if _PASSING.search(end) else 0.0


def _is_denied(text: str, match: re.Match[str]) -> bool:
    """Whether the words before a match turn it round: no tests fail."""
    return _DENIED.search(text[max(0, match.start() - 40) : match.start()]) is not None
