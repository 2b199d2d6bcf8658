"""Finite concept classes over finite domains, as matrices with one row per concept (section 6).

A *concept* gives the chance of passing at every *point*: 0 or 1 in a binary class, a probability in
a probabilistic one. In a search, a candidate's point is its score, or the bin of its score.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.errors import UsageError

MOST_ENTRIES = 20_000_000  # the maximum of concepts times points
FAMILIES = ("thresholds", "intervals", "singletons", "subsets", "unions")
_FAMILY = re.compile(r"([a-z]+):([0-9]+)(?::([0-9]+))?")


@dataclass(frozen=True, eq=False)
class ConceptClass:
    """A matrix with one row per concept and one column per point; its entries are from 0 to 1.

    Attributes:
        values: `[concepts, points]`.
        name: the name of the class in messages.
    """

    values: NDArray[np.float64]
    name: str = "the class"

    def __post_init__(self) -> None:
        values = _numbers(self.values, self.name)
        wrong = ~((values >= 0) & (values <= 1))  # this includes NaN
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise UsageError(
                f"{self.name}: {values[row, column]:g} in row {row}, column {column} (counted from"
                " 0) is not between 0 and 1"
            )
        object.__setattr__(self, "values", values)

    @property
    def concepts(self) -> int:
        """The number of concepts."""
        return int(self.values.shape[0])

    @property
    def points(self) -> int:
        """The number of points."""
        return int(self.values.shape[1])

    @property
    def is_binary(self) -> bool:
        """Whether every entry is 0 or 1."""
        return bool(((self.values == 0) | (self.values == 1)).all())

    @property
    def has_zero(self) -> bool:
        """Whether the class contains the all-zero concept."""
        return not bool(self.values.any(axis=1).all())

    def with_zero(self) -> ConceptClass:
        """The class with the all-zero concept, added as the last row if it is missing."""
        if self.has_zero:
            return self
        return ConceptClass(np.vstack([self.values, np.zeros(self.points)]), self.name)

    def binary(self) -> NDArray[np.bool_]:
        """The matrix `[concepts, points]` as booleans; an error if an entry is not 0 or 1."""
        if not self.is_binary:
            row, column = np.argwhere((self.values != 0) & (self.values != 1))[0]
            raise UsageError(
                f"{self.name}: {self.values[row, column]:g} in row {row}, column {column} (counted"
                " from 0) is neither 0 nor 1; a probabilistic class needs eta"
            )
        found: NDArray[np.bool_] = self.values == 1
        return found

    def rows(self) -> tuple[str, ...]:
        """The concepts of a binary class as strings, e.g. `("0011", "0001")`."""
        return tuple("".join("01"[int(entry)] for entry in row) for row in self.binary())


def _numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Convert to a matrix of real numbers, or raise `UsageError`."""
    try:
        given: NDArray[Any] = np.asarray(values)
    except ValueError as error:
        raise UsageError(f"{name}: the rows differ in length") from error
    if given.dtype.kind not in "biuf":
        raise UsageError(f"{name}: the entries must be numbers from 0 to 1, not {given.dtype}")
    if given.ndim != 2:
        raise UsageError(f"{name}: give a matrix, not an array of {given.ndim} dimensions")
    check_size(given.shape[0], given.shape[1], name)
    return given.astype(np.float64)


def check_size(concepts: int, points: int, name: str) -> None:
    """Raise `UsageError` if a class is empty or too large."""
    if not concepts:
        raise UsageError(f"{name}: there are no concepts")
    if not points:
        raise UsageError(f"{name}: there are no points")
    if concepts * points > MOST_ENTRIES:
        raise UsageError(
            f"{name}: {concepts:,} concepts on {points:,} points are too many"
            f" (at most {MOST_ENTRIES:,} entries)"
        )


def thresholds(n: int) -> ConceptClass:
    """All sets `x >= t`, including the full and the empty set: n + 1 concepts. s_0 is 1."""
    check_size(n + 1, n, f"thresholds:{n}")
    return ConceptClass(np.triu(np.ones((n + 1, n))), f"thresholds:{n}")


def intervals(n: int) -> ConceptClass:
    """All intervals and the empty set: n (n + 1) / 2 + 1 concepts. s_0 is n."""
    return _unions(n, 1, f"intervals:{n}")


def unions(n: int, k: int) -> ConceptClass:
    """All unions of at most k intervals, and the empty set. s_0 is n."""
    return _unions(n, k, f"unions:{n}:{k}")


def _unions(n: int, k: int, name: str) -> ConceptClass:
    k = min(k, (n + 1) // 2)  # more intervals would touch each other
    check_size(sum(math.comb(n + 1, 2 * j) for j in range(k + 1)), n, name)
    ends = (chosen for j in range(k + 1) for chosen in combinations(range(n + 1), 2 * j))
    at = np.arange(n)
    found = [sum((at >= edge).astype(np.int64) for edge in edges) % 2 for edges in ends]
    return ConceptClass(np.array([row + np.zeros(n) for row in found]), name)


def singletons(n: int) -> ConceptClass:
    """All single points and the empty set: n + 1 concepts. s_0 is n."""
    check_size(n + 1, n, f"singletons:{n}")
    return ConceptClass(np.vstack([np.zeros(n), np.eye(n)]), f"singletons:{n}")


def subsets(n: int) -> ConceptClass:
    """All sets of points: 2^n concepts. s_0 is n."""
    check_size(2 ** min(n, 64), n, f"subsets:{n}")
    numbers = np.arange(2**n)[:, None]
    return ConceptClass(((numbers >> np.arange(n)) & 1).astype(np.float64), f"subsets:{n}")


def family(text: str) -> ConceptClass | None:
    """The class named by a text such as `thresholds:16`; None if the text has another form."""
    match = _FAMILY.fullmatch(text)
    if match is None:
        return None
    name = match[1]
    n = int(match[2])
    k = match[3]
    if name not in FAMILIES:
        raise UsageError(f"unknown family {name!r}; choose one of {', '.join(FAMILIES)}")
    if (name == "unions") != (k is not None):
        raise UsageError(
            f"{text}: give the number of points, as in {name}:16"
            + (", and the number of intervals, as in unions:16:2" if name == "unions" else "")
        )
    if not n or k == "0":
        raise UsageError(f"{text}: there are no points" if not n else f"{text}: no intervals")
    if n > MOST_ENTRIES:
        raise UsageError(f"{text}: too large (at most {MOST_ENTRIES:,} entries)")
    if name == "unions":
        return unions(n, int(k))
    plain = {
        "thresholds": thresholds,
        "intervals": intervals,
        "singletons": singletons,
        "subsets": subsets,
    }
    return plain[name](n)


def of_rows(rows: Sequence[str], name: str = "the class") -> ConceptClass:
    """A binary class from strings, one per concept, e.g. `("0011", "0001")`."""
    if len({len(row) for row in rows}) > 1:
        raise UsageError(f"{name}: the rows differ in length")
    if not set("".join(rows)) <= {"0", "1"}:
        raise UsageError(f"{name}: a concept is a string of 0 and 1")
    return ConceptClass(
        np.array([[float(mark) for mark in row] for row in rows]).reshape(len(rows), -1), name
    )


def of_scores(
    problems: Iterable[tuple[ArrayLike, ArrayLike]], bins: int, name: str = "the log"
) -> tuple[ConceptClass, NDArray[np.float64]]:
    """The class of a log: bins of scores are points, a problem's pass rates in them are a concept.

    The bins have about equal numbers of candidates, over all problems. If a problem has no
    candidate in a bin, its pass rate there is 0.

    Args:
        problems: for each, the scores of its candidates and whether they passed.
        bins: the maximum number of points; there may be fewer if scores are tied.
        name: the name of the class in messages.

    Returns:
        The class, and the lowest score of each bin, increasing: the first is -inf.
    """
    if bins < 1:
        raise UsageError(f"{name}: the number of bins must be at least 1, not {bins}")
    given = [
        (np.asarray(scores, dtype=np.float64), np.asarray(passed, dtype=np.bool_))
        for scores, passed in problems
    ]
    if not any(len(scores) for scores, _ in given):
        raise UsageError(f"{name}: there are no candidates")
    every = np.sort(np.concatenate([scores for scores, _ in given]))
    cuts = np.unique(every[(np.arange(1, bins) * len(every)) // bins])
    edges = np.concatenate([[-np.inf], cuts[cuts > every[0]]])
    rates = np.zeros((len(given), len(edges)))
    for i, (scores, passed) in enumerate(given):
        place = np.searchsorted(edges, scores, side="right") - 1
        there = np.bincount(place, minlength=len(edges))
        passes = np.bincount(place, weights=passed, minlength=len(edges))
        rates[i] = np.divide(passes, there, out=np.zeros(len(edges)), where=there > 0)
    return ConceptClass(rates, name), edges
