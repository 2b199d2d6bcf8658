"""Every ledger keeps the contract."""

from __future__ import annotations

from pathlib import Path

from grv.ledger.ledger import Ledger, MemoryLedger
from grv.ledger.sqlite import SqliteLedger
from grv.testing.contracts_ledger import LedgerContract


class TestMemoryLedger(LedgerContract):
    def make(self, folder: Path) -> Ledger:
        return MemoryLedger()


class TestSqliteLedger(LedgerContract):
    def make(self, folder: Path) -> Ledger:
        return SqliteLedger(folder / "ledger")
