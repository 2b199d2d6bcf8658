"""Difficulty groups against every partition and every pair."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from grv.core.limits import Limits
from grv.core.values import Costs
from grv.replay.hindsight import least_checks_of, paid_checks_of
from grv.replay.orders import batches
from grv.testing import World
from grv.testing.strategies import worlds
from grv.testing.worlds import population
from grv.theory import partitions
from grv.theory.grouping import Difficulty, Group, best_groups
from grv.theory.hindsight import Pair
from grv.theory.partitions import RunTable, splits_of_runs, splits_of_sums
from support.examples import examples

ORDERS = 2

# Of different sizes, and half of them without any pass. Groups take them as they come: sorting by
# difficulty is the caller's business.
some_problems = st.lists(
    worlds(candidates=5, broken=False, keys=False).filter(len), min_size=1, max_size=5
)


@dataclass(frozen=True)
class Trials:
    """What the trials of each problem need and pay, at width 1 or for whole steps."""

    least: list[NDArray[np.int32]]
    paid: list[NDArray[np.int32]]
    costs: Costs
    whole: bool

    @classmethod
    def of(cls, problems: Sequence[World], costs: Costs, *, whole: bool) -> Trials:
        logged = [world.logged(str(number)) for number, world in enumerate(problems)]
        least, paid = [], []
        for batch in batches(logged, ORDERS):
            least.append(least_checks_of(batch))
            paid.append(paid_checks_of(batch, least[-1], Limits(width=None if whole else 1)))
        return cls(least, paid, costs, whole)

    @cached_property
    def difficulties(self) -> list[Difficulty]:
        return [Difficulty.of(*both) for both in zip(self.least, self.paid, strict=True)]

    def fare(self, start: int, stop: int, pair: Pair) -> tuple[int, float]:
        """Solved trials, and total cost a problem, of a group with this pair."""
        solved, checks = 0, 0
        for least, paid in zip(self.least[start:stop], self.paid[start:stop], strict=True):
            solved += int((least[:, pair.m - 1] <= pair.k).sum())
            checks += int(np.minimum(paid[:, pair.m - 1], pair.k).sum())
        return solved, (
            (stop - start) * pair.m * self.costs.candidate + checks * self.costs.verify / ORDERS
        )

    def best_of_run(self, start: int, stop: int) -> tuple[int, float]:
        """Most trials solved, then least cost, over all pairs that each problem has logged."""
        shortest = min(least.shape[1] for least in self.least[start:stop])
        pairs = [Pair(m, k) for m in range(1, shortest + 1) for k in range(1, m + 1)]
        fares = [self.fare(start, stop, pair) for pair in pairs]
        return min(fares, key=lambda fare: (-fare[0], fare[1]))

    def best_of_all(self, groups: int) -> tuple[int, float]:
        """The same over all partitions into this many runs of consecutive problems."""
        size = len(self.least)
        totals = []
        for cuts in itertools.combinations(range(1, size), groups - 1):
            runs = itertools.pairwise((0, *cuts, size))
            totals.append(added(self.best_of_run(*run) for run in runs))
        # Rounding must not decide between partitions that cost the same.
        most = max(solved for solved, _ in totals)
        return most, min(cost for solved, cost in totals if solved == most)

    def fare_of(self, groups: Sequence[Group]) -> tuple[int, float]:
        return added(self.fare(group.start, group.stop, group.pair) for group in groups)


def added(fares: Iterator[tuple[int, float]]) -> tuple[int, float]:
    solved, costs = zip(*fares, strict=True)
    return sum(solved), sum(costs)


@pytest.mark.parametrize("whole", [True, False])
@settings(max_examples=examples(60))
@given(
    problems=some_problems,
    costs=st.sampled_from([Costs(1, 10), Costs(1, 1), Costs(5, 1), Costs(0.1, 0.7)]),
)
def test_the_best_groups_are_those_of_an_exhaustive_search(
    whole: bool, problems: list[World], costs: Costs
) -> None:
    trials = Trials.of(problems, costs, whole=whole)
    counts = range(1, len(problems) + 1)

    found = best_groups(trials.difficulties, counts, costs, whole=whole)

    for count in counts:
        solved, cost = trials.fare_of(found[count])
        most, least = trials.best_of_all(count)
        assert solved == most
        assert cost == pytest.approx(least)


@settings(max_examples=examples(60))
@given(problems=some_problems, whole=st.booleans())
def test_groups_are_runs_of_neighbours_that_cover_every_problem(
    problems: list[World], whole: bool
) -> None:
    trials = Trials.of(problems, Costs(), whole=whole)

    for count, groups in best_groups(trials.difficulties, [1, 2, 9], Costs(), whole=whole).items():
        assert len(groups) == min(count, len(problems))
        edges = [0, *(group.stop for group in groups)]
        assert [group.start for group in groups] == edges[:-1]
        assert edges[-1] == len(problems)
        assert all(group.start < group.stop for group in groups)


@settings(max_examples=examples(60))
@given(problems=some_problems, whole=st.booleans())
def test_more_groups_never_solve_less_nor_cost_more_for_the_same(
    problems: list[World], whole: bool
) -> None:
    trials = Trials.of(problems, Costs(), whole=whole)
    counts = range(1, len(problems) + 1)

    found = best_groups(trials.difficulties, counts, Costs(), whole=whole)

    fares = [trials.fare_of(found[count]) for count in counts]
    for (solved, cost), (more_solved, more_cost) in itertools.pairwise(fares):
        assert more_solved >= solved
        assert more_solved > solved or more_cost <= cost + 1e-9


def test_two_classes_get_a_pair_each() -> None:
    hard = World.of("5- 4- 3- 2+")  # whatever the order, all four are needed to be sure
    easy = World.of("5+ 4+ 3+ 2+")
    trials = Trials.of([hard, hard, easy, easy], Costs(1, 10), whole=True)

    found = best_groups(trials.difficulties, [1, 2], Costs(1, 10), whole=True)

    assert [group.stop for group in found[1]] == [4]
    assert [(group.start, group.stop) for group in found[2]] == [(0, 2), (2, 4)]
    assert found[2][1].pair == Pair(1, 1)


def test_unsolvable_problems_get_the_cheapest_pair() -> None:
    trials = Trials.of([World.of("5- 4- 3-")], Costs(), whole=False)

    assert best_groups(trials.difficulties, [1], Costs(), whole=False) == {
        1: (Group(0, 1, Pair(1, 1)),)
    }


def test_a_group_asks_for_no_more_than_its_shortest_problem_has_logged() -> None:
    short, long = World.of("5-"), World.of("1- 1- 1- 1- 9+")
    trials = Trials.of([short, long], Costs(), whole=True)

    one, two = (
        best_groups(trials.difficulties, [count], Costs(), whole=True)[count] for count in (1, 2)
    )

    assert one[0].pair.m == 1
    assert two[1].pair.m <= 5
    assert trials.fare_of(two)[0] == ORDERS


@pytest.mark.parametrize("population_name", ["coding", "needles", "ties", "flats"])
@pytest.mark.parametrize("costs", [Costs(1, 10), Costs(0.1, 0.7)])
def test_sums_find_the_groups_that_pricing_every_run_finds(
    population_name: str, costs: Costs
) -> None:
    log = population(population_name, problems=90, candidates=24)
    ordered = sorted(log.problems, key=lambda problem: problem.pass_rate)
    least = [least_checks_of(batch) for batch in batches(ordered, ORDERS)]
    paid = [
        paid_checks_of(batch, each, Limits(width=4))
        for batch, each in zip(batches(ordered, ORDERS), least, strict=True)
    ]
    found = [Difficulty.of(*both) for both in zip(least, paid, strict=True)]
    table = RunTable([d.least for d in found], [d.paid for d in found], [d.first for d in found])
    assert table.is_sum

    by_runs = splits_of_runs(table, costs, 10, whole=False)
    by_sums = splits_of_sums(table, costs, 10)

    assert [starts(by_sums, count) for count in range(1, 11)] == [
        starts(by_runs, count) for count in range(1, 11)
    ]


def starts(splits: NDArray[np.intp], groups: int) -> list[int]:
    """Where the groups of the best partition start, last one first."""
    found = [splits.shape[1] - 1]
    for level in range(groups, 0, -1):
        found.append(int(splits[level, found[-1]]))
    return found


@pytest.mark.slow
def test_many_problems_are_grouped_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    log = population("coding", problems=partitions.FEW + 44, candidates=16)
    ordered = sorted(log.problems, key=lambda problem: problem.pass_rate)
    found = []
    for batch in batches(ordered, ORDERS):
        least = least_checks_of(batch)
        found.append(Difficulty.of(least, paid_checks_of(batch, least, Limits())))

    many = best_groups(found, [1, 2, 5, 10], Costs(1, 10), whole=False)
    monkeypatch.setattr(partitions, "FEW", len(found))

    assert many == best_groups(found, [1, 2, 5, 10], Costs(1, 10), whole=False)
