"""Compares rules for a verifier that errs, on a log whose labels are taken to be the truth.

All rules meet the same candidates, in the same orders, and the same calls of the verifier. A rule
that learns meets the problems one after the other, in an order that is drawn for each repetition,
as a live run does.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import UsageError
from ..core.limits import Limits
from ..core.search import Policy
from ..core.values import Costs
from ..learning.calibrating import clustered_rate
from ..learning.online import RIGHT_SHARES, last_refit, window
from ..logs.log import Log, LoggedProblem
from ..parallel import in_parts
from ..replay.erring import ErringCall, ErringOutcome, drawn_calls, replay_erring
from ..replay.orders import OrderBatch, Orders
from ..theory.confirmations import (
    CallCounts,
    Confirm,
    ErringRule,
    Errors,
    RightShares,
    check_wrong,
)
from .significance import Resampled

COLD = "cold"
RULES: Mapping[str, Confirm | int] = {
    "first pass": 1,
    "2 in a row": 2,
    "3 in a row": 3,
    COLD: Confirm.COLD,
    "bayes": Confirm.BAYES,
}
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ErringRow:
    """One rule with one policy. A trial is a search: a problem in one order.

    Attributes:
        policy: decides what to generate and to verify.
        rule: decides when a candidate is returned.
        trials: the number of trials.
        returned: the share of trials that return a candidate.
        wrong: the share of trials that return a wrong one.
        wrong_low: the lower end of its 95 % interval, by problems.
        wrong_high: the upper end.
        wrong_returned: the share of wrong ones among the returned; None if none was returned.
        generated: the mean number of candidates generated.
        verified: the mean number of candidates verified.
        calls: the mean number of calls of the verifier.
        cost: the mean cost; every call costs what a verification does.
        ratio: the mean cost over that of the rule `cold`.
        low: the lower end of the 95 % interval of the ratio, by resampling problems.
        high: the upper end.
    """

    policy: str
    rule: str
    trials: int
    returned: float
    wrong: float
    wrong_low: float
    wrong_high: float
    wrong_returned: float | None
    generated: float
    verified: float
    calls: float
    cost: float
    ratio: float | None = None
    low: float | None = None
    high: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The record in a file."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class _Trial:
    """What is kept of one search."""

    wrong: bool
    returned: bool
    generated: int
    verified: int
    calls: int
    cost: float

    @classmethod
    def of(cls, outcome: ErringOutcome) -> _Trial:
        return cls(
            outcome.right is False,
            outcome.answer is not None,
            outcome.generated,
            outcome.verified,
            outcome.calls,
            outcome.cost,
        )


def compare_erring(
    policies: Mapping[str, Policy],
    log: Log,
    costs: Costs,
    errors: Errors,
    *,
    wrong: float = 0.05,
    assumed: Errors | None = None,
    rules: Sequence[str] = tuple(RULES),
    orders: int = 10,
    seed: int = 0,
    limits: Limits = Limits(),  # noqa: B008 (a frozen value)
    keys: bool = False,
    unsolvable: bool = True,
    jobs: int | None = None,
) -> tuple[ErringRow, ...]:
    """Try every rule with every policy.

    Args:
        policies: by name.
        log: has a label for every candidate.
        costs: the price list. A call of the verifier costs what a verification does.
        errors: how often a call errs.
        wrong: the probability of a wrong answer that the rules `cold` and `bayes` accept.
        assumed: the errors that these rules assume; by default the true ones.
        rules: names of `RULES`.
        orders: the number of orders in which each problem is tried.
        seed: the seed of orders and calls.
        limits: what a search may do.
        keys: whether candidates of one key fail together.
        unsolvable: whether problems without a right candidate count.
        jobs: the number of processes.
    """
    check_wrong(wrong)
    log.require_labels()
    for name in rules:
        if name not in RULES:
            raise UsageError(f"there is no rule {name!r}; there are {', '.join(RULES)}")
    problems = [each for each in log.problems if unsolvable or each.solvable]
    drawn = Orders(problems, orders, seed=seed, keyed=keys)
    batches = list(drawn.batches())
    work = _Work(batches, costs, errors, limits, seed)
    rows: list[ErringRow] = []
    for policy_name, policy in policies.items():
        found = {}
        for name in rules:
            rule = ErringRule(RULES[name], assumed or errors, wrong)
            found[name] = _tried(work, policy, rule, orders, jobs)
        rows += _rows(policy_name, found, seed)
    return tuple(rows)


@dataclass(frozen=True)
class _Work:
    """What all rules have in common."""

    batches: Sequence[OrderBatch]
    costs: Costs
    errors: Errors
    limits: Limits
    seed: int

    def repetition(self, number: int, policy: Policy, rule: ErringRule) -> list[_Trial]:
        """The trials of all problems in their order of this number."""
        trials: dict[int, _Trial] = {}
        finished: list[tuple[CallCounts, ...]] = []
        shares: RightShares | None = None
        fitted = 0
        places = np.random.default_rng([self.seed, number, 37]).permutation(len(self.batches))
        for place in places.tolist():
            batch = self.batches[place]
            if rule.learns and last_refit(len(finished), RIGHT_SHARES) > fitted:
                shares = shares_after(finished, rule.errors)
                fitted = len(finished)
            outcome = replay_erring(
                policy,
                batch.problem,
                self.costs,
                rule,
                self._call(batch.problem, number),
                limits=self.limits,
                order=batch.orders[number].tolist(),
                keys=batch.keyed,
                shares=shares,
            )
            finished.append(outcome.counts)
            trials[place] = _Trial.of(outcome)
        return [trials[place] for place in range(len(self.batches))]

    def _call(self, problem: LoggedProblem, number: int) -> ErringCall:
        return drawn_calls(problem, self.errors, f"{self.seed} {number}")


def shares_after(finished: Sequence[Sequence[CallCounts]], errors: Errors) -> RightShares | None:
    """The shares in force after these problems, in the order in which they finished."""
    past = [counts for counts in finished[window(len(finished), RIGHT_SHARES)] if counts]
    return RightShares.fitted(past, errors) if past else None


def _tried(
    work: _Work, policy: Policy, rule: ErringRule, orders: int, jobs: int | None
) -> list[list[_Trial]]:
    """`[orders][problems]`: the trials of one rule."""
    units = orders * sum(len(batch.problem) for batch in work.batches) * 20
    return list(in_parts(lambda number: work.repetition(number, policy, rule), orders, jobs, units))


def _rows(policy: str, found: Mapping[str, list[list[_Trial]]], seed: int) -> list[ErringRow]:
    spent = {name: _by_problem(trials, "cost") for name, trials in found.items()}
    resampled = Resampled(len(next(iter(spent.values()))), seed)
    rows = []
    for name, trials in found.items():
        flat = [trial for order in trials for trial in order]
        wrong = _by_problem(trials, "wrong", mean=False)
        rate = clustered_rate([list(map(float, each)) for each in wrong])
        returned = sum(trial.returned for trial in flat)
        ratio = None
        ends = None
        if COLD in spent:
            ratio = float(spent[name].mean() / spent[COLD].mean())
            ends = resampled.ratio(spent[name], spent[COLD])
        low, high = ends or (None, None)
        rows.append(
            ErringRow(
                policy,
                name,
                len(flat),
                returned / len(flat),
                rate.mean,
                rate.low,
                rate.high,
                sum(trial.wrong for trial in flat) / returned if returned else None,
                _mean(flat, "generated"),
                _mean(flat, "verified"),
                _mean(flat, "calls"),
                _mean(flat, "cost"),
                ratio,
                low,
                high,
            )
        )
    return rows


def _mean(trials: Sequence[_Trial], name: str) -> float:
    return math.fsum(getattr(trial, name) for trial in trials) / len(trials)


def _by_problem(trials: Sequence[Sequence[_Trial]], name: str, *, mean: bool = True) -> _Floats:
    """The values of each problem: `[problems]`, or `[problems, orders]` without the mean."""
    values = np.array([[float(getattr(t, name)) for t in order] for order in trials]).T
    means: _Floats = values.mean(axis=1)
    return means if mean else values


def erring_cells(rows: Sequence[ErringRow]) -> tuple[list[str], list[list[str]]]:
    """The head and the cells of a table for people."""
    head = ["policy", "rule", "wrong per search", "95 %", "wrong of returned", "returned"]
    head += ["candidates", "calls", "cost", "ratio", "95 %"]
    cells = []
    for row in rows:
        among = "" if row.wrong_returned is None else f"{row.wrong_returned:.3f}"
        ratio = "" if row.ratio is None else f"x{row.ratio:.2f}"
        ends = "" if row.low is None else f"{row.low:.2f}-{row.high:.2f}"
        interval = f"{row.wrong_low:.3f}-{row.wrong_high:.3f}"
        cells.append(
            [
                row.policy,
                row.rule,
                f"{row.wrong:.3f}",
                interval,
                among,
                f"{row.returned:.3f}",
                f"{row.generated:.1f}",
                f"{row.calls:.1f}",
                f"{row.cost:.1f}",
                ratio,
                ends,
            ]
        )
    return head, cells
