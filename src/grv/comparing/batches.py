"""One budget for all problems of a log: how many each schedule solves.

A batch has all problems of the log, unsolvable ones too: a run does not know which these are. Each
repetition takes the problems in another random order, and of each problem the next order of its
candidates. A row is the mean share of the solvable problems that are solved.

Intervals come from resampled batches: as many problems, drawn with replacement, in a random order,
each with a random order of its candidates. Rows that learn from one problem to the next are not
replayed for each resample: their intervals resample the problems of a repetition drawn at random.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..core.errors import LogError, UsageError
from ..core.limits import Limits
from ..core.search import Policy, Search
from ..core.values import Costs
from ..logs.log import Log
from ..parallel import divided, in_parts
from ..policies import DEFAULT, Learning, VerifyAll
from ..replay.batch import Course, CourseSteps, course_of, run_batch, sorted_steps
from ..replay.orders import OrderBatch, Orders
from ..schedules import CheapestPredicted, Rule
from .allocations import (
    KNOWING,
    PAPERS,
    Allocation,
    BatchProblem,
    ByRule,
    Keyed,
    named_allocation,
)
from .arrivals import arrival
from .batch_row import BatchRow
from .learning_batch import LearningBatch
from .rows import PolicyRow, RowKind
from .settings import ComparisonSettings, TotalBudget

RESAMPLES = 200
_RESAMPLE = 21  # distinguishes what is drawn for resampled batches
_PART = 4096  # candidates of the problems that are replayed together

Floats = NDArray[np.float64]


def batch_rows(
    log: Log,
    rows: Mapping[int, tuple[str, RowKind]],
    prices: Sequence[Costs],
    settings: ComparisonSettings,
    limits: Limits,
) -> tuple[BatchRow, ...]:
    """The rows of all schedules, policies and budgets, price list by price list."""
    if settings.total_budget is None:
        return ()
    log.require_labels()
    policies = {
        name: kind
        for name, kind in rows.values()
        if isinstance(kind, PolicyRow) and not kind.whole_steps
    }
    if not policies:
        raise UsageError("--total-budget needs at least one row that is a policy")
    allocations = dict(named_allocation(name) for name in settings.schedule.names) | KNOWING
    is_predicted = any(problem.expected is not None for problem in log.problems)
    learns = any(isinstance(kind.policy, Learning) for kind in policies.values())
    if any(map(_predicts, allocations.values())) and not (is_predicted or learns):
        why = (
            "cheapest-predicted needs a column 'expected_cost', and this log has none; without it,"
            " only --policy learning predicts"
        )
        raise LogError(why, path=log.path)
    made: list[BatchRow] = []
    for costs in prices:
        batches = _Batches(log, costs, settings, limits)
        budgets = [batches.budget(each) for each in settings.total_budget.budgets]
        for schedule, allocation in allocations.items():
            if schedule in PAPERS:
                made += batches.rows(schedule, allocation, "verify-all", VerifyAll(), budgets)
                continue
            for name, kind in policies.items():
                if isinstance(kind.policy, Learning):
                    if isinstance(allocation, ByRule):
                        rule = allocation.rule
                        made += batches.learning_rows(schedule, rule, name, kind.policy, budgets)
                elif is_predicted or not _predicts(allocation):
                    made += batches.rows(schedule, allocation, name, kind.policy, budgets)
    return tuple(made)


def _predicts(allocation: Allocation) -> bool:
    """Whether the order depends on predictions of the log, unless the policy makes them."""
    return isinstance(allocation, ByRule) and isinstance(allocation.rule, CheapestPredicted)


class _Batches:
    """The batches of a log at one price list."""

    def __init__(
        self, log: Log, costs: Costs, settings: ComparisonSettings, limits: Limits
    ) -> None:
        self.log = log
        self.costs = costs
        self.settings = settings
        self.limits = limits
        self.orders = Orders(
            log.problems,
            settings.orders,
            seed=settings.seed,
            scheme=settings.order_scheme,
            keyed=settings.keys,
        )
        self.solvable = np.array([problem.solvable for problem in self.orders.problems])
        self._courses: dict[str, list[list[Course]]] = {}

    def courses(self, policy: Policy) -> list[list[Course]]:
        """The searches of a policy, for each problem in each order."""
        name = repr(policy)  # it has all parameters
        if name not in self._courses:
            sizes = [len(problem) for problem in self.orders.problems]
            parts = divided(sizes, _PART)
            units = sum(sizes) * self.settings.orders
            results = in_parts(
                lambda number: self._replayed(policy, *parts[number]),
                len(parts),
                self.settings.jobs,
                units,
            )
            self._courses[name] = [courses for part in results for courses in part]
        return self._courses[name]

    def _replayed(self, policy: Policy, start: int, stop: int) -> list[list[Course]]:
        return [self._courses_of(policy, batch) for batch in self.orders.batches(start, stop)]

    def _courses_of(self, policy: Policy, batch: OrderBatch) -> list[Course]:
        limits = self.limits.of(batch.problem.id)
        return [
            course_of(Search(policy, self.costs, limits), batch.problem, order, keys=batch.keyed)
            for order in batch.orders.tolist()
        ]

    @cached_property
    def whole(self) -> float:
        """The mean cost at which the default policy solves all solvable problems."""
        spent = [
            np.mean([course.cost for course in courses])
            for courses, solvable in zip(self.courses(DEFAULT), self.solvable, strict=True)
            if solvable
        ]
        return float(math.fsum(map(float, spent)))

    def budget(self, wanted: TotalBudget) -> tuple[float, float]:
        """The amount and the share of a budget."""
        if wanted.is_share:
            return wanted.amount * self.whole, wanted.amount
        return wanted.amount, wanted.amount / self.whole

    @cached_property
    def _ranks(self) -> list[list[Floats]]:
        """The scores of each problem in each order, as ranks from 0 to 1 among all scores."""
        every = np.sort(np.concatenate([problem.scores for problem in self.orders.problems]))
        return [
            [
                np.searchsorted(every, batch.problem.scores[order], side="right") / len(every)
                for order in batch.orders
            ]
            for batch in self.orders.batches()
        ]

    def _members(self, policy: Policy) -> list[list[BatchProblem]]:
        """Each problem in each order, as one of a batch."""
        known = [p.expected for p in self.orders.problems if p.expected is not None]
        usual = math.fsum(known) / len(known) if known else None
        members = []
        places = zip(self.courses(policy), self.orders.problems, self._ranks, strict=True)
        for courses, problem, ranks in places:
            mean = float(np.mean([course.solving_cost for course in courses]))
            expected = usual if problem.expected is None else problem.expected
            members.append(
                [
                    BatchProblem(course, mean, expected, scores)
                    for course, scores in zip(courses, ranks, strict=True)
                ]
            )
        return members

    def rows(
        self,
        schedule: str,
        allocation: Allocation,
        name: str,
        policy: Policy,
        budgets: Sequence[tuple[float, float]],
    ) -> Iterator[BatchRow]:
        """The rows of one schedule and policy."""
        members = self._members(policy)
        amounts = [amount for amount, _ in budgets]
        keys: list[list[Floats]] | None = None
        if isinstance(allocation, Keyed):
            keys = [[allocation.keys(member) for member in every] for every in members]

        def shares(places: Sequence[int], orders: Sequence[int]) -> Floats:
            """The share solved with each budget, of a batch in this order."""
            batch = [members[place][order] for place, order in zip(places, orders, strict=True)]
            if keys is not None:
                own = [keys[place][order] for place, order in zip(places, orders, strict=True)]
                steps = sorted_steps([member.course for member in batch], own)
                solved = [len(found) for found in steps.solved(amounts)]
            else:
                solved = [_solved(allocation, batch, amount) for amount in amounts]
            return np.array(solved) / max(1, int(self.solvable[list(places)].sum()))

        size = len(members)
        found = []
        for repetition in range(self.settings.orders):
            places = arrival(size, repetition, self.settings.seed).tolist()
            found.append(shares(places, [repetition] * size))
        drawn = []
        for number in range(RESAMPLES):
            generator = np.random.default_rng([self.settings.seed, _RESAMPLE, number])
            some = generator.integers(size, size=size).tolist()
            orders = generator.integers(self.settings.orders, size=size).tolist()
            if self.solvable[some].any():
                drawn.append(shares(some, orders))
        means = np.mean(found, axis=0)
        low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
        for at, (amount, share) in enumerate(budgets):
            yield self._row(schedule, name, amount, share, means[at], low[at], high[at])

    def learning_rows(
        self,
        schedule: str,
        rule: Rule,
        name: str,
        policy: Learning,
        budgets: Sequence[tuple[float, float]],
    ) -> Iterator[BatchRow]:
        """The rows of a policy that learns from one problem to the next."""
        batch = LearningBatch(
            self.orders, self.log.score, self.costs, self.limits, seed=self.settings.seed
        )
        amounts = [amount for amount, _ in budgets]
        units = sum(map(len, self.orders.problems)) * self.settings.orders
        results = in_parts(
            lambda repetition: batch.solved(policy, rule, repetition, amounts),
            self.settings.orders,
            self.settings.jobs,
            units,
        )
        solved = np.array(list(results))  # [repetitions, budgets, problems]
        size = len(self.solvable)
        drawn = []
        for number in range(RESAMPLES):
            generator = np.random.default_rng([self.settings.seed, _RESAMPLE, number])
            some = generator.integers(size, size=size)
            repetition = generator.integers(self.settings.orders)
            if self.solvable[some].any():
                found = solved[repetition][:, some].sum(axis=1)
                drawn.append(found / self.solvable[some].sum())
        means = solved.mean(axis=0).sum(axis=1) / self.solvable.sum()
        low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
        for at, (amount, share) in enumerate(budgets):
            yield self._row(schedule, name, amount, share, means[at], low[at], high[at])

    def _row(
        self,
        schedule: str,
        policy: str,
        budget: float,
        share: float,
        solved: float,
        low: float,
        high: float,
    ) -> BatchRow:
        return BatchRow(
            schedule=schedule,
            policy=policy,
            costs=self.costs,
            budget=budget,
            share=share,
            problems=len(self.solvable),
            solvable=int(self.solvable.sum()),
            solved=float(solved),
            low=float(low),
            high=float(high),
        )


def _solved(allocation: Allocation, batch: Sequence[BatchProblem], budget: float) -> int:
    """How many problems are solved, by the definition."""
    assert not isinstance(allocation, Keyed)
    schedule = allocation.begin(batch, budget)
    expected = [member.expected for member in batch]
    searches = [CourseSteps(member.course) for member in batch]
    return int(run_batch(schedule, searches, budget, expected=expected).solved.sum())
