"""The prior: what history says about future problems, as the numbers that `learned` uses.

A *prior* is a distribution of problems. Scores are first mapped to a common scale, `normal`: the
normal quantile of their rank among the pooled scores of the history. A candidate then falls into
one of about a dozen *bins*, by its distance from the mean of its problem's candidates. A problem
has a level u and a strength s, and a candidate in bin b passes with the chance

    1 / (1 + exp(-(u + s shape[b]))).

The prior gives the weight of each pair of a level and a strength. With strength 0 the score carries
no information; with a negative strength it misleads.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import json
import math
from dataclasses import asdict, dataclass, field
from functools import cached_property

from ...core.errors import UsageError
from ...core.values import Costs, Measured

FORMAT = "grv prior"
VERSION = 1
# limits of u + s shape and of a tilt, so that exp() is finite
_FURTHEST = 500
_STEEPEST = 50


@dataclass(frozen=True)
class Scale:
    """The map of a score to the common scale: increasing values and their normal quantiles."""

    values: tuple[float, ...]
    normals: tuple[float, ...]

    def __post_init__(self) -> None:
        _check(len(self.values) == len(self.normals) > 0, "a scale needs as many values as normals")
        _check(_increasing(self.values), "the values of a scale must increase")
        _check(_increasing(self.normals, strictly=False), "the normals of a scale must increase")

    def normal(self, score: float) -> float:
        """The place of a score on the common scale; linear between values, constant outside."""
        return _between(self.values, self.normals, score)


@dataclass(frozen=True)
class Looks:
    """The most extreme problems of the history, to detect problems of another kind (`drift.py`).

    Attributes:
        distance: the largest Kolmogorov distance of a problem's scores from the pooled ones.
        outside: the largest share of a problem's scores outside the range of all other problems.
    """

    distance: float
    outside: float

    def __post_init__(self) -> None:
        _check(0 <= self.distance <= 1 and 0 <= self.outside <= 1, "looks must be from 0 to 1")


@dataclass(frozen=True)
class Evidence:
    """The data that a prior was fitted to.

    Attributes:
        problems: the number of problems used.
        passed: the number of these problems with a candidate that passed.
        candidates: the number of scored candidates, with or without a label.
        labels: the number of labelled candidates.
        effective: the effective number of labels, because labels of tied scores are correlated.
        sources: the files.
        left_out: the number of problems whose candidates all have a label and all failed.
        censored: the number of problems with candidates that have no label.
    """

    problems: int
    passed: int
    candidates: int
    labels: int
    effective: float
    sources: tuple[str, ...] = ()
    left_out: int = 0
    censored: int = 0


@dataclass(frozen=True)
class ScorePart:
    """One score of a combination: its column, its scale, and its weight."""

    score: str
    scale: Scale
    weight: float


@dataclass(frozen=True)
class Prior:
    """A distribution of problems; see the docstring of the module.

    Attributes:
        score: the name of the score.
        scale: the scale of the score.
        centre: the mean of a problem's candidates on the common scale, over the history.
        anchor: the weight of `centre` in a problem's own mean, in candidates.
        edges: the limits between the bins, as distances from the problem's mean.
        shares: the share of candidates in each bin.
        shape: the shape of the chance of passing, one number per bin.
        levels: the grid of u.
        strengths: the grid of s.
        weights: one per pair of level and strength; the strengths vary fastest.
        tie: the factor of a merit for each failure at the same value of `alike`.
        votes: a merit grows with this power of the number of candidates with the same key.
        ratios: the cost ratios at which the tilts were found, increasing.
        tilts: the logarithm of the limit from which on a candidate is verified, per ratio.
        keyed_tilts: the same for candidates with keys.
        looks: the most extreme problems of the history.
        evidence: the data that the prior was fitted to.
        parts: the scores of a combination; empty for a single score.
        alike: the column by which failures are counted; empty for the score itself.
        prices: what the history has paid on average for a candidate, for a verification, and for
            one that failed; empty if it was not measured.
        name: the file that it was read from, for messages.
    """

    score: str
    scale: Scale
    centre: float
    anchor: float
    edges: tuple[float, ...]
    shares: tuple[float, ...]
    shape: tuple[float, ...]
    levels: tuple[float, ...]
    strengths: tuple[float, ...]
    weights: tuple[float, ...]
    tie: float
    votes: float
    ratios: tuple[float, ...]
    tilts: tuple[float, ...]
    keyed_tilts: tuple[float, ...]
    looks: Looks
    evidence: Evidence
    parts: tuple[ScorePart, ...] = ()
    alike: str = ""
    prices: tuple[float, ...] = ()
    name: str = field(default="the prior", compare=False)

    def __post_init__(self) -> None:
        _check(isinstance(self.score, str), "the score must be a name")
        bins = len(self.edges) + 1
        _check(_increasing(self.edges, strictly=False), "edges must increase")
        _check(len(self.shape) == len(self.shares) == bins, f"there must be {bins} bins")
        pairs = len(self.levels) * len(self.strengths)
        _check(len(self.weights) == pairs > 0, f"there must be {pairs} weights")
        _check(all(w > 0 for w in (*self.weights, *self.shares)), "weights must be positive")
        whole = sum(self.weights)
        _check(math.isfinite(whole), "weights must be smaller")
        _check(min(self.weights) / whole > 0, "a weight is too small beside the others")
        far = max(map(abs, self.levels)) + max(map(abs, self.strengths)) * max(map(abs, self.shape))
        _check(far <= _FURTHEST, f"levels and shape must stay within {_FURTHEST}")
        _check(0 < self.tie <= 1, "tie must be above 0 and at most 1")
        _check(self.anchor >= 0, "anchor must not be negative")
        _check(0 <= self.votes <= 4, "votes must be from 0 to 4")
        tilts = {len(self.tilts), len(self.keyed_tilts), len(self.ratios)}
        _check(len(tilts) == 1 and self.ratios != (), "each ratio needs its tilts")
        _check(_increasing(self.ratios) and self.ratios[0] > 0, "ratios must increase from above 0")
        steep = max(map(abs, (*self.tilts, *self.keyed_tilts)))
        _check(steep <= _STEEPEST, f"tilts must stay within {_STEEPEST}")
        _check(len(self.prices) in (0, 3), "there must be three prices, or none")
        if self.prices:
            generate, _, failure = self.prices
            Costs(generate, failure)  # raises if they are no prices

    @cached_property
    def chances(self) -> tuple[tuple[float, ...], ...]:
        """The chances of passing: for each pair of level and strength, one number per bin."""
        return tuple(
            tuple(1 / (1 + math.exp(-(u + s * f))) for f in self.shape)
            for u in self.levels
            for s in self.strengths
        )

    def ratio(self, costs: Costs) -> float:
        """The price of a failure, in candidates, at which a search begins.

        If costs are measured, what the history has paid is a better first guess.
        """
        if isinstance(costs, Measured) and self.prices:
            generate, _, failure = self.prices
            return Costs(generate, failure).ratio
        return costs.ratio

    def tilt(self, ratio: float, *, keyed: bool = False) -> float:
        """The tilt at a cost ratio; linear in its logarithm, constant outside the range."""
        logs = tuple(math.log(each) for each in self.ratios)
        return _between(logs, self.keyed_tilts if keyed else self.tilts, math.log(ratio))

    def limit(self, ratio: float, *, keyed: bool = False) -> float:
        """The lowest merit at which a candidate is verified, at a cost ratio."""
        return math.exp(self.tilt(ratio, keyed=keyed))

    def to_text(self) -> str:
        """The content of the prior's file."""
        record = {"format": FORMAT, "version": VERSION, **asdict(self)}
        del record["name"]
        for name in ("alike", "prices"):
            if not record[name]:
                del record[name]  # older priors keep their checksum
        return json.dumps(record, indent=1) + "\n"

    @cached_property
    def hash(self) -> str:
        """The checksum of its content, which a specification stores."""
        return hash_of(self.to_text().encode())


def hash_of(content: bytes) -> str:
    """The checksum of the content of a prior's file."""
    return hashlib.blake2b(content, digest_size=6).hexdigest()


def _between(xs: tuple[float, ...], ys: tuple[float, ...], x: float) -> float:
    """The value at x; linear between the points, constant outside."""
    at = bisect.bisect_right(xs, x)
    if at == 0:
        return ys[0]
    if at == len(xs):
        return ys[-1]
    share = (x - xs[at - 1]) / (xs[at] - xs[at - 1])
    return ys[at - 1] + (ys[at] - ys[at - 1]) * share


def _increasing(values: tuple[float, ...], *, strictly: bool = True) -> bool:
    return all(a < b if strictly else a <= b for a, b in itertools.pairwise(values))


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise UsageError(message)
