"""Compares policies on the same orders of the same log: paired results, with intervals."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import LogError, UsageError
from ..core.search import Policy
from ..core.values import Cascade, Costs, Measured
from ..logs.log import Log, LoggedProblem
from ..options import from_arguments
from ..policies import Adaptive, Fixed, Learned
from ..replay.hindsight import hindsight_trials, least_checks_of, paid_checks_of
from ..replay.kernels.dispatch import trials
from ..replay.orders import OrderBatch, batches
from ..replay.trials import Trials, in_flight, rounds_of
from ..theory.exact import success_probability
from ..theory.grouping import Difficulty, Runs
from ..theory.hindsight import Pair
from ..theory.uniform import PairTable
from .assigned_pairs import AssignedPairs
from .bounds import bounded, check_bounded
from .comparison import Comparison, LogSummary, Row
from .rows import (
    DifficultyRow,
    HindsightRow,
    PolicyRow,
    RowKind,
    UniformRow,
    baseline_of,
    parse_row,
)
from .settings import Settings, Unsolvable
from .significance import Resampled

Progress = Callable[[int, int], None]

LARGEST_TABLE = 8192  # candidates per problem; all pairs of more do not fit into memory


def compare(
    policies: Mapping[str, Policy] | Sequence[str],
    log: Log,
    costs: Costs | Sequence[Costs] = Costs(),  # noqa: B008 - frozen
    settings: Settings | None = None,
    *,
    cascade: Cascade | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Comparison:
    """Compare every policy at every price list, on the same orders of the same problems.

    If labels are missing, rows have bounds; see `bounds`.

    Ratios are relative to the row that `baseline` names. Without that option it is the row
    `adaptive`, or else `default`; without these there are no ratios.

    Args:
        policies: policies by the names of their rows, or specifications; `DEFAULT_ROWS` has those
            that the paper compares.
        log: the log to replay.
        costs: one price list, or several. `Measured` is a first guess; the payments are then in the
            log's columns `generate_cost` and `verify_cost`.
        settings: orders, width, keys and so on.
        cascade: how policies use the log's second scores; baselines rank by the first score.
        progress: called with the number of problems done and the total.
        options: the fields of `Settings`, instead of `settings`.
    """
    settings = from_arguments(Settings, settings, options)
    rows = _rows(policies)
    prices = (costs,) if isinstance(costs, Costs) else tuple(costs)
    if not prices or not rows:
        raise UsageError("a comparison needs at least one policy and one price list")
    if not log.solvable:
        raise LogError("no problem has a candidate that passed", path=log.path)
    if any(isinstance(each, Measured) for each in prices) and log.mean_costs == (None, None):
        raise LogError(
            "this log has no measured costs (columns 'generate_cost', 'verify_cost')",
            path=log.path,
        )
    if cascade is not None and any(problem.second is None for problem in log.problems):
        raise LogError("this log was read without second scores", path=log.path)
    if settings.keys and not log.has_keys:
        raise LogError("this log has no keys (column 'key'): leave out --keys", path=log.path)
    for _, kind in rows.values():
        if isinstance(kind, PolicyRow) and isinstance(kind.policy, Learned):
            kind.policy.check_score(log.score)
    ids = [p.id for p in log.problems if p.solvable or settings.unsolvable is Unsolvable.INCLUDE]

    def made(on: Log) -> Comparison:
        problems = [on[id] for id in ids]
        comparer = _Comparer(on, problems, rows, prices, settings, cascade, progress or _silent)
        return comparer.comparison()

    if not log.is_bounded:
        return made(log)
    check_bounded(rows, log, prices, settings)
    return bounded(made(log.completed(passed=True)), made(log.completed(passed=False)))


def _rows(policies: Mapping[str, Policy] | Sequence[str]) -> dict[int, tuple[str, RowKind]]:
    if isinstance(policies, Mapping):
        named: list[tuple[str, RowKind]] = [(n, PolicyRow(p)) for n, p in policies.items()]
    else:
        named = [(text.strip(), parse_row(text)) for text in policies]
    return dict(enumerate(named))


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
        settings: Settings,
        cascade: Cascade | None,
        progress: Progress,
    ) -> None:
        self.log, self.problems, self.settings, self.cascade = log, problems, settings, cascade
        self.rows, self.prices, self.progress = rows, prices, progress
        self.baseline = baseline_of([name for name, _ in rows.values()], settings.baseline)
        kinds = [kind for _, kind in rows.values()]
        self.matched = any(isinstance(kind, UniformRow) for kind in kinds)
        self.grouped = any(isinstance(kind, DifficultyRow) for kind in kinds)
        self.hindsight = any(isinstance(kind, HindsightRow) for kind in kinds)
        self.passes = 2 if self.matched or self.grouped else 1
        self.size = max(len(problem) for problem in problems)
        if self.matched and self.size > LARGEST_TABLE:
            raise UsageError(
                f"uniform-matched allows at most {LARGEST_TABLE} candidates per problem; this log"
                f" has a problem with {self.size}: choose other rows with --policy"
            )
        # By price list and row, one entry per problem. The reference is needed to match its cost.
        self.found: dict[tuple[int, int], dict[str, Trials]] = {}
        self.reference: list[dict[str, Trials]] = [{} for _ in prices]
        self.table = PairTable(self.size if self.matched else 0)
        self.difficulties: dict[str, Difficulty] = {}

    @cached_property
    def resampled(self) -> Resampled:
        """The resamples of problems, shared by all intervals."""
        return Resampled(len(self.problems), self.settings.seed)

    def comparison(self) -> Comparison:
        """Visit the problems and summarise."""
        for batch in self._batches(done=0):
            self._try_policies(batch)
        pairs = [self._pairs(at) for at in range(len(self.prices))]
        if self.passes == 2:
            for batch in self._batches(done=len(self.problems)):
                self._try_pairs(batch, pairs)
        return self._sum_up(pairs)

    def _batches(self, done: int) -> Iterator[OrderBatch]:
        s = self.settings
        made = batches(self.problems, s.orders, seed=s.seed, scheme=s.order_scheme, keyed=s.keys)
        for number, batch in enumerate(made, 1):
            yield batch
            self.progress(done + number, self.passes * len(self.problems))

    def _try_policies(self, batch: OrderBatch) -> None:
        """Run the rows that need only one problem, and collect the data for the other rows."""
        id, width = batch.problem.id, self.settings.width
        value, cascade = self.settings.value, self.cascade
        least = None
        if self.hindsight or self.passes == 2:
            least = least_checks_of(batch)
        for at, costs in enumerate(self.prices):
            tried: dict[tuple[Any, ...], Trials] = {}
            for number, (_, kind) in self.rows.items():
                match kind:
                    case PolicyRow(policy, whole):
                        at_once = None if whole else width
                        name = (type(policy), repr(policy), at_once)  # the repr has all parameters
                        if name not in tried:
                            tried[name] = trials(
                                *(policy, batch, costs),
                                width=at_once,
                                value=value,
                                cascade=cascade,
                            )
                        self._keep(at, number, id, tried[name])
                    case HindsightRow():
                        assert least is not None
                        best = hindsight_trials(batch, least, costs, width=width)
                        self._keep(at, number, id, best.worth(value, costs))
            if self.matched:
                known = tried.get((Adaptive, repr(Adaptive()), width))
                self.reference[at][id] = known or trials(
                    Adaptive(), batch, costs, width=width, value=value, cascade=cascade
                )
        if self.passes == 2:
            assert least is not None
            paid = paid_checks_of(batch, least, width=width)
            if self.matched:
                self.table.add(least, paid)
            if self.grouped:
                self.difficulties[id] = Difficulty.of(least, paid)

    def _keep(self, at: int, number: int, id: str, result: Trials) -> None:
        self.found.setdefault((at, number), {})[id] = result

    def _pairs(self, at: int) -> dict[int, AssignedPairs]:
        """For each row of pairs, the pair of each problem at one price list."""
        costs = self._pair_prices(self.prices[at])
        found: dict[int, AssignedPairs] = {}
        if self.matched:
            reference = self._in_order(self.reference[at])
            spent = np.concatenate([t.costs(costs) for t in reference])
            # Adaptive pays for at least one of each, but a mean may be rounded down.
            pair = self.table.best_within(float(np.mean(spent)), costs) or Pair(1, 1)
            everyone = AssignedPairs({problem.id: pair for problem in self.problems}, single=pair)
            found |= {n: everyone for n, (_, k) in self.rows.items() if isinstance(k, UniformRow)}
        wanted = {n: k.groups for n, (_, k) in self.rows.items() if isinstance(k, DifficultyRow)}
        if wanted:
            ordered, runs = self.by_difficulty
            partitions = runs.best_groups(
                sorted(set(wanted.values())), costs, whole=self.settings.width is None
            )
            for number, groups in wanted.items():
                found[number] = AssignedPairs.of_groups(partitions[groups], ordered)
        return found

    def _pair_prices(self, costs: Costs) -> Costs:
        """The price list to choose pairs by; if costs are measured, the means of the log."""
        if not isinstance(costs, Measured):
            return costs
        generate, verify = self.log.mean_costs
        return Costs(generate or costs.candidate, verify or costs.verify)

    @cached_property
    def by_difficulty(self) -> tuple[list[LoggedProblem], Runs]:
        """The problems by pass rate, then by id, and their data for grouping."""
        ordered = sorted(self.problems, key=lambda problem: problem.pass_rate)
        return ordered, Runs([self.difficulties[problem.id] for problem in ordered])

    def _try_pairs(self, batch: OrderBatch, pairs: Sequence[dict[int, AssignedPairs]]) -> None:
        for at, costs in enumerate(self.prices):
            for number, assigned in pairs[at].items():
                pair = assigned.by_problem[batch.problem.id]
                self._keep(at, number, batch.problem.id, self._try_pair(pair, batch, costs))

    def _try_pair(self, pair: Pair, batch: OrderBatch, costs: Costs) -> Trials:
        if pair.m <= len(batch.problem):
            return trials(Fixed(*pair), batch, costs, width=self.settings.width)
        drawn, checks = (np.full(batch.size, count, dtype=np.int32) for count in pair)
        rounds = rounds_of(1, in_flight(checks, self.settings.width))
        found = Trials(np.zeros(batch.size, dtype=np.bool_), drawn, checks, rounds)
        if isinstance(costs, Measured):  # candidates that are not in the log have no measured cost
            return dataclasses.replace(found, paid=found.costs(costs))
        return found

    def _in_order(self, found: Mapping[str, Trials]) -> list[Trials]:
        return [found[problem.id] for problem in self.problems]

    def _sum_up(self, pairs: Sequence[dict[int, AssignedPairs]]) -> Comparison:
        rows: list[Row] = []
        kept: list[Trials] = []
        for at, costs in enumerate(self.prices):
            stacked = {n: _stack(self._in_order(self.found[at, n])) for n in self.rows}
            reference = next(
                (stacked[n] for n, (x, _) in self.rows.items() if x == self.baseline), None
            )
            for number, (name, kind) in self.rows.items():
                row = self._row(name, costs, stacked[number], reference)
                rows.append(self._detailed(row, kind, pairs[at].get(number), stacked[number]))
                kept.append(stacked[number])
        settings = {
            "log": self.log.path,
            **self.log.reading,
            "score": self.log.score,
            "second": self.log.second,
            "costs": [_listed(costs) for costs in self.prices],
            "policies": [name for name, _ in self.rows.values()],
            **self.settings.to_json(),
            "baseline": self.baseline,
            "cascade": None if self.cascade is None else dataclasses.asdict(self.cascade),
        }
        names = tuple(problem.id for problem in self.problems)
        return Comparison(self._log_summary(), settings, tuple(rows), names, tuple(kept))

    def _row(self, name: str, costs: Costs, of: Trials, reference: Trials | None) -> Row:
        spent, latency = of.costs(costs), self.settings.latency
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
            if not self.settings.keys and not self.log.refuted:
                details["exact"] = self._solved_in_all_orders(pair, capped=pairs is None)
        if pairs is not None and pairs.groups:
            details["groups"] = pairs.groups
        hopeless = np.array([not problem.solvable for problem in self.problems])
        if hopeless.any():
            details["unsolvable_cost"] = float(of.costs(row.costs)[hopeless].mean())
        return dataclasses.replace(row, **details)

    def _solved_in_all_orders(self, pair: Pair, *, capped: bool) -> float:
        """The share that one pair solves over all orders.

        If `capped`, the pair takes all candidates of a problem that has fewer than m.
        """
        chances = []
        for problem in self.problems:
            m = min(pair.m, len(problem)) if capped else pair.m
            known = problem.solvable and m <= len(problem)
            k = min(pair.k, m)
            chances.append(
                success_probability(problem.scores, problem.passed, m, k) if known else 0.0
            )
        return float(np.mean(chances))

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
        )


def _mean(amounts: NDArray[np.float64]) -> float | None:
    return float(amounts.mean()) if amounts.size else None


def _listed(costs: Costs) -> Any:
    """A price list in the settings' record."""
    pair = [costs.candidate, costs.verify]
    return {"measured": pair} if isinstance(costs, Measured) else pair


def _stack(found: Sequence[Trials]) -> Trials:
    """Arrays `[problems, orders]`, of rounds `[problems, orders, 3]`."""

    def stacked(name: str) -> NDArray[Any]:
        return np.array([getattr(each, name) for each in found])

    names = [field.name for field in dataclasses.fields(Trials)]
    there = [name for name in names if all(getattr(each, name) is not None for each in found)]
    return Trials(**{name: stacked(name) for name in there})
