"""Live searches that measure what they pay, give up, or score the best again."""

from __future__ import annotations

import dataclasses
import math

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.backends.protocols import Problem, Usage
from grv.core.errors import BackendError, UsageError
from grv.core.limits import Limits
from grv.core.pace import Pace
from grv.core.values import Cascade, Costs, Measured
from grv.ledger.entries import Ended, ScoredAgain, from_text, kind_of, to_text
from grv.ledger.ledger import Ledger, MemoryLedger
from grv.policies import Adaptive, Fixed, VerifyAll
from grv.runtime.calls import Caller
from grv.runtime.config import SearchConfig
from grv.runtime.executor import Backends
from grv.runtime.prices import Meter, Prices
from grv.runtime.solution import Solution
from grv.testing.drivers import run
from grv.testing.fakes import (
    Crash,
    Fault,
    ScriptedGenerator,
    TableScorer,
    TableVerifier,
    scorer_down,
)
from grv.testing.strategies import worlds
from grv.testing.worlds import World, all_wrong
from support.live import one_generator, search

pytestmark = pytest.mark.anyio
PROBLEM = Problem("p", "prompt")
# A candidate is one token, a verification a quarter of a second: 2 and 5 dollars.
METER = Meter(Prices({"m": {"completion": 2e6}}, {"verify_second": 20.0}), "m")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Second(TableScorer):
    """Scores by the world's second scores."""

    def __init__(self, world: World) -> None:
        super().__init__(dataclasses.replace(world, scores=world.second or world.scores))


def config(world: World, **options: object) -> SearchConfig:
    cascaded = Second(world) if options.get("cascade") is not None else None
    backends = Backends(
        ScriptedGenerator(world), TableScorer(world), TableVerifier(world), None, cascaded
    )
    return one_generator(backends, **{"width": 8, **options})  # type: ignore[arg-type]


async def solved(
    config: SearchConfig, ledger: Ledger | None = None, total: float = math.inf
) -> Solution:
    async def no_sleep(_: float) -> None:
        await anyio.lowlevel.checkpoint()

    return await search(PROBLEM, config, ledger=ledger, caller=Caller(sleep=no_sleep), total=total)


async def test_what_is_really_paid_is_billed_and_planned_with() -> None:
    world = all_wrong(40)
    measured = config(world, policy=Adaptive(), costs=Measured(1, 10), meter=METER, width=1)
    solution = await solved(measured)

    assert solution.bill.total == pytest.approx(
        2 * solution.bill.generated + 5 * solution.bill.verified
    )


async def test_a_measured_run_that_is_resumed_pays_for_nothing_and_decides_alike() -> None:
    world = World.of("1- 2- 3- 4+ 5- 6- 7- 0-")
    settings = {"policy": Fixed(8, 5), "costs": Measured(1, 10), "meter": METER, "width": 1}
    ledger = MemoryLedger()
    whole = await solved(config(world, **settings))
    first = config(world, **settings)
    verifier = first.first.backends.verifier
    assert isinstance(verifier, TableVerifier)
    died: dict[int, Fault] = {2: _die}
    verifier.faults = died
    with pytest.raises((Crash, BaseExceptionGroup)):
        await solved(first, ledger)
    again = config(world, **settings)
    resumed = await solved(again, ledger)

    assert resumed.bill == whole.bill
    assert isinstance(again.first.backends.generator, ScriptedGenerator)
    assert again.first.backends.generator.calls == 0


async def _die() -> None:
    raise Crash


async def test_the_total_budget_reserves_the_most_and_spends_what_was_paid() -> None:
    world = all_wrong(6)
    most = Costs(3, 7)
    measured = config(
        world, policy=VerifyAll(), costs=Measured(1, 10), meter=METER, most=most, budget=20
    )
    ledger = MemoryLedger()
    solution = await solved(measured, ledger, 1000)

    assert solution.outcome == "out of budget"
    assert solution.bill.total == 2 * (2 + 5)  # 14 + 3 + 7 would pass 20
    assert ledger.possibly_paid() == solution.bill.total


async def test_a_search_gives_up_and_says_why() -> None:
    ledger = MemoryLedger()
    solution = await solved(config(all_wrong(9), policy=VerifyAll(), value=35), ledger)

    assert solution.outcome == "finished"
    assert solution.message == "an answer is worth 35; the next attempt would raise the cost to 44"
    assert solution.bill.total == 33
    (ended,) = [each for each in ledger.read(solution.search) if isinstance(each, Ended)]
    assert ended.why == solution.message


def test_an_end_without_a_reason_is_read_from_older_ledgers() -> None:
    old = '{"reason":"solved","answer":1,"generated":2,"verified":1,"total":12.0}'

    assert from_text("ended", old) == Ended("solved", 1, 2, 1, 12.0)


@given(
    world=worlds(most_broken=2), top=st.sampled_from([1, 2, 5]), width=st.sampled_from([1, 3, None])
)
def test_a_live_cascade_equals_the_pure_search(world: World, top: int, width: int | None) -> None:
    second = tuple(float((7 * i) % 5) for i in range(len(world)))
    world = dataclasses.replace(world, keys=(), second=second)
    cascade = Cascade(top, cost=0.5)
    for policy in (Adaptive(), Fixed(6, 3)):
        live = anyio.run(solved, config(world, policy=policy, width=width, cascade=cascade))
        pure = run(
            policy, Costs(), world, Limits(width=width, cascade=cascade, pace=Pace(overlap=False))
        )
        assert pure.outcome is not None
        assert live.outcome == pure.outcome.reason.value
        assert live.bill == pure.outcome.bill


async def test_second_scores_are_recorded_and_not_asked_for_again() -> None:
    world = dataclasses.replace(World.of("9- 8- 7- 6+"), second=(1.0, 2.0, 3.0, 0.0))
    settings = {"policy": Fixed(4, 3), "width": 1, "cascade": Cascade(3, cost=0.5)}
    ledger = MemoryLedger()
    first = await solved(config(world, **settings), ledger, 100)
    again = config(world, **settings)
    second = await solved(again, ledger)

    assert first.bill == second.bill
    assert first.bill.total == ledger.possibly_paid()
    assert first.bill.rescored == 4
    assert isinstance(again.first.backends.second, Second)
    assert again.first.backends.second.calls == 0
    entries = [each for each in ledger.read(first.search) if isinstance(each, ScoredAgain)]
    assert [each.candidate for each in entries] == [0, 1, 2, 3]
    assert all(from_text(kind_of(each), to_text(each)) == each for each in entries)


async def test_a_second_score_that_cannot_be_had_ranks_last() -> None:
    world = dataclasses.replace(World.of("9- 8+ 7-"), second=(math.inf, 2.0, 3.0))
    cascaded = config(world, policy=Fixed(3, 1), cascade=Cascade(2))
    solution = await solved(cascaded)
    assert solution.outcome == "solved"

    dead = config(world, policy=Fixed(3, 3), width=1, cascade=Cascade(2))
    assert isinstance(dead.first.backends.second, Second)
    dead.first.backends.second.faults = {number: scorer_down() for number in range(1, 99)}
    assert (await solved(dead)).outcome == "solved"


def test_what_does_not_go_together_is_refused() -> None:
    world = all_wrong(3)
    with pytest.raises(UsageError, match="measured costs need prices"):
        config(world, costs=Measured(1, 10))
    with pytest.raises(UsageError, match="prices need measured costs"):
        config(world, meter=METER)
    with pytest.raises(UsageError, match="a budget over measured costs needs `most`"):
        config(world, costs=Measured(1, 10), meter=METER, budget=5)
    with pytest.raises(UsageError, match="a second scorer a cascade"):
        one_generator(
            Backends(ScriptedGenerator(world), TableScorer(world), TableVerifier(world)),
            cascade=Cascade(2),
        )
    with pytest.raises(UsageError, match="what an answer is worth cannot be -1"):
        config(world, value=-1)


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_a_backend_that_says_a_call_cost_less_than_nothing_is_not_believed(wrong: float) -> None:
    with pytest.raises(BackendError, match="the reported cost of a call to verify is"):
        METER.cost("verify", Usage(dollars=wrong))


def test_a_file_that_names_the_model_comes_before_what_the_server_says() -> None:
    assert METER.cost("generate", Usage(completion_tokens=3, dollars=0.5)) == 6
    assert METER.cost("verify", Usage(seconds=2)) == 40
    assert METER.cost("score", Usage(seconds=2)) == 0
    assert METER.prices.has("generate", "m")
    assert METER.prices.has("verify", "")
    assert not METER.prices.has("generate", "other")
