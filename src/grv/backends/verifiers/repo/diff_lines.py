"""What the readers of diffs share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class UnreadableDiff(Exception):
    """Why a candidate cannot be read or applied. A candidate that cannot be has failed."""


@dataclass(slots=True)
class DiffLines:
    """The lines of a diff, and where the reader is.

    Attributes:
        lines: all of them.
        index: the place of the line that is read next.
        unpacked: how many bytes of binary files were unpacked before.
    """

    lines: Sequence[str]
    index: int = 0
    unpacked: int = 0

    @property
    def current(self) -> str:
        """The line; "" at the end."""
        return self.lines[self.index] if self.index < len(self.lines) else ""

    @property
    def at_end(self) -> bool:
        """Whether there is no line any more."""
        return self.index >= len(self.lines)

    def starts(self, *prefixes: str) -> bool:
        """Whether the line begins with one of these."""
        return not self.at_end and self.current.startswith(prefixes)
