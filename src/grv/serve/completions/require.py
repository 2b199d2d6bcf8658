"""Which answers a request accepts."""

from __future__ import annotations

import enum


class Require(enum.Enum):
    """Which answers a request accepts: a verified one, or else the best candidate."""

    VERIFIED = "verified"
    BEST = "best"
