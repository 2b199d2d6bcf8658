"""Continuous laws: the optimum for scores with a continuous distribution.

The paper's letters are those of `optimum.py`, which has the discrete laws: tau*, J*, h, q_t, s_t
and J_t. A law is integrated over u in (0, 1), the share of candidates with a lower score. If u is
uniform, the quantile Q(u) has the law's distribution.

Accuracy: the relative error is about 1e-8, also if h has steps and bends; an integral with a larger
estimated error raises `UsageError`. There are two limits. The integrator misses a bump of h that
lies between its nodes. The nodes are at most 1/1024 apart in u, and closer near both ends, so that
a rare good tail is found; add anything narrower to `breaks`. And near 1, u is a float with an error
of 1e-16, and so are q_t and s_t: for a good tail with a share of 1e-9 of the candidates, the
relative error is 1e-7.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ...core.errors import UsageError
from ...core.values import Costs
from ..optimum import BestThreshold, Law, Optimum, Tail, rule_cost

_SOUGHT = 1e-10  # the relative error at which an integral is finished
_ACCEPTED = 1e-8  # the largest relative error that is accepted after `_SPLITS` splits
_SPLITS = 20_000
_RESOLVED = 2.0**-53  # the distance of neighbouring u near 1
_ENDS = tuple(16.0**-i / 256 for i in range(8, 0, -1))
_PANELS = (*_ENDS, *(i / 256 for i in range(1, 256)), *(1 - end for end in reversed(_ENDS)))


@dataclass(frozen=True)
class ContinuousLaw:
    """A law given by its quantiles and by the chance of passing at each score.

    Attributes:
        quantile: the score that a share u of the candidates is below, for u in (0, 1);
            non-decreasing.
        passing: h, the chance of passing at a score, in [0, 1]; need not be monotone.
        breaks: scores at which h changes within less than 0.1% of the candidates.
    """

    quantile: Callable[[float], float]
    passing: Callable[[float], float]
    breaks: Sequence[float] = ()

    def __post_init__(self) -> None:
        scores = [self.score_at(u) for u in _PANELS]
        if any(not low <= high for low, high in itertools.pairwise(scores)):
            raise UsageError("the quantiles of a law must not decrease")
        if not self.pass_rate:
            raise UsageError("no candidate of this law ever passes, so no search can succeed")

    @cached_property
    def pass_rate(self) -> float:
        """The probability that a candidate passes."""
        return _integral(self, self.passing_at)

    @cached_property
    def edges(self) -> tuple[float, ...]:
        """The points between 0 and 1 at which an integral over u is divided into panels."""
        return tuple(sorted({*_PANELS, *map(self.share_below, self.breaks)} - {0.0, 1.0}))

    def score_at(self, u: float) -> float:
        """The u-quantile of the scores; at u = 0 and 1, a score next to the end."""
        return float(self.quantile(min(max(u, _RESOLVED / 2048), 1 - _RESOLVED)))

    def passing_at(self, u: float) -> float:
        """The chance of passing at the u-quantile."""
        score = self.score_at(u)
        chance = float(self.passing(score))
        if not 0 <= chance <= 1:
            raise UsageError(f"the chance of passing at {score} is {chance}, not between 0 and 1")
        return chance

    def share_below(self, t: float) -> float:
        """The share of candidates that score less than t, with an absolute error of 1e-16."""
        return _first(lambda u: self.score_at(u) >= t, 0.0, 1.0)

    def discretised(self, n: int) -> Law:
        """A discrete law of n atoms of equal mass, each with the mean of h over its share of 1/n.

        Equal scores become one atom. The law carries less information, so its J* is never lower.
        """
        if n < 1:
            raise UsageError(f"a law needs at least one atom, not {n}")
        atoms: dict[float, list[float]] = {}
        for i in range(n):
            mean = n * _integral(self, self.passing_at, i / n, (i + 1) / n)
            atoms.setdefault(self.score_at((i + 0.5) / n), []).append(min(mean, 1.0))
        return Law(
            tuple(atoms),
            tuple(float(len(means)) for means in atoms.values()),
            tuple(math.fsum(means) / len(means) for means in atoms.values()),
        )


def optimum(law: ContinuousLaw, costs: Costs) -> Optimum:
    """Theorem 3.2: tau* solves `c_ver E[(h(R) - tau)+] = tau c_rew`, and J* = c_ver / tau*.

    It is computed by Newton's method. Each step is a step of policy iteration: the next tau is
    c_ver over the cost of verifying all candidates with h above the current tau. The equation is
    convex in tau, so the steps only increase, starting from verifying everything. The error of the
    result is that of E[(h - tau)+]. A price of failures takes the place of c_ver; J* is then higher
    by the difference, as in `optimum.optimum`.
    """
    planning = costs.planning
    tau = 0.0
    better = planning.verify / rule_cost(1.0, law.pass_rate, planning)
    while better > tau * (1 + 1e-12):
        tau = better
        q = _share_above(law, tau)
        s = _gain_above(law, tau) + tau * q
        better = planning.verify / rule_cost(q, s, planning)
    return Optimum(tau, planning.verify / tau + (costs.verify - costs.failure))


def tail(law: ContinuousLaw, t: float) -> Tail:
    """q_t and s_t (Lemma C.1)."""
    below = law.share_below(t)
    return Tail(1 - below, _integral(law, law.passing_at, below, 1.0))


def threshold_cost(law: ContinuousLaw, t: float, costs: Costs) -> float:
    """J_t = (c_rew + c_ver q_t) / s_t, the cost of verifying all candidates that score >= t."""
    return rule_cost(*tail(law, t), costs)


def best_threshold(law: ContinuousLaw, costs: Costs) -> BestThreshold:
    """The lowest J_t; it equals J* if h is non-decreasing (Lemma C.1).

    Thresholds are compared at the edges of the law's panels; then the minimum is searched between
    the neighbours of the best edge: J_t falls with t while h < c_ver / J_t, and rises while h is
    larger. If h is so uneven that there are several minima between two edges, one may be missed.
    """
    planning = costs.planning
    edges = (0.0, *law.edges, 1.0)
    panels = [_integral(law, law.passing_at, *panel) for panel in itertools.pairwise(edges)]
    passing = [*itertools.accumulate(reversed(panels), initial=0.0)][::-1]

    def rising(u: float) -> bool:
        s = passing[upper] + _integral(law, law.passing_at, u, edges[upper])
        return law.passing_at(u) * rule_cost(1 - u, s, planning) > planning.verify

    best = min(range(len(edges)), key=lambda i: rule_cost(1 - edges[i], passing[i], planning))
    upper = min(best + 1, len(edges) - 1)
    valley = _first(rising, edges[max(best - 1, 0)], edges[upper])
    scores = {law.score_at(u) for u in (edges[best], valley)}
    return min(
        (BestThreshold(t, threshold_cost(law, t, costs)) for t in scores),
        key=lambda each: (each.cost, -each.score),
    )


def _share_above(law: ContinuousLaw, tau: float) -> float:
    """P(h(R) > tau)."""
    return _integral(law, lambda u: float(law.passing_at(u) > tau))


def _gain_above(law: ContinuousLaw, tau: float) -> float:
    """E[(h(R) - tau)+]."""
    return _integral(law, lambda u: max(law.passing_at(u) - tau, 0.0))


def _first(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The first u at which a monotone condition is true; `high` if there is none."""
    while low < (middle := (low + high) / 2) < high and high - low > _RESOLVED / 16:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _integral(
    law: ContinuousLaw, of: Callable[[float], float], start: float = 0.0, end: float = 1.0
) -> float:
    """The integral over u by Simpson's rule, splitting the panel with the largest error.

    The rule has nodes at both ends of a panel, so it finds a step of h anywhere. Rules without such
    nodes, such as Gauss's, miss a step next to an end and report no error.
    """
    inner = (edge for edge in law.edges if start < edge < end)
    panels = [
        _panel(of, a, b, of(a), of((a + b) / 2), of(b))
        for a, b in itertools.pairwise((start, *inner, end))
    ]
    heapq.heapify(panels)
    value = math.fsum(panel.value for panel in panels)
    error = -math.fsum(panel.minus_error for panel in panels)
    for _ in range(_SPLITS):
        if error <= _SOUGHT * value + _RESOLVED / 16:
            break
        panel = panels[0]
        first, second = panel.halves(of)
        heapq.heapreplace(panels, first)
        heapq.heappush(panels, second)
        value += first.value + second.value - panel.value
        error += panel.minus_error - first.minus_error - second.minus_error
    if error > _ACCEPTED * value + _RESOLVED:
        raise UsageError(f"h is too uneven: its integral is {value:.4g} with error {error:.1g}")
    return math.fsum(panel.value for panel in panels)


class _Panel(NamedTuple):
    """A panel of an integral. The one with the largest error sorts first in a heap."""

    minus_error: float
    start: float
    end: float
    heights: tuple[float, float, float, float, float]  # at both ends and the quarters between
    value: float

    def halves(self, of: Callable[[float], float]) -> tuple[_Panel, _Panel]:
        middle = (self.start + self.end) / 2
        return (
            _panel(of, self.start, middle, *self.heights[:3]),
            _panel(of, middle, self.end, *self.heights[2:]),
        )


def _panel(
    of: Callable[[float], float], start: float, end: float, left: float, middle: float, right: float
) -> _Panel:
    """Simpson's rule with three nodes and with five; their difference is the error.

    The error counts as zero if the nodes are too close for floats to distinguish.
    """
    width = end - start
    first = of(start + width / 4)
    third = of(end - width / 4)
    three = width / 6 * (left + 4 * middle + right)
    five = width / 12 * (left + 4 * first + 2 * middle + 4 * third + right)
    error = abs(five - three) if width > 4 * _RESOLVED else 0.0
    return _Panel(-error, start, end, (left, first, middle, third, right), five)
