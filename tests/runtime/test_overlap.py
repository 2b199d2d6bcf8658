"""Live searches that look ahead: what overlaps, what is billed, how they resume and end."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grv import Costs, Problem
from grv.core.limits import Limits
from grv.core.pace import Pace
from grv.core.search import Policy
from grv.core.values import Verified
from grv.ledger.entries import Ended, Started, Told
from grv.ledger.ledger import Ledger, MemoryLedger
from grv.ledger.sqlite import SqliteLedger
from grv.policies import Alternate, Varied, VerifyAll
from grv.replay.engine import replayed
from grv.runtime.executor import Backends
from grv.runtime.solution import Solution
from grv.testing.fakes import Crash, ScriptedGenerator, TableScorer, TableVerifier
from grv.testing.strategies import worlds
from grv.testing.worlds import World, needle
from support.examples import examples
from support.live import one_generator, search

pytestmark = pytest.mark.anyio
PROBLEM = Problem("p", "prompt")
PACE = Pace()
CHEAP = Costs(1, 100)  # candidates are cheap enough to be generated ahead early
POLICIES: list[Policy] = [VerifyAll(), Alternate(), Varied()]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Bench:
    """A live search over one world, with backends that may take their time."""

    def __init__(
        self, world: World, policy: Policy, width: int, pace: Pace = PACE, costs: Costs = CHEAP
    ) -> None:
        self.generator, self.verifier = ScriptedGenerator(world), TableVerifier(world)
        backends = Backends(self.generator, TableScorer(world), self.verifier)
        self.config = one_generator(backends, policy, costs, width=width, pace=pace)

    def slow(self, generate: float, verify: float) -> "Bench":
        self.generator.faults = dict.fromkeys(range(1, 1000), _sleep(generate))
        self.verifier.faults = dict.fromkeys(range(1, 1000), _sleep(verify))
        return self

    async def solve(self, ledger: Ledger | None = None) -> Solution:
        return await search(PROBLEM, self.config, ledger=ledger)


def _sleep(seconds: float) -> Callable[[], object]:
    async def wait() -> None:
        await anyio.sleep(seconds)

    return wait


def events_of(ledger: MemoryLedger, solution: Solution) -> list[Verified]:
    told = [each.event for each in ledger.read(solution.search) if isinstance(each, Told)]
    return [event for event in told if isinstance(event, Verified)]


@settings(max_examples=examples(30))
@given(
    world=worlds(broken=False, keys=False, candidates=40),
    policy=st.sampled_from(POLICIES),
    width=st.sampled_from([2, 4, 16]),
    pace=st.sampled_from([Pace(), Pace(ramp=False), Pace(overlap=False), Pace(random_phase=True)]),
)
async def test_a_live_search_is_its_replay(
    world: World, policy: Policy, width: int, pace: Pace
) -> None:
    live = await Bench(world, policy, width, pace).solve()
    there = replayed(policy, world.logged(PROBLEM.id), CHEAP, Limits(width=width, pace=pace))
    assert there.outcome is not None
    assert live.outcome == there.outcome.reason.value
    assert live.bill.verified == there.bill.verified
    # A pass cancels candidates that are generated meanwhile; they are billed and never arrive.
    cancelled = live.bill.total - CHEAP.of(live.bill.generated, live.bill.verified)
    assert live.bill.generated + cancelled >= there.bill.generated
    assert live.bill.unneeded >= there.bill.unneeded


@pytest.mark.parametrize("overlap", [True, False])
async def test_generation_overlaps_verification(overlap: bool) -> None:
    """The verifications of a block wait for the next generation; without overlap, for ever."""
    pace = Pace(ramp=False, overlap=overlap)
    bench, ledger = Bench(needle(60, at=40), VerifyAll(), 8, pace), MemoryLedger()
    begun = [anyio.Event() for _ in range(8)]

    def begin(call: int) -> Callable[[], object]:
        async def tell() -> None:
            begun[call].set()

        return tell

    bench.generator.faults = {call: begin(call) for call in range(1, 8)}
    bench.verifier.faults = {call: begun[2 + (call - 1) // 8].wait for call in range(1, 49)}
    if not overlap:
        with pytest.raises(TimeoutError), anyio.fail_after(0.5):
            await bench.solve(ledger)
        return
    start = time.monotonic()
    with anyio.fail_after(30):
        solution = await bench.solve(ledger)

    assert solution.outcome == "solved"
    events = events_of(ledger, solution)
    assert all(event.meanwhile is not None for event in events[:-1])
    assert 0 < solution.seconds <= time.monotonic() - start


async def test_a_pass_cancels_the_generation_and_bills_it() -> None:
    bench = Bench(needle(100, at=3), VerifyAll(), 2, Pace(ramp=False))
    bench.generator.faults = {3: anyio.sleep_forever}
    with anyio.fail_after(10):
        solution = await bench.solve()
    assert solution.outcome == "solved"
    assert solution.bill.verified == 4
    assert (solution.bill.generated, solution.bill.unneeded) == (4, 2)
    assert solution.bill.total == CHEAP.of(6, 4)


@pytest.mark.slow
@pytest.mark.parametrize("call", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("what", ["generator", "verifier"])
async def test_a_crash_in_the_middle_of_an_overlap_loses_nothing(what: str, call: int) -> None:
    world = needle(100, at=30)
    ledger = MemoryLedger()
    whole = await Bench(world, VerifyAll(), 4).solve()
    crashing = Bench(world, VerifyAll(), 4)
    getattr(crashing, what).faults = {call: _die}
    with pytest.raises((Crash, BaseExceptionGroup)):
        await crashing.solve(ledger)
    again = Bench(world, VerifyAll(), 4)
    resumed = await again.solve(ledger)

    assert (resumed.outcome, resumed.draft) == (whole.outcome, whole.draft)
    assert resumed.bill.verified == whole.bill.verified
    assert not set(crashing.generator.made) & set(again.generator.made)
    assert not set(crashing.verifier.verified) & set(again.verifier.verified)


def _die() -> None:
    raise Crash


async def test_no_budget_is_exceeded() -> None:
    for budget in (50.0, 120.0, 333.0, 1000.0):
        bench = Bench(needle(300, at=250), VerifyAll(), 8, costs=Costs(1, 10))
        config = one_generator(
            bench.config.first.backends, VerifyAll(), Costs(1, 10), budget=budget, width=8
        )
        ledger = MemoryLedger()
        solution = await search(PROBLEM, config, ledger=ledger)
        assert solution.bill.total <= budget
        assert ledger.possibly_paid() <= budget


@pytest.mark.alone
async def test_a_deadline_ends_a_search_with_what_it_has() -> None:
    bench = Bench(needle(1000, at=900), VerifyAll(), 2, Pace(deadline=0.5, overlap=False)).slow(
        0.01, 0.1
    )
    start = time.monotonic()
    solution = await bench.solve()
    assert solution.outcome == "finished"
    assert "deadline of 0.5 seconds" in solution.message
    assert time.monotonic() - start < 5
    assert solution.bill.verified > 0


@pytest.mark.alone
async def test_a_deadline_also_ends_a_verification_that_hangs() -> None:
    bench = Bench(needle(1000, at=900), VerifyAll(), 2, Pace(deadline=0.3, overlap=False))
    bench.verifier.faults = {3: anyio.sleep_forever}
    with anyio.fail_after(10):
        solution = await bench.solve()
    assert (solution.outcome, solution.message) == (
        "finished",
        "the deadline of 0.3 seconds has passed",
    )


@pytest.mark.slow
async def test_with_a_price_of_waiting_measured_seconds_widen_the_blocks() -> None:
    def widest(ledger: MemoryLedger, solution: Solution) -> int:
        return max(len(event.verdicts) for event in events_of(ledger, solution))

    found = []
    for price in (1e-6, 1e6):
        ledger = MemoryLedger()
        bench = Bench(
            needle(60, at=30), VerifyAll(), 8, Pace(wait_price=price, overlap=False), Costs(1, 10)
        )
        solution = await bench.slow(0.01, 0.03).solve(ledger)
        found.append(widest(ledger, solution))
    assert found == [2, 8]  # the first block comes before anything is measured


async def test_a_search_whose_ledger_has_the_earlier_name_of_the_price_is_resumed(
    tmp_path: Path,
) -> None:
    ledger = MemoryLedger()
    bench = Bench(needle(60, at=30), VerifyAll(), 8, Pace(wait_price=2.0, ramp=False))
    solution = await bench.solve(ledger)
    entries = list(ledger.read(solution.search))
    started, *later = entries
    assert isinstance(started, Started)
    assert isinstance(later[-1], Ended)
    assert started.about["pace"] == {"wait_price": 2.0, "ramp": False}
    earlier = {**started.about, "pace": {"ramp": False, "second": 2.0}}
    calls = bench.generator.calls, bench.verifier.calls

    with closing(SqliteLedger(tmp_path / "ledger")) as old:
        old.append(solution.search, [replace(started, about=earlier), *later[:-1]])
        assert '"second":2.0' in old.select("SELECT body FROM entries WHERE kind = 'started'")[0][0]
        resumed = await bench.solve(old)
        assert old.check() == []
        assert list(old.read(solution.search)) == entries  # one start, and the end that was cut off

    assert (resumed.outcome, resumed.search) == (solution.outcome, solution.search)
    assert (bench.generator.calls, bench.verifier.calls) == calls
