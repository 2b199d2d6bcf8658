"""What the centered star number says about the cost of a search (section 6 and appendix D).

The letters: s_0 is the centered star number, rho = c_ver / c_rew, p the chance that a candidate
passes, J* the cost for somebody who knows the law.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...core.errors import UsageError
from ...core.values import Costs
from ..optimum import Law
from .classes import ConceptClass
from .search import Star, is_star


def binary_optimum(p: float, costs: Costs) -> float:
    """J* = c_rew / p + c_ver, for a binary concept that lets p of the candidates pass (Lemma D.9).

    One waits for the first candidate that passes, and verifies that one.
    """
    if not 0 < p <= 1:
        raise UsageError(f"the chance of passing must be above 0 and at most 1, not {p:g}")
    return costs.candidate / p + costs.verify


def lower_bound(star: float, costs: Costs, eta: float = 1.0) -> float:
    """Theorem 6.2 and Corollary D.2: some law makes any sound policy cost that many J*.

    That is eta / 4 min(s_0, rho), with eta = 1 in a binary class.
    """
    return eta / 4 * min(star, costs.ratio)


def search_bound(star: float, costs: Costs) -> float:
    """Theorem 6.3: centered-star search costs at most 6 min(s_0, rho) J*, if rho is at least 1."""
    if star < 1 or costs.ratio < 1:
        raise UsageError("the bound is for star numbers and cost ratios of at least 1")
    return 6 * min(star, costs.ratio)


def sharper_search_bound(star: float, costs: Costs) -> float:
    """What the same proof gives with a little more care: at most 3 min(s_0, rho) J*.

    Everything verified costs at most 1 + rho times J*. In batches, with x = n p and n at least
    rho s_0: a batch costs at most c_ver (2 s_0 + 1 / rho) and succeeds with at least 1 - exp(-x),
    and J* is at least c_ver (s_0 / x + 1). As (1 - exp(-x)) (s_0 + x) is at least x for s_0 >= 1,
    the ratio is at most 2 s_0 + 1 / rho.
    """
    search_bound(star, costs)  # refuses what it is not for
    return 1 + costs.ratio if star > costs.ratio else 2 * star + 1 / costs.ratio


@dataclass(frozen=True)
class StarInstance:
    """The hard instance of Theorem 6.2: as many points as the star has, all equally likely.

    One of them, uniformly random, is where candidates pass; nothing but verifying tells which.

    Attributes:
        scores: of the points, increasing: their column numbers in the class.
        chances: of each, the chance that a candidate there passes, if it is the one.
        eta: no chance is lower.
    """

    scores: tuple[float, ...]
    chances: tuple[float, ...]
    eta: float = 1.0

    @property
    def star(self) -> int:
        """How many points there are."""
        return len(self.scores)

    def law(self, target: int) -> Law:
        """The law under which candidates pass at the target-th point alone."""
        chance = (self.chances[target] if at == target else 0.0 for at in range(len(self.scores)))
        return Law(self.scores, (1.0,) * self.star, tuple(chance))

    def optimum(self, target: int, costs: Costs) -> float:
        """J* = (m c_rew + c_ver) / h of that law, m points and h the chance of passing there.

        One waits for the point and verifies what is there, again and again where h is below 1.
        """
        return (self.star * costs.candidate + costs.verify) / self.chances[target]

    def bound(self, costs: Costs) -> float:
        """The least ratio to J* that is proved for this instance, before it is rounded down to 1/4.

        Of m equally likely points, verifying finds the right one at the (m + 1) / 2-th on average
        at the earliest, and at least one candidate has to be there for each. So any sound policy
        costs (m + 1) / 2 (c_rew + c_ver) on average, and at best h is as low as eta.
        """
        least = (self.star + 1) / 2 * (costs.candidate + costs.verify)
        return self.eta * least / (self.star * costs.candidate + costs.verify)


def star_instance(of: ConceptClass, star: Star, *, eta: float = 1.0) -> StarInstance:
    """The hard instance that a witness stands for."""
    if star.centre is not None or not is_star(of, star.points, star.concepts, eta=eta):
        raise UsageError("that is not a star of this class around zero")
    if not star.points:
        raise UsageError("a class without a star (s_0 = 0) has no hard instance")
    order = sorted(zip(star.points, star.concepts, strict=True))
    return StarInstance(
        tuple(float(point) for point, _ in order),
        tuple(float(of.values[concept, point]) for point, concept in order),
        eta,
    )
