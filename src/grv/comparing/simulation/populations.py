"""Populations: distributions of problems, from which logs and infinite streams are drawn.

Two resemble the paper's tasks, but are dearer, and one resembles a real log. Each of the others has
one special property: easy problems, a worthless score, or a law from a proof, at many pass rates.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.errors import UsageError
from .laws import Binormal, Pieces

if TYPE_CHECKING:
    import numpy as np

    from ...logs.log import Log, LoggedProblem
    from .streams import CandidateLaw, Population


@dataclass(frozen=True)
class Binormals:
    """The distribution of pass rates and of the quality of scores over problems.

    A problem has `b ~ Beta(alpha, beta)`, the pass rate `10^(low + (high - low) b)`, and the
    separation `d = mean + spread (r z + sqrt(1 - r^2) N(0, 1))`, where r is the correlation and z
    is b standardised. A failure scores N(0, 1), a pass `d + width N(0, 1)`. A share `deceptive` of
    the failures scores like a pass of separation |d|.
    """

    low: float
    high: float
    alpha: float
    beta: float
    mean: float
    spread: float
    correlation: float
    width: float
    deceptive: float

    def law(self, chance: np.random.Generator) -> Binormal:
        """The law of one problem's candidates."""
        centre = self.alpha / (self.alpha + self.beta)
        scale = math.sqrt(centre * (1 - centre) / (self.alpha + self.beta + 1))
        b = float(chance.beta(self.alpha, self.beta))
        common = self.correlation * (b - centre) / scale
        own = math.sqrt(1 - self.correlation**2) * float(chance.standard_normal())
        rate = 10 ** (self.low + (self.high - self.low) * b)
        return Binormal(rate, self.mean + self.spread * (common + own), self.width, self.deceptive)

    def problem(self, id: str, candidates: int, seed: tuple[int, int]) -> LoggedProblem:
        """One problem with at least one pass; problems without one are redrawn."""
        from .streams import draw

        return draw(self, id, candidates, seed).problem


@dataclass(frozen=True)
class Shapes:
    """Problems of one shape, with pass rates from `low` to `high`, uniform in the logarithm."""

    shape: Callable[[float, float], CandidateLaw]  # of a pass rate, and of a number between 0 and 1
    low: float
    high: float

    def law(self, chance: np.random.Generator) -> CandidateLaw:
        """The law of one problem's candidates."""
        u, other = chance.random(2).tolist()
        return self.shape(self.low * (self.high / self.low) ** u, other)


def needle_law(rate: float, _: float = 0.0) -> Pieces:
    """Nearly all failures score below all passes (the needle of Theorem 4)."""
    top = rate + (1 - rate) * rate**2
    return Pieces((1 - top, top), (0.0, rate / top))


def flat_law(rate: float, _: float = 0.0) -> Pieces:
    """The score carries no information."""
    return Pieces((1.0,), (rate,))


def tied_law(rate: float, other: float = 0.5) -> Pieces:
    """From 2 to 6 equally likely scores; the chance of passing rises linearly from 0."""
    levels = 2 + min(4, int(5 * other))
    rises = tuple(2 * rate * i / (levels - 1) for i in range(levels))
    return Pieces((1 / levels,) * levels, rises, tied=True)


def inverted_law(rate: float, _: float = 0.0) -> Pieces:
    """The score misleads: exactly the candidates with the lowest scores pass."""
    return Pieces((rate, 1 - rate), (1.0, 0.0))


def star_law(rate: float, other: float = 0.5) -> Pieces:
    """Candidates pass at exactly one of many scores; only verification shows at which."""
    levels = max(2, round(1 / rate))
    hidden = min(levels - 1, int(levels * other))
    return Pieces(
        (1 / levels,) * levels, tuple(float(i == hidden) for i in range(levels)), tied=True
    )


# `humaneval` was fitted to a real log by bench/fit_population.py: CodeGen-16B on HumanEval, with
# the score of CodeT. The other two were chosen by one draw that resembled the paper's Table 1 and
# its AUC figures at a verification cost of 10. Other draws scatter around it: over 40 draws ADAP,
# paying for whole shells, costs 861 (622 to 1,125) and 1,497 (885 to 2,646), the paper's 745 and
# 1,422.
FITTED = {
    "coding": Binormals(-3.648, -0.153, 1.272, 1.562, 1.625, 0.787, 0.208, 1.070, 0.0),
    "math": Binormals(-2.824, -0.398, 1.333, 2.374, 0.322, 0.526, 0.308, 0.900, 0.034),
    "humaneval": Binormals(-2.7, 0.0, 1.346, 0.801, 1.803, 0.966, 0.380, 1.0, 0.0),
}
_EASY = dataclasses.replace(FITTED["coding"], low=math.log10(0.2), high=math.log10(0.9))

POPULATIONS: dict[str, Population] = {
    **FITTED,
    "easy": _EASY,  # pass rates from .2 to .9
    "coding-poor": dataclasses.replace(FITTED["coding"], mean=0.0),  # misleads half of the time
    "math-poor": dataclasses.replace(FITTED["math"], mean=0.0),
    "easy-poor": dataclasses.replace(_EASY, mean=0.0),
    "needles": Shapes(needle_law, 0.003, 0.3),
    "flats": Shapes(flat_law, 0.01, 0.9),
    "ties": Shapes(tied_law, 0.01, 0.5),
    "inverted": Shapes(inverted_law, 0.02, 0.5),
    "star": Shapes(star_law, 0.05, 0.5),
}

ABOUT = {
    "coding": "fitted to the paper's programming task: hard problems, a good score",
    "math": "fitted to the paper's mathematics task: a weak score, some failures score high",
    "humaneval": "fitted to a real log: CodeGen-16B on HumanEval, ranked by the score of CodeT",
    "easy": "coding with pass rates from .2 to .9",
    "coding-poor": "coding with a score that misleads as often as it helps",
    "math-poor": "math with a score that misleads as often as it helps",
    "easy-poor": "easy with a score that misleads as often as it helps",
    "needles": "nearly all failures score below all passes; pass rates from .003 to .3",
    "flats": "the score carries no information; pass rates from .01 to .9",
    "ties": "two to six distinct scores; pass rates from .01 to .5",
    "inverted": "exactly the lowest scores pass; pass rates from .02 to .5",
    "star": "exactly one of 2 to 20 scores passes, and which one is hidden",
}


def population_named(name: str) -> Population:
    """The population with this name."""
    if name not in POPULATIONS:
        raise UsageError(f"unknown population {name!r}; choose one of {', '.join(POPULATIONS)}")
    return POPULATIONS[name]


def population(name: str, *, problems: int = 83, candidates: int = 512, seed: int = 0) -> Log:
    """A log drawn from a population (see `POPULATIONS`); all its problems are solvable.

    Problem i depends only on the seed and on i, so more problems do not change the first ones.
    """
    from ...logs.log import Log
    from .streams import draw

    law = population_named(name)
    drawn = tuple(
        draw(law, f"{name}-{i:04}", candidates, (seed, i)).problem for i in range(problems)
    )
    return Log(drawn, path=f"{name} population, seed {seed}")
