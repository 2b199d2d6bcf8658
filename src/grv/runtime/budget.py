"""The budget of a run, which all processes share that use its ledger.

The ledger enforces the cap: every attempt of a call reserves what it may cost, and an attempt that
the cap does not cover is not made. What is here avoids waste: an action starts only if the budget
covers all of it, and a problem only if there is money for a few verified candidates.
"""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio

from ..backends.protocols import Usage
from ..backends.tracing import TracedCall
from ..core.errors import BackendError, UsageError
from ..core.values import Costs
from ..ledger.entries import Call, Entry, Intended, Settled
from ..ledger.ledger import NO_CAPS, Capped, Caps, OverBudget
from .ledger_writer import LedgerWriter, in_ledger_thread

if TYPE_CHECKING:
    from .executor import Executor

PROBLEM_SPENT = "the problem's budget does not pay for another step"
ACCOUNT_SPENT = "the account's budget does not pay for another step"
TOTAL_SPENT = "the total budget does not pay for another step"
SHARE_SPENT = "its share of the total budget does not pay for another step"
_SPENT: Mapping[Capped, str] = {
    "search": PROBLEM_SPENT,
    "account": ACCOUNT_SPENT,
    "total": TOTAL_SPENT,
}


class OutOfBudget(Exception):
    """A budget does not cover the next action. This ends one search; it is not an error.

    `of` says which budget: that of the problem, of its account, or of the whole ledger.
    """

    def __init__(self, of: Capped) -> None:
        super().__init__(_SPENT[of])


class Plan:
    """What an action may still reserve, inside its context.

    Entering it raises OutOfBudget if a cap does not cover the amount and `spare`.
    """

    def __init__(self, budget: RunBudget, amount: float, spare: float) -> None:
        self._budget = budget
        self._left = amount
        self._spare = spare

    async def __aenter__(self) -> Self:
        await self._budget.check(self._left, self._spare)
        self._budget.add_planned(self._left)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.take(math.inf)

    def take(self, amount: float) -> None:
        """Count an amount that is now reserved in the ledger."""
        taken = min(amount, self._left)
        self._left -= taken
        self._budget.add_planned(-taken)


class RunBudget:
    """The highest amount that may be possibly paid on a ledger, in the unit of its costs.

    Attributes:
        total: the cap on all accounts together.
        account: the account that pays.
        most: the cap on this account.
    """

    def __init__(self, total: float, writer: LedgerWriter) -> None:
        check_total(total)
        self.total = total
        self.account = ""
        self.most = math.inf
        self._writer = writer
        self._planned: defaultdict[str | None, float] = defaultdict(float)  # None is the total
        self._before = writer.ledger.possibly_paid(None)

    def of_account(self, account: str, most: float = math.inf) -> RunBudget:
        """The same budget for searches that an account with a cap of its own pays."""
        check_total(most)
        made = copy.copy(self)  # what is planned stays shared
        made.account = account
        made.most = most
        return made

    @property
    def caps(self) -> Caps:
        """What the ledger enforces."""
        return Caps(account=self.most, total=self.total)

    @property
    def planned(self) -> float:
        """What actions that have started may still reserve."""
        return self._planned[None]

    @property
    def paid(self) -> float:
        """What was possibly paid, as far as this process knows."""
        return self._before + self._writer.charged

    @property
    def left(self) -> float:
        """The amount neither paid nor planned."""
        return self.total - self.paid - self.planned

    async def room(self) -> float:
        """The amount that a search of this account may still reserve, apart from its own budget."""
        left = math.inf
        if math.isfinite(self.total):
            left = self.total - await self._read(None) - self.planned
        if math.isfinite(self.most):
            own = await self._read(self.account) + self._planned[self.account]
            left = min(left, self.most - own)
        return left

    def add_planned(self, amount: float) -> None:
        """Plan to reserve more, or less."""
        for name in (None, self.account):
            self._planned[name] += amount

    def plan(self, amount: float, spare: float = 0.0) -> Plan:
        """Plan to spend an amount inside a context; OutOfBudget if a cap does not cover it."""
        return Plan(self, amount, spare)

    async def check(self, amount: float, spare: float) -> None:
        """Raise OutOfBudget if a cap does not cover an amount and `spare`."""
        if amount and math.isfinite(self.total):
            paid = await self._read(None)
            self._before = paid - self._writer.charged
            if amount + spare > self.left * (1 + 1e-9):
                raise OutOfBudget("total")
        if amount and math.isfinite(self.most):
            left = self.most - await self._read(self.account) - self._planned[self.account]
            if amount + spare > left * (1 + 1e-9):
                raise OutOfBudget("account")

    async def _read(self, account: str | None) -> float:
        return await in_ledger_thread(self._writer.ledger.possibly_paid, account)


def check_total(total: float) -> None:
    """Refuse a total budget that is no amount."""
    if math.isnan(total) or total < 0:
        raise UsageError(f"the total budget cannot be {total}")


class Gate:
    """Limits how many problems are searched at once: to a number, and to what the budget allows.

    A small budget spread over many problems solves none of them: it is spent before candidates are
    verified. So each problem needs enough money for a few verified candidates.
    """

    STAKE = 4  # a problem starts if there is money to generate and verify this many candidates

    def __init__(
        self, most: Callable[[], int], budget: RunBudget, costs: Costs, each: float
    ) -> None:
        self._most = most
        self._budget = budget
        self._stake = min(each, costs.of(self.STAKE, self.STAKE))
        self._inside = 0
        self._in_batch = 0
        self._changed = anyio.Event()

    async def enter(self) -> None:
        """Wait until one more problem may start. One problem may always run.

        Problems that wait for a batch are no limit to the number. They have money in flight, which
        returns in part: for that, others wait.
        """
        while (self._inside or self._in_batch) and not self._has_room():
            self._changed = anyio.Event()
            await self._changed.wait()
        self._inside += 1

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Leave while another caller runs the search; enter again without waiting.

        As a rule, the result is recorded by that time.
        """
        self.leave()
        try:
            yield
        finally:
            self._inside += 1

    @contextmanager
    def in_batch(self) -> Iterator[None]:
        """Leave while the search waits for a batch."""
        self._in_batch += 1
        try:
            with self.outside():
                yield
        finally:
            self._in_batch -= 1

    @property
    def inside(self) -> int:
        """The problems that are searched now."""
        return self._inside

    def leave(self) -> None:
        """End a problem, so that another may start."""
        self._inside -= 1
        self.look()

    def look(self) -> None:
        """Let those who wait look again whether there is room."""
        self._changed.set()

    def _has_room(self) -> bool:
        more = self._inside + 1
        return more <= self._most() and more * self._stake <= self._budget.left


@dataclass(frozen=True)
class Reserves:
    """What attempts reserve, and the caps that they must keep.

    Attributes:
        costs: the price list; with measured costs, the highest possible costs, or None if there
            is no budget that needs them.
        second: the highest cost of a second score.
        caps: on the account and on the search.
        prices: the price list, if a verification may cost more because its verifier is asked
            several times.
    """

    costs: Costs | None = field(default_factory=Costs)
    second: float = 0.0
    caps: Caps = NO_CAPS
    prices: Costs | None = None

    def verdict(self, *, failed: bool, repeated: int) -> float:
        """What a verdict costs by the price list, with the calls beyond the first."""
        prices = self.prices or self.costs
        return 0.0 if prices is None else prices.of(0, 1 + repeated, int(failed))

    def lost(self, call: Call, n: int, *, measured: bool) -> float:
        """What an attempt without a result may have cost.

        If a verifier may be asked several times, its calls are on record, and are billed with the
        verdict: only the call in flight is lost.
        """
        reserved = self.of(call, n, measured=measured)
        if call != "verify" or measured or self.prices is None:
            return reserved
        return min(reserved, self.prices.of(0, n))

    @property
    def verification(self) -> float:
        """What one verification reserves; 0 if nothing is reserved."""
        return 0.0 if self.costs is None else self.costs.verify

    def of(self, call: Call, n: int, *, measured: bool) -> float:
        """What an attempt for n candidates reserves.

        Until a verdict is known, a verification reserves the most that it may cost.
        With measured costs, drafts reserve their scores. An attempt to score reserves the same
        again for the case that its result is lost, though paid for; with the result it is returned.
        """
        if self.costs is None:
            return 0.0
        match call:
            case "generate":
                return n * (self.costs.candidate if measured else self.costs.generate)
            case "score":
                return n * self.costs.score
            case "rescore":
                return n * self.second
            case "verify":
                return self.costs.of(0, n)


class ReservedAttempts:
    """Records and reserves every attempt of one call before it is made.

    Args:
        executor: makes the call.
        call: the kind of call.
        ids: the candidates.
        spare: what the caps must cover besides. Candidates leave the money for a verification, also
            if attempts fail and are repeated.

    Attributes:
        reserved: what each attempt reserves.
        held: what failed attempts have reserved for results that the next attempt keeps. They are
            in memory only, so it is returned when they are on record.
    """

    def __init__(
        self, executor: Executor, call: Call, ids: Sequence[int], spare: float = 0.0
    ) -> None:
        self._executor = executor
        self.call = call
        self.ids = tuple(ids)
        measured = executor.meter is not None
        self.reserved = executor.reserves.of(call, len(self.ids), measured=measured)
        self._is_free = not measured and not self.reserved
        self.held = 0.0
        self._caps = executor.reserves.caps.less(spare)

    @property
    def traced(self) -> TracedCall:
        """What a span says about the call."""
        executor = self._executor
        pricing = executor.pricing
        return TracedCall(
            self.call,
            executor.problem,
            self.ids,
            pricing.model,
            pricing.server.provider,
            pricing.server.url,
            partial(executor.cost_of, self.call),
            partial(executor.dollars_of, self.call),
        )

    async def begin(self, *then: Entry) -> None:
        """Record an attempt and reserve its cost; OutOfBudget if a cap does not cover it.

        What follows is recorded with it. An attempt that costs nothing is recorded with its result.
        """
        intended = Intended(self.call, self.ids, self.reserved)
        if self._is_free:
            self._executor.record.note(intended, *then)
            return
        try:
            await self._executor.record.write(intended, *then, caps=self._caps)
        except OverBudget as over:
            raise OutOfBudget(over.of) from None
        if self._executor.plan is not None:
            self._executor.plan.take(self.reserved)

    def settled(
        self, n: int, usage: Usage | None = None, *, listed: float | None = None
    ) -> list[Entry]:
        """The entry for results that cost less than was reserved; none if they did not.

        `listed` is what they cost by the price list, if that is not what is reserved for them.
        """
        meter = self._executor.meter
        reserves = self._executor.reserves
        if meter is None:
            paid = reserves.of(self.call, n, measured=False) if listed is None else listed
        elif self.call == "generate":  # settled with the scores, except for missing drafts
            paid = reserves.of(self.call, n, measured=True)
        else:
            paid = meter.cost(self.call, usage or Usage()) if n else 0.0
        if paid == self.reserved:
            return []
        return [Settled(self.call, self.ids, self.reserved - paid)]

    async def missed(self, error: BackendError) -> None:
        """Record that an attempt has no result, and return its reserve if it was not paid for."""
        unpaid = error.unpaid
        number = len(self.ids)
        lost = number if error.at_most is None else min(number, error.at_most)
        measured = self._executor.meter is not None
        most = self._executor.reserves.lost(self.call, number, measured=measured)
        returned = self.reserved - (0.0 if unpaid else most * lost / number)
        if error.at_most is not None and self.call in ("score", "rescore"):
            self.held += returned
            returned = 0.0
        reason = str(error) or "no result"
        await self._executor.record.write(Settled(self.call, self.ids, returned, reason, unpaid))
