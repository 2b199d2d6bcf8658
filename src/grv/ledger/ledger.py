"""The interface of a ledger: append, read, claim searches, listen."""

from __future__ import annotations

import logging
import math
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from ..core.errors import LedgerError
from .entries import Data, Ended, Entry, Failed, Started, charge_of

_LOG = logging.getLogger(__name__)
Listener = Callable[[str, Sequence[Entry]], None]
Capped = Literal["search", "account", "total"]
ROUNDING = 1e-9  # of a cap: sums of floats are not exact


class OverBudget(Exception):
    """A cap does not cover the entries, which were not appended.

    Attributes:
        of: what has this cap: the search, its account, or the whole ledger.
    """

    def __init__(self, of: Capped) -> None:
        super().__init__(f"the {of}")
        self.of: Capped = of


@dataclass(frozen=True)
class Caps:
    """The most that may be possibly paid: by an account, by a search, by all accounts together."""

    account: float = math.inf
    search: float = math.inf
    total: float = math.inf

    def less(self, amount: float) -> Caps:
        """The caps if an amount is kept for something else."""
        if not amount:
            return self
        return Caps(self.account - amount, self.search - amount, self.total - amount)

    def check(self, charge: float, *, account: float, search: float, total: float) -> None:
        """Raise OverBudget if a charge takes one of them above its cap."""
        if charge <= 0:
            return
        if total + charge > self.total * (1 + ROUNDING):
            raise OverBudget("total")
        if account + charge > self.account * (1 + ROUNDING):
            raise OverBudget("account")
        if search + charge > self.search * (1 + ROUNDING):
            raise OverBudget("search")


NO_CAPS = Caps()


@dataclass(slots=True)
class Append:
    """Entries to append to a search, unless that exceeds a cap.

    Attributes:
        releases: whether the claim on the search may be given up with them, in the same
            transaction.
        released: whether it was.
        charge: what the entries add to what was possibly paid.
    """

    search: str
    entries: Sequence[Entry]
    caps: Caps = NO_CAPS
    releases: bool = False
    released: bool = field(init=False, default=False)
    charge: float = field(init=False)

    def __post_init__(self) -> None:
        self.charge = charge_of(self.entries)


@dataclass(frozen=True, slots=True)
class SearchStanding:
    """How far a search is, by the index of the ledger.

    Attributes:
        entries: the number of its entries.
        paid: what it has possibly paid.
        outcome: how it ended last, also if it has gone on since; None if it has never ended.
    """

    entries: int = 0
    paid: float = 0.0
    outcome: str | None = None


def unit_of(started: Started) -> str:
    """The unit that a search counts in: dollars if its costs are measured."""
    return "dollars" if started.about.get("measured") else "units of the price list"


def check_unit(known: str, unit: str) -> None:
    """Refuse to add amounts of different units."""
    if known not in ("", unit):
        raise LedgerError(
            f"this ledger counts in {known}, and this run counts in {unit}: use another ledger"
        )


class Ledger(Protocol):
    """Stores the entries of searches, and what was possibly paid for them.

    Any number of threads and processes may use one ledger. Entries are durable, and charged to
    their account, when `append` returns: both, or neither. A claim ends with `release` or with the
    process of its owner, however that ends.
    """

    def append(self, search: str, entries: Sequence[Entry], caps: Caps = NO_CAPS) -> None:
        """Append entries to a search; OverBudget if that exceeds a cap."""
        ...

    def append_all(self, groups: Sequence[Append]) -> Sequence[Exception | None]:
        """Append several groups as fast as one; for each, None or why it was not appended."""
        ...

    def read(self, search: str) -> Sequence[Entry]:
        """All entries of a search, in order; empty if there is no such search."""
        ...

    def ended_searches(self) -> Sequence[tuple[str, Data]]:
        """The searches that have ended, with their last settings, in the order of their ends.

        Searches that failed are not among them.
        """
        ...

    def open_at_end(self, search: str, most: int) -> Sequence[tuple[str, Data, int]]:
        """The searches that had begun and not ended when another one ended last.

        Args:
            search: the one that ended.
            most: how many to return; the first ones.

        Returns:
            each with its last settings and the number of entries that it had, in the order of their
            first entries. What was written later does not change this.
        """
        ...

    def standings(self, searches: Sequence[str]) -> Sequence[SearchStanding]:
        """How far each of these searches is."""
        ...

    def follow(self, schedule: str) -> str | None:
        """Note that this process follows a schedule, until `leave` or until it ends.

        Returns:
            None, or another schedule that a live process follows on this ledger; empty if its name
            is not known. Then nothing is noted: the processes of one ledger follow one schedule.
        """
        ...

    def leave(self, schedule: str) -> None:
        """Follow a schedule no more: once for each time that `follow` noted it."""
        ...

    def possibly_paid(self, account: str | None = "") -> float:
        """What all searches of an account have possibly paid; None is all accounts together."""
        ...

    def claim(self, search: str) -> bool:
        """Claim the search until `release`; False if another live owner has claimed it."""
        ...

    def release(self, search: str) -> None:
        """Give up the claim on a search."""
        ...

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call the listener for all new entries, from any thread, until the result is called.

        Entries of this process are reported at once, those of other processes soon after.
        """
        ...


class Listeners:
    """The listeners of a ledger. One that raises is dropped: the entries are recorded already."""

    def __init__(self) -> None:
        self._all: list[Listener] = []
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, listener: Listener) -> Callable[[], None]:
        """Tell the listener too, until the result is called."""
        with self._lock:
            self._all.append(listener)
        return lambda: self._drop(listener)

    def tell(self, search: str, entries: Sequence[Entry]) -> None:
        """Tell all listeners."""
        for listener in tuple(self._all):
            try:
                listener(search, entries)
            except Exception:
                _LOG.exception("a listener of the ledger failed; it is told nothing more")
                self._drop(listener)

    def _drop(self, listener: Listener) -> None:
        with self._lock:
            if listener in self._all:
                self._all.remove(listener)


class MemoryLedger:
    """A ledger in memory. Its entries are lost when the process ends."""

    def __init__(self) -> None:
        self._entries: dict[str, list[Entry]] = {}
        self._paid: dict[str, float] = {}  # by search
        self._accounts: dict[str, str] = {}  # of searches
        self._totals: dict[str, float] = {}  # by account
        self._units: dict[str, str] = {}  # by account
        self._claimed: set[str] = set()
        self._followed: Counter[str] = Counter()
        self._ended: dict[str, None] = {}  # searches in the order of their ends
        self._outcomes: dict[str, str] = {}  # by search
        self._order: list[tuple[str, bool]] = []  # of all entries: the search, whether it ends
        self._listeners = Listeners()
        self._lock = threading.RLock()

    def append(self, search: str, entries: Sequence[Entry], caps: Caps = NO_CAPS) -> None:
        """Append entries to a search; OverBudget if that exceeds a cap."""
        self._append(Append(search, entries, caps))

    def _append(self, group: Append) -> None:
        search = group.search
        entries = group.entries
        charge = group.charge
        with self._lock:
            account, unit = self._account(search, entries)
            total = self._totals.get(account, 0.0)
            paid = self._paid.get(search, 0.0)
            if charge > 0:
                everything = self.possibly_paid(None)
                group.caps.check(charge, account=total, search=paid, total=everything)
            self._accounts[search] = account
            self._units[account] = unit
            self._totals[account] = total + charge
            self._paid[search] = paid + charge
            self._entries.setdefault(search, []).extend(entries)
            self._order += [(search, isinstance(entry, Ended)) for entry in entries]
            self._note_ends(search, entries)
        self._listeners.tell(search, entries)

    def append_all(self, groups: Sequence[Append]) -> Sequence[Exception | None]:
        """Append several groups; for each, None or why it was not appended."""
        errors: list[Exception | None] = []
        for group in groups:
            try:
                self._append(group)
                errors.append(None)
            except Exception as error:
                errors.append(error)
        return errors

    def _account(self, search: str, entries: Sequence[Entry]) -> tuple[str, str]:
        """The account of a search and its unit."""
        account = self._accounts.get(search, "")
        unit = self._units.get(account, "")
        for entry in entries:
            if isinstance(entry, Started):
                account = self._accounts.get(search, entry.account)
                check_unit(self._units.get(account, ""), unit := unit_of(entry))
        return account, unit

    def read(self, search: str) -> Sequence[Entry]:
        """All entries of a search, in order."""
        with self._lock:
            return tuple(self._entries.get(search, ()))

    def _note_ends(self, search: str, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if isinstance(entry, Ended | Failed):
                self._ended.pop(search, None)
            if isinstance(entry, Ended):
                self._ended[search] = None
                self._outcomes[search] = entry.outcome
            elif isinstance(entry, Failed):
                self._outcomes[search] = "failed"

    def ended_searches(self) -> Sequence[tuple[str, Data]]:
        """The searches that have ended, with their last settings, in the order of their ends."""
        with self._lock:
            return [(search, self._settings(search)) for search in self._ended]

    def _settings(self, search: str) -> Data:
        started = [each for each in self._entries[search] if isinstance(each, Started)]
        return started[-1].about if started else {}

    def open_at_end(self, search: str, most: int) -> Sequence[tuple[str, Data, int]]:
        """The searches that had begun and not ended when another one ended last."""
        with self._lock:
            ends = [place for place, each in enumerate(self._order) if each == (search, True)]
            before = self._order[: ends[-1]] if ends else []
            ended = {name for name, is_end in before if is_end}
            counts = Counter(name for name, _ in before if name not in ended and name != search)
            first = list(counts.items())[:most]
            return [(name, self._settings(name), count) for name, count in first]

    def standings(self, searches: Sequence[str]) -> Sequence[SearchStanding]:
        """How far each of these searches is."""
        with self._lock:
            return [self._standing(search) for search in searches]

    def _standing(self, search: str) -> SearchStanding:
        entries = self._entries.get(search, [])
        return SearchStanding(len(entries), self._paid.get(search, 0.0), self._outcomes.get(search))

    def follow(self, schedule: str) -> str | None:
        """Note that a run follows a schedule; or return another one that is followed."""
        with self._lock:
            other = next((each for each in self._followed if each != schedule), None)
            if other is None:
                self._followed[schedule] += 1
            return other

    def leave(self, schedule: str) -> None:
        """Follow a schedule no more."""
        with self._lock:
            self._followed = +(self._followed - Counter([schedule]))

    def possibly_paid(self, account: str | None = "") -> float:
        """What all searches of an account have possibly paid; None is all accounts together."""
        return sum(self._totals.values()) if account is None else self._totals.get(account, 0.0)

    def claim(self, search: str) -> bool:
        """Claim the search; False if it is already claimed."""
        with self._lock:
            if search in self._claimed:
                return False
            self._claimed.add(search)
            return True

    def release(self, search: str) -> None:
        """Give up the claim on a search."""
        self._claimed.discard(search)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call the listener for all new entries, until the result is called."""
        return self._listeners.add(listener)
