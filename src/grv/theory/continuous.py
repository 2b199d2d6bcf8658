"""Continuous laws: the optimum where scores have a distribution and not a list of atoms.

The paper's letters are those of `optimum.py`, which has the discrete laws: tau*, J*, h, q_t, s_t
and J_t. A law is integrated over u in (0, 1), the share of candidates that score less: Q(u), the
quantile, has the law's distribution where u is uniform.

Accuracy: the results are good to a relative 1e-8, for h piecewise smooth in u, and the integrator's
own estimate of its error is checked against that; where it is larger, a `UsageError` says so. The
panels of integration get finer towards both ends, so that a rare good tail is seen. What no
integrator can see is a bump of h between its nodes, which are at most 1/800 apart in u: narrower
ones belong into `breaks`. Near 1, u itself is exact to 1e-16 only, and so are q_t and s_t; for a
good tail that holds a share of 1e-9 of the candidates, the relative error is 1e-7.

Needs scipy (`pip install 'grv[laws]'`), loaded at the first integral.
"""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..core.errors import UsageError
from ..core.values import Costs
from .optimum import BestThreshold, Law, Optimum, Tail

_RELATIVE = 1e-10  # error asked of the integrator
_ACCEPTED = 1e-8  # error accepted from it
_RESOLVED = 2.0**-53  # near 1, neighbouring u are so far apart
_SMALLEST, _LARGEST = 1e-300, 1 - _RESOLVED  # u is never quite 0 or 1, where quantiles are infinite
_ENDS = tuple(16.0**-i / 64 for i in range(9, 0, -1))
_PANELS = (*_ENDS, *(i / 64 for i in range(1, 64)), *(1 - end for end in reversed(_ENDS)))
_CELLS = 4  # of a panel, when thresholds are compared


@dataclass(frozen=True)
class ContinuousLaw:
    """A law given by its quantiles and by the chance of passing at each score.

    Attributes:
        quantile: the score below which a share u of the candidates is, for u in (0, 1);
            non-decreasing.
        passing: h, the chance of passing at a score, in [0, 1]; need not be monotone.
        breaks: scores at which h jumps or bends. Not needed, but the more exact for it.
    """

    quantile: Callable[[float], float]
    passing: Callable[[float], float]
    breaks: Sequence[float] = ()

    def __post_init__(self) -> None:
        probes = [self.score_at(u) for u in _PANELS]
        if any(not low <= high for low, high in itertools.pairwise(probes)):
            raise UsageError("the quantiles of a law must not decrease")
        for u in _PANELS:
            self.passing_at(u)

    @property
    def pass_rate(self) -> float:
        """The probability that a candidate passes."""
        return _integral(self, self.passing_at)

    @cached_property
    def edges(self) -> tuple[float, ...]:
        """The places between 0 and 1 at which an integral over u is cut into pieces."""
        return tuple(sorted({*_PANELS, *map(self.share_below, self.breaks)} - {0.0, 1.0}))

    def score_at(self, u: float) -> float:
        """The score that a share u of the candidates is below; finite where Q is infinite."""
        return float(self.quantile(min(max(u, _SMALLEST), _LARGEST)))

    def passing_at(self, u: float) -> float:
        """h(Q(u)): the chance of passing of the candidate that a share u of the others is below."""
        score = self.score_at(u)
        chance = float(self.passing(score))
        if not 0 <= chance <= 1:
            raise UsageError(f"the chance of passing at {score} is {chance}, not between 0 and 1")
        return chance

    def share_below(self, t: float) -> float:
        """The share of candidates that score less than t, to an absolute 1e-16."""
        return _first(lambda u: self.score_at(u) >= t, 0.0, 1.0)

    def discretised(self, n: int) -> Law:
        """A discrete law of n atoms of equal mass, with the mean of h over each share of 1/n.

        Scores that are equal become one atom. As it knows less, its optimum is never cheaper.
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

    The left side lies between c_ver (p - tau) and c_ver p, p being the pass rate, which brackets
    the root within a factor of 1 + c_ver / c_rew. Its slope is such that tau* is relatively no less
    exact than the integral.
    """
    pass_rate = _positive_pass_rate(law)

    def surplus(tau: float) -> float:
        gain = _integral(law, lambda u: max(law.passing_at(u) - tau, 0.0))
        return costs.verify * gain - tau * costs.candidate

    low = costs.verify * pass_rate / (costs.candidate + costs.verify)
    high = min(costs.verify * pass_rate / costs.candidate, 1.0)
    tau = _root(surplus, low / 1.001, min(1.001 * high, 1.0))
    return Optimum(tau, costs.verify / tau)


def tail(law: ContinuousLaw, t: float) -> Tail:
    """What scores at least t: q_t and s_t (Lemma C.1)."""
    below = law.share_below(t)
    return Tail(1 - below, _integral(law, law.passing_at, below, 1.0))


def threshold_cost(law: ContinuousLaw, t: float, costs: Costs) -> float:
    """J_t = (c_rew + c_ver q_t) / s_t, the cost of verifying exactly what scores at least t."""
    q, s = tail(law, t)
    return (costs.candidate + costs.verify * q) / s if s else math.inf


def best_threshold(law: ContinuousLaw, costs: Costs) -> BestThreshold:
    """The cheapest J_t; equal to J* where h is non-decreasing (Lemma C.1).

    Thresholds are compared on a grid of shares, and the valley is sought between the neighbours of
    the best one: J_t falls with t while h < c_ver / J_t, and rises where h is larger. For an h so
    uneven that there are several valleys between two neighbours, one of them may be missed.
    """
    _positive_pass_rate(law)
    shares = _grid(law)
    cells = [_integral(law, law.passing_at, *cell) for cell in itertools.pairwise(shares)]
    passing = [*itertools.accumulate(reversed(cells), initial=0.0)][::-1]

    def cost(u: float, s: float) -> float:
        return (costs.candidate + costs.verify * (1 - u)) / s if s else math.inf

    def rising(u: float) -> bool:
        s = passing[upper] + _integral(law, law.passing_at, u, shares[upper])
        return law.passing_at(u) * cost(u, s) > costs.verify

    best = min(range(len(shares)), key=lambda i: cost(shares[i], passing[i]))
    upper = min(best + 1, len(shares) - 1)
    valley = _first(rising, shares[max(best - 1, 0)], shares[upper])
    scores = {law.score_at(u) for u in (shares[best], valley)}
    return min(
        (BestThreshold(t, threshold_cost(law, t, costs)) for t in scores),
        key=lambda each: (each.cost, -each.score),
    )


def _positive_pass_rate(law: ContinuousLaw) -> float:
    if not (pass_rate := law.pass_rate):
        raise UsageError("no candidate of this law ever passes, so no search of it can end")
    return pass_rate


def _grid(law: ContinuousLaw) -> list[float]:
    """The edges of the law's panels, and so many shares between each two."""
    edges = (0.0, *law.edges, 1.0)
    steps = [i / _CELLS for i in range(_CELLS)]
    return [a + step * (b - a) for a, b in itertools.pairwise(edges) for step in steps] + [1.0]


def _integral(
    law: ContinuousLaw, of: Callable[[float], float], start: float = 0.0, end: float = 1.0
) -> float:
    """The integral over u; refused where it is not exact enough.

    By bisection, without extrapolation: `scipy.integrate.quad` extrapolates, and where h has two
    steps close to one another it was seen to be wrong by a thousand times its estimate.
    """
    if start >= end:
        return 0.0
    inner = [edge for edge in law.edges if start < edge < end]
    value, error = _scipy("integrate").quad_vec(
        of, start, end, epsabs=0, epsrel=_RELATIVE, points=inner
    )
    if error > _ACCEPTED * value + _RESOLVED:
        raise UsageError(
            f"the integral of h is {value:.3g}, give or take {error:.1g}; name its steps in breaks"
        )
    return float(value)


def _first(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Where a statement about u that is false, then true, becomes true; `high` if it never does."""
    while low < (middle := (low + high) / 2) < high and high - low > _RESOLVED / 16:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    found: float = _scipy("optimize").brentq(function, low, high, xtol=1e-12 * low, rtol=1e-12)
    return found


def _scipy(module: str) -> Any:
    try:
        return importlib.import_module(f"scipy.{module}")
    except ImportError as error:
        raise UsageError("continuous laws need scipy: pip install 'grv[laws]'") from error
