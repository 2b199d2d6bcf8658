"""Policies against the hard instances of the lower bound, and against any law, without end."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.errors import UsageError
from ..core.search import Policy, Search
from ..core.values import (
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
from ..policies import POLICIES
from ..policies.spec import parse
from ..theory.optimum import Law
from ..theory.stars.bounds import StarInstance, lower_bound

_BLOCK = 256  # candidates
_LEAST_BOUND = 12.5  # a lower one counts as this where runs that go on and on are cut off


def stream(
    policy: Policy,
    law: Law,
    costs: Costs,
    chance: np.random.Generator,
    *,
    budget: float = math.inf,
    width: int | None = 1,
) -> Outcome:
    """How the policy fares with fresh candidates of the law, as many as it likes."""
    candidates = _Candidates(law, chance)
    search = Search(policy, costs, budget=budget, width=width)
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
    """Candidates of a law in order of arrival, drawn in blocks: one at a time is slow."""

    def __init__(self, law: Law, chance: np.random.Generator) -> None:
        self._law, self._chance = law, chance
        self._ends = np.cumsum(law.masses)[:-1]
        self._scores: list[float] = []
        self._passed: list[bool] = []
        self._given = 0

    def next(self, n: int) -> tuple[float, ...]:
        """The scores of so many more."""
        start, self._given = self._given, self._given + n
        if (missing := self._given - len(self._scores)) > 0:
            size = max(missing, _BLOCK)
            at = np.searchsorted(self._ends, self._chance.random(size), side="right")
            passes = np.array(self._law.passes)[at]
            self._scores += np.array(self._law.scores)[at].tolist()
            self._passed += (self._chance.random(size) < passes).tolist()
        return tuple(self._scores[start : self._given])

    def verdict(self, id: int) -> Verdict:
        """Whether a candidate passes."""
        return Verdict.PASSED if self._passed[id] else Verdict.FAILED


@dataclass(frozen=True)
class Measured:
    """How a policy fared against a hard instance, the target uniformly random.

    Attributes:
        policy: its name.
        star: points of the instance.
        costs: the price list.
        runs: how many.
        solved: the share that found the target.
        gave_up: the share that ended without it; such a policy is not sound, and costs infinity.
        ratio: mean cost in units of J*; where a run was cut off, the true one is higher.
        error: its standard error.
        bound: eta / 4 min(s_0, c_ver / c_rew), which no sound policy is below.
        tighter: the bound of this instance before it was rounded down to that.
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
        """Whether it never gave up."""
        return self.gave_up == 0

    @property
    def cut_off(self) -> float:
        """The share of runs that were cut off."""
        return 1 - self.solved - self.gave_up


def lineup(instance: StarInstance) -> tuple[dict[str, Policy], tuple[str, ...]]:
    """Every registered policy, with what it has to be told; and those that cannot be told.

    Nobody is told which point it is. A threshold is below all of them, the known law is the average
    over all targets, and the class is that of the single points.
    """
    m = instance.star
    average = tuple(chance / m for chance in instance.chances)
    told = {
        "centered-star": f"centered-star('singletons:{m}', {instance.scores})",
        "fixed": f"fixed({4 * m}, {m})",
        "known-law": f"known-law({instance.scores}, {average})",
        "threshold": f"threshold({instance.scores[0]})",
    }
    found: dict[str, Policy] = {}
    untold = []
    for name in POLICIES:
        try:
            found[name] = parse(told.get(name, name))
        except UsageError:
            untold.append(name)
    return found, tuple(untold)


def measure(
    policies: Mapping[str, Policy],
    instance: StarInstance,
    prices: Sequence[Costs],
    *,
    runs: int = 100,
    seed: int = 0,
    patience: float = 8,
) -> Iterator[Measured]:
    """Every policy at every price list, against the same random targets, one after the other.

    A run that goes on and on is cut off at `patience` times the bound, and counted as that; where
    the bound is below 12.5, at so many times 12.5.
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
) -> Measured:
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
    return Measured(
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
