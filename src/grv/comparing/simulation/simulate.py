"""Runs policies on synthetic populations with known laws; costs are relative to the optimum.

A problem's law is drawn from the population, and candidates are drawn from the law: an infinite
stream for each trial, or a finite pool that is tried in several orders. Every policy sees the same
candidates.
"""

from __future__ import annotations

import dataclasses
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.errors import UsageError
from ...core.limits import Limits
from ...core.values import Costs
from ...files import write_whole
from ...parallel import in_parts
from ...parsing import costs_record, list_of_prices, written_costs
from ...policies import Adaptive
from ...replay.kernels.dispatch import trials
from ...replay.orders import batches
from ...text import aligned
from ..rows import DEFAULT_ROW, PolicyRow, learning_of, parse_row, row_name
from ..settings import SimulationSize
from ..significance import Resampled
from .streams import MOST, CandidateLaw, CandidateStream, Population, StreamResult, draw

FORMAT = 1
DEFAULT_POLICIES = (
    DEFAULT_ROW,
    "balanced",
    "alternate",
    "hedged",
    "adaptive",
    "adaptive-all",
    "verify-all",
)
REFERENCE = PolicyRow(Adaptive(), whole_steps=True)  # adaptive-all

PART = 40_000  # candidates, times orders, of the problems that are simulated together
_STREAM = 256  # the candidates of a stream, to divide the work

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class SimulatedRow:
    """One policy on one population at one price list.

    Attributes:
        population: the population's name.
        policy: the policy's name in the request.
        costs: the price list.
        cost: the mean cost over trials.
        generated: the mean number of candidates generated.
        verified: the mean number of verifications.
        solved: the share of trials that found a pass.
        ended: the share of trials that reached the last candidate there is.
        optimum: the mean of J* over problems.
        of_optimum: a problem's mean cost over its own J*, averaged over problems.
        of_optimum_interval: the 95 % interval, by resampling problems.
        of_adaptive_all: the mean cost over that of adaptive if it pays for whole shells.
        of_adaptive_all_interval: the 95 % interval, by resampling problems.
    """

    population: str
    policy: str
    costs: Costs
    cost: float
    generated: float
    verified: float
    solved: float
    ended: float
    optimum: float
    of_optimum: float
    of_optimum_interval: tuple[float, float] | None
    of_adaptive_all: float
    of_adaptive_all_interval: tuple[float, float] | None

    def to_json(self) -> dict[str, Any]:
        """The record in the file of a simulation."""
        return {**dataclasses.asdict(self), "costs": costs_record(self.costs)}


@dataclass(frozen=True)
class Simulation:
    """Rows, population by population, price list by price list, in the order of the request."""

    settings: Mapping[str, Any]
    rows: tuple[SimulatedRow, ...]

    def to_json(self) -> dict[str, Any]:
        """The numbers, as plain data."""
        rows = [row.to_json() for row in self.rows]
        return {"format": FORMAT, "settings": dict(self.settings), "rows": rows}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the numbers as JSON; the file is replaced atomically."""
        write_whole(path, json.dumps(self.to_json(), indent=1) + "\n")

    def table(self) -> str:
        """The rows as plain text, for people."""
        head = (
            "population",
            "policy",
            "costs",
            "generated",
            "verified",
            "cost",
            "of J*",
            "95 %",
            "of adaptive-all",
            "95 %",
            "solved",
        )
        endless = self.settings["candidates"] == "endless"
        return aligned(head, [_cells(row, endless=endless) for row in self.rows], left=3)


def _cells(row: SimulatedRow, *, endless: bool) -> tuple[str, ...]:
    at_least = "> " if endless and row.ended else ""  # some searches were cut off
    return (
        row.population,
        row.policy,
        written_costs(row.costs),
        f"{row.generated:.1f}",
        f"{row.verified:.1f}",
        f"{at_least}{row.cost:.1f}",
        f"{at_least}{_figure(row.of_optimum)}",
        _interval(row.of_optimum_interval),
        f"x{_figure(row.of_adaptive_all)}",
        _interval(row.of_adaptive_all_interval),
        f"{row.solved:.3f}",
    )


def _interval(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else "-".join(map(_figure, ends))


def _figure(ratio: float) -> str:
    """With two decimals; small numbers with two digits, large ones without decimals."""
    return f"{ratio:.2g}" if ratio < 0.095 else f"{ratio:.2f}" if ratio < 999.5 else f"{ratio:.0f}"


def __getattr__(name: str) -> Any:
    """The earlier name of `SimulationSize`, for one version."""
    if name != "Plan":
        raise AttributeError(name)
    warnings.warn("Plan is now SimulationSize", DeprecationWarning, stacklevel=2)
    return SimulationSize


def simulate(
    populations: Mapping[str, Population],
    policies: Sequence[str] = DEFAULT_POLICIES,
    costs: Costs | Sequence[Costs] = Costs(),  # noqa: B008 - frozen
    *,
    plan: SimulationSize = SimulationSize(),  # noqa: B008 - frozen
    progress: Progress | None = None,
) -> Simulation:
    """Run every policy at every price list, on the same problems of every population.

    Args:
        populations: by name; `grv.comparing.POPULATIONS` has the built-in ones.
        policies: specifications; not the baselines of `compare`, which use logged verdicts.
        costs: one price list, or several.
        plan: how much is drawn, and from which seed.
        progress: called with the number of problems done and the total.
    """
    rows = {row_name(text): _policy_row(text) for text in policies}
    prices = (costs,) if isinstance(costs, Costs) else tuple(costs)
    if not (rows and prices and populations):
        raise UsageError("a simulation needs a population, a policy and a price list")
    simulated: list[SimulatedRow] = []
    tried = _tried(tuple(rows.values()))
    results = _results(populations, tried, prices, plan)
    for index, name in enumerate(populations):
        tables = [_TrialTable(price, tuple(rows.values()), tried) for price in prices]
        for number in range(1, plan.problems + 1):
            for table, result in zip(tables, next(results), strict=True):
                table.add(result)
            if progress is not None:
                progress(index * plan.problems + number, len(populations) * plan.problems)
        for table in tables:
            simulated += table.rows(name, tuple(rows), plan)
    next(results, None)  # so that the processes end
    settings = {
        "populations": list(populations),
        "policies": list(rows),
        "costs": [list_of_prices(price) for price in prices],
        **plan.to_json(),
        **({"most": MOST} if plan.candidates is None else {}),
    }
    return Simulation(settings, tuple(simulated))


def _policy_row(text: str) -> PolicyRow:
    row = parse_row(text)
    if not isinstance(row, PolicyRow):
        raise UsageError(f"{text.strip()} needs the verdicts of a log: use it with grv compare")
    if learning_of(row) is not None:
        raise UsageError(
            f"{text.strip()} learns from one problem to the next, and simulated problems are"
            " independent: use it with grv compare"
        )
    return row


class _CandidatePool:
    """A problem with a pool of candidates, tried in several orders."""

    def __init__(
        self, population: Population, name: str, number: int, plan: SimulationSize
    ) -> None:
        assert plan.candidates is not None
        id = f"{name}-{number:04}"
        problem, self.law = draw(population, id, plan.candidates, (plan.seed, number))
        (self._batch,) = batches([problem], plan.orders, seed=plan.seed)

    def run(self, row: PolicyRow, costs: Costs, width: int | None) -> list[StreamResult]:
        """Run each trial of a policy."""
        in_flight = None if row.whole_steps else width
        result = trials(row.policy, self._batch, costs, Limits(width=in_flight))
        ended = result.generated == len(self._batch.problem)
        return [
            StreamResult(*each)
            for each in zip(
                result.solved.tolist(),
                result.generated.tolist(),
                result.verified.tolist(),
                result.costs(costs).tolist(),
                ended.tolist(),
                strict=True,
            )
        ]


class _Endless:
    """A problem with an infinite stream of candidates for each trial."""

    def __init__(self, population: Population, number: int, plan: SimulationSize) -> None:
        self.law: CandidateLaw = population.law(np.random.default_rng((plan.seed, number)))
        seeds = ((plan.seed, number, 1 + trial) for trial in range(plan.orders))
        self._streams = [CandidateStream(self.law, seed) for seed in seeds]

    def run(self, row: PolicyRow, costs: Costs, width: int | None) -> list[StreamResult]:
        """Run each trial of a policy."""
        in_flight = None if row.whole_steps else width
        return [stream.run(row.policy, costs, width=in_flight) for stream in self._streams]


def _tried(rows: Sequence[PolicyRow]) -> list[PolicyRow]:
    """The rows and the reference, without duplicates, even under different names."""
    tried: list[PolicyRow] = []
    for row in (*rows, REFERENCE):
        if row not in tried:
            tried.append(row)
    return tried


class _Result(NamedTuple):
    """One problem at one price list: J*, and the means over trials `[rows, fields]`."""

    optimum: float
    means: NDArray[np.float64]


def _results(
    populations: Mapping[str, Population],
    tried: Sequence[PolicyRow],
    prices: Sequence[Costs],
    plan: SimulationSize,
) -> Iterator[list[_Result]]:
    """Run all rows on every problem; yield the results at all price lists, problem by problem."""
    named = list(populations.items())
    size = max(1, PART // ((plan.candidates or _STREAM) * plan.orders))
    parts = [
        (at, start, min(start + size, plan.problems))
        for at in range(len(named))
        for start in range(0, plan.problems, size)
    ]

    def work(number: int) -> list[list[_Result]]:
        index, start, stop = parts[number]
        name, population = named[index]
        made = (_problem(population, name, each, plan) for each in range(start, stop))
        return [
            [_run_all(problem, tried, costs, plan.width) for costs in prices] for problem in made
        ]

    trials = len(named) * plan.problems * plan.orders * len(prices)
    units = trials * (plan.candidates or _STREAM)
    for part in in_parts(work, len(parts), plan.jobs, units):
        yield from part


def _problem(
    population: Population, name: str, number: int, plan: SimulationSize
) -> _CandidatePool | _Endless:
    if plan.candidates is None:
        return _Endless(population, number, plan)
    return _CandidatePool(population, name, number, plan)


def _run_all(
    problem: _CandidatePool | _Endless, tried: Sequence[PolicyRow], costs: Costs, width: int | None
) -> _Result:
    runs = [np.array(problem.run(row, costs, width), dtype=np.float64) for row in tried]
    return _Result(problem.law.optimum(costs), np.array([run.mean(axis=0) for run in runs]))


class _TrialTable:
    """The results at one price list, problem by problem."""

    def __init__(self, costs: Costs, rows: Sequence[PolicyRow], tried: Sequence[PolicyRow]) -> None:
        self._costs = costs
        self._rows = rows
        self._tried = tried
        self._results: list[_Result] = []

    def add(self, result: _Result) -> None:
        """Add one problem."""
        self._results.append(result)

    def means(self, row: PolicyRow) -> _Means:
        """The means over the trials of each problem."""
        index = self._tried.index(row)
        return _Means(*np.array([result.means[index] for result in self._results]).T)

    def rows(
        self, population: str, names: Sequence[str], plan: SimulationSize
    ) -> Iterator[SimulatedRow]:
        """The row of each policy."""
        resampled = Resampled(len(self._results), plan.seed)
        optima = np.array([result.optimum for result in self._results])
        reference = self.means(REFERENCE)
        for name, row in zip(names, self._rows, strict=True):
            means = self.means(row)
            relative = means.cost / optima
            yield SimulatedRow(
                population,
                name,
                self._costs,
                cost=float(means.cost.mean()),
                generated=float(means.generated.mean()),
                verified=float(means.verified.mean()),
                solved=float(means.solved.mean()),
                ended=float(means.ended.mean()),
                optimum=float(optima.mean()),
                of_optimum=float(relative.mean()),
                of_optimum_interval=resampled.ratio(relative, np.ones(len(optima))),
                of_adaptive_all=float(means.cost.mean() / reference.cost.mean()),
                of_adaptive_all_interval=resampled.ratio(means.cost, reference.cost),
            )


class _Means(NamedTuple):
    """The means of the fields of `StreamResult` over trials. All arrays are `[problems]`."""

    solved: NDArray[np.float64]
    generated: NDArray[np.float64]
    verified: NDArray[np.float64]
    cost: NDArray[np.float64]
    ended: NDArray[np.float64]
