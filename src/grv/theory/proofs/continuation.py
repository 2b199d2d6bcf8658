"""The value of a pool of unverified candidates, by Lemma B.2 and by dynamic programming.

The paper's letters: h is a candidate's chance of passing, tau* the break-even chance, J* the
optimal cost from an empty pool, and W(P) the optimal cost from pool P: verify the candidates above
tau*, best first, discard the rest, and start again if all of them fail.

The lemma says that no policy gains by storing candidates. `continuation_value` uses the lemma;
`pool_values` does not, and brackets the optimum over all policies by dynamic programming.

Theory of operation of the dynamic programme
--------------------------------------------
A state is a pool: the number of unverified candidates of each atom. From every pool a policy can
generate, which adds a candidate, or verify a stored candidate, which ends the search or removes the
candidate. Pools larger than `cap` are not followed. They are replaced by bounds that hold for any
search problem of this kind and use no lemma of the paper. c(h) is the expected cost of a
verification that passes with chance h: c_ver, unless failures have a price c_fail of their own.

1. Upper: a candidate can be discarded, so V(P + r) <= V(P).
2. Lower: no verification passes with a higher chance than max h, so there are 1 / max h of them
   in the mean, and one passes: V(P) >= c_fail / max h + (c_ver - c_fail).
3. Lower: run an optimal policy for P + r from P alone, pretending that r fails if it is verified.
   At that verification this run saves c(h(r)), and with probability h(r) it continues where the
   other run ended, at an expected cost of at most V(empty). Hence
   V(P) <= V(P + r) + (h(r) V(empty) - c(h(r)))+.

Value iteration that starts from a lower (upper) bound keeps a lower (upper) bound at every sweep.
So stopping early only widens the bracket.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...core.errors import UsageError
from ...core.values import Costs
from ..optimum import Law, mean_price, optimum, rule_cost

Counts = tuple[int, ...]  # a pool: the number of candidates of each atom of the law

_SWEEPS = 20_000
_SETTLED = 1e-13  # the relative change of a sweep at which the iteration ends


def continuation_value(chances: Iterable[float], law: Law, costs: Costs) -> float:
    """Lemma B.2: W(P), the optimal future cost from a pool of candidates with these chances."""
    tau, value = optimum(law, costs)
    for h in sorted(h for h in chances if h > tau):  # backwards: the best is verified first
        value = mean_price(h, costs) + (1 - h) * value
    return value


def insertion_bound(chance: float, law: Law, costs: Costs) -> float:
    """The highest saving by one more stored candidate: (h(r) J* - c_ver)+, Step 2 of the lemma."""
    return max(0.0, chance * optimum(law, costs).cost - mean_price(chance, costs))


class Bracket(NamedTuple):
    """A lower and an upper bound."""

    low: float
    high: float


def pool_values(law: Law, costs: Costs, cap: int) -> dict[Counts, Bracket]:
    """A bracket of the optimal cost over all policies, for each pool of at most `cap` candidates.

    For the empty pool this is J* (Definition 3.1). The brackets are correct up to rounding (about
    1e-12, relative). They are narrow for pools well
    below the cap. There are `C(atoms + cap, cap)` pools, so this is for small laws only.
    """
    if cap < 1:
        raise UsageError(f"the cap on a pool must be at least 1, not {cap}")
    pools = _pools(len(law.passes), cap)
    empty = pools[0]
    most = rule_cost(1.0, law.pass_rate, costs)  # the cost of verifying everything
    high = _Programme(law, costs, _forget).iterate(dict.fromkeys(pools, most))

    saved = [max(0.0, h * high[empty] - mean_price(h, costs)) for h in law.passes]
    least = costs.failure / max(law.passes) + (costs.verify - costs.failure)
    keep = functools.partial(_keep, saved, least)
    low = _Programme(law, costs, keep).iterate(dict.fromkeys(pools, least))
    return {pool: Bracket(low[pool], high[pool]) for pool in pools}


def _pools(atoms: int, cap: int) -> list[Counts]:
    """All pools of at most `cap` candidates, smaller ones first."""
    counts = itertools.product(range(cap + 1), repeat=atoms)
    return sorted((pool for pool in counts if sum(pool) <= cap), key=sum)


_Values = dict[Counts, float]


@dataclass(frozen=True)
class _Programme:
    """Value iteration; `beyond` bounds the value of a pool that exceeds the cap."""

    law: Law
    costs: Costs
    beyond: Callable[[_Values, Counts], float]

    def iterate(self, values: _Values) -> _Values:
        """Sweep over the pools until the values settle."""
        for _ in range(_SWEEPS):
            change = 0.0
            for pool, old in values.items():
                values[pool] = new = self._least_cost(values, pool)
                change = max(change, abs(new - old) / new)
            if change < _SETTLED:
                break
        return values

    def _least_cost(self, values: _Values, pool: Counts) -> float:
        """The cost of the best action, given the values of the pools that it may lead to."""
        best = self.costs.candidate
        for atom, mass in enumerate(self.law.masses):
            larger = _with(pool, atom, 1)
            best += mass * (values[larger] if larger in values else self.beyond(values, larger))
        for atom, h in enumerate(self.law.passes):
            if pool[atom]:
                price = mean_price(h, self.costs)
                best = min(best, price + (1 - h) * values[_with(pool, atom, -1)])
        return best


def _forget(values: _Values, pool: Counts) -> float:
    """Bound 1, with the candidate that gives the lowest bound."""
    return min(_one_fewer(values, pool).values())


def _keep(saved: Sequence[float], least: float, values: _Values, pool: Counts) -> float:
    """The better of bounds 2 and 3, with the candidate that gives the highest bound."""
    without = (value - saved[atom] for atom, value in _one_fewer(values, pool).items())
    return max(least, *without)


def _one_fewer(values: _Values, pool: Counts) -> dict[int, float]:
    """For each atom in the pool, the value without one candidate of it."""
    return {atom: values[_with(pool, atom, -1)] for atom, count in enumerate(pool) if count}


def _with(pool: Counts, atom: int, more: int) -> Counts:
    return (*pool[:atom], pool[atom] + more, *pool[atom + 1 :])
