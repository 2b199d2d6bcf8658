"""The optimal cost of each problem if its law is known, compared with direct sums."""

from __future__ import annotations

import itertools

import pytest

from grv.comparing.oracle_rows import OracleRow, oracle
from grv.core.values import Costs
from grv.logs.log import Log
from grv.replay.orders import batches
from grv.testing import World, all_wrong, population
from grv.theory.hindsight import Pair

LOG = population("math", problems=5, candidates=30, seed=2)


def cheapest_set(world: World, costs: Costs) -> float:
    """The least (c_rew + c_ver q) / s over all sets of scores that one might verify."""
    levels = sorted(set(world.scores))
    found = []
    for size in range(1, len(levels) + 1):
        for chosen in itertools.combinations(levels, size):
            of = [i for i, score in enumerate(world.scores) if score in chosen]
            passes = sum(world.verdicts[i].value == "passed" for i in of)
            if passes:
                n = len(world)
                found.append((costs.candidate + costs.verify * len(of) / n) / (passes / n))
    return min(found)


def test_the_optimum_is_that_over_all_sets_of_scores() -> None:
    world = World.of("1- 1- 1+ 2- 2- 3+ 3- 4- 4- 4-")
    costs = Costs(1, 10)

    (row,) = oracle(Log((world.logged("a"),)), costs)

    assert row.optimum == pytest.approx(cheapest_set(world, costs))
    assert row.tau == pytest.approx(costs.verify / cheapest_set(world, costs))
    # Verifying from 1, 2, 3 or 4 on: all ten for two passes, seven or five for one, or none.
    assert row.threshold_cost == pytest.approx(min((1 + 10) / 0.2, (1 + 7) / 0.1, (1 + 5) / 0.1))
    assert row.threshold == 1.0
    assert (row.problem, row.candidates, row.pass_rate) == ("a", 10, 0.2)


def test_no_policy_costs_less_than_the_optimum() -> None:
    for row in oracle(LOG, Costs(1, 20)):
        assert row.optimum is not None
        assert row.threshold_cost is not None
        assert 21 <= row.optimum <= row.threshold_cost + 1e-9


def test_hindsight_is_the_mean_of_the_cheapest_pairs() -> None:
    world, costs = World.of("1- 3- 2+"), Costs(1, 10)
    log = Log((world.logged("a"),))

    def cheapest(order: list[int]) -> float:
        pairs = [Pair(m, k) for m in range(1, 4) for k in range(1, m + 1)]
        ranked = {m: sorted(order[:m], key=lambda i: -world.scores[i]) for m in range(1, 4)}
        return min(costs.of(m, k) for m, k in pairs if 2 in ranked[m][:k])

    (batch,) = batches(log.problems, 7, seed=3)
    spent = [cheapest(order) for order in batch.orders.tolist()]

    (row,) = oracle(log, costs, orders=7, seed=3)

    assert row.hindsight == pytest.approx(sum(spent) / 7)


def test_a_problem_without_any_pass_has_no_optimum_and_keeps_its_place() -> None:
    log = Log((all_wrong(4).logged("a"), *LOG.problems))

    for scheme in ("stable", "paper"):
        rows = oracle(log, Costs(), scheme=scheme)

        assert rows[0] == OracleRow("a", 4, 0.0)
        assert [row.problem for row in rows] == [problem.id for problem in log.problems]


def test_where_everything_is_verified_also_the_unscored_there_is_no_threshold() -> None:
    (row,) = oracle(Log((World.of("-inf+ -inf- 5-").logged("a"),)), Costs(1, 1))

    assert row.threshold is None
    assert row.threshold_cost == pytest.approx((1 + 1) / (1 / 3))


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []

    oracle(LOG, Costs(), progress=lambda done, total: told.append((done, total)))

    assert told == [(number, 5) for number in range(1, 6)]
