"""Bounds on the cost of a search by the centered star number (section 6 and appendix D).

The letters: s_0 is the centered star number, rho = c_ver / c_rew, p the chance that a candidate
passes, J* the optimal cost if the law is known.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...core.errors import UsageError
from ...core.values import Costs
from ..optimum import Law
from .classes import ConceptClass
from .search import Star, is_star


def binary_optimum(p: float, costs: Costs) -> float:
    """J* = c_rew / p + c_ver, for a binary concept with pass rate p (Lemma D.9).

    The optimal policy generates until a candidate is certain to pass, and verifies only that one.
    """
    if not 0 < p <= 1:
        raise UsageError(f"the chance of passing must be above 0 and at most 1, not {p:g}")
    return costs.candidate / p + costs.verify


def lower_bound(star: float, costs: Costs, eta: float = 1.0) -> float:
    """Theorem 6.2, Corollary D.2: for every sound policy there is a law with at least this cost.

    The cost is eta / 4 min(s_0, rho) times J*, with eta = 1 in a binary class.
    """
    return eta / 4 * min(star, costs.ratio)


def search_bound(star: float, costs: Costs) -> float:
    """Theorem 6.3: centered-star search costs at most 6 min(s_0, rho) J*, if rho is at least 1."""
    if star < 1 or costs.ratio < 1:
        raise UsageError("the star number and the cost ratio must be at least 1")
    return 6 * min(star, costs.ratio)


def sharper_search_bound(star: float, costs: Costs) -> float:
    """A sharper form of the same proof: at most 3 min(s_0, rho) J*.

    Verifying everything costs at most (1 + rho) J*. In batches, with x = n p and n >= rho s_0: a
    batch costs at most c_ver (2 s_0 + 1 / rho) and succeeds with probability at least 1 - exp(-x),
    and J* >= c_ver (s_0 / x + 1). Since (1 - exp(-x)) (s_0 + x) >= x for s_0 >= 1, the ratio is at
    most 2 s_0 + 1 / rho.
    """
    search_bound(star, costs)  # checks the arguments
    return 1 + costs.ratio if star > costs.ratio else 2 * star + 1 / costs.ratio


@dataclass(frozen=True)
class StarInstance:
    """The hard instance of Theorem 6.2: the points of a star, all equally likely.

    Candidates pass at only one of them, the target, which is uniformly random. Only verification
    can find out which one it is.

    Attributes:
        scores: the scores of the points, increasing: their column numbers in the class.
        chances: for each point, the chance that a candidate there passes if it is the target.
        eta: a lower bound on the chances.
    """

    scores: tuple[float, ...]
    chances: tuple[float, ...]
    eta: float = 1.0

    @property
    def star(self) -> int:
        """The number of points."""
        return len(self.scores)

    def law(self, target: int) -> Law:
        """The law under which candidates pass only at the point with this index."""
        chance = (self.chances[target] if at == target else 0.0 for at in range(len(self.scores)))
        return Law(self.scores, (1.0,) * self.star, tuple(chance))

    def optimum(self, target: int, costs: Costs) -> float:
        """J* = (m c_rew + c_ver) / h of that law, with m points and the chance h at the target.

        The optimal policy verifies exactly the candidates at the target, until one passes. If
        failures have a price, it takes the place of c_ver, and a pass adds the difference.
        """
        planned = (self.star * costs.candidate + costs.failure) / self.chances[target]
        return planned + (costs.verify - costs.failure)

    def bound(self, costs: Costs) -> float:
        """The lower bound on the ratio to J* for this instance, before it is simplified to 1/4.

        With m equally likely points, a policy needs at least (m + 1) / 2 verifications on average
        to find the target, and at least one candidate for each of them. So any sound policy costs
        at least (m + 1) / 2 (c_rew + c_ver) on average; and h may be as low as eta.
        """
        least = (self.star + 1) / 2 * (costs.candidate + costs.verify)
        return self.eta * least / (self.star * costs.candidate + costs.verify)


def star_instance(of: ConceptClass, star: Star, *, eta: float = 1.0) -> StarInstance:
    """The hard instance of a given star."""
    if star.centre is not None or not is_star(of, star.points, star.concepts, eta=eta):
        raise UsageError("the given points and concepts are not a centered star of this class")
    if not star.points:
        raise UsageError("a class without a star (s_0 = 0) has no hard instance")
    order = sorted(zip(star.points, star.concepts, strict=True))
    return StarInstance(
        tuple(float(point) for point, _ in order),
        tuple(float(of.values[concept, point]) for point, concept in order),
        eta,
    )
