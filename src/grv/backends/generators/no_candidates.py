"""A generator without candidates, for servers that only verify what clients bring."""

from __future__ import annotations

from collections.abc import Sequence

from ..protocols import Draft, Problem


class NoCandidates:
    """Makes no candidates."""

    def __repr__(self) -> str:
        return "NoCandidates()"

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """Nothing."""
        return []
