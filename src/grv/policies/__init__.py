"""What decides. One policy per file; `POLICIES` is the only list to extend."""

from __future__ import annotations

from typing import Any

from .adaptive import Adaptive
from .centered_star import CenteredStar
from .fixed import Fixed
from .known_law import KnownLaw
from .threshold import Threshold
from .verify_all import VerifyAll

# A policy class is a frozen dataclass with a `plan`; its constructor takes its own parameters.
POLICIES: dict[str, type[Any]] = {
    "adaptive": Adaptive,
    "centered-star": CenteredStar,
    "fixed": Fixed,
    "known-law": KnownLaw,
    "threshold": Threshold,
    "verify-all": VerifyAll,
}

__all__ = ["POLICIES", "Adaptive", "CenteredStar", "Fixed", "KnownLaw", "Threshold", "VerifyAll"]
