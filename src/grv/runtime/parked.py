"""Verifications whose verdict comes from outside: a person, or another program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from ..ledger.entries import Settled
from .prices import Meter
from .search_record import SearchRecord


class Outside:
    """Lets another problem run while a search only waits for verdicts from outside.

    Args:
        leaving: leaves the place of the search until the end of the context.
    """

    def __init__(self, leaving: Callable[[], AbstractContextManager[None]]) -> None:
        self._leaving = leaving
        self._waiting = 0
        self._left = ExitStack()

    @contextmanager
    def wait(self) -> Iterator[None]:
        """Wait outside. A search may wait for several verdicts; it leaves and returns once."""
        if not self._waiting:
            self._left.enter_context(self._leaving())
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._left.close()


async def settle_parked(record: SearchRecord, meter: Meter | None, ids: Iterable[int]) -> None:
    """With measured costs: return what verdicts from outside did not cost of their reserve.

    Another process appends the verdict, and knows no prices. So this is done when the verdict is
    used, also in a later process.
    """
    if meter is None:
        return
    owed = [id for id in ids if id in record.unsettled and id in record.found]
    if owed:
        costs = {id: record.paid(meter, ("verify",), (id,)) for id in owed}
        await record.write(
            *(Settled("verify", (id,), record.unsettled[id] - costs[id]) for id in owed)
        )
