"""Whatever a guarded policy does: the blocks are kept, and so is the bound.

Measured is with four standard errors allowed, as in `test_rounds_measured.py`; seeds are fixed.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from grv.comparing.simulation.laws import Binormal, Pieces
from grv.comparing.simulation.populations import flat_law, needle_law
from grv.comparing.simulation.streams import CandidateLaw, CandidateStream
from grv.core.limits import Limits
from grv.core.pool import Pool
from grv.core.search import Policy, Search
from grv.core.values import (
    REFUTED,
    CandidateId,
    Cascade,
    Costs,
    Generate,
    Generated,
    Step,
    Verdict,
    Verified,
    Verify,
)
from grv.learning.prior_file import load_prior
from grv.policies import Balanced, Learned, VerifyAll
from grv.policies.learned.guard import Guard, guarded
from grv.testing import World, labelled, run
from grv.testing.strategies import price_lists, worlds
from grv.testing.worlds import all_wrong
from grv.theory.decimals import exact_ratio
from grv.theory.guard import FACTOR, LEAST_FOR_BOTH, allowance, oldest_limit
from grv.theory.slots import block_draws
from support.examples import examples

PRIOR = load_prior(str(Path(__file__).parent.parent / "assets" / "prior-1.json"))
Inner = Callable[[Pool, Costs], Iterator[Step]]


def gives_up(pool: Pool, costs: Costs) -> Iterator[Step]:
    """Nothing at all."""
    yield from ()


def only_generates(pool: Pool, costs: Costs) -> Iterator[Step]:
    """Never verifies."""
    while True:
        yield Generate(7)


def verifies_the_worst(pool: Pool, costs: Costs) -> Iterator[Step]:
    """Spends all it may on what is least likely to pass."""
    waiting: list[tuple[float, int]] = []  # the worst first, of equals the last
    known = 0
    while not pool.exhausted:
        yield Generate(1)
        while True:
            for i in range(known, len(pool)):
                heapq.heappush(waiting, (pool.scores[i], -i))
            known = len(pool)
            while waiting and not pool.is_open(CandidateId(-waiting[0][1])):
                heapq.heappop(waiting)
            if not waiting:
                break
            yield Verify((CandidateId(-waiting[0][1]),))


def verifies_the_best(pool: Pool, costs: Costs) -> Iterator[Step]:
    """Leaves the guard nothing to verify, as long as nothing better comes."""
    while not pool.exhausted:
        yield Generate(1)
        while best := pool.best(1):
            yield Verify(best)


def waits_then_verifies_the_worst(pool: Pool, costs: Costs) -> Iterator[Step]:
    """Saves its allowance up, and wastes it in one go."""
    yield Generate(20)
    yield from verifies_the_worst(pool, costs)


def verifies_everything(pool: Pool, costs: Costs) -> Iterator[Step]:
    """As if the score were worth nothing."""
    return VerifyAll().plan(pool, costs)


INNERS: list[Inner] = [
    gives_up,
    only_generates,
    verifies_the_worst,
    verifies_the_best,
    waits_then_verifies_the_worst,
    verifies_everything,
]


@dataclass(frozen=True)
class Guarded:
    """A policy inside a guard."""

    inner: Inner
    factor: float = FACTOR
    oldest: bool = True

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        guard = Guard(pool, costs, self.factor, oldest=self.oldest)
        return guarded(self.inner(pool, costs), pool, guard)


def best_of_each_block(search: Search, costs: Costs) -> list[tuple[int, int]]:
    """The best candidate of each complete block, and the number of draws at its end."""
    first, later = block_draws(exact_ratio(costs))
    scores, found, start, end = search.pool.scores, [], 0, first
    while end <= len(scores):
        found.append((max(range(start, end), key=lambda i: (scores[i], -i)), end))
        start, end = end, end + later
    return found


def assert_the_guard_was_kept(search: Search, costs: Costs, factor: float) -> None:
    rho, drawn, spent = float(exact_ratio(costs)), 0, 0.0
    first, later = block_draws(exact_ratio(costs))
    verified: dict[int, int] = {}  # at which number of draws
    for turn in search.trace:
        if isinstance(turn.event, Generated):
            drawn += len(turn.event.scores)
            ended = len(turn.event.scores) < turn.action.n  # type: ignore[union-attr]
            spent += len(turn.event.scores)
            if ended:
                break  # after the last draw all is verified
        elif isinstance(turn.event, Verified):
            verified |= dict.fromkeys(map(int, turn.event.verdicts), drawn)
            spent += rho * len(turn.event.verdicts)
        begun = 1 + max(0, math.ceil((drawn - first) / later)) if drawn else 0
        assert spent <= allowance(exact_ratio(costs), begun, factor) + 1e-6
    for best, end in best_of_each_block(search, costs):
        if drawn > end and search.pool.key(CandidateId(best)) is None:
            assert verified.get(best, math.inf) <= end


def assert_the_oldest_was_verified_in_time(search: Search, costs: Costs, factor: float) -> None:
    """Until the n-th candidate is verified or known to fail, no more than its limit is spent."""
    rho, spent, drawn, settled = float(exact_ratio(costs)), 0.0, 0, 0
    pool, verified, closed = search.pool, set[int](), {REFUTED}
    for turn in search.trace:
        if isinstance(turn.event, Generated):
            drawn += len(turn.event.scores)
            spent += len(turn.event.scores)
            if len(turn.event.scores) < turn.action.n:  # type: ignore[union-attr]
                return  # after the last draw all is verified
        elif isinstance(turn.event, Verified):
            spent += rho * len(turn.event.verdicts)
            assert spent <= oldest_limit(rho, settled, factor) + 1e-6
            if Verdict.PASSED in turn.event.verdicts.values():
                return
            verified |= set(map(int, turn.event.verdicts))
            closed |= {key for id in turn.event.verdicts if (key := pool.key(id)) is not None}
        while settled < drawn and (settled in verified or pool.key(CandidateId(settled)) in closed):
            settled += 1
        rest = rho if settled < drawn else 1 + rho
        assert spent + rest <= oldest_limit(rho, settled, factor) + 1e-6


@pytest.mark.parametrize("inner", INNERS, ids=lambda inner: inner.__name__)
@settings(max_examples=examples(40))
@given(worlds(broken=False), price_lists())
def test_in_any_world_the_best_of_each_block_is_verified_within_the_allowance(
    inner: Inner, world: World, costs: Costs
) -> None:
    search = run(Guarded(inner), costs, world)
    assert_the_guard_was_kept(search, costs.planning, FACTOR)
    assert_the_oldest_was_verified_in_time(search, costs.planning, FACTOR)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [2.0, LEAST_FOR_BOTH, FACTOR])
@pytest.mark.parametrize("rho", [0.5, 0.99, 3, 3.9, 10, 30])
@pytest.mark.parametrize("inner", INNERS, ids=lambda inner: inner.__name__)
def test_where_every_draw_is_the_best_so_far_there_is_room_for_the_last(
    inner: Inner, rho: float, factor: float
) -> None:
    """The best of a block may be its last, after another one that was the best was verified."""
    costs, world = Costs(1, rho), labelled(300, lambda i: (float(i), False))
    both = factor >= LEAST_FOR_BOTH

    search = run(Guarded(inner, factor, oldest=both), costs, world)

    assert_the_guard_was_kept(search, costs, factor)
    if both:
        assert_the_oldest_was_verified_in_time(search, costs, factor)


@pytest.mark.filterwarnings("ignore::grv.policies.learned.policy.UnlikeHistoryWarning")
@settings(max_examples=examples(50))
@given(worlds(broken=False), price_lists())
def test_the_bound_holds_for_the_learned_policy(world: World, costs: Costs) -> None:
    for factor in (LEAST_FOR_BOTH, FACTOR):
        search = run(Learned(PRIOR, factor=factor), costs, world)
        assert_the_guard_was_kept(search, costs.planning, factor)
        assert_the_oldest_was_verified_in_time(search, costs.planning, factor)


@pytest.mark.parametrize("rho", [0.5, 3, 10])
def test_after_a_policy_gives_up_equal_rounds_follow(rho: float) -> None:
    """At whole ratios these are the rounds of Balanced, without the second guard."""
    costs = Costs(1, rho)
    first, later = block_draws(exact_ratio(costs))
    ours = run(Guarded(gives_up, oldest=False), costs, all_wrong(200), Limits(width=None))
    theirs = run(Balanced(), costs, all_wrong(200), Limits(width=None))

    draws = [t.action.n for t in ours.trace if isinstance(t.action, Generate)]
    assert draws == [first, *[later] * (len(draws) - 1)]
    assert sum(draws) >= 200
    if rho == later - 1:
        assert draws == [t.action.n for t in theirs.trace if isinstance(t.action, Generate)]
    assert ours.bill == theirs.bill


@pytest.mark.parametrize("inner", INNERS, ids=lambda inner: inner.__name__)
def test_all_that_there_is_is_tried_before_it_ends(inner: Inner) -> None:
    search = run(Guarded(inner), Costs(1, 10), all_wrong(50), Limits(width=None))

    assert search.bill.verified == 50


def rising(base: float, top: float, share: float) -> Pieces:
    """A share of the candidates passes more often than the rest."""
    return Pieces((1 - share, share), (base, top))


LAWS: dict[str, CandidateLaw] = {
    "needle": needle_law(0.02),
    "rare needle": needle_law(0.004),
    "flat": flat_law(0.05),
    "easy": flat_law(0.9),
    "step": rising(0.0, 0.2, 0.1),
    "rising": rising(0.01, 0.3, 0.05),
    "tied": Pieces((0.9, 0.1), (0.0, 0.15), tied=True),
    "binormal": Binormal(0.02, 1.5),
}
STREAMS = 80


def low_end(policy: Policy, law: CandidateLaw, costs: Costs) -> float:
    """The mean cost relative to J*, less four standard errors."""
    spent = [CandidateStream(law, (3, i)).run(policy, costs).cost for i in range(STREAMS)]
    error = float(np.std(spent, ddof=1)) / math.sqrt(STREAMS)
    return (float(np.mean(spent)) - 4 * error) / law.optimum(costs)


def cases(inners: int) -> list[Any]:
    """Each inner policy, law and price; half of them, and the long searches, only in a soak."""
    found = []
    for i, (law, rho) in itertools.product(range(inners), itertools.product(LAWS, (3.0, 30.0))):
        often = law != "rare needle" and (i + list(LAWS).index(law) + (rho > 3)) % 2 == 0
        marks = pytest.mark.slow if often else pytest.mark.soak
        found.append(pytest.param(i, law, rho, marks=marks))
    return found


@pytest.mark.parametrize(("inner", "law", "rho"), cases(len(INNERS)))
def test_whatever_the_policy_does_it_costs_at_most_the_factor(
    inner: int, law: str, rho: float
) -> None:
    assert low_end(Guarded(INNERS[inner]), LAWS[law], Costs(1, rho)) <= FACTOR


@pytest.mark.filterwarnings("ignore::grv.policies.learned.policy.UnlikeHistoryWarning")
@pytest.mark.parametrize(("inner", "law", "rho"), cases(1))
def test_a_wrong_prior_costs_at_most_the_factor(inner: int, law: str, rho: float) -> None:
    """The prior was fitted to other problems and another score."""
    assert low_end(Learned(PRIOR), LAWS[law], Costs(1, rho)) <= FACTOR


MISLEADING: dict[str, CandidateLaw] = {
    "inverted": Pieces((0.9, 0.1), (0.1, 0.0)),
    "inverted and rare": Pieces((0.5, 0.5), (0.06, 0.0)),
    "inverted in steps": Pieces((0.2, 0.3, 0.5), (0.3, 0.02, 0.0), tied=True),
    "flat": flat_law(0.05),
    "flat and easy": flat_law(0.6),
    "needle": needle_law(0.02),
}


def over_verify_all(policy: Policy, law: CandidateLaw, costs: Costs) -> float:
    """The highest cost relative to that of verify-all on the same candidates."""
    return max(
        CandidateStream(law, (5, i)).run(policy, costs).cost
        / CandidateStream(law, (5, i)).run(VerifyAll(), costs).cost
        for i in range(STREAMS)
    )


def any_score_cases(inners: int) -> list[Any]:
    """Each inner policy, law and price; most of them only in a soak."""
    found = []
    for i, (law, rho) in itertools.product(
        range(inners), itertools.product(MISLEADING, (3.0, 30.0))
    ):
        often = (i + list(MISLEADING).index(law) + (rho > 3)) % 3 == 0
        marks = pytest.mark.slow if often else pytest.mark.soak
        found.append(pytest.param(i, law, rho, marks=marks))
    return found


@pytest.mark.parametrize(("inner", "law", "rho"), any_score_cases(len(INNERS)))
def test_whatever_the_score_it_costs_at_most_the_factor_times_verify_all(
    inner: int, law: str, rho: float
) -> None:
    assert over_verify_all(Guarded(INNERS[inner]), MISLEADING[law], Costs(1, rho)) <= FACTOR


@pytest.mark.filterwarnings("ignore::grv.policies.learned.policy.UnlikeHistoryWarning")
@pytest.mark.parametrize(("inner", "law", "rho"), any_score_cases(1))
def test_a_wrong_prior_costs_at_most_the_factor_times_verify_all(
    inner: int, law: str, rho: float
) -> None:
    assert over_verify_all(Learned(PRIOR), MISLEADING[law], Costs(1, rho)) <= FACTOR


@pytest.mark.slow
def test_without_the_second_guard_an_inverted_score_costs_more_than_that() -> None:
    """So the second guard is what keeps the bound. The mean is over it too, not only the worst."""
    law, costs = Pieces((0.85, 0.15), (0.9, 0.0)), Costs(1, 30)
    assert over_verify_all(Guarded(only_generates), law, costs) <= FACTOR
    spent = [
        CandidateStream(law, (5, i)).run(Guarded(only_generates, oldest=False), costs).cost
        for i in range(STREAMS)
    ]
    error = 4 * float(np.std(spent, ddof=1)) / math.sqrt(STREAMS)
    base = (costs.candidate + costs.verify) / law.pass_rate
    assert float(np.mean(spent)) - error > FACTOR * base


def test_without_a_guard_the_same_policy_costs_more_than_that() -> None:
    """So the guard is what keeps the bound, and the test could find it broken."""
    costs = Costs(1, 30)
    spent = [
        CandidateStream(LAWS["needle"], (3, i)).run(VerifyAll(), costs).cost for i in range(STREAMS)
    ]
    assert float(np.mean(spent)) > 2 * FACTOR * LAWS["needle"].optimum(costs)


def test_a_block_whose_best_is_refuted_is_for_the_best_of_the_pool() -> None:
    """So a search with keys goes on to verify, also where all scores are the same."""
    world = World.of(" ".join(f"0{'+' if i % 11 == 7 else '-'}k{i % 11}" for i in range(300)))
    for policy in (Guarded(gives_up), Learned(PRIOR)):
        search = run(policy, Costs(1, 10), world)
        assert search.outcome is not None
        assert search.outcome.solved
        assert len(search.pool) < 11 * 12


@pytest.mark.parametrize("rho", [10, 30])
@pytest.mark.parametrize("top", [2, 3, 8])
def test_second_scores_do_not_replace_the_oldest_candidate(rho: float, top: int) -> None:
    """The first candidate passes. Its second score is the lowest, and each later one is higher."""
    first = World((0.5,), (Verdict.PASSED,), second=(-1.0,))
    later = World((0.5,) * 999, (Verdict.FAILED,) * 999, second=tuple(map(float, range(999))))
    cascade = Cascade(top, cost=1e-6)

    for policy in (Learned(PRIOR), Guarded(only_generates), Guarded(verifies_the_best)):
        search = run(policy, Costs(1, rho), first + later, Limits(cascade=cascade))
        assert search.bill.total <= FACTOR * (1 + rho) + 1e-6 * search.bill.rescored


@settings(max_examples=examples(60))
@given(worlds(broken=False), price_lists().filter(lambda costs: costs.ratio < 1000))
def test_between_two_verifications_less_than_two_blocks_are_drawn(
    world: World, costs: Costs
) -> None:
    """Without keys; what a width adds is bounded by it."""
    plain = dataclasses.replace(world, keys=())
    size = block_draws(exact_ratio(costs.planning)).later
    policies: list[Policy] = [Learned(PRIOR), *map(Guarded, INNERS)]
    for policy in policies:
        drawn = 0
        for turn in run(policy, costs, plain).trace:
            if isinstance(turn.event, Generated):
                drawn += len(turn.event.scores)
                assert drawn <= 2 * size - 1
            else:
                drawn = 0
