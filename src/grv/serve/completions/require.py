"""Which answers a request accepts."""

from __future__ import annotations

import enum


class Require(enum.Enum):
    """Which answers a request accepts: a verified one, one that a judge passed, or the best."""

    VERIFIED = "verified"
    JUDGED = "judged"
    BEST = "best"

    def accepts(self, status: str) -> bool:
        """Whether an answer with this status is accepted."""
        if self is Require.JUDGED:
            return status in ("verified", "judged")
        return self is Require.BEST or status == "verified"
