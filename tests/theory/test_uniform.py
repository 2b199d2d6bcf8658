"""The table of pairs says of every pair what the engine finds out by running it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from grv.core.limits import Limits
from grv.core.values import Costs
from grv.logs.log import LoggedProblem
from grv.policies import Fixed
from grv.replay.engine import replay
from grv.replay.hindsight import least_checks_of, paid_checks_of
from grv.replay.orders import batches
from grv.testing import World
from grv.testing.strategies import worlds
from grv.theory import uniform
from grv.theory.hindsight import Pair
from grv.theory.uniform import PairTable
from support.examples import examples

ORDERS = 2
RIGHT, WRONG = "9+ 1- 1-", "9- 9- 1-"

few_problems = st.lists(
    worlds(candidates=6, broken=False).filter(len), min_size=1, max_size=3
)  # of different sizes


def logged(texts: Sequence[World | str]) -> list[LoggedProblem]:
    parsed = [World.of(text) if isinstance(text, str) else text for text in texts]
    return [world.logged(str(number)) for number, world in enumerate(parsed)]


def counted(
    problems: Sequence[LoggedProblem], *, width: int | None = None, keyed: bool = False
) -> PairTable:
    table = PairTable(max(map(len, problems)))
    for batch in batches(problems, ORDERS, keyed=keyed):
        least = least_checks_of(batch)
        table.add(least, paid_checks_of(batch, least, Limits(width=width)))
    return table


@dataclass(frozen=True)
class Scan:
    """Every pair run by the engine, over the same orders: arrays `[m - 1, k - 1]`."""

    solved: NDArray[np.float64]
    prices: NDArray[np.float64]


def scanned(
    problems: Sequence[LoggedProblem], costs: Costs, *, width: int | None, keyed: bool
) -> Scan:
    size = max(map(len, problems))
    solved, prices = np.zeros((2, size, size))
    for batch in batches(problems, ORDERS, keyed=keyed):
        for order in batch.orders.tolist():
            for m, k in pairs_up_to(size):
                if m > len(batch.problem):  # the log does not show what it would find
                    prices[m - 1, k - 1] += costs.of(m, k)
                    continue
                limits = Limits(width=width)
                outcome = replay(Fixed(m, k), batch.problem, costs, limits, order=order, keys=keyed)
                solved[m - 1, k - 1] += outcome.solved
                prices[m - 1, k - 1] += outcome.bill.total
    trials = ORDERS * len(problems)
    return Scan(solved / trials, prices / trials)


def pairs_up_to(size: int) -> list[Pair]:
    return [Pair(m, k) for m in range(1, size + 1) for k in range(1, m + 1)]


def at(array: NDArray[np.float64], pair: Pair) -> float:
    return float(array[pair.m - 1, pair.k - 1])


@pytest.mark.parametrize("width", [None, 1, 3])
@settings(max_examples=examples(20))
@given(worlds=few_problems, keyed=st.booleans())
def test_success_and_cost_of_every_pair_are_those_of_the_engine(
    width: int | None, worlds: list[World], keyed: bool
) -> None:
    problems, costs = logged(worlds), Costs(generate=1, verify=7)
    table = counted(problems, width=width, keyed=keyed)

    scan = scanned(problems, costs, width=width, keyed=keyed)

    for pair in pairs_up_to(table.size):
        assert at(table.solved(), pair) == pytest.approx(at(scan.solved, pair)), pair
        assert at(table.prices(costs), pair) == pytest.approx(at(scan.prices, pair)), pair


def test_a_pair_with_more_verifications_than_candidates_solves_nothing() -> None:
    rates = counted(logged([RIGHT])).solved()

    assert rates[0, 1] == rates[0, 2] == rates[1, 2] == 0


def test_a_pair_that_asks_for_more_than_was_logged_is_unsolved_and_pays_in_full() -> None:
    table = counted(logged(["9+", "9+ 1- 1-"]), width=1)
    costs = Costs(generate=1, verify=10)

    assert table.solved()[2, 2] == 0.5
    assert table.prices(costs)[2, 2] == pytest.approx((3 + 30 + 3 + 10) / 2)


@settings(max_examples=examples(40))
@given(
    worlds=few_problems,
    costs=st.sampled_from([Costs(1, 10), Costs(1, 1), Costs(3, 2)]),
    share=st.floats(0, 1.2),
    exactly=st.booleans(),
)
def test_the_best_pair_within_a_budget_is_that_of_a_scan(
    worlds: list[World], costs: Costs, share: float, exactly: bool
) -> None:
    """Most success, then the smallest m, then the smallest k."""
    table = counted(logged(worlds))
    pairs = pairs_up_to(table.size)
    budget = share * costs.of(table.size, table.size)
    if exactly:  # the price of some pair
        budget = costs.of(*pairs[int(share * (len(pairs) - 1)) % len(pairs)])

    prices = table.prices(costs)  # refuted candidates are not verified
    affordable = [pair for pair in pairs if at(prices, pair) <= budget]

    expected = min(affordable, key=lambda pair: (-at(table.solved(), pair), *pair), default=None)
    assert table.best_within(budget, costs) == expected


def test_of_equally_good_pairs_the_one_with_fewest_candidates_then_verifications_is_best() -> None:
    table = counted(logged(["9+ 9+ 9+", "8+ 8+ 8+"]))  # every pair solves everything

    assert table.best_within(1000, Costs()) == Pair(1, 1)
    assert counted(logged([WRONG])).best_within(1000, Costs()) == Pair(1, 1)


def test_no_pair_is_within_less_than_one_candidate_and_one_verification() -> None:
    table = counted(logged([RIGHT]))

    assert table.best_within(10.9, Costs(1, 10)) is None
    assert table.best_within(11, Costs(1, 10)) == Pair(1, 1)


@pytest.mark.parametrize("width", [None, 1])
@settings(max_examples=examples(30))
@given(worlds=few_problems, rate=st.sampled_from([0, 0.25, 0.5, 0.75, 1]))
def test_the_cheapest_pair_that_reaches_a_rate_is_that_of_a_scan(
    width: int | None, worlds: list[World], rate: float
) -> None:
    costs = Costs(1, 10)
    table = counted(logged(worlds), width=width)
    rates, prices = table.solved(), table.prices(costs)

    reaching = [p for p in pairs_up_to(table.size) if at(rates, p) >= rate - 1e-9]

    expected = min(reaching, key=lambda pair: (at(prices, pair), *pair), default=None)
    assert table.cheapest_reaching(rate, costs) == expected


def test_no_pair_reaches_what_no_pair_can() -> None:
    assert counted(logged([WRONG])).cheapest_reaching(0.5, Costs()) is None


@settings(max_examples=examples(40))
@given(
    worlds=st.lists(worlds(candidates=9, broken=False).filter(len), min_size=1, max_size=6),
    cells=st.sampled_from([1, 10, 1 << 20]),
    budget=st.floats(0, 120),
    rate=st.floats(0, 1),
)
def test_a_few_rows_say_what_the_whole_table_says(
    worlds: list[World], cells: int, budget: float, rate: float
) -> None:
    """Trials are counted as soon as they are many: here after some of the problems."""
    problems, costs = logged(worlds), Costs(1, 10, failure=4)
    table = counted(problems)
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(uniform, "_CELLS", cells)
        blocks = list(table.blocks())
        best = table.best_within(budget, costs), table.cheapest_reaching(rate, costs)

    for block in blocks:
        rows, columns = block.solved.shape
        own = slice(block.start, block.start + rows), slice(0, columns)
        below = np.tril(np.ones_like(block.solved), block.start) > 0
        assert (block.solved == table.solved()[own]).all()
        assert (block.prices(costs) == table.prices(costs)[own])[below].all()
    assert sum(len(block.solved) for block in blocks) == table.size
    assert best == (table.best_within(budget, costs), table.cheapest_reaching(rate, costs))


def test_counted_trials_are_those_that_were_kept() -> None:
    """One table counts after each problem, the other one keeps all trials."""
    problems = logged(["9- 8+ 7-", "9- 8- 7- 6- 5+", "9+", "9- 8-"])
    counting = counted(problems)
    keeping = PairTable(1000)
    for batch in batches(problems, ORDERS):
        least = least_checks_of(batch)
        keeping.add(least, paid_checks_of(batch, least, Limits(width=None)))
    costs = Costs(1, 10)

    rows = keeping.rows(0, counting.size)

    assert (rows.solved == counting.solved()).all()
    below = np.tril(np.ones_like(rows.solved)) > 0
    assert (rows.prices(costs) == counting.prices(costs))[below].all()


def test_a_table_of_nothing_knows_of_no_pair() -> None:
    assert PairTable(0).best_within(100, Costs()) is None
    assert PairTable(0).cheapest_reaching(0, Costs()) is None
