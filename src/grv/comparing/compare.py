"""Compares policies on the same orders of the same log: paired results, with intervals."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import LogError, UsageError
from ..core.search import Policy
from ..core.values import Cascade, Costs, Latency, Measured
from ..files import shown
from ..logs.log import Log, LoggedProblem
from ..options import fill, names_checked, options_of
from ..parallel import divided, in_parts
from ..parsing import given_costs, list_of_prices
from ..policies import Fixed, Learned, spec
from ..replay.orders import Orders
from ..replay.scheme import Scheme
from ..replay.trials import Trials, joined
from ..theory.grouping import Difficulty, Runs
from ..theory.hindsight import Pair
from ..theory.uniform import PairTable
from .assigned_pairs import AssignedPairs
from .bounds import bounded, check_bounded
from .comparison import Comparison, LogSummary, Row
from .rows import (
    DifficultyRow,
    PolicyRow,
    RowKind,
    UniformRow,
    baseline_of,
    check_answers,
    learning_of,
    parse_row,
    row_name,
)
from .settings import ComparisonSettings, Schedules, TotalBudgets, Unsolvable
from .significance import Resampled
from .visits import ExactPair, Visited, Visits

Progress = Callable[[int, int], None]

PART = 16_384  # candidates of the problems that are visited together
# the same for `learned`: problems; candidates x orders
_LONG_PROBLEMS = 64
_LONG_PART = 2_600_000
LARGEST_TABLE = 8192  # candidates per problem; all pairs of more do not fit into memory


_DEFAULTS = ComparisonSettings()
GivenCosts = Costs | tuple[float, float] | tuple[float, float, float] | str
GivenPolicy = Policy | str


@names_checked
def compare(
    policies: Mapping[str, GivenPolicy] | Sequence[GivenPolicy] | GivenPolicy,
    log: Log | str | os.PathLike[str] | Any,
    costs: GivenCosts | Sequence[GivenCosts] = Costs(),  # noqa: B008 - frozen
    settings: ComparisonSettings | None = None,
    *,
    orders: int = _DEFAULTS.orders,
    seed: int = _DEFAULTS.seed,
    order_scheme: Scheme | str = _DEFAULTS.order_scheme,
    width: int | None = _DEFAULTS.width,
    keys: bool = _DEFAULTS.keys,
    unsolvable: Unsolvable | str = _DEFAULTS.unsolvable,
    value: float = _DEFAULTS.value,
    answers: int = _DEFAULTS.answers,
    total_budget: TotalBudgets | str | float | None = _DEFAULTS.total_budget,
    schedule: Schedules | str = _DEFAULTS.schedule,
    baseline: str | None = _DEFAULTS.baseline,
    ramp: bool = _DEFAULTS.ramp,
    random_phase: bool = _DEFAULTS.random_phase,
    overlap: bool = _DEFAULTS.overlap,
    wait_price: float = _DEFAULTS.wait_price,
    latency: Latency | str | None = _DEFAULTS.latency,
    deadline: float = _DEFAULTS.deadline,
    jobs: int | None = _DEFAULTS.jobs,
    cascade: Cascade | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare every policy at every price list, on the same orders of the same problems.

        >>> import grv
        >>> log = {"problem": ["a"] * 4, "candidate": [0, 1, 2, 3], "score": [1, 4, 2, 3]}
        >>> log["passed"] = [False, True, False, False]
        >>> found = grv.compare(["varied", grv.policies.VerifyAll()], log, costs=(1, 10))
        >>> found["verify-all"].solved
        1.0

    If labels are missing, rows have bounds; see `bounds`. `print(comparison)` prints the table.

    Ratios are relative to the row that `baseline` names. Without that option it is the row
    `adaptive`, or else `varied`; without these there are no ratios.

    Args:
        policies: policies, or their specifications; by the names of their rows, if they have names.
            `grv.comparing.DEFAULT_ROWS` has those that the paper compares.
        log: the log to replay, the path of its file, or a data frame of pandas or polars.
        costs: one price list, or a list of them: `grv.Costs(1, 10)`, `(1, 10)` or "1,10"; with
            the cost of a verification that fails, `grv.Costs(1, 10, failure=2)` or "1,10,2".
            `grv.core.Measured` is a first guess; the payments are then in the log's columns
            `generate_cost` and `verify_cost`.
        settings: the options below as one value, instead of them.
        orders: the number of orders in which each problem is tried.
        seed: the seed of the orders.
        order_scheme: how orders are drawn: stable, paper or logged.
        width: verifications in flight at once; None pays for whole steps.
        keys: whether each equivalence class (column key) is verified only once.
        unsolvable: exclude or include problems without any pass.
        value: what a solved problem is worth; policies give up when the rest would cost more.
        answers: the number of different answers to find per problem.
        total_budget: money for all problems together, as in 500 or "10%,25%,50%": the result has
            `batches`, the share of problems that each schedule solves with it.
        schedule: which problem of a batch is next, as in "least-spent,in-order".
        baseline: the row that all ratios are relative to.
        ramp: whether 2, 4, 8 ... candidates are verified at once, up to the width.
        random_phase: whether the ramp begins at a place that is random for each problem.
        overlap: whether candidates are generated while others are verified.
        wait_price: the cost of one second of waiting; it needs `latency`.
        latency: the seconds of a batch generated and of a round of verification, as in "20,60".
        deadline: the seconds after which the search for a problem ends; it needs `latency`.
        jobs: the number of processes.
        cascade: how policies use the log's second scores; baselines rank by the first score.
        progress: called with the number of problems done and the total.
    """
    given = dict(locals())
    options = {name: given[name] for name in options_of(ComparisonSettings)}
    changed = {n: option for n, option in options.items() if option is not getattr(_DEFAULTS, n)}
    if settings is not None and changed:
        raise UsageError(f"give settings or options such as {min(changed)}, not both")
    settings = settings or fill(ComparisonSettings, changed)
    rows = _rows(policies)
    prices = _prices(costs)
    log = _log(log)
    if not prices or not rows:
        raise UsageError("a comparison needs at least one policy and one price list")
    if not log.solvable:
        raise LogError("no problem has a candidate that passed", path=log.path)
    if any(isinstance(each, Measured) for each in prices) and log.mean_costs == (None, None):
        why = "this log has no measured costs (columns 'generate_cost', 'verify_cost')"
        raise LogError(why, path=log.path)
    if cascade is not None and any(problem.second is None for problem in log.problems):
        raise LogError("this log was read without second scores", path=log.path)
    check_answers(rows.values(), settings.answers)
    if settings.answers > 1:
        log.require_labels()
    if settings.keys and not log.has_keys:
        raise LogError("this log has no keys (column 'key'): leave out --keys", path=log.path)
    for _, kind in rows.values():
        if isinstance(kind, PolicyRow) and isinstance(kind.policy, Learned):
            kind.policy.check_score(log.score, log.alike)
    ids = [p.id for p in log.problems if p.solvable or settings.unsolvable is Unsolvable.INCLUDE]

    def made(on: Log) -> Comparison:
        problems = [on[id] for id in ids]
        comparer = _Comparer(on, problems, rows, prices, settings, cascade, progress or _silent)
        return comparer.comparison()

    if not log.is_bounded and settings.total_budget is None:
        return made(log)
    if not log.is_bounded:
        from .batches import batch_rows

        limits = dataclasses.replace(settings.limits, cascade=cascade)
        batches = batch_rows(log, rows, prices, settings, limits)
        return dataclasses.replace(made(log), batches=batches)
    if settings.total_budget is not None:
        log.require_labels()
    check_bounded(rows, log, prices, settings)
    return bounded(made(log.completed(passed=True)), made(log.completed(passed=False)))


def _rows(policies: Any) -> dict[int, tuple[str, RowKind]]:
    if isinstance(policies, Mapping):
        named = [(str(name), _row(policy)[1]) for name, policy in policies.items()]
    elif isinstance(policies, str) or not isinstance(policies, Iterable):
        named = [_row(policies)]
    else:
        named = [_row(policy) for policy in policies]
    return dict(enumerate(named))


def _row(policy: Any) -> tuple[str, RowKind]:
    """The name and the kind of the row of a policy, or of its specification."""
    if isinstance(policy, str):
        return row_name(policy), parse_row(policy)
    if isinstance(policy, type) or not hasattr(policy, "plan"):
        raise UsageError(
            f"give a policy, as in grv.policies.Balanced(), or its name, not {shown(policy)}"
        )
    try:
        name = spec.spec(policy)
    except UsageError:
        shows_address = getattr(type(policy), "__repr__", None) is object.__repr__
        name = type(policy).__name__ if shows_address else repr(policy)
    return name, PolicyRow(policy)


def _prices(costs: Any) -> tuple[Costs, ...]:
    """One price list, or several."""
    if isinstance(costs, Costs | str) or not isinstance(costs, Iterable):
        return (given_costs(costs),)
    listed = list(costs)
    if listed and not any(isinstance(each, Costs | str | list | tuple) for each in listed):
        return (given_costs(tuple(listed)),)  # numbers
    return tuple(given_costs(each) for each in listed)


def _log(given: Any) -> Log:
    """The log; from its file or from a frame, if one is given."""
    if isinstance(given, Log):
        return given
    if isinstance(given, str | os.PathLike):
        return Log.load(given)
    return Log.from_frame(given)


def _silent(done: int, total: int) -> None:
    """Do nothing."""


class _Comparer:
    """Makes one comparison. It visits the problems once, or twice if pairs are compared."""

    def __init__(
        self,
        log: Log,
        problems: Sequence[LoggedProblem],
        rows: Mapping[int, tuple[str, RowKind]],
        prices: Sequence[Costs],
        settings: ComparisonSettings,
        cascade: Cascade | None,
        progress: Progress,
    ) -> None:
        self.log = log
        self.problems = problems
        self.settings = settings
        self.limits = dataclasses.replace(settings.limits, cascade=cascade)
        self.rows = rows
        self.prices = prices
        self.progress = progress
        self.baseline = baseline_of([name for name, _ in rows.values()], settings.baseline)
        s = settings
        self.orders = Orders(problems, s.orders, seed=s.seed, scheme=s.order_scheme, keyed=s.keys)
        policies = {number: learning_of(kind) for number, (_, kind) in rows.items()}
        self.learning = {n: policy for n, policy in policies.items() if policy is not None}
        others = {number: row for number, row in rows.items() if number not in self.learning}
        self.visits = Visits(self.orders, others, prices, self.limits)
        self.passes = 2 if self.visits.matched or self.visits.grouped else 1
        size = max(len(problem) for problem in problems)
        if self.visits.matched and size > LARGEST_TABLE:
            raise UsageError(
                f"uniform-matched allows at most {LARGEST_TABLE} candidates per problem; this log"
                f" has a problem with {size}: choose other rows with --policy"
            )
        # By price list and row, the trials of the problems, part by part. The reference is needed
        # to match its cost.
        self.found: dict[tuple[int, int], list[Trials]] = {}
        self.reference: list[list[Trials]] = [[] for _ in prices]
        self.table = PairTable(size if self.visits.matched else 0)
        self.difficulties: list[Difficulty] = []
        self.exact: dict[ExactPair, list[float]] = {}

    @cached_property
    def resampled(self) -> Resampled:
        """The resamples of problems, shared by all intervals."""
        return Resampled(len(self.problems), self.settings.seed)

    def comparison(self) -> Comparison:
        """Visit the problems and summarise."""
        kinds = [kind for _, kind in self.rows.values()]
        fixed = {exact for kind in kinds if (exact := self._exact(kind, None)) is not None}
        self._visit(lambda start, stop: self.visits.policies(start, stop, fixed), done=0)
        self._learn()
        pairs = [self._pairs(at) for at in range(len(self.prices))]
        self.difficulties.clear()
        if self.passes == 2:
            every = [(number, each) for assigned in pairs for number, each in assigned.items()]
            single = {
                exact
                for number, each in every
                if (exact := self._exact(self.rows[number][1], each)) is not None
            }
            self._visit(
                lambda start, stop: self.visits.pairs(start, stop, pairs, single),
                done=len(self.problems),
            )
        return self._sum_up(pairs)

    def _visit(self, work: Callable[[int, int], Visited], done: int) -> None:
        """Visit all problems, and keep the results."""
        sizes = [len(problem) for problem in self.orders.problems]
        parts = divided(sizes, self._part)
        units = sum(sizes) * self.settings.orders * len(self.prices)
        results = in_parts(
            lambda number: work(*parts[number]), len(parts), self.settings.jobs, units
        )
        for (start, stop), visited in zip(parts, results, strict=True):
            self._keep(visited)
            for number in range(start, stop):
                self.progress(done + number + 1, self.passes * len(self.problems))

    @property
    def _part(self) -> int:
        """How many candidates are visited together.

        The searches of `learned` share the time of a step, and the longest takes as many steps as
        it has candidates. So of long problems more are visited together.
        """
        kinds = [kind for _, kind in self.rows.values()]
        learned = any(isinstance(k, PolicyRow) and isinstance(k.policy, Learned) for k in kinds)
        if not learned or self.settings.keys:
            return PART
        longest = max(map(len, self.problems))
        return max(PART, min(_LONG_PROBLEMS * longest, _LONG_PART // self.settings.orders))

    @cached_property
    def _arrived(self) -> NDArray[np.intp]:
        """`[problems, orders]`: when each problem arrives, for rows that learn."""
        from .arrivals import positions

        return positions(self.orders.places, self.settings.orders, self.settings.seed)

    def _learn(self) -> None:
        """Try the rows that learn as they go; one repetition after the other is independent."""
        if not self.learning:
            return
        from .arrivals import Arrivals, by_repetition

        asked = self.settings
        replay = Arrivals(self.orders, self.log.score, seed=asked.seed, limits=self.limits)
        wanted = [(at, n) for at in range(len(self.prices)) for n in self.learning]

        def work(repetition: int) -> list[Trials]:
            return [
                replay.trials(self.learning[n], self.prices[at], repetition) for at, n in wanted
            ]

        units = sum(map(len, self.orders.problems)) * self.settings.orders * len(wanted)
        results = list(in_parts(work, self.settings.orders, self.settings.jobs, units))
        for place, trials in zip(wanted, zip(*results, strict=True), strict=True):
            self.found[place] = [by_repetition(trials)]

    def _keep(self, visited: Visited) -> None:
        for place, trials in visited.trials.items():
            self.found.setdefault(place, []).append(trials)
        for kept, reference in zip(self.reference, visited.reference, strict=False):
            kept.append(reference)
        for least, paid in visited.checks:
            self.table.add(least, paid)
        self.difficulties += visited.difficulties
        for exact, chances in visited.exact.items():
            self.exact.setdefault(exact, []).extend(chances)

    def _exact(self, kind: RowKind, pairs: AssignedPairs | None) -> ExactPair | None:
        """The pair of a row, if it has one and its success over all orders has a closed form."""
        if self.settings.keys or self.log.refuted or self.settings.answers > 1:
            return None
        if isinstance(kind, PolicyRow) and isinstance(kind.policy, Fixed):
            return ExactPair(Pair(kind.policy.m, kind.policy.k), capped=True)
        return ExactPair(pairs.single, capped=False) if pairs and pairs.single else None

    def _pairs(self, at: int) -> dict[int, AssignedPairs]:
        """For each row of pairs, the pair of each problem at one price list."""
        costs = self._pair_prices(self.prices[at])
        assigned: dict[int, AssignedPairs] = {}
        if self.visits.matched:
            spent = self._matched_costs(joined(self.reference[at], self.orders.places), costs)
            # Adaptive pays for at least one of each, but a mean may be rounded down.
            pair = self.table.best_within(float(np.mean(spent.ravel())), costs) or Pair(1, 1)
            everyone = AssignedPairs({problem.id: pair for problem in self.problems}, single=pair)
            assigned |= {
                n: everyone for n, (_, k) in self.rows.items() if isinstance(k, UniformRow)
            }
        wanted = {n: k.groups for n, (_, k) in self.rows.items() if isinstance(k, DifficultyRow)}
        if wanted:
            ordered, runs = self.by_difficulty
            partitions = runs.best_groups(
                sorted(set(wanted.values())), costs.planning, whole=self.settings.width is None
            )
            for number, groups in wanted.items():
                assigned[number] = AssignedPairs.of_groups(partitions[groups], ordered)
        return assigned

    def _matched_costs(self, reference: Trials, costs: Costs) -> NDArray[np.float64]:
        """What the reference costs, with one pass per solved trial as in `PairTable.prices`."""
        if reference.paid is not None:
            return reference.paid
        planned = reference.costs(costs.planning)
        return planned + (costs.verify - costs.failure) * reference.solved

    def _pair_prices(self, costs: Costs) -> Costs:
        """The price list to choose pairs by; if costs are measured, the means of the log."""
        if not isinstance(costs, Measured):
            return costs
        generate, verify = self.log.mean_costs
        if not verify:
            return Costs(generate or costs.candidate, costs.verify, failure=costs.failure)
        failure = self.log.mean_failure_cost or verify
        return Costs(generate or costs.candidate, max(verify, failure), failure=failure)

    @cached_property
    def by_difficulty(self) -> tuple[list[LoggedProblem], Runs]:
        """The problems by pass rate, then by id, and their data for grouping."""
        ordered = sorted(self.problems, key=lambda problem: problem.pass_rate)
        pairs = zip(self.orders.problems, self.difficulties, strict=True)
        by_id = {problem.id: difficulty for problem, difficulty in pairs}
        return ordered, Runs([by_id[problem.id] for problem in ordered])

    def _sum_up(self, pairs: Sequence[dict[int, AssignedPairs]]) -> Comparison:
        rows: list[Row] = []
        kept: list[Trials] = []
        for index, costs in enumerate(self.prices):
            stacked = {n: joined(self.found.pop((index, n)), self.orders.places) for n in self.rows}
            reference = next(
                (stacked[n] for n, (x, _) in self.rows.items() if x == self.baseline), None
            )
            for number, (name, kind) in self.rows.items():
                row = self._row(name, costs, stacked[number], reference)
                if self.learning:
                    from .arrivals import cost_by_position

                    by_position = cost_by_position(stacked[number].costs(costs), self._arrived)
                    row = dataclasses.replace(row, cost_by_position=by_position)
                rows.append(self._detailed(row, kind, pairs[index].get(number), stacked[number]))
                kept.append(stacked[number])
        cascade = self.limits.cascade
        settings = {
            "log": self.log.path,
            **self.log.reading,
            "score": self.log.score,
            "second": self.log.second,
            **({} if self.log.alike is None else {"alike": self.log.alike}),
            "costs": [_listed(costs) for costs in self.prices],
            "policies": [name for name, _ in self.rows.values()],
            **self.settings.to_json(),
            "baseline": self.baseline,
            "cascade": None if cascade is None else dataclasses.asdict(cascade),
        }
        names = tuple(problem.id for problem in self.problems)
        return Comparison(self._log_summary(), settings, tuple(rows), names, tuple(kept))

    def _row(self, name: str, costs: Costs, of: Trials, reference: Trials | None) -> Row:
        spent = of.costs(costs)
        latency = self.settings.latency
        row = Row(
            policy=name,
            costs=costs,
            trials=spent.size,
            solved=float(of.solved.mean()),
            cost=float(np.mean(spent.ravel())),
            generated=float(of.generated.mean()),
            verified=float(of.verified.mean()),
            generate_rounds=float(of.rounds[..., 0].mean()),
            verify_rounds=float(of.rounds[..., 1].mean()),
            rescore_rounds=None if of.rescored is None else float(of.rounds[..., 2].mean()),
            rescored=None if of.rescored is None else float(of.rescored.mean()),
            seconds=None if latency is None else float(of.seconds(latency).mean()),
            solved_cost=_mean(spent[of.solved]),
            unsolved_cost=_mean(spent[~of.solved]),
        )
        if math.isfinite(self.settings.value):
            row = dataclasses.replace(row, net=self.settings.value * row.solved - row.cost)
        if reference is None:
            return row
        base = reference.costs(costs)
        if not (base.mean(axis=1) > 0).all():
            return row  # all measured costs are zero
        low, high = self.resampled.ratio(spent.mean(axis=1), base.mean(axis=1)) or (None, None)
        ratio = row.cost / float(np.mean(base.ravel()))
        return dataclasses.replace(row, ratio=ratio, low=low, high=high)

    def _detailed(self, row: Row, kind: RowKind, pairs: AssignedPairs | None, of: Trials) -> Row:
        """The row with the fields that only rows of its kind have."""
        details: dict[str, Any] = {}
        pair = pairs.single if pairs else None
        if isinstance(kind, PolicyRow) and isinstance(kind.policy, Fixed):
            pair = Pair(kind.policy.m, kind.policy.k)
        if pair is not None:
            details |= {"m": pair.m, "k": pair.k}
            if (exact := self._exact(kind, pairs)) is not None:
                chances = np.empty(len(self.problems))
                chances[self.orders.places] = self.exact[exact]
                details["exact"] = float(np.mean(chances))
        if pairs is not None and pairs.groups:
            details["groups"] = pairs.groups
        hopeless = np.array([not problem.solvable for problem in self.problems])
        if hopeless.any():
            details["unsolvable_cost"] = float(of.costs(row.costs)[hopeless].mean())
        return dataclasses.replace(row, **details)

    def _log_summary(self) -> LogSummary:
        log = self.log
        used = {problem.id for problem in self.problems}
        return LogSummary(
            problems=len(log.problems) + len(log.bare),
            solvable=len(log.solvable),
            candidates=log.candidates,
            unlabelled=log.unlabelled,
            unscored=sum(problem.unscored for problem in log.problems),
            excluded=(*(p.id for p in log.problems if p.id not in used), *log.bare),
            contradictory={p.id: p.contradictory for p in log.problems if p.contradictory},
            unpriced=log.unpriced,
            refuted=log.refuted,
            censored=log.censored,
            published=log.published,
            judged=log.judged,
            staged=log.staged,
        )


def _mean(amounts: NDArray[np.float64]) -> float | None:
    return float(amounts.mean()) if amounts.size else None


def _listed(costs: Costs) -> Any:
    """A price list in the settings' record."""
    prices = list_of_prices(costs)
    return {"measured": prices} if isinstance(costs, Measured) else prices
