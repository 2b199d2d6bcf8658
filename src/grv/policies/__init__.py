"""What decides. One policy per file; `POLICIES` is the only list to extend."""

from __future__ import annotations

from typing import Any

from ..core.search import Policy
from .adaptive import Adaptive
from .alternate import Alternate
from .balanced import Balanced
from .centered_star import CenteredStar
from .fixed import Fixed
from .hedged import Hedged
from .known_law import KnownLaw
from .learned.policy import Learned
from .threshold import Threshold
from .varied import Varied
from .verify_all import VerifyAll

# A policy class is a frozen dataclass with a `plan`; its constructor takes its own parameters.
POLICIES: dict[str, type[Any]] = {
    "adaptive": Adaptive,
    "alternate": Alternate,
    "balanced": Balanced,
    "centered-star": CenteredStar,
    "fixed": Fixed,
    "hedged": Hedged,
    "known-law": KnownLaw,
    "learned": Learned,
    "threshold": Threshold,
    "varied": Varied,
    "verify-all": VerifyAll,
}

# What decides where nobody says, and what the specification `default` stands for.
DEFAULT: Policy = Varied()

__all__ = [
    "DEFAULT",
    "POLICIES",
    "Adaptive",
    "Alternate",
    "Balanced",
    "CenteredStar",
    "Fixed",
    "Hedged",
    "KnownLaw",
    "Learned",
    "Threshold",
    "Varied",
    "VerifyAll",
]
