"""What a book makes of entries: above all, what was in flight when a process died."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from grv.core.errors import LedgerError
from grv.core.values import CandidateId, Generated, Verdict, Verified
from grv.ledger.entries import (
    Ended,
    Entry,
    Failed,
    Found,
    Intended,
    Made,
    Parked,
    Scored,
    ScoredAgain,
    Settled,
    Started,
    Told,
    charge_of,
)
from grv.ledger.ledger import Append, Caps, MemoryLedger, OverBudget
from grv.ledger.pending import pending_calls
from grv.ledger.sqlite import SqliteLedger
from grv.runtime.ledger_writer import LedgerWriter
from grv.runtime.record import ReadOnly, SearchRecord

GENERATE = Intended("generate", (0, 1, 2))
MADE = (Made(0, "a"), Made(1, "b"), Made(2, "c"))
LATE = Settled("generate", (0, 1, 2), 0.0, "late")
SCORE = Intended("score", (0, 1, 2))
SCORED = (Scored(0, 1.0), Scored(1, 2.0), Scored(2, None))
TOLD = Told(Generated((1.0, 2.0, float("-inf"))))
VERIFY = (Intended("verify", (1,)), Intended("verify", (0,)))
PASSED, FAILED = Found(1, Verdict.PASSED), Found(1, Verdict.FAILED)
PASS = Told(Verified({CandidateId(1): Verdict.PASSED}))
END = Ended("solved", 1, 3, 2, 23.0)


@pytest.mark.parametrize(
    ("entries", "lost", "unneeded"),
    [
        ((), {}, 0),
        ((GENERATE,), {"generate": 3}, 0),
        ((GENERATE, *MADE), {}, 0),
        ((GENERATE, *MADE, SCORE), {"score": 3}, 0),
        ((GENERATE, *MADE, SCORE, *SCORED, TOLD), {}, 0),
        ((GENERATE, *MADE, SCORE, *SCORED, TOLD, *VERIFY), {"verify": 2}, 0),
        ((*VERIFY, FAILED), {"verify": 1}, 0),
        ((*VERIFY, PASSED), {"verify": 1}, 0),
        ((*VERIFY, PASSED, PASS, END), {}, 1),
        # Asked again, after it was lost.
        ((GENERATE, GENERATE, *MADE), {"generate": 3}, 0),
        ((GENERATE, GENERATE, GENERATE), {"generate": 9}, 0),
        ((*VERIFY, FAILED, VERIFY[1], Found(0, Verdict.PASSED)), {"verify": 1}, 0),
        # An answer with fewer than asked for has lost nothing.
        ((GENERATE, MADE[0], Intended("generate", (1, 2)), *MADE[1:]), {}, 0),
        ((GENERATE, MADE[0], Intended("generate", (1, 2))), {"generate": 2}, 0),
        # Two batches at once.
        ((GENERATE, Intended("generate", (3, 4)), Made(3, "d"), Made(4, "e")), {"generate": 3}, 0),
        # The generator has no more.
        ((GENERATE, Settled("generate", (0, 1, 2), 3.0), Told(Generated(()))), {}, 0),
        # An attempt that failed may have been paid for, unless it certainly was not.
        ((GENERATE, LATE), {"generate": 3}, 0),
        ((GENERATE, Settled("generate", (0, 1, 2), 3.0, "refused", True)), {}, 0),
        (
            (GENERATE, Settled("generate", (0, 1, 2), 0.0, "late"), GENERATE, *MADE),
            {"generate": 3},
            0,
        ),
        ((GENERATE, Failed("no")), {"generate": 3}, 0),
        # A parked call is not lost.
        ((VERIFY[0], Parked("verify", (1,), "a person")), {}, 0),
    ],
)
def test_what_was_in_flight_is_known(
    entries: tuple[Entry, ...], lost: dict[str, int], unneeded: int
) -> None:
    pending = pending_calls(entries)
    assert (pending.lost, pending.cancelled) == (lost, unneeded)


def test_what_may_have_been_paid_is_counted() -> None:
    entries: list[Entry] = [
        Intended("generate", (0, 1), 2.0),
        Settled("generate", (0, 1), 0.0, "late"),
        Intended("generate", (0, 1), 2.0),
        Settled("generate", (0, 1), 2.0, "refused", True),
        Intended("generate", (0, 1), 2.0),
        *MADE[:2],
        Intended("verify", (0,), 10.0),
    ]
    assert charge_of(entries) == 2 + 0 + 2 + 10


def test_a_second_score_that_never_arrived_is_lost_and_not_counted() -> None:
    entries: list[Entry] = [
        Intended("rescore", (0,), 0.5),
        Settled("rescore", (0,), 0.0, "late"),
        ScoredAgain(0, None, "late"),
        Intended("rescore", (1,), 0.5),
        ScoredAgain(1, None, "the scorer gave none"),
    ]
    tally = pending_calls(entries)
    assert (tally.rescored, tally.lost["rescore"], tally.paid) == (1, 1, 1.0)


def test_a_resumed_search_writes_nothing_that_is_there() -> None:
    started, ledger = Started("p", {"budget": 1}), MemoryLedger()

    async def live(*told: Told) -> SearchRecord:
        book = await SearchRecord.open(LedgerWriter(ledger), "s", lambda: None)
        book.begin(started)
        for each in told:
            book.tell(each)
        await book.flush()
        return book

    anyio.run(live, TOLD)
    book = anyio.run(live, TOLD, PASS)
    assert list(ledger.read("s")) == [started, TOLD, PASS]
    assert book.ended is None
    started = Started("p", {"budget": 2})  # which takes its own course
    anyio.run(live, TOLD)
    assert list(ledger.read("s"))[3:] == [started, TOLD]


class Groups(MemoryLedger):
    """Remembers what was written together."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[list[Entry]] = []

    def append_all(self, groups: Sequence[Append]) -> Sequence[Exception | None]:
        self.groups += [[*group.entries] for group in groups]
        return super().append_all(groups)


def test_what_is_noted_is_used_at_once_and_written_with_the_next_entries() -> None:
    ledger = Groups()
    started = Started("p", {})

    async def live() -> None:
        book = await SearchRecord.open(LedgerWriter(ledger), "s", lambda: None)
        book.begin(started)
        assert book.started == started
        assert not ledger.read("s")
        await book.write(GENERATE)
        await book.write(*MADE)
        book.note(SCORE)
        await book.write(*SCORED)
        book.tell(TOLD)
        assert book.told == [TOLD]
        await book.end(END)
        await book.flush()  # nothing is left

    anyio.run(live)
    assert ledger.groups == [[started, GENERATE], [*MADE], [SCORE, *SCORED], [TOLD, END]]


def test_what_is_noted_waits_if_a_cap_refuses_the_next_entries() -> None:
    ledger = Groups()
    started = Started("p", {})
    dear = Intended("generate", (0,), 5.0)

    async def live() -> None:
        book = await SearchRecord.open(LedgerWriter(ledger), "s", lambda: None)
        book.begin(started)
        with pytest.raises(OverBudget):
            await book.write(dear, caps=Caps(total=4.0))
        assert not ledger.read("s")
        await book.end(END)

    anyio.run(live)
    assert [*ledger.read("s")] == [started, END]
    assert ledger.possibly_paid() == 0


def test_a_record_that_is_only_read_notes_nothing() -> None:
    book = SearchRecord(None, "s", [Started("p", {}), GENERATE, *MADE])
    with pytest.raises(ReadOnly):
        book.note(TOLD)
    assert book.told == []


def test_writes_that_come_together_are_written_together(tmp_path: Path) -> None:
    groups = []

    class Watched(SqliteLedger):
        def append_all(self, given: Sequence[Append]) -> Sequence[Exception | None]:
            groups.append(len(given))
            return super().append_all(given)

    ledger = Watched(tmp_path / "ledger")

    async def write_all() -> None:
        writer = LedgerWriter(ledger)
        async with anyio.create_task_group() as group:
            for i in range(50):
                group.start_soon(writer.write, f"s{i}", [Started("p", {})])

    anyio.run(write_all)
    assert sum(groups) == 50
    assert len(groups) <= 3
    assert all(len(ledger.read(f"s{i}")) == 1 for i in range(50))
    ledger.close()


def test_a_write_that_fails_is_known_to_all_who_wait_for_it() -> None:
    class Full(MemoryLedger):
        def append_all(self, groups: Sequence[Append]) -> Sequence[Exception | None]:
            raise LedgerError("the disk is full")

    failures = []

    async def write_all() -> None:
        writer = LedgerWriter(Full())

        async def write(i: int) -> None:
            try:
                await writer.write(f"s{i}", [Started("p", {})])
            except LedgerError as error:
                failures.append(str(error))

        async with anyio.create_task_group() as group:
            for i in range(5):
                group.start_soon(write, i)

    anyio.run(write_all)
    assert failures == ["the disk is full"] * 5


def test_a_write_that_is_cancelled_is_durable_all_the_same(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "ledger")

    async def write_all() -> None:
        writer = LedgerWriter(ledger)
        async with anyio.create_task_group() as group:
            for i in range(5):
                group.start_soon(writer.write, f"s{i}", [Started("p", {})])
            await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

    anyio.run(write_all)
    assert all(len(ledger.read(f"s{i}")) == 1 for i in range(5))
    ledger.close()
