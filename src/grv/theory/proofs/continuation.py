"""What a pool of unverified candidates is worth, in theory and by exhaustive search (Lemma B.2).

The paper's letters: h is a candidate's chance of passing, tau* the break-even chance, J* the
optimal cost from an empty pool, and W(P) the optimal cost from pool P: verify what is above tau*,
best first, forget the rest, and start afresh if all of it fails.

The lemma says that no policy does better by storing candidates. `continuation_value` believes it;
`pool_values` does not, and brackets the optimum over all policies by dynamic programming.

Theory of operation of the dynamic programme
--------------------------------------------
A state is a pool: how many unverified candidates it holds of each atom. From every pool one can
generate, which leads to one more candidate, or verify a stored one, which ends the search or leads
to one fewer. Pools larger than `cap` are not followed. In their place stands a bound that holds for
any search problem of this kind, by an argument that uses no lemma of the paper:

1. Above: a candidate can be forgotten, so V(P + r) <= V(P).
2. Below: no verification passes with more than the largest h, so V(P) >= c_ver / max h.
3. Below: run an optimal policy for P + r from P alone, pretending that r fails if it is verified.
   Where it is, this run saves c_ver, and with probability h(r) goes on where the other one ended,
   at an expected cost of at most V(empty). Hence V(P) <= V(P + r) + (h(r) V(empty) - c_ver)+.

Value iteration from a lower bound, or an upper bound, stays one at every sweep; stopping early
widens the bracket and invalidates nothing.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...core.errors import UsageError
from ...core.values import Costs
from ..optimum import Law, optimum

Counts = tuple[int, ...]  # a pool: how many candidates of each atom of the law

_SWEEPS = 20_000
_SETTLED = 1e-13  # relative change of a sweep, below which another one is not worth it


def continuation_value(chances: Iterable[float], law: Law, costs: Costs) -> float:
    """W(P), the optimal expected cost to come, for a pool of candidates with these chances."""
    tau, value = optimum(law, costs)
    for h in sorted(h for h in chances if h > tau):  # backwards: the best is verified first
        value = costs.verify + (1 - h) * value
    return value


def insertion_bound(chance: float, law: Law, costs: Costs) -> float:
    """The most that one more stored candidate can save: (h(r) J* - c_ver)+, Step 2 of the lemma."""
    return max(0.0, chance * optimum(law, costs).cost - costs.verify)


class Bracket(NamedTuple):
    """A lower and an upper bound."""

    low: float
    high: float


def pool_values(law: Law, costs: Costs, cap: int) -> dict[Counts, Bracket]:
    """The optimal cost over all policies, bracketed, from each pool of at most `cap` candidates.

    The brackets are true up to rounding (about 1e-12, relative). They are narrow for pools well
    below the cap. There are `C(atoms + cap, cap)` pools: for small laws only.
    """
    if cap < 1:
        raise UsageError(f"the cap on a pool must be at least 1, not {cap}")
    pools = _pools(len(law.passes), cap)
    empty = pools[0]
    most = (costs.candidate + costs.verify) / law.pass_rate  # verify whatever comes
    high = _Programme(law, costs, _forget).iterate(dict.fromkeys(pools, most))

    saved = [max(0.0, h * high[empty] - costs.verify) for h in law.passes]
    least = costs.verify / max(law.passes)
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
    """Value iteration; `beyond` stands for the value of a pool that exceeds the cap."""

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
        """The cost of the best action, the values of the pools that it may lead to being given."""
        best = self.costs.candidate
        for atom, mass in enumerate(self.law.masses):
            larger = _with(pool, atom, 1)
            best += mass * (values[larger] if larger in values else self.beyond(values, larger))
        for atom, h in enumerate(self.law.passes):
            if pool[atom]:
                best = min(best, self.costs.verify + (1 - h) * values[_with(pool, atom, -1)])
        return best


def _forget(values: _Values, pool: Counts) -> float:
    """Bound 1, with the candidate whose loss costs least."""
    return min(_one_fewer(values, pool).values())


def _keep(saved: Sequence[float], least: float, values: _Values, pool: Counts) -> float:
    """The better of bounds 2 and 3, with the candidate that gives most."""
    without = (value - saved[atom] for atom, value in _one_fewer(values, pool).items())
    return max(least, *without)


def _one_fewer(values: _Values, pool: Counts) -> dict[int, float]:
    """For each atom in the pool, the value without one candidate of it."""
    return {atom: values[_with(pool, atom, -1)] for atom, count in enumerate(pool) if count}


def _with(pool: Counts, atom: int, more: int) -> Counts:
    return (*pool[:atom], pool[atom] + more, *pool[atom + 1 :])
