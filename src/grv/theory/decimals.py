"""Costs as exact decimal fractions.

With them, (0.1, 0.7) has exactly the ratio of (1, 7), although 0.7 / 0.1 is a little less than 7 in
floating point. So comparisons at an edge come out right.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from ..core.values import Costs


@lru_cache(maxsize=256)
def whole(costs: Costs) -> tuple[int, int]:
    """Whole numbers in the same proportion as c_rew and c_ver."""
    generate, score, verify = (
        Fraction(repr(float(cost))) for cost in (costs.generate, costs.score, costs.verify)
    )
    candidate = generate + score  # added as decimals: 0.1 and 0.2 make 0.3
    scale = math.lcm(candidate.denominator, verify.denominator)
    return int(candidate * scale), int(verify * scale)


@lru_cache(maxsize=256)
def exact_ratio(costs: Costs) -> Fraction:
    """The exact rho = c_ver / c_rew."""
    candidate, verify = whole(costs)
    return Fraction(verify, candidate)
