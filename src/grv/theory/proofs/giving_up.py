"""When to give up: the value of an answer against its cost.

An answer is worth `value`. A policy that never stops would find one at the cost `T`, or never (T
infinite). A search that stops at a cost of `limit` pays the smaller of `T` and `limit`, and loses
the value if T is larger. `Search` stops at `limit = value`, whatever the policy;
docs/theory/giving-up.md explains why. This is the ski-rental problem: continuing is renting, giving
up is buying.
"""

from __future__ import annotations

import math

WORST = 2.0  # the highest ratio to the loss if T is known; no fixed limit has a lower one
WORST_IF_WORTH_IT = 1 + math.exp(-2)  # the ratio if the rate is known and the search is worth it


def loss(cost: float, value: float, limit: float | None = None) -> float:
    """The cost, plus the value if no answer is found; an answer would be found at `cost`."""
    stop = value if limit is None else limit
    return cost if cost <= stop else stop + value


def loss_of_knowing(cost: float, value: float) -> float:
    """The loss if the cost is known in advance: pay it, or do not start."""
    return min(cost, value)


def expected_loss(mean: float, value: float) -> float:
    """The expected loss if answers come at a constant rate of one per `mean` spent.

    The cost is exponential: mean (1 - e^-x) is spent on average, with x = value / mean, and the
    value is lost with probability e^-x.
    """
    if math.isinf(mean):
        return 2 * value
    missed = math.exp(-value / mean)
    return -mean * math.expm1(-value / mean) + value * missed


def expected_cost_to_go(spent: float) -> float:
    """The expected cost of an answer from here, after `spent` without an answer.

    The rate of answers is unknown, with a uniform prior (Laplace). After `spent` without an answer,
    the rate has a density proportional to e^(-rate spent), with mean 1 / spent: one answer per
    `spent`.
    """
    return spent
