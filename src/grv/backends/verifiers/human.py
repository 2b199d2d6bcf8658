"""Verify with people: checks of kind "human".

`{"kind": "human", "question": "Is the summary true to the text?", "minutes": 3}`. The candidate is
parked: it waits in the ledger until a reviewer has given a verdict, with `grv review` or on the
page for reviewers. Meanwhile it holds no slot, and the process may end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from ...core.errors import UsageError
from ...files import is_number, shown
from ..protocols import ParkedCall, Problem
from .checks import TextCheck

MINUTES = 3.0


@dataclass(frozen=True)
class HumanCheck(TextCheck):
    """What a reviewer is asked about a candidate.

    Attributes:
        question: the question; a pass means yes.
        rubric: the points to look at.
        minutes: how long a review takes, as a guess.
    """

    judged_by: ClassVar[int] = 0

    question: str
    rubric: tuple[str, ...] = ()
    minutes: float = MINUTES

    @classmethod
    def of(cls, problem: Problem) -> HumanCheck:
        """The check of a problem."""
        return cls.parse(problem.check)

    @classmethod
    def parse(cls, check: Mapping[str, Any]) -> HumanCheck:
        """The check in a record; a UsageError says what is wrong with it."""
        question = check.get("question")
        if not isinstance(question, str) or not question.strip():
            raise UsageError(f"question must be what a reviewer is asked, not {shown(question)}")
        rubric = check.get("rubric", ())
        points = [rubric] if isinstance(rubric, str) else rubric
        if not isinstance(points, list | tuple) or not all(isinstance(p, str) for p in points):
            raise UsageError(f"rubric must be a text or a list of texts, not {shown(rubric)}")
        minutes = check.get("minutes", MINUTES)
        if not is_number(minutes) or not 0 < minutes <= 10_000:
            raise UsageError(f"minutes must be a number above 0, not {shown(minutes)}")
        return cls(question, tuple(points), float(minutes))

    def compare(self, text: str) -> NoReturn:
        """Park the candidate."""
        raise ParkedCall(self.question)
