"""For authors of policies and backends: worlds to try them in, and contracts to inherit.

The contracts and `strategies.py` need the extra `testing`; the other modules do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .drivers import Scripted, SearchLimits, dialogue, drive, run, verified
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
    "Scripted",
    "SearchLimits",
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
    """Import the contracts on first use: they need pytest and hypothesis."""
    if name in _CONTRACTS:
        from . import contracts

        return getattr(contracts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
