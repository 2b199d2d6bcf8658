"""A comparison: paired trials, rows in the order asked, nothing left out without a word."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grv.comparing.compare import LARGEST_TABLE, compare
from grv.comparing.comparison import Comparison
from grv.comparing.rows import DEFAULT_ROWS
from grv.comparing.significance import Resampled
from grv.comparing.visits import Visits
from grv.core.errors import LogError, UsageError
from grv.core.limits import Limits
from grv.core.pool import Pool
from grv.core.search import Policy
from grv.core.values import Costs, Generate, Latency, Step, Verify
from grv.logs.log import Log, LoggedProblem
from grv.policies import Adaptive, Fixed, VerifyAll
from grv.replay.engine import replay
from grv.replay.orders import Orders, batches
from grv.testing import World, all_wrong, needle, population
from grv.testing.strategies import price_lists, worlds
from grv.theory.hindsight import Pair
from support.examples import examples

LOG = population("coding", problems=8, candidates=60, seed=4)
KEYED = Log(
    tuple(
        World.of(text).logged(id)
        for id, text in {
            "a": "9-x 9-x 9-x 9-x 1+y 1+y",
            "b": "9-x 8-x 7-z 6+ 5+ 4-z",
        }.items()
    )
)


def with_hopeless(log: Log) -> Log:
    """The log, and a problem that nothing solves, first in the alphabet."""
    return Log((all_wrong(20).logged("a hopeless one"), *log.problems))


def small_logs() -> st.SearchStrategy[Log]:
    several = st.lists(worlds(candidates=12, broken=False).filter(len), min_size=1, max_size=4)
    return several.map(
        lambda drawn: Log(
            (
                World.of("1- 2+").logged("always solvable"),
                *(world.logged(str(number)) for number, world in enumerate(drawn)),
            )
        )
    )


def rows_of(comparison: Comparison) -> list[dict[str, Any]]:
    return [row.to_json() for row in comparison.rows]


def test_rows_come_in_the_order_asked_price_list_by_price_list() -> None:
    asked = ["verify-all", " difficulty-4", "fixed(3, 2)", "adaptive", "adaptive"]
    costs = [Costs(1, 30), Costs(1, 1)]

    comparison = compare(asked, LOG, costs)

    names = ["verify-all", "difficulty-4", "fixed(3, 2)", "adaptive", "adaptive"]
    assert [(row.policy, row.costs) for row in comparison.rows] == list(
        itertools.chain.from_iterable([(name, prices) for name in names] for prices in costs)
    )
    assert all(row.trials == 80 for row in comparison.rows)


@pytest.mark.parametrize("width", [1, 3, None])
def test_a_policys_row_is_the_mean_of_the_engines_trials(width: int | None) -> None:
    costs = Costs(1, 20)
    comparison = compare(["adaptive", "fixed(9, 3)"], LOG, costs, orders=4, seed=7, width=width)

    policies: list[Policy] = [Adaptive(), Fixed(9, 3)]
    for row, policy in zip(comparison.rows, policies, strict=True):
        outcomes = [
            replay(policy, batch.problem, costs, Limits(width=width), order=order)
            for batch in batches(LOG.problems, 4, seed=7)
            for order in batch.orders.tolist()
        ]
        bills = [outcome.bill for outcome in outcomes]
        assert row.solved == np.mean([outcome.solved for outcome in outcomes])
        assert row.cost == pytest.approx(np.mean([bill.total for bill in bills]))
        assert row.generated == np.mean([bill.generated for bill in bills])
        assert row.verified == np.mean([bill.verified for bill in bills])


@pytest.mark.parametrize(
    "how", [{}, {"ramp": False}, {"random_phase": True}, {"wait_price": 2.0}], ids=str
)
def test_pairs_are_priced_like_policies(how: dict[str, Any]) -> None:
    how |= {"width": 5, "latency": Latency(5, 30), "orders": 4}
    asked = ["adaptive", "uniform-matched", "difficulty-1"]
    for row in compare(asked, LOG, Costs(1, 10), **how).rows[1:]:
        (same,) = compare([f"fixed({row.m}, {row.k})"], LOG, Costs(1, 10), **how).rows
        for name in ("solved", "cost", "verified", "verify_rounds", "seconds"):
            assert getattr(row, name) == getattr(same, name), name


def test_a_pair_that_needs_more_than_was_logged_waits_as_long_as_a_policy() -> None:
    short = Orders([World.of("1- 2-").logged("a")], 1)
    visits = Visits(short, {}, [Costs()], Limits(width=4))
    (batch,) = short.batches()
    found = visits._too_few(Pair(9, 7), batch, Costs())  # noqa: SLF001
    assert (found.generated.tolist(), found.verified.tolist()) == ([9], [7])
    assert found.rounds.tolist() == [[1, 3, 0, 0]]  # 2, 4 and 1


def test_adaptive_all_pays_for_whole_steps_whatever_the_width() -> None:
    narrow, wide = (compare(["adaptive-all", "adaptive"], LOG, width=w) for w in (1, None))

    assert narrow["adaptive-all"].cost == wide["adaptive-all"].cost == wide["adaptive"].cost
    assert narrow["adaptive"].cost < wide["adaptive"].cost


@settings(max_examples=examples(60))
@given(log=small_logs(), costs=price_lists(), keys=st.booleans(), seed=st.integers(0, 9))
def test_with_width_one_adaptive_never_costs_more_and_finds_the_same_answer(
    log: Log, costs: Costs, keys: bool, seed: int
) -> None:
    for batch in batches(log.problems, 2, seed=seed):
        for order in batch.orders.tolist():
            one, whole = (
                replay(
                    Adaptive(), batch.problem, costs, Limits(width=width), order=order, keys=keys
                )
                for width in (1, None)
            )
            assert one.bill.total <= whole.bill.total
            assert one.bill.generated == whole.bill.generated
            assert one.answer == whole.answer


def test_with_width_one_no_trial_of_a_comparison_costs_more() -> None:
    costs = Costs(1, 10)
    comparison = compare(["adaptive", "adaptive-all"], LOG, costs)

    one, whole = comparison.trials
    assert (one.costs(costs) <= whole.costs(costs)).all()
    assert (one.solved == whole.solved).all()
    assert one.solved.shape == (8, 10)
    assert comparison.problems == tuple(problem.id for problem in LOG.problems)


@settings(max_examples=examples(25))
@given(log=small_logs(), costs=price_lists(), width=st.sampled_from([1, 3, None]))
def test_hindsight_is_the_cheapest_of_all_pairs_trial_by_trial(
    log: Log, costs: Costs, width: int | None
) -> None:
    asked = ["hindsight", "adaptive-all", "uniform-matched", "difficulty-1", "difficulty-9"]
    comparison = compare(asked, log, costs, orders=2, width=width)

    least, *others = (each.costs(costs) for each in comparison.trials)
    solved = [each.solved for each in comparison.trials[1:]]
    assert comparison.trials[0].solved.all()
    if width is None:
        for found, spent in zip(solved, others, strict=True):
            assert (spent[found] >= least[found] - 1e-9 * least[found]).all()


def test_the_uniform_pair_is_within_the_cost_of_adaptive_and_no_pair_does_better() -> None:
    comparison = compare(["adaptive", "uniform-matched"], LOG, Costs(1, 10), width=None)
    adaptive, uniform = comparison.rows

    assert uniform.m is not None
    assert uniform.k is not None
    assert uniform.cost == uniform.m + 10 * uniform.k <= adaptive.cost
    for m in range(1, 61):
        k = min(m, int((adaptive.cost - m) // 10))
        if k >= 1:
            assert compare([f"fixed({m}, {k})"], LOG, width=None).rows[0].solved <= uniform.solved


def test_the_uniform_pair_is_matched_even_if_adaptive_is_not_compared() -> None:
    alone = compare(["uniform-matched"], LOG).rows[0]
    beside = compare(["adaptive", "uniform-matched"], LOG).rows[1]

    assert (alone.m, alone.k, alone.solved) == (beside.m, beside.k, beside.solved)


def test_a_mean_that_is_rounded_below_its_values_still_affords_one_of_each() -> None:
    log = Log((World.of("1+").logged("a"),))

    # Six times 0.1 + 0.1, divided by six, is less than 0.1 + 0.1.
    row = compare(["uniform-matched"], log, Costs(0.1, 0.1), orders=6).rows[0]

    assert (row.m, row.k, row.solved) == (1, 1, 1.0)


def test_one_pair_for_all_is_difficulty_one() -> None:
    row = compare(["difficulty-1"], LOG).rows[0]

    assert row.solved == 1.0
    assert row.groups is not None
    (group,) = row.groups
    assert (group.problems, group.m, group.k) == (8, row.m, row.k)


def test_groups_are_by_pass_rate_and_cost_less_the_more_there_are() -> None:
    asked = [f"difficulty-{count}" for count in (1, 2, 3, 8, 50)]

    rows = compare(asked, LOG, width=None).rows

    for row, count in zip(rows, (1, 2, 3, 8, 8), strict=True):
        assert row.groups is not None
        assert len(row.groups) == count
        assert sum(group.problems for group in row.groups) == 8
        rates = [rate for group in row.groups for rate in group.pass_rate]
        assert rates == sorted(rates)
        assert row.cost == pytest.approx(
            sum(group.problems * (group.m + 10 * group.k) for group in row.groups) / 8
        )
    assert [row.m is None for row in rows] == [False, True, True, True, True]
    costs = [row.cost for row in rows]
    assert costs == sorted(costs, reverse=True)


def test_problems_of_one_pass_rate_are_grouped_by_id() -> None:
    slow, fast = World.of("9- 8- 7- 1+"), World.of("9+ 8- 7- 1-")
    ids = {"a": fast, "b": slow, "c": fast, "d": slow}
    log = Log(tuple(world.logged(id) for id, world in ids.items()))

    row = compare(["difficulty-4"], log, width=None, orders=60).rows[0]

    assert row.groups is not None
    assert [(group.m, group.k) for group in row.groups] == [(4, 1), (4, 4), (4, 1), (4, 4)]


def test_ratios_are_to_the_adaptive_row_of_the_same_costs() -> None:
    comparison = compare(["verify-all", "adaptive"], LOG, [Costs(1, 1), Costs(1, 50)])

    for verify_all, adaptive in zip(comparison.rows[::2], comparison.rows[1::2], strict=True):
        assert adaptive.ratio == adaptive.low == adaptive.high == 1.0
        assert verify_all.ratio == verify_all.cost / adaptive.cost
        assert verify_all.low is not None
        assert verify_all.high is not None
        assert verify_all.low < verify_all.ratio < verify_all.high


def test_without_an_adaptive_row_there_is_no_ratio() -> None:
    row = compare(["verify-all", "adaptive-all", "adaptive(checks=5)"], LOG).rows[0]

    assert (row.ratio, row.low, row.high) == (None, None, None)


def test_one_problem_has_a_ratio_but_no_interval() -> None:
    row = compare(["verify-all", "adaptive"], Log(LOG.problems[:1])).rows[0]

    assert row.ratio is not None
    assert (row.low, row.high) == (None, None)


def test_intervals_are_those_of_problems_drawn_anew() -> None:
    chance = np.random.default_rng(1)
    below = chance.uniform(1, 2, 50)
    above = below * chance.uniform(1, 3, 50)

    drawn = chance.integers(0, 50, size=(20_000, 50))
    ratios = above[drawn].mean(axis=1) / below[drawn].mean(axis=1)

    expected = np.quantile(ratios, [0.025, 0.975])
    assert Resampled(50, seed=0).ratio(above, below) == pytest.approx(expected, rel=0.02)
    assert Resampled(50, seed=0).ratio(2 * below, below) == pytest.approx((2, 2))


class TestProblemsWithoutAnyPass:
    def test_are_left_out_counted_and_named(self) -> None:
        comparison = compare(["adaptive", "difficulty-2"], with_hopeless(LOG))

        assert (comparison.log.problems, comparison.log.solvable) == (9, 8)
        assert comparison.log.excluded == ("a hopeless one",)
        assert rows_of(comparison) == rows_of(compare(["adaptive", "difficulty-2"], LOG))

    def test_do_not_disturb_the_papers_orders_either(self) -> None:
        with_them = compare(DEFAULT_ROWS, with_hopeless(LOG), order_scheme="paper")

        assert rows_of(with_them) == rows_of(compare(DEFAULT_ROWS, LOG, order_scheme="paper"))

    def test_may_be_kept_and_what_they_cost_is_reported(self) -> None:
        asked = ["hindsight", "adaptive", "verify-all", "uniform-matched", "difficulty-9"]
        comparison = compare(asked, with_hopeless(LOG), Costs(1, 10), unsolvable="include")

        assert comparison.log.excluded == ()
        assert all(row.trials == 90 for row in comparison.rows)
        hindsight, adaptive, verify_all, _, difficulty = comparison.rows
        # All of the twenty are generated and verified; hindsight would not have begun.
        assert adaptive.unsolvable_cost == verify_all.unsolvable_cost == 20 + 200
        assert hindsight.unsolvable_cost == 0
        assert difficulty.unsolvable_cost == 11  # a group of its own, and the cheapest pair
        assert adaptive.solved == pytest.approx(8 / 9)

    def test_alone_leave_nothing_to_compare(self) -> None:
        log = Log((all_wrong(3).logged("a"),), path="some.csv")

        for unsolvable in ("exclude", "include"):
            with pytest.raises(
                LogError, match=r"some\.csv: no problem has a candidate that passed"
            ):
                compare(["adaptive"], log, unsolvable=unsolvable)

    def test_have_no_cost_of_their_own_where_they_are_left_out(self) -> None:
        assert compare(["adaptive"], LOG, unsolvable="include").rows[0].unsolvable_cost is None


class TestKeys:
    def test_save_verifications(self) -> None:
        without, with_keys = (
            compare(["fixed(6, 6)"], KEYED, keys=keys, width=None).rows[0] for keys in (False, True)
        )

        assert without.verified == 6
        assert with_keys.verified == (2 + 4) / 2
        assert with_keys.solved == without.solved == 1.0

    def test_are_not_used_unless_asked_for(self) -> None:
        plain = Log(tuple(dataclasses.replace(p, keys=None) for p in KEYED.problems))

        assert rows_of(compare(DEFAULT_ROWS, KEYED)) == rows_of(compare(DEFAULT_ROWS, plain))

    def test_are_for_every_row(self) -> None:
        rows = compare(DEFAULT_ROWS, KEYED, Costs(1, 10), keys=True).rows

        for row in rows:
            if row.policy != "uniform-matched":
                assert row.solved == 1.0, row.policy
        by_name = {row.policy: row.cost for row in rows}
        assert by_name["hindsight"] <= min(by_name.values())
        assert all(row.exact is None for row in rows)

    def test_that_are_not_there_cannot_be_used(self) -> None:
        with pytest.raises(LogError, match="this log has no keys"):
            compare(["adaptive"], LOG, keys=True)


@dataclass(frozen=True)
class Patient:
    """A user's policy: generate ten, then verify the best."""

    look: int = 10

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        while not pool.exhausted:
            yield Generate(self.look)
            yield Verify(pool.best(1))


def test_policies_may_be_given_by_the_names_that_their_rows_shall_have() -> None:
    comparison = compare({"adaptive": Adaptive(checks=4), "mine": Patient(5)}, LOG, orders=3)

    assert [row.policy for row in comparison.rows] == ["adaptive", "mine"]
    assert comparison["mine"].ratio is not None
    outcomes = [
        replay(Patient(5), batch.problem, Costs(), order=order)
        for batch in batches(LOG.problems, 3)
        for order in batch.orders.tolist()
    ]
    assert comparison["mine"].cost == np.mean([outcome.bill.total for outcome in outcomes])


def test_two_policies_that_are_written_alike_are_not_confused() -> None:
    stranger = dataclasses.make_dataclass("VerifyAll", [], frozen=True, namespace={
        "plan": lambda self, pool, costs: iter([Generate(1)]),
    })()  # fmt: skip
    assert repr(stranger) == repr(VerifyAll())

    comparison = compare({"ours": VerifyAll(), "theirs": stranger}, LOG)

    assert comparison["ours"].verified > 1
    assert comparison["theirs"].verified == 0


def test_a_row_that_is_not_there_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        compare(["adaptive"], LOG)["verify-all"]


def test_the_same_seed_gives_the_same_comparison_and_another_another() -> None:
    first, again, other = (compare(DEFAULT_ROWS, LOG, seed=seed) for seed in (3, 3, 4))

    assert first.to_json() == again.to_json()
    assert rows_of(first) != rows_of(other)


def test_more_problems_do_not_change_the_trials_of_the_others() -> None:
    asked = ["adaptive", "verify-all", "hindsight"]
    few, many = (compare(asked, Log(LOG.problems[:n])) for n in (3, 8))

    for before, after in zip(few.trials, many.trials, strict=True):
        assert (before.verified == after.verified[:3]).all()


@settings(max_examples=examples(15))
@given(log=small_logs(), keys=st.booleans(), width=st.sampled_from([1, 2, None]))
def test_problems_of_any_size_can_be_compared(log: Log, keys: bool, width: int | None) -> None:
    comparison = compare(
        DEFAULT_ROWS,
        log,
        [Costs(1, 10), Costs(7, 0.5)],
        orders=2,
        width=width,
        keys=keys and log.has_keys,
        unsolvable="include",
    )

    for row in comparison.rows:
        assert 0 <= row.solved <= 1
        assert row.cost >= 0
        assert row.cost == pytest.approx(row.costs.of(1, 0) * row.generated
                                         + row.costs.verify * row.verified)  # fmt: skip


def test_the_share_solved_over_all_orders_is_given_for_single_pairs() -> None:
    log = Log((World.of("9+ 1-").logged("a"), World.of("9- 1+").logged("b")))

    once, twice, capped = compare(["fixed(1, 1)", "fixed(2, 1)", "fixed(5, 2)"], log).rows

    assert once.exact == pytest.approx(0.5)  # either comes first in half of the orders
    assert twice.exact == pytest.approx(0.5)  # the best of two passes for one of them
    assert capped.exact == pytest.approx(1.0)
    assert compare(["adaptive"], log).rows[0].exact is None


def test_the_matched_pair_solves_nothing_where_too_little_was_logged() -> None:
    long = (needle(12, at=3).logged(id) for id in "abc")
    log = Log((*long, World.of("1+").logged("short")))

    row = compare(["uniform-matched"], log, Costs(1, 1), width=None).rows[0]

    assert (row.m, row.k) == (12, 1)  # worth it for three of four, but the fourth has one candidate
    assert row.solved == row.exact == 0.75
    assert (row.generated, row.verified, row.cost) == (12, 1, 13)


def test_progress_is_told_from_the_first_problem_to_the_last() -> None:
    told: list[tuple[int, int]] = []

    compare(
        ["adaptive", "difficulty-2"], LOG, progress=lambda done, total: told.append((done, total))
    )

    assert told == [(number, 16) for number in range(1, 17)]


def test_a_log_that_is_too_long_for_all_pairs_says_what_to_do() -> None:
    size = LARGEST_TABLE + 1
    long = LoggedProblem("long", np.zeros(size), np.ones(size, dtype=np.bool_))

    with pytest.raises(UsageError, match=f"a problem with {size}: choose other rows"):
        compare(["uniform-matched"], Log((long,)))
    assert compare(["adaptive"], Log((long,)), orders=1).rows[0].solved == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"orders": 0}, "--orders 0: give a whole number from 1"),
        ({"seed": -1}, "--seed -1: give a whole number of at least 0"),
        ({"width": 0}, "--width 0: give a whole number from 1"),
        ({"order_scheme": "x"}, "--order-scheme x: give one of stable, paper"),
        ({"unsolvable": "x"}, "--unsolvable x: give one of exclude, include"),
        ({"costs": []}, "at least one policy and one price list"),
        ({"policies": []}, "at least one policy and one price list"),
        ({"policies": ["adaptiv"]}, "did you mean 'adaptive'"),
    ],
)
def test_what_cannot_be_compared_is_refused(options: dict[str, Any], message: str) -> None:
    given_options = {"policies": ["adaptive"], "log": LOG, **options}

    with pytest.raises(UsageError, match=message):
        compare(**given_options)
