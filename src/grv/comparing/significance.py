"""Paired tests and intervals between the rows of a comparison, corrected for multiple comparisons.

All rows see the same problems in the same orders. The orders of one problem are not independent, so
a problem counts as one observation: the mean over its orders. Two rows are compared by a sign-flip
test: if they were equally good, the sign of each problem's difference would be arbitrary. The
p-value is the share of sign patterns whose mean difference is at least as large as the real one.

All tests of a comparison form one family, which Holm's method corrects: the probability that any
p-value below 0.05 is a false alarm is at most 5 %.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .comparison import Comparison

METHOD = (
    "sign-flip test over problems, each the mean of its orders; two-sided; Holm's correction over"
    " all tests"
)
SIGNIFICANT = 0.05

_EXACT = 13  # with at most this many problems, all sign patterns are tried
_PATTERNS = 10_000
_CELLS = 2_000_000  # of the largest array while sign patterns are tried
_TOGETHER = 5000  # problems whose resamples are one array of numbers
_RESAMPLES = 200  # resamples in one array, if there are more problems

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PairTest:
    """Two rows at one price list, compared problem by problem.

    Attributes:
        prices: the price list, as written in the option `--costs`.
        first: the name of a row.
        second: the name of another row.
        ratio: the mean cost of the first over that of the second; None if the second costs nothing.
        low: the lower end of the 95 % interval of the ratio, by resampling problems.
        high: the upper end.
        p: the p-value of equal costs; None if the costs are equal on every problem.
        adjusted: the same, corrected for the number of tests.
        solved: the share of trials that the first solves, minus that of the second.
        solved_p: the p-value of equal shares; None if they are equal on every problem.
        solved_adjusted: the same, corrected for the number of tests.
    """

    prices: str
    first: str
    second: str
    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    adjusted: float | None
    solved: float
    solved_p: float | None
    solved_adjusted: float | None

    def reversed(self) -> PairTest:
        """The same test with the rows exchanged."""
        return replace(
            self,
            first=self.second,
            second=self.first,
            ratio=1 / self.ratio if self.ratio else None,
            low=1 / self.high if self.high else None,
            high=1 / self.low if self.low else None,
            solved=-self.solved,
        )

    def to_json(self) -> dict[str, Any]:
        """The record in the file of a comparison."""
        return dict(vars(self))


def pair_tests(comparison: Comparison) -> tuple[PairTest, ...]:
    """A test for each two rows at the same price list."""
    spent = [
        trials.costs(row.costs).mean(axis=1)
        for row, trials in zip(comparison.rows, comparison.trials, strict=True)
    ]
    solved = [trials.solved.mean(axis=1) for trials in comparison.trials]
    pairs = [
        (a, b)
        for a, b in itertools.combinations(range(len(comparison.rows)), 2)
        if comparison.rows[a].costs == comparison.rows[b].costs
    ]
    if not pairs:
        return ()
    differences = [by[a] - by[b] for by in (spent, solved) for a, b in pairs]
    raw = sign_flip(np.array(differences), int(comparison.settings["seed"]))
    adjusted = holm(raw)
    totals = [comparison.resampled.totals(each) for each in spent]
    step = len(pairs)
    return tuple(
        _test(comparison, pair, spent, totals, solved, raw[at::step], adjusted[at::step])
        for at, pair in enumerate(pairs)
    )


def _test(
    comparison: Comparison,
    pair: tuple[int, int],
    spent: Sequence[Floats],
    totals: Sequence[Floats],
    solved: Sequence[Floats],
    raw: Sequence[float | None],
    adjusted: Sequence[float | None],
) -> PairTest:
    a, b = pair
    first = comparison.rows[a]
    second = comparison.rows[b]
    paid = bool((spent[b] > 0).all())
    ends = None
    if paid:
        ends = comparison.resampled.ratio_of_totals(totals[a], totals[b], len(spent[a]))
    low, high = ends or (None, None)
    return PairTest(
        first.prices,
        first.policy,
        second.policy,
        first.cost / second.cost if paid else None,
        low,
        high,
        raw[0],
        adjusted[0],
        float(solved[a].mean() - solved[b].mean()),
        raw[1],
        adjusted[1],
    )


class Resampled:
    """95 % intervals of ratios of means over problems, by the percentile bootstrap.

    All intervals of a comparison use the same resamples of its problems.
    """

    def __init__(self, problems: int, seed: int, resamples: int = 2000) -> None:
        self._weights = resample_weights(problems, seed, resamples)

    def ratio(self, above: Floats, below: Floats) -> tuple[float, float] | None:
        """The interval of `mean(above) / mean(below)`; None with fewer than two problems."""
        return self.ratio_of_totals(self.totals(above), self.totals(below), len(above))

    def ratio_of_totals(
        self, above: Floats, below: Floats, problems: int
    ) -> tuple[float, float] | None:
        """The same from the totals of both in each resample."""
        if problems < 2:
            return None
        low, high = _quantiles(above / below, (0.025, 0.975))
        return low, high

    def totals(self, values: Floats) -> Floats:
        """`[resamples]`: the sum of the problems' values in each resample."""
        parts = [np.asarray(weights, dtype=np.float64) @ values for weights in self._weights]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _quantiles(values: Floats, shares: Sequence[float]) -> list[float]:
    """What `np.quantile` returns. It loads a module for masked arrays, and takes twice the time."""
    last = len(values) - 1
    places = [share * last for share in shares]
    ends = {end for place in places for end in (math.floor(place), math.ceil(place))}
    ranked = np.partition(values, sorted(ends))
    found = []
    for place in places:
        low, high = float(ranked[math.floor(place)]), float(ranked[math.ceil(place)])
        beyond = place - math.floor(place)
        step = high - low
        found.append(low + step * beyond if beyond < 0.5 else high - step * (1 - beyond))
    return found


@lru_cache(maxsize=2)
def resample_weights(problems: int, seed: int, resamples: int) -> tuple[NDArray[np.generic], ...]:
    """How often each problem is drawn: arrays `[resamples, problems]`, which follow each other.

    Many problems have several arrays, of small numbers, so that they fit into memory.
    """
    generator = np.random.default_rng([seed, problems, resamples])
    chances = np.full(problems, 1 / problems)
    if problems <= _TOGETHER:
        return (generator.multinomial(problems, chances, size=resamples).astype(np.float64),)
    parts = []
    for start in range(0, resamples, _RESAMPLES):
        size = min(_RESAMPLES, resamples - start)
        counts = generator.multinomial(problems, chances, size=size)
        parts.append(counts.astype(np.uint8 if counts.max() < 256 else np.int32))
    return tuple(parts)


def sign_flip(differences: Floats, seed: int) -> list[float | None]:
    """The two-sided p-value of each row of `differences` `[tests, problems]`.

    With at most 13 problems it is exact. With more, sign patterns are drawn: 10,000, or 100 per
    test, so that many tests do not make significance impossible. None if all differences are zero:
    there is nothing to test.

    >>> sign_flip(np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]), seed=0)
    [0.25, None]
    """
    tests, problems = differences.shape
    size = np.abs(differences).sum(axis=1)
    tested = np.flatnonzero(size)
    chosen, same = _distinct(differences[tested])
    # Sums of the same numbers in another order may differ in the last digits.
    reached = np.abs(chosen.sum(axis=1)) - 1e-9 * np.abs(chosen).sum(axis=1)
    extreme = np.zeros(len(chosen))
    patterns = 0
    at_once = max(1, _CELLS // max(problems, tests))
    for signs in _sign_patterns(problems, max(_PATTERNS, 100 * tests), at_once, seed):
        extreme += (np.abs(signs @ chosen.T) >= reached).sum(axis=0)
        patterns += len(signs)
    if problems > _EXACT:  # the real pattern is one of those that could have been drawn
        extreme = extreme + 1
        patterns = patterns + 1
    shares: list[float | None] = [None] * tests
    for index, share in zip(tested.tolist(), (extreme / patterns)[same].tolist(), strict=True):
        shares[index] = share
    return shares


def _distinct(rows: Floats) -> tuple[Floats, list[int]]:
    """The rows that differ by more than their sign, and for each row its place among these."""
    places: dict[bytes, int] = {}
    first = []
    same = []
    for at, row in enumerate(rows):
        sign = np.sign(row[row.nonzero()[0][0]])
        name = (row * sign + 0.0).tobytes()  # 0 and -0 are equal
        if name not in places:
            places[name] = len(places)
            first.append(at)
        same.append(places[name])
    return rows[first], same


def _sign_patterns(problems: int, patterns: int, at_once: int, seed: int) -> Iterator[Floats]:
    """Patterns `[n, problems]` of +1 and -1, at most `at_once` of them together."""
    if problems <= _EXACT:
        yield np.array(list(itertools.product((1.0, -1.0), repeat=problems)))
        return
    generator = np.random.default_rng([seed, problems, patterns])
    left = patterns
    while left:
        count = min(left, at_once)
        yield np.where(generator.integers(0, 2, size=(count, problems)) > 0, 1.0, -1.0)
        left -= count


def shown_p(p: float | None) -> str:
    """A p-value for people, with its sign; empty if there is none.

    >>> shown_p(0.0312), shown_p(0.00002)
    ('= 0.031', '< 0.001')
    """
    if p is None:
        return ""
    return "< 0.001" if p < 0.001 else f"= {p:.2g}"


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """The p-values corrected by Holm's step-down method; None is no test and does not count.

    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    tested = sorted((p, at) for at, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for place, (p, index) in enumerate(tested):
        highest = max(highest, min(1.0, (len(tested) - place) * p))
        adjusted[index] = highest
    return adjusted
