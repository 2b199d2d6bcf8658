"""The cost of a path under a step law: an exact dynamic programme (Theorem 6).

A path's worst ratio to J* over all laws with non-decreasing h is its worst ratio over step laws
(q, p); see `rounds.py`. Under a step law, only one number matters about the pool: how many open
candidates are at or above the threshold, the *good* ones:

* a slot that verifies the best adds Binomial(draws, q) good candidates. If there is one, it is
  verified and passes with probability p; if it fails, it leaves the pool;
* a blind slot passes with probability q p, and does not change the pool.

The expected cost is the sum over slots of the slot's cost times the chance to reach it. Pools with
more than `most` good candidates are one state. Treating them as pools of `most` delays a pass, and
so gives an upper bound; treating them as pools that never run out gives a lower bound. Both are
computed; the exact value is between them, up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.errors import UsageError
from ..rounds import StepLaw
from ..slots import Slot, SlotSchedule
from .continuation import Bracket

_Vector = NDArray[np.float64]  # indexed by the number of good candidates, 0 to `most`
_GOOD = 60  # the default of `most`


class Worst(NamedTuple):
    """The step law with the largest ratio found, and a lower bound on that ratio."""

    law: StepLaw
    ratio: float


def step_cost(slots: Iterable[Slot], law: StepLaw, rho: float, *, most: int = _GOOD) -> Bracket:
    """The expected cost of a path under a step law, in units of c_rew.

    A `SlotSchedule` whose cycle draws in every slot is solved as a linear system. Any other path is
    followed until the chance to get further is negligible, or to its end; after the end no more
    cost is added, even if nothing has passed.
    """
    if not (0 < law.q <= 1 and 0 < law.p <= 1 and rho > 0):
        raise UsageError(f"needs 0 < q, p <= 1 and a positive ratio of costs, not {law}, {rho}")
    fewer, more = (_Chain(law, rho, most, runs_out=out) for out in (True, False))
    if isinstance(slots, SlotSchedule) and not any(slot.draws for slot in slots.cycle):
        raise UsageError("the cycle of a schedule must draw at least one candidate")
    if isinstance(slots, SlotSchedule) and all(slot.draws for slot in slots.cycle):
        low = more.solved(slots)
        high = fewer.solved(slots)
    else:
        for slot in slots:
            more.take(slot)
            fewer.take(slot)
            if fewer.negligible:
                break
        low = more.cost
        high = fewer.cost
    return Bracket(low, max(low, high))


def step_ratio(slots: Iterable[Slot], law: StepLaw, rho: float, *, most: int = _GOOD) -> Bracket:
    """The expected cost over J_t, the optimum of the step law."""
    low, high = step_cost(slots, law, rho, most=most)
    return Bracket(low / law.optimum(rho), high / law.optimum(rho))


def worst_ratio(
    slots: Iterable[Slot], rho: float, *, q_down_to: float = 1e-6, most: int = _GOOD
) -> Worst:
    """The largest ratio over a grid of step laws: three q per factor of ten, and six values of p.

    It is a lower bound on the path's constant against J*.
    """
    steps = max(1, round(-3 * math.log10(q_down_to)))
    shares = [10 ** (math.log10(q_down_to) * i / steps) for i in range(steps + 1)]
    laws = [StepLaw(q, p) for q in shares for p in (1.0, 0.9, 0.5, 0.2, 0.05, 0.01)]
    return max(
        (Worst(law, step_ratio(slots, law, rho, most=most).low) for law in laws),
        key=lambda worst: worst.ratio,
    )


class _Chain:
    """The number of good candidates, as a Markov chain that ends with a pass.

    Attributes:
        cost: the expected cost so far.
        state: the chances of 0, 1, ... good candidates and no pass so far.
    """

    def __init__(self, law: StepLaw, rho: float, most: int, *, runs_out: bool) -> None:
        self.cost = 0.0
        self.state = np.zeros(most + 1)
        self.state[0] = 1.0
        self._law = law
        self._rho = rho
        self._most = most
        self._runs_out = runs_out
        self._waiting = 0  # open candidates, good or not
        self._dearest = 0.0  # the highest cost of a slot

    @property
    def negligible(self) -> bool:
        """Whether the future cost is negligible: a slot that draws passes with at least p q."""
        left = float(self.state.sum()) * self._dearest / (self._law.p * self._law.q)
        return left < 1e-12 * self.cost

    def take(self, slot: Slot) -> None:
        """Go through one slot."""
        self._waiting += slot.draws
        price = slot.draws + self._rho * bool(self._waiting)
        self._dearest = max(self._dearest, price)
        self.cost += price * float(self.state.sum())
        if self._waiting:
            self.state = self.after(slot, self.state)
            self._waiting -= 1

    def solved(self, schedule: SlotSchedule) -> float:
        """The expected cost of all slots, with a linear system for the cycle."""
        for slot in schedule.first:
            self.take(slot)
        # Row i: the distribution after a slot if the chain was at i before.
        here = np.eye(self._most + 1)
        through = here
        prices = np.zeros(self._most + 1)
        for slot in schedule.cycle:
            prices += (slot.draws + self._rho) * through.sum(axis=1)
            through = self.after(slot, through)
        return self.cost + float(self.state @ np.linalg.solve(here - through, prices))

    def after(self, slot: Slot, state: _Vector) -> _Vector:
        """The chances of the states after a slot without a pass; the last axis is the state."""
        q, p = self._law
        if slot.blind:
            return (1 - q * p) * state
        waiting = self.drawn(slot.draws, state)
        left = np.zeros_like(waiting)
        left[..., :-1] = (1 - p) * waiting[..., 1:]
        left[..., 0] += waiting[..., 0]
        if not self._runs_out:
            left[..., -2] -= (1 - p) * waiting[..., -1]
            left[..., -1] = (1 - p) * waiting[..., -1]
        return left

    def drawn(self, draws: int, state: _Vector) -> _Vector:
        """The state after this many draws; the last state also counts all higher ones."""
        return state @ _moves(draws, self._law.q, self._most) if draws else state


@lru_cache(maxsize=64)  # both chains and every slot of a cycle use the same matrices
def _moves(draws: int, q: float, most: int) -> _Vector:
    """The transition matrix from a state (row) to another (column) by this many draws."""
    chances = np.zeros(most + 1)
    found = _binomial(draws, q, most)
    chances[: len(found)] = found
    more = np.subtract.outer(np.arange(most + 1), np.arange(most + 1)).T  # column less row
    moves = np.where(more >= 0, chances[more], 0.0)
    moves[:, -1] = np.maximum(1 - moves[:, :-1].sum(axis=1), 0)
    return moves


def _binomial(n: int, q: float, most: int) -> list[float]:
    """The chances of 0, 1, ... `most` successes in n trials of probability q."""
    if q == 1:
        return [float(k == n) for k in range(min(n, most) + 1)]
    logs = (math.log(q), math.log1p(-q))
    return [
        math.exp(
            math.lgamma(n + 1)
            - math.lgamma(k + 1)
            - math.lgamma(n - k + 1)
            + k * logs[0]
            + (n - k) * logs[1]
        )
        for k in range(min(n, most) + 1)
    ]
