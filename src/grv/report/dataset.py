"""One log under study: what it is asked, and the comparisons that answer.

Costs come from `replay.compare` and from nowhere else, so that a report and `grv compare` agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..core.errors import UsageError
from ..core.values import Cascade, Costs, Latency, Measured
from ..experiments.compare import Unsolvable, compare
from ..experiments.comparison import Comparison, Resampled, Row
from ..experiments.rows import DEFAULT_ROWS, REFERENCE, PolicyRow, parse_row
from ..logs.log import Log, LoggedProblem
from ..policies import POLICIES
from ..replay.orders import OrderBatch, Scheme, batches
from ..replay.trials import Trials
from .statistics import interval

Progress = Callable[[int, int], None]

IN_ORDER = "verify-all"  # verifying in order of arrival, which needs no score
HINDSIGHT = "hindsight"
MATCHED = "uniform-matched"

RATIOS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)  # c_ver / c_gen, for curves
_CURVE = tuple(Costs(1.0, rho) for rho in RATIOS)
CHEAPER = (0.5, 0.25, 0.1)  # of a verification's price


def default_rows() -> tuple[str, ...]:
    """What a report compares where nobody says: the paper's rows, and every policy of ours."""
    return (
        *DEFAULT_ROWS,
        *(name for name in POLICIES if name not in DEFAULT_ROWS and _ready(name)),
    )


def _ready(name: str) -> bool:
    """Whether the policy needs no parameters; without a class, centered-star is verify-all."""
    if name == "centered-star":
        return False
    try:
        parse_row(name)
    except UsageError:
        return False
    return True


def runs_live(name: str) -> bool:
    """Whether the row is a policy that could be run live, in the accounting asked for."""
    try:
        kind = parse_row(name)
    except UsageError:
        return False
    return isinstance(kind, PolicyRow) and not kind.whole_steps


@dataclass(frozen=True)
class Request:
    """What a report is asked for: the options of `grv compare`, and a few more.

    Attributes:
        costs: the price lists; None is what the log says that each candidate cost.
        policies: the rows.
        orders: in how many orders each problem is tried.
        seed: what the orders are drawn from.
        order_scheme: how they are drawn.
        width: verifications in flight at once; None pays for whole steps.
        keys: whether candidates of one equivalence class are verified once.
        unsolvable: whether problems without any pass are part of the comparison.
        value: what a solved problem is worth: policies give up when it costs more.
        latency: how long rounds take; None where unknown.
        many_orders: in how many orders each problem's optimal pair is found.
    """

    costs: tuple[Costs | None, ...] = (Costs(),)
    policies: tuple[str, ...] = ()
    orders: int = 10
    seed: int = 0
    order_scheme: Scheme = "stable"
    width: int | None = 1
    keys: bool = False
    unsolvable: Unsolvable = "exclude"
    value: float = math.inf
    latency: Latency | None = None
    many_orders: int = 100

    def __post_init__(self) -> None:
        if not self.costs:
            raise UsageError("a report needs at least one price list")
        names = [price_name(costs) for costs in self.costs]
        if len(set(names)) < len(names):
            raise UsageError(f"a price list is given twice: {', '.join(names)}")
        if self.many_orders < 1:
            raise UsageError(f"there must be at least 1 order, not {self.many_orders}")
        for text in self.policies:
            parse_row(text)

    @property
    def rows(self) -> tuple[str, ...]:
        """The rows asked for, or those of every report."""
        return self.policies or default_rows()

    @property
    def live(self) -> tuple[str, ...]:
        """The rows that could be run live."""
        return tuple(name for name in dict.fromkeys(self.rows) if runs_live(name))

    def compare(
        self,
        rows: Sequence[str],
        log: Log,
        costs: Sequence[Costs],
        progress: Progress | None = None,
        *,
        cascade: Cascade | None = None,
    ) -> Comparison:
        """These rows at these prices, in the manner asked for."""
        return compare(
            rows,
            log,
            costs,
            orders=self.orders,
            seed=self.seed,
            order_scheme=self.order_scheme,
            width=self.width,
            keys=self.keys,
            unsolvable=self.unsolvable,
            value=self.value,
            latency=self.latency,
            cascade=cascade,
            progress=progress,
        )


def price_name(costs: Costs | None) -> str:
    """A price list as it is asked for; of measured ones no first guess, as logs have their own."""
    if costs is None or isinstance(costs, Measured):
        return "measured"
    return f"{costs.candidate:g},{costs.verify:g}"


@dataclass(frozen=True, eq=False)
class Tried:
    """A row of a comparison, with its trials."""

    row: Row
    trials: Trials

    @cached_property
    def spent(self) -> NDArray[np.float64]:
        """`[problems, orders]`: what each trial cost."""
        return self.trials.costs(self.row.costs)

    @cached_property
    def by_problem(self) -> NDArray[np.float64]:
        """`[problems]`: the mean cost."""
        return np.asarray(self.spent.mean(axis=1))


class Study:
    """One log, and the comparisons made on it."""

    def __init__(
        self,
        name: str,
        log: Log,
        request: Request,
        progress: Stages,
        cascade: Cascade | None = None,
    ) -> None:
        self.name, self.log, self.request, self.progress = name, log, request, progress
        self.cascade = cascade
        self._totals: dict[tuple[Costs, str], NDArray[np.float64]] = {}
        self.costs = tuple(log.measured if each is None else each for each in request.costs)
        for costs in self.costs:
            if costs.of(1, 1) > request.value:
                raise UsageError(
                    f"--value {request.value:g}: at {price_name(costs)} nothing is worth trying, as"
                    f" one candidate, generated and verified, costs {costs.of(1, 1):.3g}"
                )

    def compare(
        self,
        rows: Sequence[str],
        costs: Sequence[Costs],
        progress: Progress,
        log: Log | None = None,
    ) -> Comparison:
        """These rows at these prices, on the log or on another one like it."""
        return self.request.compare(rows, log or self.log, costs, progress, cascade=self.cascade)

    @property
    def problems(self) -> tuple[LoggedProblem, ...]:
        """The problems compared."""
        everyone = self.request.unsolvable == "include"
        return self.log.problems if everyone else self.log.solvable

    @cached_property
    def main(self) -> Comparison:
        """What was asked: equal to what `grv compare` gives with the same options."""
        with self.progress.stage() as tell:
            return self.compare(self.request.rows, self.costs, tell)

    @property
    def curves(self) -> tuple[str, ...]:
        """The rows of the tables over many prices: policies, the reference, and hindsight."""
        return tuple(dict.fromkeys([HINDSIGHT, REFERENCE, IN_ORDER, *self.request.live]))

    @property
    def plain_costs(self) -> tuple[Costs, ...]:
        """The price lists that can be scaled: those that are not measured."""
        return tuple(costs for costs in self.costs if type(costs) is Costs)

    @property
    def range_of_costs(self) -> list[Costs]:
        """One price list for each cost ratio tried on purpose, cheap verifiers first.

        Without those at which an answer is worth less than the first attempt at it.
        """
        tried = [costs for costs in _CURVE if costs.of(1, 1) <= self.request.value]
        found = {costs.ratio: costs for costs in (*tried, *self.plain_costs)}
        return [found[ratio] for ratio in sorted(found)]

    @cached_property
    def wide(self) -> Comparison:
        """The rows of curves at the prices that `main` has not."""
        cheaper = [
            Costs(costs.candidate, costs.verify * price)
            for costs in self.plain_costs
            for price in CHEAPER
        ]
        prices = dict.fromkeys([*self.range_of_costs, *cheaper, *self.costs])
        if set(self.curves) <= set(self.request.rows):  # then `main` has those asked for
            prices = dict.fromkeys(c for c in prices if c not in self.costs)
        if not prices:
            return self.main
        with self.progress.stage() as tell:
            return self.compare(self.curves, list(prices), tell)

    @cached_property
    def tried(self) -> dict[tuple[Costs, str], Tried]:
        """Whatever was tried, by price list and row."""
        found: dict[tuple[Costs, str], Tried] = {}
        for comparison in (self.wide, self.main):
            for row, trials in zip(comparison.rows, comparison.trials, strict=True):
                found[row.costs, row.policy] = Tried(row, trials)
        return found

    @cached_property
    def resampled(self) -> Resampled:
        """The resamples of the problems compared: those that `compare` uses."""
        return Resampled(len(self.problems), self.request.seed)

    def totals(self, tried: Tried) -> NDArray[np.float64]:
        """`[resamples]`: what the row costs in each resample of the problems."""
        place = tried.row.costs, tried.row.policy
        if place not in self._totals:
            self._totals[place] = self.resampled.totals(tried.by_problem)
        return self._totals[place]

    def interval(self, above: Tried, below: Tried) -> tuple[float, float] | None:
        """Of the ratio of two rows' costs; as `Resampled.ratio` has it."""
        if len(self.problems) < 2:
            return None
        return interval(self.totals(above) / self.totals(below))

    def batches(self, orders: int | None = None) -> Iterator[OrderBatch]:
        """The problems compared, in the orders of the comparison, or in so many."""
        asked = self.request
        return batches(
            self.problems,
            orders or asked.orders,
            seed=asked.seed,
            scheme=asked.order_scheme,
            keyed=asked.keys,
        )


class Stages:
    """Progress over several stages of about equal length."""

    def __init__(self, stages: int, progress: Progress | None) -> None:
        self._stages, self._done, self._progress = max(stages, 1), 0, progress

    def stage(self) -> _Stage:
        """The next stage; its context gives what to tell progress to."""
        return _Stage(self)

    def tell(self, share: float) -> None:
        """How much of the present stage is done."""
        if self._progress is not None:
            self._progress(round(1000 * (self._done + share)), 1000 * self._stages)

    def end(self) -> None:
        """The present stage is over."""
        self._done = min(self._done + 1, self._stages)
        self.tell(0.0)


class _Stage:
    def __init__(self, stages: Stages) -> None:
        self._stages = stages

    def __enter__(self) -> Progress:
        return lambda done, total: self._stages.tell(done / max(total, 1))

    def __exit__(self, *_: object) -> None:
        self._stages.end()
