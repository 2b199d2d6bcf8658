"""What looking ahead costs: the statements of docs/theory/width.md."""

import itertools
import math
import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from grv.core.limits import Limits
from grv.core.pace import SHARE, Pace, SearchClock
from grv.core.pool import Pool
from grv.core.search import Policy, Search
from grv.core.values import Costs, Generate, Generated, Latency, Step, Verdict, Verified, Verify
from grv.learning.score_combination import read_scored
from grv.policies import Adaptive, Alternate, Balanced, Threshold, Varied, VerifyAll
from grv.replay.engine import replayed
from grv.replay.orders import batches
from grv.testing.drivers import batches as generated
from grv.testing.drivers import run, verified
from grv.testing.worlds import World, all_wrong, flat, inverted, needle, tied
from grv.theory.decimals import exact_ratio
from grv.theory.proofs.look_ahead import (
    ALTERNATE,
    ALTERNATE_MEAN,
    BALANCED,
    BALANCED_MEAN,
    MEAN_END,
    best_block,
    block_ends,
    end_chances,
    end_of,
    mean_end,
    mean_factor,
    random_block_ends,
    rounds_bound,
    rounds_to,
    waiting_cost,
    worst_factor,
)

RATIOS = [Fraction(x) for x in ("3/2", "2", "2.4", "3", "7", "10", "11.5", "30", "100", "1000")]
WORLDS = {
    "needle": needle(400, at=150),
    "flat": flat(400, pass_rate=0.02),
    "ties": tied(400, levels=4, pass_rate=0.01),
    "inverted": inverted(400, pass_rate=0.02),
    "all wrong": all_wrong(150),
}
POLICIES: list[Policy] = [Adaptive(), Alternate(), Balanced(), Varied(), VerifyAll()]


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_cost_and_rounds_against_width_one(policy: Policy, world: World) -> None:
    costs = Costs(1, 10)
    one = run(policy, costs, world)
    course = verified(run(policy, costs, world_without_passes(world)))
    n = one.bill.verified
    for width, ramp in itertools.product((2, 4, 16), (True, False)):
        ahead = run(policy, costs, world, Limits(width=width, pace=Pace(ramp=ramp, overlap=False)))
        assert ahead.outcome is not None
        assert one.outcome is not None
        assert ahead.outcome.answer == one.outcome.answer
        if not one.outcome.solved:
            continue
        m = min(end_of(n, width, ramp=ramp), len(course))
        assert verified(ahead) == course[:m]  # statement 1
        assert m <= n + width - 1  # statement 2
        assert ahead.bill.total == pytest.approx(course_cost(policy, costs, world, m))
        if ramp:
            assert m <= 2 * n  # statement 3
            assert ahead.rounds.verify == rounds_to(n, width)
            assert ahead.rounds.verify <= rounds_bound(n, width)  # statement 5
        assert ahead.rounds.generate <= ahead.rounds.verify + 1  # a block is generated at once


@pytest.mark.slow
@pytest.mark.parametrize("policy", [*POLICIES, Threshold(0)], ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("rho", [3, 10])
def test_a_block_does_not_wait_for_keys_that_never_come(policy: Policy, rho: float) -> None:
    """All candidates have one answer, so that no other verification is possible."""
    costs, world = Costs(1, rho), World.of(" ".join(["1+a"] * 300))
    one = run(policy, costs, world)
    alone = run(policy, costs, world_without_passes(world))
    steps = [turn.action.n for turn in alone.trace if isinstance(turn.action, Generate)]
    for width, ramp in itertools.product((2, 16), (True, False)):
        ahead = run(policy, costs, world, Limits(width=width, pace=Pace(ramp=ramp, overlap=False)))
        assert ahead.bill.verified == 1
        course = course_cost(policy, costs, distinct(world), 2 if ramp else width)
        # At most what a full block costs, and one step of the plan.
        assert ahead.bill.total <= max(course, one.bill.total) + max(steps[:4])


def distinct(world: World) -> World:
    """The same world without keys."""
    return World(world.scores, world.verdicts)


def world_without_passes(world: World) -> World:
    return World(world.scores, (Verdict.FAILED,) * len(world))


def course_cost(policy: Policy, costs: Costs, world: World, verifications: int) -> float:
    """C(j): a search with width 1, in which nothing passes, up to a verification."""
    search = run(policy, costs, world_without_passes(world))
    made = asked = 0
    for turn in search.trace:
        made += sum(len(turn.event.scores) for _ in [0] if isinstance(turn.event, Generated))
        asked += len(turn.action.ids) if isinstance(turn.action, Verify) else 0
        if asked == verifications:
            break
    return costs.of(made, asked)


@pytest.mark.parametrize("rho", RATIOS, ids=str)
def test_the_ramp_costs_a_constant_factor(rho: Fraction) -> None:
    costs = Costs(1, float(rho))
    assert worst_factor(Alternate().slots(costs), rho) <= ALTERNATE
    assert worst_factor(Balanced().slots(costs), rho) <= BALANCED


def test_the_constant_factor_holds_between_the_ratios() -> None:
    """Statement 4 is proven for all ratios; the largest factor is at the first verifications."""
    ratios = [Fraction(number, parts) for parts in (1, 3, 8, 100) for number in range(1, 60)]
    for rho in [*ratios, *(n + each / 1000 for n in range(1, 9) for each in ratios[:3])]:
        costs = Costs(1, float(rho))
        rho = exact_ratio(costs)
        assert worst_factor(Alternate().slots(costs), rho, 8) < ALTERNATE
        assert worst_factor(Balanced().slots(costs), rho, 8) < BALANCED


@pytest.mark.parametrize("level", [5, 15, 19])
def test_requests_of_a_plan_that_cannot_say_how_many_it_needs(level: int) -> None:
    for world, width in itertools.product((WORLDS["flat"], all_wrong(150)), (2, 16)):
        costs, policy = Costs(1, 10), Threshold(level)
        one = run(policy, costs, world)
        ahead = run(policy, costs, world, Limits(width=width, pace=Pace(overlap=False)))
        used = len(ahead.pool)
        assert ahead.bill.generated <= 2 * used  # statement 2
        assert ahead.bill.unneeded == ahead.bill.generated - used
        requests = [turn.action.n for turn in ahead.trace if isinstance(turn.action, Generate)]
        arrived = 0
        for n in requests:
            assert n <= arrived + 2
            arrived += n
        assert ahead.rounds.generate <= one.rounds.generate
        blocks = [len(turn.action.ids) for turn in ahead.trace if isinstance(turn.action, Verify)]
        assert sum(blocks) <= 2 * max(1, one.bill.verified)


def test_the_constants_are_reached() -> None:
    rho = Fraction(10**6)
    assert worst_factor(Alternate().slots(Costs(1, 1e6)), rho) == pytest.approx(33 / 13, abs=1e-4)
    assert worst_factor(Balanced().slots(Costs(1, 1e6)), rho) == pytest.approx(2.6, abs=1e-4)
    rho = Fraction("2.001")
    assert worst_factor(Balanced().slots(Costs(1, 2.001)), rho) == pytest.approx(3, abs=1e-2)


@pytest.mark.parametrize("width", [2, 3, 4, 5, 8, 16])
def test_a_random_phase_ends_blocks_sooner_in_the_mean(width: int) -> None:
    """Statement 8, exactly, for every N at which the width and the phase both matter."""
    for number in range(1, 3 * width + 2):
        assert mean_end(number, width) <= MEAN_END * number


def test_without_a_limit_the_mean_end_is_a_sum_of_logarithms() -> None:
    for number in range(1, 30):
        chances = end_chances(number)
        assert sum(chances.values()) == pytest.approx(1)
        mean = sum(end * chance for end, chance in chances.items())
        assert mean == pytest.approx(mean_end(number, 1000))
        assert mean <= MEAN_END * number


def test_a_random_phase_never_ends_a_block_later_than_at_twice_the_number() -> None:
    for width, phase in itertools.product((2, 3, 4, 16, 50), range(40)):
        ends = list(itertools.islice(random_block_ends(width, 2 ** (phase / 40)), 60))
        for number in range(1, 100):
            end = next(end for end in ends if end >= number)
            assert end <= min(2 * number, number + width - 1)


def test_the_pace_has_these_blocks_and_the_phases_are_even() -> None:
    paces = [Pace(random_phase=True).of(f"problem {number}") for number in range(400)]
    for pace, width in itertools.product(paces[:40], (2, 3, 4, 16)):
        ends = itertools.islice(random_block_ends(width, math.exp2(pace.phase)), 20)
        assert pace.ends(width, 100)[1:21] == [each for each in ends if each < 100 + width][:20]
    for part in range(4):
        assert 70 <= sum(part / 4 <= pace.phase < (part + 1) / 4 for pace in paces) <= 130
    assert Pace().of("a problem") == Pace()
    assert len({pace.phase for pace in paces}) == len(paces)


@pytest.mark.parametrize("rho", RATIOS, ids=str)
def test_with_a_random_phase_the_ramp_costs_less_in_the_mean(rho: Fraction) -> None:
    costs = Costs(1, float(rho))
    assert mean_factor(Alternate().slots(costs), rho, 60) < ALTERNATE_MEAN
    assert mean_factor(Balanced().slots(costs), rho, 60) < BALANCED_MEAN


def test_the_mean_factor_holds_between_the_ratios() -> None:
    ratios = [Fraction(number, parts) for parts in (1, 3, 8, 100) for number in range(1, 60)]
    for rho in ratios:
        costs = Costs(1, float(rho))
        rho = exact_ratio(costs)
        assert mean_factor(Alternate().slots(costs), rho, 8) < ALTERNATE_MEAN
        assert mean_factor(Balanced().slots(costs), rho, 8) < BALANCED_MEAN


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_a_search_with_a_random_phase_takes_the_course_to_the_end_of_a_block(
    policy: Policy,
) -> None:
    costs, world = Costs(1, 10), WORLDS["flat"]
    course = verified(run(policy, costs, world_without_passes(world)))
    number = run(policy, costs, world).bill.verified
    ends = set()
    for problem in "abcdefgh":
        pace = Pace(overlap=False, random_phase=True).of(problem)
        ahead = run(policy, costs, world, Limits(width=16, pace=pace))
        end = next(each for each in random_block_ends(16, math.exp2(pace.phase)) if each >= number)
        ends.add(end)
        assert verified(ahead) == course[:end]
    assert len(ends) > 1 or number == 1


@pytest.mark.parametrize("width", [2, 3, 4, 16, 50])
def test_blocks_end_at_most_at_twice_the_first_pass(width: int) -> None:
    for n in range(1, 300):
        assert end_of(n, width) <= min(2 * n, n + width - 1)
        assert rounds_to(n, width) <= rounds_bound(n, width)
        assert end_of(n, width, ramp=False) <= n + width - 1
    assert list(itertools.islice(block_ends(16), 5)) == [2, 6, 14, 30, 46]


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_overlap_raises_no_bill_by_more_than_a_tenth(policy: Policy) -> None:
    for (name, world), verify in itertools.product(WORLDS.items(), (3, 10, 100)):
        costs = Costs(1, verify)
        plain = run(policy, costs, world, Limits(width=16, pace=Pace(overlap=False)))
        both = run(policy, costs, world, Limits(width=16, pace=Pace()))
        assert verified(both) == verified(plain), name
        assert plain.bill.total <= both.bill.total <= (1 + SHARE) * plain.bill.total
        assert both.rounds.generate + both.rounds.overlapped <= plain.rounds.generate + 1
        spent = sum(len(batch.scores) for batch in generated(both))
        assert both.bill.generated == spent


@pytest.mark.parametrize("waiting", [0.1, 1.0, 35.0])
def test_the_block_of_the_price_of_waiting_is_the_cheapest(waiting: float) -> None:
    for more, cost in itertools.product((1, 7, 100), (1.0, 15.5)):
        best = best_block(more, waiting, cost)
        least = waiting_cost(best, more, waiting, cost)
        assert all(
            least <= waiting_cost(best * factor, more, waiting, cost) + 1e-9
            for factor in (0.5, 0.9, 1.1, 2)
        )


def test_a_pace_takes_that_block() -> None:
    pace, clock = (
        Pace(wait_price=0.5, latency=Latency(5, 30), overlap=False),
        SearchClock(Latency(5, 30)),
    )
    for k, cost in itertools.product((0, 3, 50), (11.0, 15.5)):
        expected = round(math.sqrt(2 * (k + 1) * 0.5 * 35 / cost))
        assert pace.block(16, k, cost, clock, 0.0) == min(16, max(1, expected))
    assert Pace(overlap=False).block(16, 3, 10.0, SearchClock(None), 0.0) == 5
    assert (
        Pace(wait_price=0.5, overlap=False).block(16, 3, 10.0, SearchClock(None), 0.0) == 5
    )  # no seconds are known yet


def test_the_last_round_before_a_deadline_is_wide() -> None:
    pace = Pace(latency=Latency(5, 30), deadline=100, overlap=False)
    search = run(VerifyAll(), Costs(1, 10), all_wrong(500), Limits(width=16, pace=pace))
    blocks = [len(t.action.ids) for t in search.trace if isinstance(t.action, Verify)]
    assert blocks == [2, 16]  # 35 seconds each; a third round would end after the deadline
    assert search.seconds == 70
    assert search.outcome is not None
    assert "deadline of 100 seconds" in search.outcome.why


def test_a_broken_verdict_makes_the_search_plan_again() -> None:
    world = World.of("9- 8? 7- 6- 5- 4- 3- 2+ 1-")
    one = run(VerifyAll(), Costs(), world)
    for width in (2, 4, 16):
        ahead = run(VerifyAll(), Costs(), world, Limits(width=width, pace=Pace()))
        assert verified(ahead)[:8] == verified(one)
        assert ahead.outcome is not None
        assert ahead.outcome.answer == 7


def test_a_failing_plan_fails_after_its_open_verifications() -> None:
    class Late:
        def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
            yield from itertools.islice(VerifyAll().plan(pool, costs), 2)
            raise ZeroDivisionError

    search = Search(Late(), Costs(), Limits(width=4, pace=Pace(overlap=False)))
    search.tell(World.of("1- 2-").event(search.ask(), seen=0))  # type: ignore[arg-type]
    action = search.ask()
    assert isinstance(action, Verify)
    search.tell(Verified(dict.fromkeys(action.ids, Verdict.FAILED)))
    with pytest.raises(ZeroDivisionError):
        search.ask()


DATA = Path(os.environ.get("GRV_TEST_DATA", "no such directory"))
LOGS = {
    "otis_aime_pool.parquet": "score_text_lr",
    "humaneval_codegen16b.parquet": "score_codet",
}


@pytest.mark.parametrize("name", LOGS)
def test_on_real_logs(name: str) -> None:
    if not (DATA / name).exists():
        pytest.skip("the log is not here")
    log = read_scored(str(DATA / name), LOGS[name])
    problems = [problem for problem in log.problems if problem.solvable][::6]
    for batch in batches(problems, 2):
        for order in batch.orders.tolist():
            one = replayed(Varied(), batch.problem, Costs(), order=order)
            ahead = replayed(
                Varied(),
                batch.problem,
                Costs(),
                Limits(width=16, pace=Pace(overlap=False)),
                order=order,
            )
            n = one.bill.verified
            assert ahead.bill.verified <= min(2 * n, n + 15)
            assert ahead.outcome is not None
            assert one.outcome is not None
            assert ahead.outcome.answer == one.outcome.answer
