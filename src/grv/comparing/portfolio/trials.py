"""Trials of portfolios: what each problem cost in each order, by generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...core.limits import Limits
from ...learning.joint import PastAttempts, prior_of
from ...learning.joint_history import attempts_of_pools
from ...learning.online import SEVERAL_GENERATORS, window
from ...logs.log import Log, LoggedProblem
from ...policies.portfolio import (
    ByExpectedPasses,
    BySpending,
    Chooser,
    Member,
    Portfolio,
    root_shares,
)
from ...replay.portfolio import Entrant, orders_of, replayed_portfolio
from ..settings import ComparisonSettings


@dataclass(frozen=True, eq=False)
class GeneratorTrials:
    """The results of one row.

    Attributes:
        spent: `[problems, orders, generators]`.
        solved: `[problems, orders]`.
        answered: `[problems, orders, generators]`, the number of answers of each generator.
    """

    spent: NDArray[np.float64]
    solved: NDArray[np.bool_]
    answered: NDArray[np.int32]

    @cached_property
    def costs(self) -> NDArray[np.float64]:
        """`[problems]`: the mean cost over the orders."""
        mean: NDArray[np.float64] = self.spent.sum(axis=2).mean(axis=1)
        return mean


@dataclass(frozen=True)
class GeneratorsInOrder:
    """One generator to its end, then the next."""

    steers: ClassVar[bool] = False

    def choose(self, members: Sequence[Member]) -> Member:
        """The first search that is not over."""
        return members[0]


@dataclass(frozen=True)
class Trier:
    """Runs portfolios over the problems of a log, all in the same orders."""

    log: Log
    problems: Sequence[LoggedProblem]
    entrants: Mapping[str, Entrant]
    settings: ComparisonSettings

    def fixed(self, names: Sequence[str], chooser: Chooser) -> GeneratorTrials:
        """Every problem with these generators and this chooser."""
        entrants = {name: self.entrants[name] for name in names}
        result = self._empty()
        for index, problem in enumerate(self.problems):
            for number in range(self.settings.orders):
                self._keep(result, index, number, self._run(entrants, chooser, problem, number))
        return result

    def learned(self) -> GeneratorTrials:
        """Problems in a random order of arrival; each is decided by what the earlier ones showed.

        Only verdicts that the portfolio itself paid for count. The first problems are cold.
        """
        result = self._empty()
        for number in range(self.settings.orders):
            random = np.random.default_rng([self.settings.seed, number])
            arrival = OrderOfArrival(self.entrants)
            for index in random.permutation(len(self.problems)).tolist():
                problem = self.problems[index]
                done = self._run(self.entrants, arrival.chooser(), problem, number)
                pools = {member.name: member.search.pool for member in done.members}
                arrival.add(attempts_of_pools(problem.id, pools))
                self._keep(result, index, number, done)
        return result

    def fitted(self, prior_of: Callable[[int], Chooser]) -> GeneratorTrials:
        """Every problem with a chooser of its own, for priors that were fitted to others."""
        result = self._empty()
        for index, problem in enumerate(self.problems):
            for number in range(self.settings.orders):
                done = self._run(self.entrants, prior_of(index), problem, number)
                self._keep(result, index, number, done)
        return result

    def _run(
        self, entrants: Mapping[str, Entrant], chooser: Chooser, problem: LoggedProblem, number: int
    ) -> Portfolio:
        settings = self.settings
        return replayed_portfolio(
            entrants,
            chooser,
            problem,
            orders_of(problem, self.log.generators, number, settings.seed),
            Limits(value=settings.value, answers=settings.answers),
            keys=settings.keys,
        )

    def _empty(self) -> GeneratorTrials:
        shape = (len(self.problems), self.settings.orders)
        by_entrant = (*shape, len(self.entrants))
        return GeneratorTrials(
            np.zeros(by_entrant),
            np.zeros(shape, dtype=np.bool_),
            np.zeros(by_entrant, dtype=np.int32),
        )

    def _keep(self, found: GeneratorTrials, at: int, number: int, done: Portfolio) -> None:
        names = list(self.entrants)
        for name, bill in done.bills.items():
            found.spent[at, number, names.index(name)] = bill.total
        for name, _ in done.answers:
            found.answered[at, number, names.index(name)] += 1
        found.solved[at, number] = done.outcome is not None and done.outcome.solved


class OrderOfArrival:
    """Learns from problem to problem; see `Trier.learned`."""

    def __init__(self, entrants: Mapping[str, Entrant]) -> None:
        self._names = list(entrants)
        self._shares = root_shares({name: each.costs for name, each in entrants.items()})
        self._past: list[PastAttempts] = []
        self._fitted = 0
        self._chooser: Chooser = BySpending(self._shares)

    def chooser(self) -> Chooser:
        """The chooser for the next problem."""
        wanted = window(len(self._past), SEVERAL_GENERATORS)
        if wanted.stop > self._fitted:
            self._fitted = wanted.stop
            if (prior := prior_of(self._past[wanted], self._names)) is not None:
                self._chooser = ByExpectedPasses(prior, self._shares)
        return self._chooser

    def add(self, past: PastAttempts) -> None:
        """A problem has ended."""
        self._past.append(past)
