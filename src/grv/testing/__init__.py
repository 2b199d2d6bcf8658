"""For anyone who writes a policy or a backend: worlds to try it in, contracts to inherit.

`contracts.py` and `strategies.py` need the extra `testing`; nothing else here does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .drivers import Limits, Scripted, dialogue, drive, run, verified
from .worlds import (
    World,
    all_wrong,
    empty,
    flat,
    inverted,
    labelled,
    needle,
    population,
    star,
    tied,
)

if TYPE_CHECKING:
    from .contracts import PolicyContract as PolicyContract

_CONTRACTS = ("PolicyContract",)

__all__ = [
    "Limits",
    "Scripted",
    "World",
    "all_wrong",
    "dialogue",
    "drive",
    "empty",
    "flat",
    "inverted",
    "labelled",
    "needle",
    "population",
    "run",
    "star",
    "tied",
    "verified",
]


def __getattr__(name: str) -> object:
    """The contracts, imported when they are asked for: they need pytest and hypothesis."""
    if name in _CONTRACTS:
        from . import contracts

        return getattr(contracts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
