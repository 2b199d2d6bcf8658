"""A server that counts what it generates, and what a ledger says of it."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from grv.backends.generators.completions import seed_of
from grv.ledger.entries import Call, Entry, Found, Intended, Made, Settled
from grv.ledger.opening import open_ledger
from grv.ledger.pending import pending_calls

from .servers import Drop, Fault, FaultyServer, Received

Candidate = tuple[str, int]  # problem and number


def problem_of(request: Received) -> str:
    """The problem of a request, from a prompt of `write_problems`."""
    return request.prompt.removeprefix("Solve ").removesuffix(".")


class CountingServer(FaultyServer):
    """A server that counts the candidates that it generates, whether or not they arrive.

    A connection that is dropped is dropped after generating. `served` has every candidate
    generated, `delivered` those whose response was sent whole.

    Args:
        script: the faults, as for `FaultyServer`.
        right: the number of the right candidate of a problem; None if it has none.
        late: seconds that a response takes, after which it is generated and sent.
    """

    def __init__(
        self,
        script: Iterable[Fault | None] | Callable[[Received], Fault | None] = (),
        *,
        right: Callable[[str], int | None] = lambda _: None,
        late: Callable[[Received], float] = lambda _: 0.0,
    ) -> None:
        self.served: Counter[Candidate] = Counter()
        self.delivered: Counter[Candidate] = Counter()
        self._right, self._late = right, late
        super().__init__(script, text=self._numbered)

    def _numbered(self, request: Received, seed: int) -> str:
        name = problem_of(request)
        number = seed - seed_of(0, name, 0)
        self.served[name, number] += 1
        return f"{name} {number} {'right' if number == self._right(name) else 'wrong'}"

    async def _say(
        self, received: Received, fault: Fault | None, writer: asyncio.StreamWriter
    ) -> bool:
        await asyncio.sleep(self._late(received))
        if isinstance(fault, Drop) and not fault.midway:
            self._answer(received, None)
        kept = await super()._say(received, fault, writer)
        if fault is None:
            name = problem_of(received)
            first = received.body["seed"] - seed_of(0, name, 0)
            self.delivered.update((name, first + at) for at in range(received.body.get("n", 1)))
        return kept


@dataclass
class Accounts:
    """What a ledger says of all its searches.

    Attributes:
        made: how often each candidate is recorded.
        found: how often each verdict is recorded.
        paid: possibly paid per kind of call.
        lost: candidates per call that may be paid for and have no result.
        billed: the sum of all bills.
        possibly_paid: of the ledger.
        wrong_bills: the ended searches whose bill is not what their record adds up to.
    """

    made: Counter[Candidate]
    found: Counter[Candidate]
    paid: dict[Call, float]
    lost: Counter[Call]
    billed: float
    possibly_paid: float
    wrong_bills: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, place: str) -> Accounts:
        """Read them; the ledger must be in order."""
        ledger = open_ledger(place)
        assert ledger.check() == []
        accounts = cls(Counter(), Counter(), {}, Counter(), 0.0, ledger.possibly_paid())
        for search in ledger.searches():
            entries = ledger.read(search.id)
            accounts.billed += search.total or 0.0
            tally = pending_calls(entries)
            accounts.lost.update(tally.lost)
            bill = (len(tally.made), tally.verified + tally.cancelled)
            is_same = (search.generated, search.verified) == bill
            is_same = is_same and math.isclose(search.total or 0.0, tally.billed)
            if search.outcome not in (None, "failed") and not is_same:
                accounts.wrong_bills.append(search.problem)
            for entry in entries:
                accounts._add(search.problem, entry)
        ledger.close()
        return accounts

    def _add(self, problem: str, entry: Entry) -> None:
        match entry:
            case Made(candidate):
                self.made[problem, candidate] += 1
            case Found(candidate):
                self.found[problem, candidate] += 1
            case Intended(call, _, reserved):
                self.paid[call] = self.paid.get(call, 0.0) + reserved
            case Settled(call, _, returned):
                self.paid[call] = self.paid.get(call, 0.0) - returned
