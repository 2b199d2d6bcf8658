"""The comparison as one would first write it: a matrix of all pairs (m, k) for every trial.

Nothing of grv is used but what reads the files. It is here to be slow beside it, and to agree with
it: hindsight, adaptive in whole shells, the matched uniform pair, and difficulty groups 1 to 10.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Problem = tuple[NDArray[np.float64], NDArray[np.bool_]]


def figures(problems: list[Problem], generate: float, verify: float, orders: int) -> dict[str, Any]:
    """The means that a comparison prints, for one price list: by two programs, one after the other.

    As in the published code, the first looks at pairs and the second at groups, and each makes its
    trials from the start.
    """
    return {
        **pairs(problems, generate, verify, orders),
        **groups(problems, generate, verify, orders),
    }


def pairs(problems: list[Problem], generate: float, verify: float, orders: int) -> dict[str, Any]:
    """Adaptive, hindsight, and the best pair at adaptive's cost."""
    spent, solved, price = _trials(problems, generate, verify, orders)
    return {
        "adaptive": spent,
        "hindsight": _hindsight(solved, price),
        "uniform-matched": _best_pair(solved.mean(axis=(0, 1)), price, spent),
    }


def groups(problems: list[Problem], generate: float, verify: float, orders: int) -> dict[str, Any]:
    """Difficulty groups, and again adaptive and hindsight, to relate them to."""
    spent, solved, price = _trials(problems, generate, verify, orders)
    rates = [float(np.mean(passed)) for _, passed in problems]
    by_rate = sorted(range(len(problems)), key=lambda at: rates[at])
    related = {"adaptive": spent, "hindsight": _hindsight(solved, price)}
    return {**related, **_groups(solved.mean(axis=1)[by_rate], price)}


def _trials(
    problems: list[Problem], generate: float, verify: float, orders: int
) -> tuple[float, NDArray[np.int8], NDArray[np.float64]]:
    """Adaptive's mean cost, which pairs solve which trial, and what pairs cost."""
    schedule = _schedule(generate, verify)
    generator = np.random.default_rng(0)
    size = max(len(scores) for scores, _ in problems)
    solved = np.zeros((len(problems), orders, size + 1, size + 1), dtype=np.int8)
    adaptive = []
    for at, (scores, passed) in enumerate(problems):
        for number in range(orders):
            order = generator.permutation(len(scores))
            adaptive.append(_adaptive(scores[order], passed[order], schedule, generate, verify))
            solved[at, number] = _all_pairs(scores[order], passed[order], size)
    price = np.add.outer(np.arange(size + 1) * generate, np.arange(size + 1) * verify)
    return float(np.mean(adaptive)), solved, price


def _schedule(generate: float, verify: float) -> list[tuple[int, int]]:
    found = []
    unit = min(generate, verify)
    for s in range(40):
        pairs = [
            (b, b - a)
            for b in range(s + 2)
            for a in range(b + 1)
            if 2**s * unit <= generate * 2**b + verify * 2 ** (b - a) < 2 ** (s + 1) * unit
        ]
        if pairs:
            found.append((2 * 2 ** max(b for b, _ in pairs), 6 * 2 ** max(j for _, j in pairs)))
    return found


def _adaptive(
    scores: NDArray[np.float64],
    passed: NDArray[np.bool_],
    schedule: list[tuple[int, int]],
    generate: float,
    verify: float,
) -> float:
    drawn = verified = 0
    waiting = np.ones(len(scores), dtype=bool)
    for draws, checks in schedule:
        drawn = min(drawn + draws, len(scores))
        there = np.flatnonzero(waiting[:drawn])
        best = there[np.argsort(-scores[there], kind="stable")][:checks]
        waiting[best] = False
        verified += len(best)
        if passed[best].any():
            break
    return drawn * generate + verified * verify


def _all_pairs(
    scores: NDArray[np.float64], passed: NDArray[np.bool_], size: int
) -> NDArray[np.int8]:
    solved = np.zeros((size + 1, size + 1), dtype=np.int8)
    for m in range(1, len(scores) + 1):
        ranked = passed[:m][np.argsort(-scores[:m], kind="stable")]
        found = np.cumsum(ranked) > 0
        for k in range(1, m + 1):
            solved[m, k] = found[k - 1]
    return solved


def _hindsight(solved: NDArray[np.int8], price: NDArray[np.float64]) -> float:
    size = len(price) - 1
    pairs = sorted((price[m, k], m, k) for m in range(1, size + 1) for k in range(1, m + 1))
    trials = solved.reshape(-1, size + 1, size + 1)
    return float(np.mean([next(cost for cost, m, k in pairs if each[m, k]) for each in trials]))


def _best_pair(
    rates: NDArray[np.float64], price: NDArray[np.float64], budget: float
) -> tuple[int, int]:
    best = -1.0
    pair = (0, 0)
    for m in range(1, len(price)):
        for k in range(1, m + 1):
            if price[m, k] <= budget and rates[m, k] > best + 1e-12:
                best = rates[m, k]
                pair = (m, k)
    return pair


def _groups(rates: NDArray[np.float64], price: NDArray[np.float64]) -> dict[str, float]:
    count = len(rates)
    sums = np.concatenate([np.zeros((1, *price.shape)), np.cumsum(rates, axis=0)])
    m, k = np.indices(price.shape)
    legal = (m >= 1) & (k >= 1) & (k <= m)
    cost = np.zeros((count, count))
    for left in range(count):
        for right in range(left, count):
            mean = np.where(legal, (sums[right + 1] - sums[left]) / (right - left + 1), -1)
            enough = mean >= mean.max() - 1e-9
            cost[left, right] = np.where(enough, price, math.inf).min() * (right - left + 1)
    best = [0.0, *cost[0]]
    found = {"difficulty-1": best[-1] / count}
    for groups in range(2, min(10, count) + 1):
        best = [
            min(
                (best[split] + cost[split, stop - 1] for split in range(groups - 1, stop)),
                default=math.inf,
            )
            for stop in range(count + 1)
        ]
        found[f"difficulty-{groups}"] = best[-1] / count
    return found
