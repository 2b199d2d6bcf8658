"""Runs policies against the hard instances of the lower bound, on infinite streams."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...core.errors import UsageError
from ...core.limits import Limits
from ...core.search import Policy, Search
from ...core.values import (
    Costs,
    Generate,
    Generated,
    Outcome,
    Reason,
    Stop,
    Verdict,
    Verified,
    Verify,
)
from ...policies import POLICIES
from ...policies.spec import parse
from ...theory.optimum import Law
from ...theory.stars.bounds import StarInstance, lower_bound

_BLOCK = 256  # candidates
_LEAST_BOUND = 12.5  # lower bounds below this count as this when long runs are cut off


def stream(
    policy: Policy,
    law: Law,
    costs: Costs,
    chance: np.random.Generator,
    *,
    budget: float = math.inf,
    width: int | None = 1,
) -> Outcome:
    """Run the policy on an unlimited number of new candidates of the law."""
    candidates = _Candidates(law, chance)
    search = Search(policy, costs, Limits(budget=budget, width=width))
    while True:
        match search.ask():
            case Generate(n):
                search.tell(Generated(candidates.next(n)))
            case Verify(ids):
                search.tell(Verified({id: candidates.verdict(id) for id in ids}))
            case Stop():
                assert search.outcome is not None
                return search.outcome


class _Candidates:
    """Candidates of a law in order of arrival, drawn in blocks for speed."""

    def __init__(self, law: Law, chance: np.random.Generator) -> None:
        self._law = law
        self._chance = chance
        self._ends = np.cumsum(law.masses)[:-1]
        self._scores: list[float] = []
        self._passed: list[bool] = []
        self._given = 0

    def next(self, n: int) -> tuple[float, ...]:
        """The scores of the next `n` candidates."""
        start = self._given
        self._given = self._given + n
        if (missing := self._given - len(self._scores)) > 0:
            size = max(missing, _BLOCK)
            indices = np.searchsorted(self._ends, self._chance.random(size), side="right")
            passes = np.array(self._law.passes)[indices]
            self._scores += np.array(self._law.scores)[indices].tolist()
            self._passed += (self._chance.random(size) < passes).tolist()
        return tuple(self._scores[start : self._given])

    def verdict(self, id: int) -> Verdict:
        """Whether a candidate passes."""
        return Verdict.PASSED if self._passed[id] else Verdict.FAILED


@dataclass(frozen=True)
class StarTrials:
    """The results of a policy against a hard instance with a uniformly random target.

    Attributes:
        policy: the policy's name.
        star: the number of points of the instance.
        costs: the price list.
        runs: the number of runs.
        solved: the share of runs that found the target.
        gave_up: the share of runs that ended without it. Such a policy is not sound, and its cost
            counts as infinite.
        ratio: the mean cost in units of J*; if runs were cut off, the true ratio is higher.
        error: the standard error of the ratio.
        bound: the lower bound of all sound policies, eta / 4 min(s_0, c_ver / c_rew).
        tighter: the lower bound of this instance, before it is simplified to `bound`.
    """

    policy: str
    star: int
    costs: Costs
    runs: int
    solved: float
    gave_up: float
    ratio: float
    error: float
    bound: float
    tighter: float

    @property
    def sound(self) -> bool:
        """Whether the policy never gave up."""
        return self.gave_up == 0

    @property
    def cut_off(self) -> float:
        """The share of runs that were cut off."""
        return 1 - self.solved - self.gave_up


def lineup(instance: StarInstance) -> tuple[dict[str, Policy], tuple[str, ...]]:
    """All registered policies with suitable parameters, and the names of those that have none.

    No policy knows the target. The threshold is the lowest score, the known law is the average over
    all targets, and the class is that of the single points.
    """
    m = instance.star
    average = tuple(chance / m for chance in instance.chances)
    told = {
        "centered-star": f"centered-star('singletons:{m}', {instance.scores})",
        "fixed": f"fixed({4 * m}, {m})",
        "known-law": f"known-law({instance.scores}, {average})",
        "threshold": f"threshold({instance.scores[0]})",
    }
    policies: dict[str, Policy] = {}
    untold = []
    for name in POLICIES:
        try:
            policies[name] = parse(told.get(name, name))
        except UsageError:
            untold.append(name)
    return policies, tuple(untold)


def measure(
    policies: Mapping[str, Policy],
    instance: StarInstance,
    prices: Sequence[Costs],
    *,
    runs: int = 100,
    seed: int = 0,
    patience: float = 8,
) -> Iterator[StarTrials]:
    """Run every policy at every price list, against the same random targets.

    A run is cut off at a cost of `patience` times the bound (at least 12.5) times J*, and counts
    with that cost.
    """
    for costs in prices:
        for name, policy in policies.items():
            yield _measured(name, policy, instance, costs, runs, seed, patience)


def _measured(
    name: str,
    policy: Policy,
    instance: StarInstance,
    costs: Costs,
    runs: int,
    seed: int,
    patience: float,
) -> StarTrials:
    least = lower_bound(instance.star, costs, instance.eta)
    spent = np.zeros(runs)
    ends = []
    for run in range(runs):
        chance = np.random.default_rng((seed, run))
        target = int(chance.integers(instance.star))
        unit = instance.optimum(target, costs)
        limit = patience * max(least, _LEAST_BOUND) * unit
        outcome = stream(policy, instance.law(target), costs, chance, budget=limit)
        spent[run] = outcome.bill.total / unit
        ends.append(outcome.reason)
    gave_up = sum(end not in (Reason.SOLVED, Reason.OUT_OF_BUDGET) for end in ends)
    return StarTrials(
        name,
        instance.star,
        costs,
        runs,
        ends.count(Reason.SOLVED) / runs,
        gave_up / runs,
        math.inf if gave_up else float(spent.mean()),
        0.0 if gave_up else float(spent.std(ddof=1) / math.sqrt(runs)) if runs > 1 else math.inf,
        least,
        instance.bound(costs),
    )
