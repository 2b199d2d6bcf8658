"""The ledger: an append-only record of everything paid for. Searches resume from its entries.

>>> from grv.ledger import MemoryLedger
>>> len(MemoryLedger().read("a search that nobody made"))
0
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import loader

if TYPE_CHECKING:
    from .ledger import Ledger as Ledger
    from .ledger import MemoryLedger as MemoryLedger
    from .opening import open_ledger as open_ledger
    from .sqlite import SqliteLedger as SqliteLedger

_HOMES = {
    "Ledger": "ledger",
    "MemoryLedger": "ledger",
    "SqliteLedger": "sqlite",
    "open_ledger": "opening",
}

__all__ = [
    "Ledger",
    "MemoryLedger",
    "SqliteLedger",
    "open_ledger",
]

__getattr__ = loader(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
