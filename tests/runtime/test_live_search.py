"""Live searches over scripted worlds: what is paid, written, resumed and reported."""

import dataclasses
import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grv import Costs, Verdict
from grv.backends.protocols import Draft, Problem
from grv.core.errors import GeneratorError
from grv.core.limits import Limits
from grv.core.pace import Pace
from grv.core.search import Policy
from grv.ledger.entries import Ended, Failed, Found, Intended, Made, Scored, Started, Told
from grv.ledger.ledger import Ledger, MemoryLedger
from grv.ledger.sqlite import SqliteLedger
from grv.policies import Adaptive, Alternate, Fixed, VerifyAll
from grv.runtime.calls import Caller
from grv.runtime.executor import Backends
from grv.runtime.solution import Solution
from grv.testing.drivers import run
from grv.testing.fakes import (
    Crash,
    Fault,
    ScriptedGenerator,
    TableScorer,
    TableVerifier,
    rate_limited,
    scorer_down,
    verifier_down,
    world_key,
)
from grv.testing.strategies import worlds
from grv.testing.worlds import World, all_wrong, needle
from support.live import one_generator, search, search_many

pytestmark = pytest.mark.anyio
PROBLEM = Problem("p", "prompt")
AT_ONCE = Pace(ramp=False, overlap=False)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Bench:
    """A job over one world, and what its backends saw."""

    def __init__(self, world: World, **options: object) -> None:
        self.generator = ScriptedGenerator(world)
        self.scorer = TableScorer(world)
        self.verifier = TableVerifier(world)
        backends = Backends(self.generator, self.scorer, self.verifier, world_key(world))
        self.config = one_generator(backends, **{"width": 8, **options})  # type: ignore[arg-type]

    async def solve(self, ledger: Ledger | None = None, caller: Caller | None = None) -> Solution:
        return await search(PROBLEM, self.config, ledger=ledger, caller=caller or patient())


def patient() -> Caller:
    """A caller that does not really wait."""

    async def no_sleep(_: float) -> None:
        await anyio.lowlevel.checkpoint()

    return Caller(sleep=no_sleep)


@pytest.mark.slow
@given(
    world=worlds(most_broken=2),
    verify=st.sampled_from([0.5, 1, 10, 100]),
    width=st.sampled_from([1, 3, None]),
    pace=st.sampled_from([Pace(overlap=False), Pace(), Pace(ramp=False)]),
)
@example(world=needle(30, at=20), verify=100, width=3, pace=Pace())
@example(world=needle(30, at=20), verify=100, width=3, pace=Pace(ramp=False))
def test_live_equals_the_pure_search(
    world: World, verify: float, width: int | None, pace: Pace
) -> None:
    costs = Costs(1, verify)
    policies: tuple[Policy, ...] = (Adaptive(), Alternate(), Fixed(4, 2), VerifyAll())
    if pace.overlap:
        world += all_wrong(60)  # so that there are as many as a search generates meanwhile
    for policy in policies:
        bench = Bench(world, policy=policy, costs=costs, width=width, pace=pace)
        solution = anyio.run(bench.solve)
        expected = run(policy, costs, world, Limits(width=width, pace=pace))
        assert expected.outcome is not None
        assert solution.outcome == expected.outcome.reason.value
        # A pass cancels what is generated meanwhile: it is billed, and does not arrive.
        due, bill = expected.outcome.bill, solution.bill
        assert bill.total == pytest.approx(due.total)
        assert (bill.verified, bill.unneeded) == (due.verified, due.unneeded)
        if not pace.overlap:
            assert bill == due
        if expected.outcome.answer is not None:
            assert solution.draft is not None
            assert solution.draft.text == str(expected.outcome.answer)


async def test_everything_is_written_before_it_is_used() -> None:
    ledger = MemoryLedger()
    bench = Bench(needle(20, at=2), policy=Fixed(4, 2), width=1)
    solution = await bench.solve(ledger)
    kinds = [type(entry) for entry in ledger.read(solution.search)]
    assert kinds == [
        Started,
        Intended,
        Made,
        Made,
        Made,
        Made,
        Intended,
        Scored,
        Scored,
        Scored,
        Scored,
        Told,
        Intended,
        Found,
        Told,
        Ended,
    ]


async def test_a_second_run_pays_for_nothing() -> None:
    ledger = MemoryLedger()
    first = await Bench(needle(200, at=30)).solve(ledger)
    again = Bench(needle(200, at=30))
    second = await again.solve(ledger)
    assert second == first
    assert second.seconds == pytest.approx(first.seconds, abs=0.1)
    assert (again.generator.calls, again.scorer.calls, again.verifier.calls) == (0, 0, 0)


async def test_a_larger_budget_goes_on_where_the_smaller_one_ended() -> None:
    ledger = MemoryLedger()
    small = Bench(needle(50, at=45), budget=40.0, width=1)
    first = await small.solve(ledger)
    assert first.outcome == "out of budget"
    large = Bench(needle(50, at=45), width=1)
    second = await large.solve(ledger)
    assert second.outcome == "solved"
    assert not set(small.generator.made) & set(large.generator.made)
    assert not set(small.verifier.verified) & set(large.verifier.verified)


async def test_another_policy_uses_the_same_candidates_again() -> None:
    ledger = MemoryLedger()
    await Bench(all_wrong(12), policy=Fixed(8, 4)).solve(ledger)
    other = Bench(all_wrong(12), policy=Fixed(8, 6))
    await other.solve(ledger)
    assert other.generator.made == []
    assert len(other.verifier.verified) == 2


@given(
    world=worlds(most_broken=2),
    stops=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    data=st.data(),
)
def test_a_crash_anywhere_loses_nothing_that_is_recorded(
    world: World, stops: list[int], data: st.DataObject
) -> None:
    """Die at some call, resume, die again: the same outcome, and nobody is asked twice."""
    ledger, whole = MemoryLedger(), Bench(world, width=2)
    expected = anyio.run(whole.solve)
    asked: dict[str, list[int]] = {"made": [], "verified": []}
    for stop in [*stops, 10**9]:
        bench = Bench(world, width=2)
        backend = data.draw(st.sampled_from([bench.generator, bench.scorer, bench.verifier]))
        backend.faults = {stop: _die}
        try:
            solution = anyio.run(bench.solve, ledger)
        except (Crash, BaseExceptionGroup):
            solution = None
        recorded = ledger.read(bench.config.search_id(PROBLEM))
        asked["made"] += bench.generator.made
        asked["verified"] += bench.verifier.verified
        made = [entry.candidate for entry in recorded if isinstance(entry, Made)]
        found = [entry.candidate for entry in recorded if isinstance(entry, Found)]
        assert sorted(set(made)) == sorted(made)
        assert sorted(set(found)) == sorted(found)
    assert solution is not None
    assert solution.outcome == expected.outcome
    assert solution.bill.generated == expected.bill.generated
    # A verification that was lost beside one that passed is not made again.
    lost = solution.lost.get("verify", 0) if expected.verified else 0
    verified = solution.bill.verified
    assert expected.bill.verified - lost <= verified <= expected.bill.verified
    if not lost:
        assert solution.bill == expected.bill


async def test_lost_attempts_do_not_take_the_money_for_the_last_verification() -> None:
    """20 candidates and a verification are planned; 5 attempts are lost, and paid for."""
    ledger = MemoryLedger()
    bench = Bench(all_wrong(40), policy=Fixed(20, 1), budget=30.0, width=1)
    bench.generator.batch = 1  # type: ignore[attr-defined]
    lost = GeneratorError("lost on the way")
    bench.generator.faults = dict.fromkeys((2, 3, 7, 8, 9), lost)
    solution = await bench.solve(ledger)

    assert (solution.bill.generated, solution.bill.verified) == (15, 1)
    assert solution.lost == {"generate": 5}
    assert solution.bill.total == 25
    assert ledger.possibly_paid() == 30


async def test_three_broken_verdicts_in_a_row_end_a_search_that_can_be_run_again() -> None:
    ledger = MemoryLedger()
    broken = Bench(World.of("9- 8? 7? 6? 5+"), policy=VerifyAll(), budget=1000.0, width=1)
    first = await broken.solve(ledger)
    assert first.outcome == "failed"
    assert first.message == "3 broken verdicts in a row: could not tell"
    assert broken.verifier.verified == [0, 1, 2, 3]

    mended = Bench(World.of("9- 8- 7- 6- 5+"), policy=VerifyAll(), budget=1000.0, width=1)
    second = await mended.solve(ledger)
    assert second.outcome == "solved"
    assert mended.verifier.verified == [1, 2, 3, 4]
    assert mended.generator.made == [4]
    # What was paid for twice counts twice.
    assert second.bill.verified == 4 + 4
    assert ledger.possibly_paid() == second.bill.total == mended.config.costs.of(5, 8)

    third = Bench(World.of("9- 8- 7- 6- 5+"), policy=VerifyAll(), budget=1000.0, width=1)
    assert await third.solve(ledger) == second
    assert third.verifier.verified == []


async def test_a_verifier_that_stays_broken_ends_each_run_after_three_verdicts() -> None:
    ledger = MemoryLedger()
    for _ in range(3):
        bench = Bench(World.of("9? 8? 7? 6? 5?"), policy=VerifyAll(), budget=1000.0, width=1)
        assert (await bench.solve(ledger)).outcome == "failed"
        assert bench.verifier.verified == [0, 1, 2]


async def test_broken_verdicts_that_are_not_in_a_row_end_nothing() -> None:
    bench = Bench(World.of("9? 8? 7- 6? 5? 4+"), policy=VerifyAll())
    assert (await bench.solve()).outcome == "solved"


async def test_keys_are_computed_off_the_event_loop() -> None:
    bench = Bench(needle(8, at=2))
    here, seen = threading.get_ident(), list[int]()

    def key(problem: Problem, draft: Draft) -> None:
        seen.append(threading.get_ident())

    backends = dataclasses.replace(bench.config.first.backends, key=key)
    config = one_generator(backends, width=8)
    await search(PROBLEM, config, caller=patient())
    assert seen
    assert here not in seen


async def _die() -> None:
    raise Crash


async def test_what_was_in_flight_at_a_crash_is_reported() -> None:
    ledger = MemoryLedger()
    bench = Bench(needle(20, at=19), policy=Fixed(5, 3), width=3, pace=AT_ONCE)
    bench.verifier.faults = {1: _die, 2: _die, 3: _die}
    with pytest.raises((Crash, BaseExceptionGroup)):
        await bench.solve(ledger)
    solution = await Bench(needle(20, at=19), policy=Fixed(5, 3), width=3, pace=AT_ONCE).solve(
        ledger
    )
    assert dict(solution.lost) == {"verify": 3}


async def test_a_pass_cancels_the_others_and_bills_them() -> None:
    world = needle(3, at=1)
    bench = Bench(world, policy=Fixed(3, 3), width=3, pace=AT_ONCE)
    bench.verifier.faults = {2: anyio.sleep_forever, 3: anyio.sleep_forever}
    with anyio.fail_after(10):
        solution = await bench.solve()
    assert solution.verified
    assert solution.bill.verified == 3
    assert solution.unneeded == 2
    assert not solution.lost


@pytest.mark.parametrize("fault", [rate_limited(), rate_limited(2.0)])
async def test_a_call_is_tried_again(fault: Fault) -> None:
    bench = Bench(needle(4, at=0))
    bench.generator.faults = dict.fromkeys(range(1, 6), fault)
    calls = patient()
    solution = await bench.solve(caller=calls)
    assert solution.outcome == "solved"
    assert calls.retried == 5


async def test_what_cannot_succeed_is_not_tried_again() -> None:
    bench = Bench(needle(4, at=0))
    bench.generator.faults = {1: GeneratorError("status 401: no such key", final=True)}
    calls = patient()
    solution = await bench.solve(caller=calls)
    assert (solution.outcome, calls.retried) == ("failed", 0)


async def test_after_six_attempts_the_problem_fails_and_can_be_taken_up_again() -> None:
    ledger = MemoryLedger()
    bench = Bench(needle(4, at=0), width=1)
    bench.verifier.faults = dict.fromkeys(range(1, 7), verifier_down())
    solution = await bench.solve(ledger)
    assert solution.outcome == "failed"
    assert solution.message == "connection refused"
    assert isinstance(ledger.read(solution.search)[-1], Failed)
    assert (await Bench(needle(4, at=0)).solve(ledger)).outcome == "solved"


async def test_a_score_that_cannot_be_had_ranks_last_and_is_reported() -> None:
    bench = Bench(needle(4, at=3), policy=VerifyAll(), width=1)
    bench.scorer.faults = dict.fromkeys(range(1, 7), scorer_down())
    solution = await bench.solve()
    assert solution.outcome == "solved"
    assert solution.unscored == 1


async def test_without_a_pass_the_best_candidate_is_there_and_marked_unverified() -> None:
    solution = await Bench(needle(9, at=8), policy=VerifyAll(), budget=20.0, width=1).solve()
    assert solution.outcome == "out of budget"
    assert not solution.verified


async def test_broken_verdicts_are_paid_for_and_prove_nothing() -> None:
    world = World((3.0, 2.0, 1.0), (Verdict.BROKEN, Verdict.BROKEN, Verdict.PASSED))
    solution = await Bench(world, policy=Fixed(3, 3), width=1).solve()
    assert solution.outcome == "solved"
    assert solution.bill.verified == 3


@pytest.mark.slow
@pytest.mark.parametrize("total", [0.0, 30.0, 100.0, 250.0])
async def test_many_problems_never_pass_the_total_budget(total: float, tmp_path: Path) -> None:
    world = needle(40, at=20)
    ledger = SqliteLedger(tmp_path / "ledger.db")
    spent = 0.0
    for _ in range(2):  # the second run has the same cap, not another one
        bench = Bench(world, width=2)
        problems = [Problem(f"p{i}") for i in range(6)]
        found = [
            solution
            async for solution in search_many(
                problems, bench.config, ledger=ledger, calls=patient(), total_budget=total
            )
        ]
        assert len(found) == 6
        spent += len(bench.generator.made) + 10 * len(bench.verifier.verified)
        assert spent <= total
    ledger.close()


async def test_in_order_a_small_total_budget_is_not_spread_over_many_problems() -> None:
    """It verifies something: 44 for each of three problems at once, not 8 for each of twenty."""
    bench = Bench(all_wrong(100), policy=VerifyAll(), width=1)
    problems = [Problem(f"p{i}") for i in range(20)]
    run_ = search_many(
        problems, bench.config, calls=patient(), total_budget=160, schedule="in-order"
    )
    found = [solution async for solution in run_]
    assert len(found) == 20
    begun = [solution for solution in found if solution.bill.verified]
    assert 1 <= len(begun) <= 3
    assert sum(solution.bill.verified for solution in found) == 14


async def test_least_spent_gives_each_problem_its_first_verdict_before_a_second() -> None:
    """160 pay for 14 candidates with their verdicts: one for each of 14 problems."""
    bench = Bench(all_wrong(100), policy=VerifyAll(), width=1)
    problems = [Problem(f"p{i}") for i in range(20)]
    run_ = search_many(problems, bench.config, calls=patient(), total_budget=160)
    found = [solution async for solution in run_]
    assert sorted(solution.bill.verified for solution in found) == [0] * 6 + [1] * 14


async def test_a_budget_for_each_lets_more_of_them_in() -> None:
    bench = Bench(all_wrong(100), policy=VerifyAll(), width=1, budget=11.0)
    problems = [Problem(f"p{i}") for i in range(20)]
    run_ = search_many(problems, bench.config, calls=patient(), total_budget=160)
    found = [solution async for solution in run_]
    assert sum(solution.bill.verified == 1 for solution in found) == 14


@pytest.mark.slow
async def test_many_problems_end_each_with_its_own_answer(tmp_path: Path) -> None:
    bench = Bench(needle(40, at=20))
    ledger = SqliteLedger(tmp_path / "ledger.db")
    problems = [Problem(f"p{i}") for i in range(20)]
    run_ = search_many(problems, bench.config, ledger=ledger, calls=patient())
    found = {solution.problem: solution async for solution in run_}
    assert found.keys() == {problem.id for problem in problems}
    assert all(solution.verified for solution in found.values())
    assert ledger.check() == []
    ledger.close()


async def test_a_caller_joins_a_running_search_and_takes_over_if_its_owner_dies(
    tmp_path: Path,
) -> None:
    mine, theirs = (SqliteLedger(tmp_path / "ledger.db") for _ in range(2))
    bench = Bench(needle(4, at=0))
    assert theirs.claim(bench.config.search_id(PROBLEM))
    found: list[Solution] = []

    async def join() -> None:
        found.extend([s async for s in search_many([PROBLEM], bench.config, ledger=mine)])

    async with anyio.create_task_group() as group:
        group.start_soon(join)
        await anyio.sleep(0.6)
        assert found == []
        theirs.close()  # they die
    assert [each.outcome for each in found] == ["solved"]
    mine.close()


@pytest.mark.slow
async def test_callers_of_one_search_share_its_result_and_its_cost(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.db")
    bench = Bench(needle(4, at=3))
    found: list[Solution] = []

    async def one() -> None:
        found.extend([s async for s in search_many([PROBLEM], bench.config, ledger=ledger)])

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(one)
    assert len(found) == 5
    assert {each.bill for each in found} == {found[0].bill}
    assert ledger.possibly_paid() == found[0].bill.total
    assert sorted(bench.generator.made) == sorted(set(bench.generator.made))
    ledger.close()
