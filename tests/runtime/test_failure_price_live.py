"""Live searches with a price of failures: reserves, ledgers, resumed runs, verdicts of people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grv
from grv import Costs, Verdict
from grv.backends.protocols import Draft, Finding, Problem, Usage
from grv.core import Measured
from grv.core.errors import UsageError
from grv.core.limits import Limits
from grv.core.search import Policy
from grv.learning.history import Payments, mean_prices
from grv.learning.ledger_history import entries_past
from grv.ledger.entries import Found, Intended, Settled, Started, price_list, recorded_prices
from grv.ledger.ledger import Ledger, MemoryLedger
from grv.ledger.sqlite import SqliteLedger
from grv.policies import Adaptive, Alternate, Balanced, Fixed, Hedged, Threshold, Varied, VerifyAll
from grv.replay.engine import replayed
from grv.runtime.collect import Collected, Collection, collect_many
from grv.runtime.executor import Backends
from grv.runtime.prices import Meter, Prices
from grv.runtime.record import SearchRecord
from grv.runtime.solution import Solution
from grv.testing.fakes import Crash, ScriptedGenerator, TableScorer, TableVerifier, world_key
from grv.testing.strategies import worlds
from grv.testing.worlds import World, needle
from support.examples import examples
from support.live import one_generator, search
from support.pages import HUMAN, options
from support.pages import Backends as PageBackends

pytestmark = pytest.mark.anyio
PROBLEM = Problem("p", "prompt")
COSTS = Costs(1, 10, failure=2)
POLICIES: tuple[Policy, ...] = (
    Adaptive(),
    Alternate(),
    Balanced(),
    Fixed(6, 3),
    Hedged(),
    Threshold(1),
    Varied(),
    VerifyAll(),
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class TimedVerifier:
    """Takes ten seconds for a pass, and one for a failure."""

    inner: TableVerifier

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """The verdict of the inner one."""
        finding = await self.inner.verify(problem, draft)
        seconds = 10.0 if finding.verdict is Verdict.PASSED else 1.0
        return replace(finding, usage=Usage(seconds=seconds))


class Bench:
    """A search over one world, and what its backends saw."""

    def __init__(self, world: World, **more: Any) -> None:
        self.generator = ScriptedGenerator(world)
        self.verifier = TableVerifier(world)
        backends = Backends(self.generator, TableScorer(world), self.verifier, world_key(world))
        self.backends = backends
        self.config = one_generator(backends, **{"costs": COSTS, "width": 1, **more})

    async def solve(self, ledger: Ledger | None = None) -> Solution:
        return await search(PROBLEM, self.config, ledger=ledger)


@pytest.mark.slow
@settings(max_examples=examples(15), deadline=None)
@given(
    worlds(broken=False, most_broken=0),
    st.sampled_from([float("inf"), 5.0, 13.0, 20.0, 37.5, 60.0]),
    st.sampled_from([1, None]),
)
def test_live_equals_replay_with_and_without_a_budget(
    world: World, budget: float, width: int | None
) -> None:
    for policy in POLICIES:
        ledger = MemoryLedger()
        bench = Bench(world, policy=policy, budget=budget, width=width)
        solution = anyio.run(bench.solve, ledger)
        keys = bool(world.keys)
        limits = Limits(budget=budget, width=width)
        there = replayed(policy, world.logged(), COSTS, limits, keys=keys)
        assert there.outcome is not None
        assert solution.outcome == there.outcome.reason.value
        assert solution.bill.total == pytest.approx(there.bill.total)
        assert (solution.bill.generated, solution.bill.verified) == (
            there.bill.generated,
            there.bill.verified,
        )
        if width == 1:  # otherwise a pass cancels others, which a replay does not
            assert ledger.possibly_paid() == pytest.approx(there.bill.total)
        assert ledger.possibly_paid() <= budget


async def test_a_verification_reserves_a_pass_and_returns_what_a_failure_did_not_cost() -> None:
    ledger = MemoryLedger()
    solution = await Bench(World.of("1- 2- 3+"), policy=VerifyAll()).solve(ledger)
    entries = ledger.read(solution.search)
    reserved = [e.reserved for e in entries if isinstance(e, Intended) and e.call == "verify"]
    returned = [e.returned for e in entries if isinstance(e, Settled) and e.call == "verify"]
    assert reserved == [10, 10, 10]
    assert returned == [8, 8]  # the third passed
    assert solution.bill.total == ledger.possibly_paid() == 3 + 2 * 2 + 10
    started = next(entry for entry in entries if isinstance(entry, Started))
    assert started.about["costs"] == [1, 10, 0, 2]
    assert price_list(started.about) == COSTS


async def test_without_a_price_of_failures_a_ledger_is_as_before() -> None:
    ledger = MemoryLedger()
    solution = await Bench(World.of("1- 2+"), policy=VerifyAll(), costs=Costs(1, 10)).solve(ledger)
    entries = ledger.read(solution.search)
    assert not [entry for entry in entries if isinstance(entry, Settled)]
    started = next(entry for entry in entries if isinstance(entry, Started))
    assert started.about["costs"] == [1, 10, 0]


@pytest.mark.parametrize(
    "about", [{}, {"costs": None}, {"costs": ["a", 1, 2]}, {"costs": [1]}, {"costs": [1, 2, 0, 3]}]
)
def test_a_price_list_that_cannot_be_read_is_none(about: dict[str, Any]) -> None:
    assert price_list(about) is None


def test_a_price_list_reads_back() -> None:
    for costs in (COSTS, Costs(1, 10), Costs(1, 10, failure=3, score=0.5)):
        assert price_list({"costs": recorded_prices(costs)}) == costs


async def die() -> None:
    """Kill the run."""
    raise Crash


@pytest.mark.parametrize("crash", range(1, 6))
async def test_a_run_that_is_killed_goes_on_without_paying_twice(crash: int) -> None:
    world = needle(20, at=4)
    whole = await Bench(world, policy=VerifyAll(), budget=100.0).solve()
    ledger = MemoryLedger()
    killed = Bench(world, policy=VerifyAll(), budget=100.0)
    killed.verifier.faults = {crash: die}
    with pytest.raises(Crash):
        await killed.solve(ledger)
    resumed = Bench(world, policy=VerifyAll(), budget=100.0)
    solution = await resumed.solve(ledger)
    assert solution.outcome == whole.outcome == "solved"
    assert len(resumed.verifier.verified) + crash - 1 == whole.bill.verified
    assert solution.bill.total == whole.bill.total
    # The call that was in flight may have been paid for, as a pass.
    assert ledger.possibly_paid() == whole.bill.total + 10


async def test_a_total_budget_is_not_exceeded_and_used_to_the_last_verification() -> None:
    ledger = MemoryLedger()
    bench = Bench(World.of(" ".join(["1-"] * 30)), policy=VerifyAll())
    solution = await search(PROBLEM, bench.config, ledger=ledger, total=40.0)
    assert solution.outcome == "out of budget"
    # After n failures 3 n is paid. One more needs 11: up to n = 10 there are 30.
    assert (solution.bill.verified, ledger.possibly_paid()) == (10, 30.0)


async def test_a_collection_bills_failures_and_passes() -> None:
    world = World.of("1- 2+ 3- 4+")
    backends = Bench(world).backends
    collection = Collection(backends, n=4, costs=COSTS)
    ledger = MemoryLedger()
    collected: list[Collected] = []
    await collect_many([PROBLEM], collection, ledger=ledger, done=collected.append)
    assert (collected[0].verified, collected[0].failed) == (4, 2)
    assert ledger.possibly_paid() == 4 + 2 * 2 + 2 * 10


async def _solve_by_people(ledger: SqliteLedger, names: Sequence[str]) -> list[Solution]:
    problems = [Problem(each, f"Write {each}.", HUMAN) for each in names]
    how = options(ledger, PageBackends(every=2, parks=True), at_once=1, costs=COSTS)
    return [solution async for solution in grv.solve_many(problems, **how)]


@pytest.mark.slow
async def test_verdicts_of_people_are_billed_by_what_they_say(tmp_path: Path) -> None:
    """And a corrected one as what it says now."""
    ledger = SqliteLedger(tmp_path / "ledger")
    found: list[Solution] = []

    async def work() -> None:
        found.extend(await _solve_by_people(ledger, ["a"]))

    async def give(number: int) -> None:
        given = 0
        while given < number:
            for id in ledger.search_ids():
                waits = SearchRecord(None, id, ledger.read(id)).tally.parked
                for _, candidate in sorted(waits):
                    verdict = Verdict.PASSED if candidate % 2 else Verdict.FAILED
                    ledger.append(id, [Found(candidate, verdict, reviewer="ann")])
                    given += 1
            await anyio.sleep(0.02)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(work)
            await give(2)
    (solution,) = found
    assert (solution.outcome, solution.bill.verified) == ("solved", 2)
    generated = solution.bill.generated
    assert solution.bill.total == ledger.possibly_paid(None) == generated + 2 + 10

    # Ann was wrong: the second failed too. The search goes on, and this verification costs 2.
    (id,) = ledger.search_ids()
    ledger.append(id, [Found(1, Verdict.FAILED, reviewer="bob")])
    found.clear()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(work)
            await give(2)
    (solution,) = found
    assert (solution.outcome, solution.bill.verified) == ("solved", 4)
    generated = solution.bill.generated
    assert solution.bill.total == ledger.possibly_paid(None) == generated + 3 * 2 + 10
    assert ledger.check() == []
    ledger.close()


async def test_what_a_ledger_paid_is_what_a_prior_learns() -> None:
    """Passes take ten seconds, failures one; a second costs 1."""
    prices = Prices({}, {"verify_second": 1.0, "generate_call": 0.5})
    ledger = MemoryLedger()
    bench = Bench(
        World.of("1- 2- 3+"),
        policy=VerifyAll(),
        costs=Measured(1, 10, failure=4),
        meter=Meter(prices),
        about={"score": "s"},
    )
    timed = TimedVerifier(bench.verifier)
    bench.config = one_generator(
        replace(bench.backends, verifier=timed),
        VerifyAll(),
        Measured(1, 10, failure=4),
        meter=Meter(prices),
        about={"score": "s"},
    )
    solution = await bench.solve(ledger)
    assert solution.bill.total == 3 * 0.5 + 1 + 1 + 10
    entries = ledger.read(solution.search)
    past = entries_past("p", entries)
    assert past.payments == Payments(3, 1.5, 3, 12.0, 2, 2.0)
    assert mean_prices([past, past]) == (0.5, 4.0, 1.0)
    assert next(e for e in entries if isinstance(e, Started)).about["costs"] == [1, 10, 0, 4]


def test_python_takes_a_price_of_failures_in_all_its_forms() -> None:
    totals = set()
    forms: list[Any] = [COSTS, (1, 10, 2), "1,10,2", [1, 10, 2]]
    for costs in forms:
        texts = iter(["one", "two", "three"])
        solution = grv.solve_now(
            "three",
            generator=lambda problem, texts=texts: next(texts),
            scorer=lambda problem, text: 0.0,
            verifier=lambda problem, text: text == "three",
            policy="verify-all",
            costs=costs,
        )
        totals.add(solution.bill.total)
    assert totals == {3 + 2 * 2 + 10}


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ((1, 10, 20), "more than one that passes"),
        ("1,10,0", "positive"),
        ("1,10,2,3", "give two numbers"),
        ((1, 10, 2, 3), "give grv.Costs"),
    ],
)
def test_a_price_that_cannot_be_is_refused_in_one_line(costs: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        grv.solve_now("p", generator=lambda p: "x", verifier=lambda p, t: True, costs=costs)
    assert "\n" not in str(refused.value)
    assert "costs=" in str(refused.value)
