"""Chooses the column whose equal values are the best evidence of equal verdicts.

A weighted sum of scores has few ties, so that a failure says nothing about other candidates. The
policies therefore count failures by the exact values of one column (`alike`), while the sum ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .history import PastProblem


def agreement(problems: Sequence[PastProblem], values: Sequence[NDArray[np.float64]]) -> float:
    """How much equal values say about verdicts: from 0 (nothing) to 1 (all).

    For each verified candidate, take the share of the other verified candidates of its problem with
    the same value that have its verdict, and subtract the share among all others of the problem. A
    candidate whose value is unique counts 0. The result is the mean, over the mean of a column
    whose equal values always agree. It is negative if equal values agree less often than others.

    Args:
        problems: the past problems.
        values: for each problem, one value per candidate; -inf for none.
    """
    more = possible = 0.0
    for problem, value in zip(problems, values, strict=True):
        passed = problem.passed[problem.verified]
        n = len(passed)
        k = int(passed.sum())
        if not 0 < k < n:
            continue
        same = (k * (k - 1) + (n - k) * (n - k - 1)) / (n * (n - 1))
        known = value[problem.verified]
        _, group = np.unique(known[known > -np.inf], return_inverse=True)
        sizes = np.bincount(group)
        passes = np.bincount(group, weights=passed[known > -np.inf])
        agreeing = passes * (passes - 1) + (sizes - passes) * (sizes - passes - 1)
        more += float((agreeing / np.maximum(sizes - 1, 1) - same * sizes)[sizes > 1].sum())
        possible += n * (1 - same)
    return more / possible if possible else 0.0


def most_alike(
    problems: Sequence[PastProblem], columns: Mapping[str, Sequence[NDArray[np.float64]]]
) -> str:
    """The column with the highest agreement; the first of equals."""
    found = {name: agreement(problems, values) for name, values in columns.items()}
    return max(found, key=lambda name: found[name])
