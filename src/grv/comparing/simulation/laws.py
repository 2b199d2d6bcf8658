"""Laws of candidates for which the optimal cost J* is computed exactly.

NumPy is imported when a law is first used, so that importing this module is cheap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ...core.values import Costs
from ...theory.optimum import Law, optimum

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .streams import Drawn


@dataclass(frozen=True)
class Pieces:
    """Scores uniform on [0, 1], divided into pieces; h is constant in each piece.

    Policies that rank see only the order of scores. So any law whose h is a step function of the
    score has this form.

    Attributes:
        shares: the share of candidates in each piece, lowest scores first; they sum to 1.
        passes: the chance of passing in each piece.
        tied: whether all candidates of a piece have the same score.
    """

    shares: tuple[float, ...]
    passes: tuple[float, ...]
    tied: bool = False

    def __post_init__(self) -> None:
        _ = self.law  # checks the parameters

    @cached_property
    def law(self) -> Law:
        """The law with one atom per piece."""
        return Law(tuple(range(len(self.shares))), self.shares, self.passes)

    @property
    def pass_rate(self) -> float:
        """The probability that a candidate passes."""
        return self.law.pass_rate

    def sample(self, chance: np.random.Generator, n: int) -> Drawn:
        """Draw `n` candidates."""
        import numpy as np

        from .streams import Drawn

        positions = chance.random(n)
        ends = np.cumsum(self.law.masses)[:-1]
        piece = np.searchsorted(ends, positions, side="right")
        passed = chance.random(n) < np.array(self.passes)[piece]
        return Drawn(piece.astype(np.float64) if self.tied else positions, passed)

    def optimum(self, costs: Costs) -> float:
        """J*."""
        return optimum(self.law, costs).cost


@dataclass(frozen=True)
class Binormal:
    """A failure scores N(0, 1), a pass `separation + width N(0, 1)`.

    A share `deceptive` of the failures scores like a pass whose separation is |separation|.
    """

    pass_rate: float
    separation: float
    width: float = 1.0
    deceptive: float = 0.0

    def sample(self, chance: np.random.Generator, n: int) -> Drawn:
        """Draw `n` candidates."""
        import numpy as np

        from .streams import Drawn

        passed = chance.random(n) < self.pass_rate
        deceives = ~passed & (chance.random(n) < self.deceptive)
        noise = chance.standard_normal(n)
        scores = np.where(passed, self.separation + self.width * noise, noise)
        deceiving = abs(self.separation) + self.width * noise
        return Drawn(np.where(deceives, deceiving, scores), passed)

    @cached_property
    def _cells(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Cumulative q and s over thin cells of scores, the cells with the highest h first.

        The n-th values are the probabilities of being in one of the n best cells, and of being in
        one of them and passing.
        """
        import numpy as np

        far = 9 + abs(self.separation) + 9 * self.width
        edges = np.linspace(-far, far, 8001)
        passes = self.pass_rate * _masses(edges, self.separation, self.width)
        fails = (1 - self.deceptive) * _masses(edges, 0.0, 1.0)
        fails += self.deceptive * _masses(edges, abs(self.separation), self.width)
        every = passes + (1 - self.pass_rate) * fails
        there = every > 0
        passes = passes[there]
        every = every[there]
        order = np.argsort(-passes / every)
        return np.cumsum(every[order]), np.cumsum(passes[order])

    def optimum(self, costs: Costs) -> float:
        """J*, with a relative error of 1e-5, never too low: each cell is verified or not."""
        q, s = self._cells
        possible = s > 0
        planned = (costs.candidate + costs.failure * q[possible]) / s[possible]
        return float(planned.min()) + (costs.verify - costs.failure)


def _masses(edges: NDArray[np.float64], mean: float, width: float) -> NDArray[np.float64]:
    """The mass of a normal distribution in each cell; accurate in the tails, where passes are."""
    import numpy as np

    scaled = ((edges - mean) / (width * math.sqrt(2))).tolist()
    above = np.array([math.erfc(x) / 2 for x in scaled])
    below = np.array([math.erfc(-x) / 2 for x in scaled])
    masses: NDArray[np.float64] = np.where(
        edges[1:] > mean, above[:-1] - above[1:], below[1:] - below[:-1]
    )
    return masses
