"""The conditions of a verdict: what a verdict depends on besides the text that was verified.

A verdict that is recorded, in a ledger, in a store of verdicts or in memory, answers for a search
only if it was given under the same conditions, or under a stricter isolation. Drafts and scores do
not depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["", "unsafe", "jail", "strict"]  # "" if no program runs in a sandbox
LEVELS: tuple[Level, ...] = ("", "unsafe", "jail", "strict")  # each is stricter than those before
_FIRST_JUDGE = 1  # the judge whose verdicts were recorded without conditions


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a verdict depends on besides the text.

    Attributes:
        check: a checksum of the check: its record, the limits in force, and the content of the
            files that a command names.
        judge: the version of grv's judge; 0 if a command, a server or a person judges.
        isolation: the level at which the program ran.
    """

    check: str
    judge: int = 0
    isolation: Level = ""

    def answers_for(self, wanted: Conditions) -> bool:
        """Whether a verdict given under these conditions is one under the wanted conditions."""
        same = (self.check, self.judge) == (wanted.check, wanted.judge)
        return same and LEVELS.index(self.isolation) >= LEVELS.index(wanted.isolation)


def answers(given: Conditions | None, wanted: Conditions | None) -> bool:
    """Whether a recorded verdict answers for a search.

    A verdict without conditions was given by a person or by the user's own verifier, or it is of an
    older format. Such a verdict does not say how the program was isolated, so it counts as not
    isolated.
    """
    if wanted is None:
        return True
    if given is None:
        return wanted.judge <= _FIRST_JUDGE and wanted.isolation in ("", "unsafe")
    return given.answers_for(wanted)
