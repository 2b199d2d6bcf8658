"""Verdicts of reviewers: what the desk accepts, from whom, and once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from grv.backends.protocols import Draft, Finding, ParkedCall, Problem, Score, Usage
from grv.core.pace import Pace
from grv.core.values import Costs, Measured, Verdict
from grv.ledger.entries import Ended, Entry, Failed, Found, Intended, Made, Parked, Scored, Started
from grv.ledger.opening import open_ledger
from grv.ledger.tables import TableLedger
from grv.runtime.prices import Meter, Prices
from grv.runtime.solution import Solution
from grv.runtime.solve import solve, solve_now
from grv.serve.review.desk import Desk, Refused
from grv.serve.review.queue import ItemId
from support.pages import HUMAN
from support.postgres import POSTGRES, Server

MATH = {"kind": "math", "answer": "42"}
ID = ItemId("human", 0)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=POSTGRES)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], TableLedger]]:
    """Opens the same ledger again and again, as several servers do."""
    place = str(tmp_path / "ledger")
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        place = server.new_database()
    ledgers: list[TableLedger] = []

    def another() -> TableLedger:
        ledgers.append(open_ledger(place))
        return ledgers[-1]

    yield another
    for each in ledgers:
        each.close()


@pytest.fixture
def ledger(opened: Callable[[], TableLedger]) -> TableLedger:
    return opened()


def park(ledger: TableLedger, search: str = "human", check: object = HUMAN, count: int = 1) -> None:
    """A search whose candidates wait."""
    ledger.append(search, [Started(search, {"costs": [1, 10, 0]}, "Prompt", json.dumps(check))])
    for id in range(count):
        ledger.append(search, [Made(id, f"text {id}"), Scored(id, 1.0)])
        ledger.append(search, [Intended("verify", (id,), 10.0), Parked("verify", (id,), "note")])


def verdicts(ledger: TableLedger, search: str = "human") -> list[tuple[str, str]]:
    found = [each for each in ledger.read(search) if isinstance(each, Found)]
    return [(each.verdict.value, each.reviewer) for each in found]


def refused(
    desk: Desk, id: ItemId, secret: str, reviewer: str = "ann", saying: str = "pass"
) -> str:
    with pytest.raises(Refused) as caught:
        desk.give(id, secret, saying, reviewer=reviewer)
    assert "\n" not in str(caught.value)
    return caught.value.code


def test_a_verdict_needs_the_lease_of_this_reviewer(ledger: TableLedger) -> None:
    park(ledger)
    desk = Desk(ledger)
    assert refused(desk, ID, "") == "lease"
    given = desk.next("ann")
    assert given is not None
    lease, item = given
    assert item.text == "text 0"
    assert refused(desk, ID, "guessed") == "lease"
    assert refused(desk, ID, lease.secret, "bob") == "lease"
    assert verdicts(ledger) == []
    found = desk.give(ID, lease.secret, "fail", reviewer="ann", note=" wrong ", seconds=0)
    assert (found.note, found.usage) == ("wrong", Usage(seconds=0.0))
    assert verdicts(ledger) == [("failed", "ann")]
    assert refused(desk, ID, lease.secret, saying="fail") == "recorded"
    assert refused(desk, ID, lease.secret) == "lease"
    assert verdicts(ledger) == [("failed", "ann")]


@pytest.mark.slow
def test_what_the_queue_does_not_have_is_not_given(ledger: TableLedger) -> None:
    """Neither searches and candidates that do not exist, nor checks that no person verifies."""
    park(ledger)
    park(ledger, "math", MATH)
    park(ledger, "decided")
    ledger.append("decided", [Found(0, Verdict.FAILED, reviewer="bob")])
    park(ledger, "ended")
    ledger.append("ended", [Ended("out of budget", None, 1, 0, 1.0)])
    desk = Desk(ledger)
    before = {each: ledger.read(each) for each in ledger.search_ids()}

    for id in ("nothing:0", "human:7", "math:0", "decided:0", "ended:0"):
        wanted = ItemId.parse(id)
        with pytest.raises(Refused) as caught:
            desk.open("ann", wanted)
        assert caught.value.code in ("unknown", "closed")
        forged = desk.leases.take("ann", [wanted])  # even if a lease were granted
        assert forged is not None
        assert refused(desk, wanted, forged.secret) in ("unknown", "closed")
    assert {each: ledger.read(each) for each in ledger.search_ids()} == before


def test_a_search_that_ends_while_the_page_is_open_takes_no_verdict(ledger: TableLedger) -> None:
    park(ledger)
    desk = Desk(ledger)
    lease, _ = desk.open("ann", ID)
    ledger.append("human", [Failed("gone")])
    assert refused(desk, ID, lease.secret) == "closed"
    assert verdicts(ledger) == []
    assert desk.queue.waiting() == []


def test_a_search_that_continues_after_its_end_is_in_the_queue_again(ledger: TableLedger) -> None:
    park(ledger)
    ledger.append("human", [Ended("out of budget", None, 1, 0, 1.0)])
    desk = Desk(ledger)
    assert desk.next("ann") is None
    ledger.append("human", [Parked("verify", (0,), "note")])
    given = desk.next("ann")
    assert given is not None
    assert given[0].id == ID


def test_only_the_reviewer_of_a_verdict_corrects_it(ledger: TableLedger) -> None:
    park(ledger)
    desk = Desk(ledger)
    lease, _ = desk.open("ann", ID)
    desk.give(ID, lease.secret, "fail", reviewer="ann")
    with pytest.raises(Refused, match="ann"):
        desk.open("bob", ID)
    lease, _ = desk.open("ann", ID)
    assert lease.corrects
    desk.give(ID, lease.secret, "pass", reviewer="ann")
    assert verdicts(ledger) == [("failed", "ann"), ("passed", "ann")]


@pytest.mark.slow
def test_a_reviewer_does_not_hoard_the_queue(ledger: TableLedger) -> None:
    park(ledger, count=20)
    desk = Desk(ledger)
    held = [desk.next("ann") for _ in range(20)]
    assert sum(each is not None for each in held) == 8
    assert desk.next("bob") is not None


def race(desks: list[Desk], secrets: list[str], sayings: list[str]) -> list[str]:
    """What verdicts at once on one candidate give: "" if accepted, or why not."""
    results = [""] * len(sayings)
    start = threading.Barrier(len(sayings))

    def give(at: int) -> None:
        start.wait()
        try:
            desks[at % len(desks)].give(ID, secrets[at % len(secrets)], sayings[at], reviewer="ann")
        except Refused as error:
            results[at] = error.code

    threads = [threading.Thread(target=give, args=(at,)) for at in range(len(sayings))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return results


def test_of_verdicts_at_once_for_one_lease_one_is_accepted(ledger: TableLedger) -> None:
    """Equal ones and contradictory ones, new ones and corrections."""
    park(ledger)
    desk = Desk(ledger)
    for number, sayings in enumerate((["pass"] * 6, ["pass", "fail"] * 3, ["fail"] * 6)):
        lease, _ = desk.open("ann", ID)
        assert (lease.corrects is not None) == (number > 0)
        results = race([desk], [lease.secret], sayings)
        assert results.count("") == 1
        assert len(verdicts(ledger)) == number + 1


def test_even_if_two_servers_granted_one_item_one_verdict_is_accepted(
    opened: Callable[[], TableLedger],
) -> None:
    """A claim can end with its connection while the page is still open."""
    ledgers = [opened(), opened()]
    park(ledgers[0])
    desks = [Desk(each) for each in ledgers]
    one, _ = desks[0].open("ann", ID)
    ledgers[0].release(ID.claim)
    other, _ = desks[1].open("ann", ID)
    results = race(desks, [one.secret, other.secret], ["pass", "fail"] * 4)
    assert results.count("") == 1
    assert len(verdicts(ledgers[0])) == 1


class Backends:
    """One candidate after the other, each for a person."""

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> list[Draft]:
        return [Draft(f"text {at}", usage=Usage(10, 20)) for at in range(first, first + n)]

    async def score(self, problem: Problem, drafts: Any) -> list[Score]:
        return [Score(1.0) for _ in drafts]

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        raise ParkedCall("Is it right?")


def solved(ledger: TableLedger, clock: list[float], *given: tuple[int, str, float]) -> Solution:
    """A search with measured costs, and verdicts on its candidates that take some seconds."""
    desk = Desk(ledger, clock=lambda: clock[0], silence=1e9)
    prices = Prices(other={"verify_minute": 6.0, "generate_call": 0.0})
    backends = Backends()

    async def review() -> None:
        for candidate, saying, seconds in given:
            while (found := desk.next("ann")) is None:  # noqa: ASYNC110 - another thread writes
                await anyio.sleep(0.02)
            lease, item = found
            assert item.id.candidate == candidate
            clock[0] += seconds
            desk.give(item.id, lease.secret, saying, reviewer="ann", seconds=seconds)

    async def both() -> Solution:
        async with anyio.create_task_group() as group:
            group.start_soon(review)
            return await solve(
                Problem("p", "Prompt", HUMAN),
                generator=backends,
                scorer=backends,
                verifier=backends,
                policy="verify-all",
                costs=Measured(1, 10),
                most=Costs(1, 100),
                meter=Meter(prices, "m"),
                budget=1000,
                ledger=ledger,
                about={"generator": "g"},
            )
        raise AssertionError

    return anyio.run(both)


def test_a_candidate_that_waited_when_its_search_ended_is_reviewed_if_it_continues(
    ledger: TableLedger,
) -> None:
    with pytest.raises(Refused):
        Desk(ledger).open("ann", ID)
    backends = Backends()
    options: Any = {"generator": backends, "scorer": backends, "verifier": backends}
    options |= {"policy": "verify-all", "ledger": ledger, "about": {"generator": "g"}}
    options |= {"costs": Measured(1, 10), "most": Costs(1, 100), "budget": 1000}
    options |= {"meter": Meter(Prices(other={"verify_minute": 6.0, "generate_call": 0.0}), "m")}
    problem = Problem("p", "Prompt", HUMAN)
    ended = solve_now(problem, **options, pace=Pace(deadline=0.2, overlap=False))
    assert not ended.verified
    assert Desk(ledger).next("ann") is None

    assert solved(ledger, [0.0], (0, "pass", 30)).verified


def entries_of(ledger: TableLedger) -> list[Entry]:
    (search,) = ledger.search_ids()
    return [*ledger.read(search)]


def test_a_correction_decides_the_search_anew_and_both_reviews_are_billed(
    ledger: TableLedger,
) -> None:
    clock = [0.0]
    first = solved(ledger, clock, (0, "pass", 30))
    assert first.verified
    assert ledger.possibly_paid() == pytest.approx(first.bill.total)
    (search,) = ledger.search_ids()
    desk = Desk(ledger, clock=lambda: clock[0], silence=1e9)
    lease, _ = desk.open("ann", ItemId(search, 0))
    clock[0] += 20
    desk.give(lease.id, lease.secret, "fail", reviewer="ann")

    again = solved(ledger, clock, (1, "pass", 10))
    assert again.draft is not None
    assert again.draft.text == "text 1"
    assert again.bill.total == pytest.approx(first.bill.total + (20 + 10) / 60 * 6.0)
    assert ledger.possibly_paid() == pytest.approx(again.bill.total)
    assert ledger.check() == []


def test_a_correction_that_comes_before_the_end_is_written_counts(ledger: TableLedger) -> None:
    """The search has used the pass, but not yet recorded its end."""
    clock = [0.0]
    solved(ledger, clock, (0, "pass", 30))
    known = entries_of(ledger)
    at = next(n for n, each in enumerate(known) if isinstance(each, Found))
    late = Found(0, Verdict.FAILED, "failed by a reviewer", {}, Usage(seconds=31), "ann")
    from grv.runtime.record import SearchRecord

    record = SearchRecord(None, "s", [*known[: at + 1], late, *known[at + 1 :]])
    assert record.ended is None
    assert record.found[0].verdict is Verdict.FAILED
