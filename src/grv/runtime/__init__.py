"""Live searches: drives `Search` with real backends and records everything in a ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import loader

if TYPE_CHECKING:
    from .calls import Caller as Caller
    from .options import Calls as Calls
    from .progress import Progress as Progress
    from .solve import SolveOptions as SolveOptions

_HOMES = {
    "Caller": "calls",
    "Calls": "options",
    "Progress": "progress",
    "SolveOptions": "solve",
}

__all__ = [
    "Caller",
    "Calls",
    "Progress",
    "SolveOptions",
]

__getattr__ = loader(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
