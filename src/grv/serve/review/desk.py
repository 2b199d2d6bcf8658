"""The desk: gives candidates to reviewers and takes their verdicts.

The page, `grv review` and Python all go through it. A verdict is accepted only for a candidate that
the desk has given to this reviewer, that a person verifies, and that is still open. This is checked
in the transaction that appends the verdict. So of two verdicts at once, one is accepted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from ...conditions import Conditions, answers
from ...core.errors import UsageError
from ...core.values import Verdict
from ...ledger.entries import Entry, Found, wanted_conditions
from ...ledger.tables import TableLedger
from ...ledger.view import SearchView
from ...usage import Usage
from .leases import LONGEST, SILENCE, Lease, Leases
from .queue import ItemId, Queue, ReviewItem, is_reviewed

# What a reviewer may say, the verdict, and its reason.
SAYINGS: Mapping[str, tuple[Verdict, str]] = {
    "pass": (Verdict.PASSED, "passed by a reviewer"),
    "fail": (Verdict.FAILED, "failed by a reviewer"),
    "cannot tell": (Verdict.BROKEN, "the reviewer cannot tell"),
}
_LONGEST_NOTE = 10_000


class Refused(UsageError):
    """A verdict, or a wish for a candidate, that the desk does not accept.

    Attributes:
        code: a word for programs: `unknown`, `closed`, `taken`, `lease` or `recorded`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Desk:
    """Gives candidates of a ledger to reviewers, and takes their verdicts. Any thread may use it.

    Args:
        ledger: the ledger, open for writing.
        reader: reads the queue, over a connection of its own: then reviewers hold up no search.
        silence: seconds after which a lease is over, unless `Leases.held` renews it.
        clock: the time, in seconds.
    """

    def __init__(
        self,
        ledger: TableLedger,
        reader: TableLedger | None = None,
        *,
        silence: float = SILENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._reader = reader or ledger
        self.queue = Queue(self._reader)
        self.leases = Leases(ledger, silence=silence, clock=clock)

    def next(
        self, reviewer: str, skipped: Collection[ItemId] = ()
    ) -> tuple[Lease, ReviewItem] | None:
        """The next candidate for a reviewer, but none that was skipped; None if there is none."""
        wanted = iter([id for id in self.queue.waiting() if id not in skipped])
        while (lease := self.leases.take(reviewer, wanted)) is not None:
            if (given := self._given(lease)) is not None:
                return given
        return None

    def open(
        self, reviewer: str, id: ItemId, *, of_others: bool = False
    ) -> tuple[Lease, ReviewItem]:
        """This candidate, if it waits, or if its last verdict is the reviewer's own: to correct it.

        Args:
            reviewer: who wants it.
            id: the candidate.
            of_others: whether the verdicts of other reviewers may be corrected, too. That is for
                those who can write the ledger anyway.

        Raises:
            Refused: it is not given to this reviewer.
        """
        view = SearchView(self._reader.read(id.search))
        if not is_reviewed(view, id.candidate):
            raise Refused("unknown", f"no candidate {id} waits for a person")
        waits = id.candidate in view.open_to_review
        verdict = view.latest(id.candidate)
        if not waits and (verdict is None or not verdict.reviewer):
            raise Refused("closed", f"{id} does not wait any more")
        if not waits and verdict is not None and verdict.reviewer != reviewer and not of_others:
            raise Refused("closed", f"{id} has a verdict of {verdict.reviewer}, who may correct it")
        lease = self.leases.take(reviewer, [id], corrects=None if waits else verdict)
        if lease is None:
            raise Refused("taken", f"{id}: another reviewer has it")
        given = self._given(lease)
        if given is None:
            raise Refused("unknown", f"no candidate {id} waits for a person")
        return given

    def _given(self, lease: Lease) -> tuple[Lease, ReviewItem] | None:
        item = self.queue.item(lease.id)
        if item is None:
            self.leases.end(lease)
            return None
        return lease, item

    def give(
        self,
        id: ItemId,
        secret: str,
        saying: str,
        *,
        reviewer: str,
        note: str = "",
        seconds: float = math.inf,
    ) -> Found:
        """Write the verdict of a reviewer on a candidate that the desk has given to them.

        Args:
            id: the candidate.
            secret: that of the lease.
            saying: one of `SAYINGS`.
            reviewer: who says it.
            note: for the record.
            seconds: how long it took; at most since the lease was granted.

        Returns:
            The verdict, which is durable.

        Raises:
            Refused: the candidate was not given to this reviewer, or is not open any more.
        """
        if saying not in SAYINGS:
            raise UsageError(f"a verdict is one of {', '.join(SAYINGS)}")
        if math.isnan(seconds) or seconds < 0:
            raise UsageError("the seconds of a review must not be negative")
        note = note.strip()[:_LONGEST_NOTE]
        with self.leases.using(id, secret, reviewer) as lease:
            if lease is None:
                raise self._over(id, saying, reviewer)
            took = min(seconds, self.leases.age(lease), LONGEST)
            found: list[Found] = []

            def decide(entries: Sequence[Entry]) -> Sequence[Entry]:
                verdict, reason = SAYINGS[saying]
                before = _seconds_before(entries, lease)
                usage = Usage(seconds=round(before + max(0.0, took), 1))
                given = Found(id.candidate, verdict, reason, {}, usage, reviewer, note)
                found[:] = [replace(given, conditions=_conditions(entries))]
                return found

            self._ledger.append_after(id.search, decide)
            return found[0]

    def _over(self, id: ItemId, saying: str, reviewer: str) -> Refused:
        """Why a verdict has no lease: it was sent twice, or the lease is over."""
        known = SearchView(self._reader.read(id.search)).latest(id.candidate)
        if known is not None and (known.verdict, known.reviewer) == (SAYINGS[saying][0], reviewer):
            return Refused("recorded", "your verdict is in the ledger already")
        return Refused("lease", f"{id} is not yours any more: open it again")


def _conditions(entries: Sequence[Entry]) -> Conditions | None:
    """Those of the checks that passed the candidate before a person was asked; None if none ran.

    A candidate is parked for a person after all other checks of its group have passed it, under the
    conditions of the search.
    """
    wanted = wanted_conditions(entries)
    return None if answers(None, wanted) else wanted


def _seconds_before(entries: Sequence[Entry], lease: Lease) -> float:
    """What the reviewer took before, if the lease is for a correction; the whole time is billed.

    Raises:
        Refused: the candidate is not open for this lease.
    """
    view = SearchView(entries)
    candidate = lease.id.candidate
    if not is_reviewed(view, candidate):
        raise Refused("unknown", f"no candidate {lease.id} waits for a person")
    known = view.latest(candidate)
    if lease.corrects is None:
        if candidate not in view.open_to_review:
            raise Refused("closed", "there is a verdict already, or the search has ended")
        return 0.0
    if known is None or known != lease.corrects:
        raise Refused("closed", "there is a later verdict")
    return known.usage.seconds
