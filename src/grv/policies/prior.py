"""What history says about prompts to come: the numbers that `learned` decides with, and their file.

A *prior* is a law of prompts. Scores are first put on a common scale, `normal`: through the pooled
scores of the history to normal quantiles. A candidate is then placed relative to its own prompt, by
its distance from the mean of the prompt's candidates, in one of a dozen *bins*. A prompt has a
level u and a strength s, and a candidate in bin b passes with the chance

    1 / (1 + exp(-(u + s shape[b]))).

The prior gives the weight of each pair of a level and a strength. Strength 0 is a prompt on which
the score says nothing, and below 0 it misleads.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import json
import math
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache

from ..core.errors import UsageError

FORMAT, VERSION = "grv prior", 1
_FURTHEST, _STEEPEST = 500, 50  # of a level with its shape, and of a tilt: their powers of e exist


@dataclass(frozen=True)
class Scale:
    """One score on the common scale: its values, increasing, and the normal quantile of each."""

    values: tuple[float, ...]
    normals: tuple[float, ...]

    def __post_init__(self) -> None:
        _check(len(self.values) == len(self.normals) > 0, "a scale needs as many values as normals")
        _check(_increasing(self.values), "the values of a scale must increase")
        _check(_increasing(self.normals, strictly=False), "the normals of a scale must increase")

    def normal(self, score: float) -> float:
        """Where a score lies; linear in between, flat outside."""
        return _between(self.values, self.normals, score)


@dataclass(frozen=True)
class Looks:
    """How far prompts of the history lie from the whole of it, to tell when one is another kind.

    Attributes:
        distance: the largest Kolmogorov distance of a prompt's scores from the pooled ones.
        outside: the largest share of a prompt's scores outside the range of all other prompts.
    """

    distance: float
    outside: float

    def __post_init__(self) -> None:
        _check(0 <= self.distance <= 1 and 0 <= self.outside <= 1, "looks must be from 0 to 1")


@dataclass(frozen=True)
class Evidence:
    """What a prior was fitted on.

    Attributes:
        problems: how many were used.
        passed: how many of these have a candidate that passed.
        candidates: scored, with or without a label.
        labels: of candidates.
        effective: labels that count, where those of tied scores say much the same.
        sources: the files.
        left_out: problems whose candidates all have a label, none of which passed.
        censored: problems some of whose candidates have no label.
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
class Part:
    """One score of a combination: its column, its scale, and its weight."""

    score: str
    scale: Scale
    weight: float


@dataclass(frozen=True)
class Prior:
    """A law of prompts; see the head of this file.

    Attributes:
        score: the name of the score that it is for.
        scale: the score's.
        centre: the mean of a prompt's candidates on the common scale, over the history.
        anchor: how many candidates that mean is worth against the prompt's own.
        edges: between the bins, in distance from the prompt's mean.
        shares: of candidates in each bin.
        shape: of the chance of passing, a number a bin.
        levels: the grid of u.
        strengths: the grid of s.
        weights: one for each pair, strengths within levels.
        tie: what another candidate at a score that has failed is worth against a new score.
        votes: by which power of the number of candidates with its key a merit grows.
        ratios: of costs, increasing, at which the tilts were found.
        tilts: the merit at which a candidate is verified, as a logarithm.
        keyed_tilts: the same where candidates have keys.
        looks: how prompts of the history differ.
        evidence: what it was fitted on.
        parts: where the score is a combination, of what.
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
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        _check(isinstance(self.score, str), "the score must be a name")
        bins = len(self.edges) + 1
        _check(_increasing(self.edges, strictly=False), "edges must increase")
        _check(len(self.shape) == len(self.shares) == bins, f"there must be {bins} bins")
        pairs = len(self.levels) * len(self.strengths)
        _check(len(self.weights) == pairs > 0, f"there must be {pairs} weights")
        _check(all(w > 0 for w in (*self.weights, *self.shares)), "weights must be positive")
        _check(math.isfinite(sum(self.weights)), "weights must be smaller")
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

    @cached_property
    def chances(self) -> tuple[tuple[float, ...], ...]:
        """Of passing: for each pair of level and strength, a number a bin."""
        return tuple(
            tuple(1 / (1 + math.exp(-(u + s * f))) for f in self.shape)
            for u in self.levels
            for s in self.strengths
        )

    def tilt(self, ratio: float, *, keyed: bool = False) -> float:
        """The tilt at a ratio of costs; linear in its logarithm, flat outside."""
        logs = tuple(math.log(each) for each in self.ratios)
        return _between(logs, self.keyed_tilts if keyed else self.tilts, math.log(ratio))

    def limit(self, ratio: float, *, keyed: bool = False) -> float:
        """The merit from which on a candidate is verified, at a ratio of costs."""
        return math.exp(self.tilt(ratio, keyed=keyed))

    def to_text(self) -> str:
        """As it stands in its file."""
        record = {"format": FORMAT, "version": VERSION, **asdict(self)}
        return json.dumps(record, indent=1) + "\n"


def hash_of(content: bytes) -> str:
    """What a specification remembers of a prior's file."""
    return hashlib.blake2b(content, digest_size=6).hexdigest()


@lru_cache(maxsize=32)
def _parsed(path: str, content: bytes) -> Prior:
    return from_text(content.decode(errors="replace"), path)


def load(path: str) -> tuple[Prior, str]:
    """The prior in a file, and the hash of its content."""
    from ..files import read_bytes

    try:
        content = read_bytes(path)
    except UsageError as error:
        raise UsageError(f"{error}; grv learn makes a prior") from error
    return _parsed(path, content), hash_of(content)


def from_text(text: str, path: str = "prior") -> Prior:
    """The prior that the content of a file stands for."""
    from ..files import parse_json, typed

    try:
        record = parse_json(text, finite=True)
    except ValueError as error:
        raise UsageError(f"{path}: not a prior: {error}; grv learn makes one") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise UsageError(f"{path}: not a prior; grv learn makes one")
    if record.get("version") != VERSION:
        raise UsageError(
            f"{path}: a prior of version {record.get('version')!r}, and this grv reads version"
            f" {VERSION}; learn it again with grv learn"
        )
    try:
        return typed(Prior, record)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{path}: a broken prior: {error}; learn it again") from error


def _between(xs: tuple[float, ...], ys: tuple[float, ...], x: float) -> float:
    """The value at x; linear in between, flat outside."""
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
