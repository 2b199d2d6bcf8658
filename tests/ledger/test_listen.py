"""Listeners to a ledger, and verdicts that come from outside."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from grv.backends.protocols import Draft, Finding, ParkedCall, Problem
from grv.core.values import Costs, Verdict
from grv.ledger.entries import Entry, Failed, Found, Intended, Made, Parked, Started
from grv.ledger.ledger import Ledger, MemoryLedger
from grv.ledger.pending import pending_calls
from grv.ledger.sqlite import SqliteLedger
from grv.policies.fixed import Fixed
from grv.runtime.calls import Caller
from grv.runtime.options import Calls
from grv.runtime.solution import Solution
from grv.runtime.solve import SolveOptions, solve_many
from grv.testing.contracts_ledger import LIFE

SPAWN = multiprocessing.get_context("spawn")


class Heard:
    """A listener that keeps what it is told, and when."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, Entry]] = []
        self.times: list[float] = []

    def __call__(self, search: str, entries: Sequence[Entry]) -> None:
        self.entries += [(search, entry) for entry in entries]
        self.times += [time.time()] * len(entries)


def wait_for(condition: Callable[[], bool], within: float = 30) -> None:
    until = time.monotonic() + within
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)


def append_life(path: str) -> None:
    with closing(SqliteLedger(path)) as ledger:
        for entry in LIFE:
            ledger.append("other", [entry])
            time.sleep(0.02)


def append_found(path: str, search: str, candidate: int, verdict: Verdict) -> None:
    with closing(SqliteLedger(path)) as ledger:
        found = Found(candidate, verdict, reviewer="Ada", note="read it twice")
        ledger.append(search, [found])


def in_another_process(target: Callable[..., None], *arguments: object) -> None:
    process = SPAWN.Process(target=target, args=arguments)
    process.start()
    process.join(60)
    assert process.exitcode == 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_entries_of_this_process_are_reported_at_once(path: Path, kind: str) -> None:
    ledger = MemoryLedger() if kind == "memory" else SqliteLedger(path)
    heard, also = Heard(), Heard()
    ledger.append("before", LIFE[:1])
    stop = ledger.listen(heard)
    ledger.listen(also)
    ledger.append("s", LIFE[:3])
    assert heard.entries == [("s", entry) for entry in LIFE[:3]]
    stop()
    ledger.append("s", LIFE[3:])
    assert heard.entries == [("s", entry) for entry in LIFE[:3]]
    assert also.entries == [("s", entry) for entry in LIFE]
    if isinstance(ledger, SqliteLedger):
        ledger.close()


@pytest.mark.alone
def test_entries_of_another_process_are_reported_within_two_seconds(path: Path) -> None:
    with closing(SqliteLedger(path)) as ledger:
        heard = Heard()
        ledger.listen(heard)
        in_another_process(append_life, str(path))
        wait_for(lambda: len(heard.entries) >= len(LIFE), within=2)
        assert heard.entries == [("other", entry) for entry in LIFE]
        written = [at for _, at in ledger.intact("other")]
        late = [there - at for there, at in zip(heard.times, written, strict=True)]
        assert max(late) < 2


@pytest.mark.alone
def test_entries_of_both_are_reported_once_each_and_in_order(path: Path) -> None:
    with closing(SqliteLedger(path)) as ledger:
        heard = Heard()
        ledger.listen(heard)
        other = SPAWN.Process(target=append_life, args=(str(path),))
        other.start()
        mine = 0
        while other.is_alive():
            ledger.append("mine", [Started("p", {}) if mine == 0 else Made(mine, f"text {mine}")])
            mine += 1
            time.sleep(0.01)
        other.join()
        wait_for(lambda: len(heard.entries) >= len(LIFE) + mine, within=2)
        assert [entry for search, entry in heard.entries if search == "other"] == list(LIFE)
        assert [entry for search, entry in heard.entries if search == "mine"] == list(
            ledger.read("mine")
        )


def test_a_listener_that_raises_stops_neither_writing_nor_the_others(path: Path) -> None:
    def fails(search: str, entries: Sequence[Entry]) -> None:
        raise RuntimeError("a bug of the listener")

    ledgers: tuple[Ledger, ...] = (MemoryLedger(), SqliteLedger(path))
    for ledger in ledgers:
        told = Heard()
        ledger.listen(fails)
        ledger.listen(told)
        ledger.append("one", [Started("one", {})])
        ledger.append("one", [Failed("no")])
        assert [entry for _, entry in told.entries] == [Started("one", {}), Failed("no")]
        assert len(ledger.read("one")) == 2


def test_a_listener_may_append_and_stop_itself(path: Path) -> None:
    """In a thread, because a mistake here would be a deadlock."""
    with closing(SqliteLedger(path)) as ledger:
        heard = Heard()

        def listener(search: str, entries: Sequence[Entry]) -> None:
            heard(search, entries)
            if search == "s":
                stop()
                ledger.append("answer", LIFE[:1])

        stop = ledger.listen(listener)
        thread = threading.Thread(target=ledger.append, args=("s", LIFE[:1]), daemon=True)
        thread.start()
        thread.join(5)
        assert not thread.is_alive(), "a deadlock"
        assert heard.entries == [("s", LIFE[0])]
        assert list(ledger.read("answer")) == list(LIFE[:1])


class Desk:
    """A verifier whose verdicts come from outside; others fail at once."""

    def __init__(self, *parked: str) -> None:
        self._parked = parked
        self.asked: list[str] = []

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """Park the draft if it is to be parked."""
        self.asked.append(f"{problem.id}: {draft.text}")
        if problem.id in self._parked:
            raise ParkedCall("on the desk of a reviewer")
        return Finding(Verdict.FAILED)

    def __repr__(self) -> str:
        return "Desk()"


def draft(problem: Problem) -> str:
    return f"a draft for {problem.id}"


def score(problem: Problem, text: str) -> float:
    return 1.0


def options(path: str, desk: Desk, caller: Caller | None = None) -> SolveOptions:
    return {
        "generator": draft,
        "scorer": score,
        "verifier": desk,
        "policy": Fixed(1, 1),
        "costs": Costs(1, 10),
        "ledger": path,
        "calls": caller,
        "total_budget": 1000,
    }


async def solved(path: str, names: Sequence[str], desk: Desk, caller: Caller) -> list[Solution]:
    problems = [Problem(name, name) for name in names]
    return [each async for each in solve_many(problems, **options(path, desk, caller))]


def search_and_wait(path: str) -> None:
    anyio.run(solved, path, ["parked"], Desk("parked"), Caller())


def parked_search(path: Path) -> str:
    """The search that waits for a verdict; empty if there is none yet."""
    if not path.exists() or not path.stat().st_size:
        return ""
    with closing(SqliteLedger(path, read_only=True)) as ledger:
        for search in ledger.search_ids():
            if any(isinstance(entry, Parked) for entry in ledger.read(search)):
                return search
    return ""


@pytest.mark.slow
def test_a_parked_call_holds_no_slot_and_is_picked_up(path: Path) -> None:
    """There is one slot for calls: the other problems end while one waits."""
    desk, caller = Desk("parked"), Caller(Calls(concurrency=1))
    found: list[Solution] = []

    def run() -> None:
        found.extend(anyio.run(solved, str(path), ["parked", "a", "b", "c"], desk, caller))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    wait_for(lambda: len(desk.asked) == 4)
    wait_for(lambda: parked_search(path) != "")
    wait_for(lambda: caller.in_flight == 0)
    search = parked_search(path)
    assert thread.is_alive()
    in_another_process(append_found, str(path), search, 0, Verdict.PASSED)
    thread.join(10)
    assert not thread.is_alive()
    outcomes = {each.problem: each.outcome for each in found}
    assert outcomes["parked"] == "solved"
    assert {outcomes[name] for name in "abc"} != {"failed"}
    assert all(each.lost == {} for each in found)
    with closing(SqliteLedger(path)) as ledger:
        assert ledger.check() == []
        assert ledger.possibly_paid() == 4 * (1 + 10)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["while it is down", "after the restart"])
def test_a_parked_call_survives_its_process(path: Path, when: str) -> None:
    first = SPAWN.Process(target=search_and_wait, args=(str(path),))
    first.start()
    wait_for(lambda: parked_search(path) != "")
    search = parked_search(path)
    assert first.pid is not None
    os.kill(first.pid, signal.SIGKILL)
    first.join()
    with closing(SqliteLedger(path)) as ledger:
        pending = pending_calls(ledger.read(search))
        assert (pending.lost, pending.parked) == ({}, {("verify", 0)})
        (summary,) = ledger.searches()
        assert summary.outcome is None
    if when == "while it is down":
        in_another_process(append_found, str(path), search, 0, Verdict.PASSED)
    second = SPAWN.Process(target=search_and_wait, args=(str(path),))
    second.start()
    if when == "after the restart":
        time.sleep(1.5)
        assert second.is_alive()
        in_another_process(append_found, str(path), search, 0, Verdict.PASSED)
    second.join(30)
    assert second.exitcode == 0
    with closing(SqliteLedger(path)) as ledger:
        entries = ledger.read(search)
        assert sum(isinstance(each, Intended) and each.call == "verify" for each in entries) == 1
        (found,) = [each for each in entries if isinstance(each, Found)]
        assert (found.reviewer, found.note) == ("Ada", "read it twice")
        (summary,) = ledger.searches()
        assert (summary.outcome, summary.verified) == ("solved", 1)
        assert not pending_calls(entries).lost
        assert ledger.check() == []
