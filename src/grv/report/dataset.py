"""One log, what a report asks of it, and the comparisons that answer.

All costs come from `comparing.compare`, so a report and `grv compare` agree.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..comparing.bounds import has_bounds
from ..comparing.compare import compare
from ..comparing.comparison import Comparison, Row
from ..comparing.conclusion import advice
from ..comparing.rows import REFERENCE, baseline_of, kind_of, learning_of
from ..comparing.significance import Resampled
from ..core.errors import UsageError
from ..core.values import Cascade, Costs
from ..logs.log import Log, LoggedProblem
from ..parallel import divided, in_parts
from ..replay.orders import OrderBatch, Orders
from ..replay.trials import Trials
from .request import ReportRequest, price_name
from .statistics import interval

Progress = Callable[[int, int], None]
T = TypeVar("T")

IN_ORDER = "verify-all"  # verifies in order of arrival, without a score
HINDSIGHT = "hindsight"
MATCHED = "uniform-matched"

RATIOS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)  # c_ver / c_gen, for curves
_CURVE = tuple(Costs(1.0, rho) for rho in RATIOS)
_PART = 160_000  # candidates, times orders, of the problems that are visited together
CHEAPER = (0.5, 0.25, 0.1)  # of a verification's price


def with_cheaper_verifier(costs: Costs, price: float) -> Costs:
    """The price list if verifications, failed or not, cost this fraction of what they do."""
    return Costs(costs.candidate, costs.verify * price, failure=costs.failure * price)


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


class Dataset:
    """One log, and the comparisons made on it."""

    def __init__(
        self,
        name: str,
        log: Log,
        request: ReportRequest,
        progress: Stages,
        cascade: Cascade | None = None,
        bounded: Log | None = None,
    ) -> None:
        log.require_labels()
        self.bounded = bounded
        self.name = name
        self.log = log
        self.request = request
        self.progress = progress
        self.cascade = cascade
        self._totals: dict[tuple[Costs, str], NDArray[np.float64]] = {}
        self._once: dict[Callable[[Dataset], Any], Any] = {}
        self.costs = tuple(log.measured if each is None else each for each in request.costs)
        for costs in self.costs:
            if costs.of(1, 1) > request.value:
                raise UsageError(
                    f"--value {request.value:g}: at {price_name(costs)} nothing is worth trying,"
                    f" because generating and verifying one candidate costs {costs.of(1, 1):.3g}"
                )

    def compare(
        self,
        rows: Sequence[str],
        costs: Sequence[Costs],
        progress: Progress,
        log: Log | None = None,
    ) -> Comparison:
        """Compare rows at some price lists, on this log or on a changed copy of it."""
        where = log or self.log
        how = dataclasses.replace(
            self.request, total_budget=None
        )  # batches are a part of their own
        if self.curve_baseline not in rows:
            how = dataclasses.replace(how, baseline=None)
        return compare(rows, where, costs, how, cascade=self.cascade, progress=progress)

    @property
    def problems(self) -> tuple[LoggedProblem, ...]:
        """The problems compared."""
        include = self.request.unsolvable == "include"
        return self.log.problems if include else self.log.solvable

    @property
    def scored(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The scores and verdicts of all candidates that have a score."""
        scores = np.concatenate([problem.scores for problem in self.log.problems])
        passed = np.concatenate([problem.passed for problem in self.log.problems])
        there = np.isfinite(scores)
        return scores[there], passed[there]

    @property
    def named_costs(self) -> tuple[tuple[Costs, str], ...]:
        """The price lists with their names."""
        return tuple((costs, price_name(costs)) for costs in self.costs)

    @property
    def cold_rows(self) -> tuple[str, ...]:
        """The live policies for tables over many prices or scores.

        A policy that learns would learn anew for each of them, which takes most of the time of a
        report. So it is left out there, unless there is no other.
        """
        live = self.request.live
        return tuple(name for name in live if learning_of(kind_of(name)) is None) or live

    @property
    def ranking(self) -> tuple[str, ...]:
        """Those of them that use the score."""
        return tuple(name for name in self.cold_rows if name != IN_ORDER)

    @property
    def no_ranking(self) -> str:
        """The note for a table that needs such a policy."""
        return f"{self.name}: none of the policies uses the score and can run live."

    @property
    def cascade_note(self) -> str:
        """The note for a table about the first score only; empty without a cascade."""
        if self.cascade is None:
            return ""
        return (
            f"{self.name}: this is about {self.log.score}. The costs of policies include the effect"
            f" of {self.log.second} on the best {self.cascade.top}."
        )

    def once(self, compute: Callable[[Dataset], T]) -> T:
        """The result of `compute` for this log, computed once for all parts that need it."""
        if compute not in self._once:
            self._once[compute] = compute(self)
        found: T = self._once[compute]
        return found

    @cached_property
    def main(self) -> Comparison:
        """The comparison asked for: equal to `grv compare` with the same options."""
        with self.progress.stage() as tell:
            return self.compare(self.request.rows, self.costs, tell)

    @cached_property
    def advice(self) -> dict[str, str]:
        """Which policy to use, by price list: what `grv compare` says, too.

        If labels are missing, it is said about all candidates, not about those with a label.
        """
        comparison = self.main
        names = [name for _, name in self.named_costs]
        if self.bounded is not None:
            rows = [name for name in self.request.live if has_bounds(kind_of(name), self.request)]
            how = dataclasses.replace(self.request, baseline=None, total_budget=None)
            if not rows or not self.plain_costs:
                return {}
            comparison = compare(rows, self.bounded, self.plain_costs, how, cascade=self.cascade)
        return {name: " ".join(advice(comparison, name)) for name in names}

    @property
    def curves(self) -> tuple[str, ...]:
        """The rows of tables over many prices: hindsight, the reference, and live policies."""
        needed = [HINDSIGHT, REFERENCE, IN_ORDER, self.curve_baseline, *self.cold_rows]
        return tuple(dict.fromkeys(needed))

    @property
    def curve_baseline(self) -> str:
        """The row that ratios over many prices are relative to."""
        wanted = self.request.baseline
        return REFERENCE if wanted is None else str(baseline_of(self.request.rows, wanted))

    @property
    def plain_costs(self) -> tuple[Costs, ...]:
        """The price lists that are not measured, and so can be scaled."""
        return tuple(costs for costs in self.costs if type(costs) is Costs)

    @property
    def range_of_costs(self) -> list[Costs]:
        """One price list per cost ratio, cheap verifiers first.

        Price lists at which one attempt costs more than an answer is worth are left out.
        """
        tried = [costs for costs in _CURVE if costs.of(1, 1) <= self.request.value]
        own = [costs for costs in self.plain_costs if not costs.has_failure]
        found = {costs.ratio: costs for costs in (*tried, *own)}
        return [found[ratio] for ratio in sorted(found)]

    @cached_property
    def wide(self) -> Comparison:
        """The rows of `curves` at the price lists that `main` does not have."""
        cheaper = [
            with_cheaper_verifier(costs, price) for costs in self.plain_costs for price in CHEAPER
        ]
        prices = dict.fromkeys([*self.range_of_costs, *cheaper, *self.costs])
        if set(self.curves) <= set(self.request.rows):  # then `main` has them
            prices = dict.fromkeys(c for c in prices if c not in self.costs)
        if not prices:
            return self.main
        with self.progress.stage() as tell:
            return self.compare(self.curves, list(prices), tell)

    @cached_property
    def tried(self) -> dict[tuple[Costs, str], Tried]:
        """All results, by price list and row."""
        found: dict[tuple[Costs, str], Tried] = {}
        for comparison in (self.wide, self.main):
            for row, trials in zip(comparison.rows, comparison.trials, strict=True):
                found[row.costs, row.policy] = Tried(row, trials)
        return found

    @cached_property
    def resampled(self) -> Resampled:
        """The resamples of the problems, as `compare` draws them."""
        return Resampled(len(self.problems), self.request.seed)

    def totals(self, tried: Tried) -> NDArray[np.float64]:
        """`[resamples]`: the total cost of the row in each resample of the problems."""
        place = tried.row.costs, tried.row.policy
        if place not in self._totals:
            self._totals[place] = self.resampled.totals(tried.by_problem)
        return self._totals[place]

    def interval(self, above: Tried, below: Tried) -> tuple[float, float] | None:
        """The 95 % interval of the ratio of two rows' costs; None for one problem."""
        if len(self.problems) < 2:
            return None
        return interval(self.totals(above) / self.totals(below))

    def visit(
        self,
        work: Callable[[OrderBatch], T],
        *,
        orders: int | None = None,
        of: Sequence[LoggedProblem] | None = None,
        progress: Progress = lambda done, total: None,
    ) -> Iterator[T]:
        """Yield the results of `work` for each problem; processes share the problems.

        Args:
            work: what to do with the orders of a problem.
            orders: how many, if not as many as in the comparison.
            of: the problems, if not those compared.
            progress: called with the number of problems done and the total.
        """
        asked = self.request
        problems = self.problems if of is None else of
        count = orders or asked.orders
        drawn = Orders(
            problems, count, seed=asked.seed, scheme=asked.order_scheme, keyed=asked.keys
        )
        sizes = [len(problem) for problem in drawn.problems]
        parts = divided(sizes, max(1, _PART // count))

        def visited(number: int) -> list[T]:
            return [work(batch) for batch in drawn.batches(*parts[number])]

        done = 0
        for results in in_parts(visited, len(parts), asked.jobs, count * sum(sizes)):
            for result in results:
                yield result
                done += 1
                progress(done, len(problems))


class Stages:
    """Progress over several stages of about equal length."""

    def __init__(self, stages: int, progress: Progress | None) -> None:
        self._stages = max(stages, 1)
        self._done = 0
        self._progress = progress

    @contextmanager
    def stage(self) -> Iterator[Progress]:
        """The next stage: gives the function to report its progress to."""
        yield lambda done, total: self._tell(done / max(total, 1))
        self._done = min(self._done + 1, self._stages)
        self._tell(0.0)

    def _tell(self, share: float) -> None:
        if self._progress is not None:
            self._progress(round(1000 * (self._done + share)), 1000 * self._stages)
