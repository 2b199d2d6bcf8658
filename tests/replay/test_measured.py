"""Costs that the log says: bills, estimates, baselines, and what cannot be used."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from grv.comparing.compare import compare
from grv.core.errors import LogError
from grv.core.limits import Limits
from grv.core.pool import Pool
from grv.core.search import Policy
from grv.core.values import Bill, Costs, Generate, Measured, Step, Verify
from grv.logs.log import Log, LoggedProblem
from grv.policies import Adaptive, Alternate, Balanced, Fixed, Hedged, Varied, VerifyAll
from grv.replay.engine import replay, replayed
from grv.replay.hindsight import hindsight_trials, least_checks_of
from grv.replay.kernels.dispatch import trials
from grv.replay.orders import batches
from grv.testing import World, population
from grv.testing.strategies import worlds
from support.examples import examples

GUESS = Measured(1, 10)


def priced(
    problem: LoggedProblem,
    generate: Sequence[float] | NDArray[np.float64],
    verify: Sequence[float] | NDArray[np.float64],
) -> LoggedProblem:
    """The problem, with what each candidate cost."""
    return dataclasses.replace(
        problem, generate_costs=np.array(generate), verify_costs=np.array(verify)
    )


def random_costs(log: Log, seed: int = 0) -> Log:
    """The log, each candidate with costs of its own: about 2 and about 30."""
    generator = np.random.default_rng(seed)
    return dataclasses.replace(
        log,
        problems=tuple(
            priced(p, 2 * generator.lognormal(size=len(p)), 30 * generator.lognormal(size=len(p)))
            for p in log.problems
        ),
    )


PROBLEM = priced(World.of("1- 5- 3+ 4-").logged("a"), [1, 2, 4, 8], [10, 20, 40, 80])
LOG = random_costs(population("coding", problems=6, candidates=60, seed=4))


def test_each_candidate_costs_what_the_log_says() -> None:
    outcome = replay(Fixed(4, 3), PROBLEM, GUESS)

    assert outcome.bill == Bill(4, 3, 1 + 2 + 4 + 8 + 20 + 80 + 40)


def test_the_costs_travel_with_their_candidates() -> None:
    assert replay(VerifyAll(), PROBLEM, GUESS, Limits(width=None), order=[3, 2, 0, 1]).bill == Bill(
        2, 2, 132
    )


def test_costs_that_the_log_has_are_not_used_unless_asked_for() -> None:
    assert replay(Fixed(4, 3), PROBLEM, Costs(1, 10)).bill == Bill(4, 3, 34)


def test_what_the_log_does_not_say_costs_what_was_guessed() -> None:
    half = dataclasses.replace(PROBLEM, verify_costs=None)

    assert replay(Fixed(4, 3), half, GUESS).bill == Bill(4, 3, 15 + 30)


@dataclass(frozen=True)
class Watching:
    """Generates one at a time and keeps the ratios that it sees."""

    seen: list[float]

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        while True:
            self.seen.append(pool.costs.ratio)
            yield Generate(1)
            yield Verify(pool.best(1))


def test_a_policy_sees_the_current_estimate_of_the_costs() -> None:
    seen: list[float] = []
    cheap = priced(World.of("1- 1- 1-").logged(), [1, 1, 1], [2, 3, 1])
    replay(Watching(seen), cheap, GUESS)

    assert seen == pytest.approx([10, 2, 5 / 2, 6 / 3])  # the guess counts until a payment


def test_adaptive_takes_the_shells_of_the_costs_as_they_turn_out_to_be() -> None:
    hard = World.of("1- " * 300)
    problem = priced(hard.logged(), [1.0] * 300, [100.0] * 300)
    learned = replayed(Adaptive(), problem, Measured(1, 1), Limits(width=None))
    told = replayed(Adaptive(), problem, Costs(1, 100), Limits(width=None))
    naive = replayed(Adaptive(), problem, Costs(1, 1), Limits(width=None))

    # After its first shell it generates like a policy that knows that verifying is expensive.
    assert learned.trace[0].action == naive.trace[0].action
    assert naive.bill.verified / len(naive.pool) == 1
    drawn = [turn.action.n for turn in learned.trace if isinstance(turn.action, Generate)]
    dear = [turn.action.n for turn in told.trace if isinstance(turn.action, Generate)]
    assert drawn[1] in dear


@pytest.mark.parametrize("policy", [Alternate(), Balanced(), Hedged(), Varied()])
def test_a_path_goes_on_at_the_costs_as_they_turn_out_to_be(policy: Policy) -> None:
    problem = priced(World.of("1- " * 600).logged(), [1.0] * 600, [100.0] * 600)

    def largest(costs: Costs) -> int:
        turns = replayed(policy, problem, costs, Limits(width=None)).trace
        return max(turn.action.n for turn in turns if isinstance(turn.action, Generate))

    assert largest(Costs(1, 4)) <= 5
    assert largest(Measured(1, 4)) > 0.8 * largest(Costs(1, 100)) > 30


@pytest.mark.parametrize("width", [1, 3, None])
def test_rows_are_the_means_of_the_engines_bills(width: int | None) -> None:
    names = ["adaptive", "fixed(9, 3)", "verify-all"]
    comparison = compare(names, LOG, [GUESS, Costs(1, 10)], orders=3, width=width)

    policies: list[Policy] = [Adaptive(), Fixed(9, 3), VerifyAll()]
    for row, policy in zip(comparison.rows, policies, strict=False):
        bills = [
            replay(policy, batch.problem, GUESS, Limits(width=width), order=order).bill.total
            for batch in batches(LOG.problems, 3)
            for order in batch.orders.tolist()
        ]
        assert row.measured
        assert row.cost == pytest.approx(np.mean(bills))
    assert not any(row.measured for row in comparison.rows[3:])
    assert comparison.rows[3:] == compare(names, LOG, orders=3, width=width).rows


def test_a_measured_row_says_so_in_every_form() -> None:
    comparison = compare(["adaptive", "hindsight"], LOG, [Measured(2, 30), Costs(2, 30)], orders=2)
    plain = comparison.to_json()

    assert [row["costs"] for row in plain["rows"]] == [
        *[{"generate": 2, "verify": 30, "measured": True}] * 2,
        *[{"generate": 2, "verify": 30}] * 2,
    ]
    assert plain["settings"]["costs"] == [{"measured": [2, 30]}, [2, 30]]
    assert [line.split()[1] for line in comparison.table().splitlines()[1:]] == [
        *["measured:2,30"] * 2,
        *["2,30"] * 2,
    ]
    rows = csv.DictReader(comparison.to_csv().splitlines())
    assert [row["measured"] for row in rows] == ["True", "True", "False", "False"]


def test_pairs_are_chosen_by_the_mean_costs_of_the_log_whatever_was_guessed() -> None:
    names = ["difficulty-1", "difficulty-3", "uniform-matched", "adaptive"]
    right, wrong = (
        compare(names, LOG, guess, orders=3) for guess in (Measured(2, 30), Measured(500, 1))
    )

    for name in names[:2]:
        assert wrong[name].cost == right[name].cost
        assert wrong[name].groups == right[name].groups
    assert wrong["uniform-matched"].cost <= wrong["adaptive"].cost * 1.5


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(
    world=worlds(candidates=9, broken=False, keys=False).filter(lambda world: world.solvable),
    data=st.data(),
)
def test_hindsight_is_the_cheapest_of_all_pairs_at_their_own_costs(
    world: World, data: st.DataObject
) -> None:
    prices = st.lists(
        st.sampled_from([0.0, 0.5, 1, 3, 40]), min_size=len(world), max_size=len(world)
    )
    problem = priced(world.logged("a"), data.draw(prices), data.draw(prices))
    (batch,) = batches([problem], 2)

    found = hindsight_trials(batch, least_checks_of(batch), GUESS, Limits(width=None))

    n = len(problem)
    for order, total in zip(batch.orders.tolist(), found.costs(GUESS).tolist(), strict=True):
        outcomes = [
            replay(Fixed(m, k), problem, GUESS, order=order)
            for m in range(1, n + 1)
            for k in range(1, m + 1)
        ]
        assert total == min(each.bill.total for each in outcomes if each.solved)
    assert found.solved.all()


def test_hindsight_spends_nothing_where_nothing_passes() -> None:
    problem = priced(World.of("1- 2-").logged(), [1, 1], [1, 1])
    (batch,) = batches([problem], 2)

    found = hindsight_trials(batch, least_checks_of(batch), GUESS, Limits(width=None))

    assert found.costs(GUESS).tolist() == [0, 0]
    assert found.rounds.tolist() == [[0, 0, 0, 0], [0, 0, 0, 0]]


def test_with_keys_costs_are_measured_too() -> None:
    problem = priced(World.of("5-a 5-a 4- 1+b").logged("a"), [1] * 4, [7, 100, 5, 3])
    (batch,) = batches([problem], 1, keyed=True)
    there = batch.orders[0].tolist().index(0) < batch.orders[0].tolist().index(1)

    found = trials(Fixed(4, 4), batch, GUESS)

    assert found.costs(GUESS).tolist() == [4 + (7 if there else 100) + 5 + 3]


def test_a_log_without_costs_cannot_be_asked_for_them() -> None:
    with pytest.raises(LogError, match="this log has no measured costs"):
        compare(["adaptive"], population("coding", problems=2, candidates=9), GUESS)


def test_where_nothing_costs_anything_there_is_no_ratio() -> None:
    free = priced(World.of("1- 2+").logged("a"), [0, 0], [0, 0])
    (row,) = compare(["adaptive"], Log((free,)), GUESS).rows

    assert (row.cost, row.ratio) == (0, None)


def test_means_are_over_all_candidates() -> None:
    log = Log((PROBLEM, priced(World.of("1+").logged("b"), [5], [0])))

    means = [each.mean_costs for each in (log, population("coding", problems=2, candidates=9))]

    assert means == [(4, 30), (None, None)]
