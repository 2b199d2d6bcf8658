"""When to give up: what an answer is worth against what it may cost.

An answer is worth `value`; a policy that goes on for ever would find one at the cost `T`, or never
(T infinite). Whoever stops at a cost of `limit` pays the smaller of the two, and loses the value if
T is larger. `Search` stops at `limit = value`, whatever the policy; docs/theory/giving-up.md says
why. All of it is the ski-rental problem: to go on is to rent, to give up is to buy.
"""

from __future__ import annotations

import math

WORST = 2.0  # loss over the loss of somebody who knows T, at worst; no fixed limit has less
WORST_IF_WORTH_IT = 1 + math.exp(-2)  # over that of somebody who knows the rate, if it is worth it


def loss(cost: float, value: float, limit: float | None = None) -> float:
    """What is spent, and the value where there is no answer, if one would be found at `cost`."""
    stop = value if limit is None else limit
    return cost if cost <= stop else stop + value


def loss_of_knowing(cost: float, value: float) -> float:
    """The loss of somebody who knows the cost: pays it, or does not begin."""
    return min(cost, value)


def expected_loss(mean: float, value: float) -> float:
    """The expected loss where answers come at a constant rate, one for a cost of `mean`.

    The cost is exponential: spent is mean (1 - e^-x) on average, x = value / mean, and the value is
    lost with probability e^-x.
    """
    if math.isinf(mean):
        return 2 * value
    missed = math.exp(-value / mean)
    return -mean * math.expm1(-value / mean) + value * missed


def expected_cost_to_go(spent: float) -> float:
    """What an answer is expected to cost from here, after so much was spent in vain.

    The rate of answers is unknown; all rates are alike at first (Laplace). After `spent` in vain,
    the rate has density proportional to e^(-rate spent), whose mean is 1 / spent: one answer for as
    much as has been spent already.
    """
    return spent
