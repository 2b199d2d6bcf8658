"""Verifications whose verdict comes from outside: a person, or another program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from ..ledger.entries import Charged, Entry, Found, Settled
from .record import SearchRecord


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


async def settle_parked(
    record: SearchRecord, cost_of: Callable[[Found], float], ids: Iterable[int]
) -> None:
    """Return what verdicts from outside did not cost of their reserve.

    Another process appends the verdict, and knows no prices. So this is done when the verdict is
    used, also in a later process. A correction may cost more than was charged for the verdict.

    Args:
        record: of the search.
        cost_of: what the verification cost that gave a verdict.
        ids: the candidates whose verdicts are used.
    """
    entries: list[Entry] = []
    for id in ids:
        finding = record.found.get(id)
        settled = record.settled.get(id)
        if finding is None or finding is settled:
            continue
        if id in record.unsettled:
            charged = record.unsettled[id]
        elif settled is not None:
            charged = cost_of(settled)
        else:
            continue
        cost = cost_of(finding)
        if cost > charged:
            entries.append(Charged(cost - charged, f"the verdict on candidate {id} from outside"))
        entries.append(Settled("verify", (id,), max(0.0, charged - cost)))
    if entries:
        await record.write(*entries)
