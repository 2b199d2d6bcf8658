"""A trained score: the weights of a logistic regression, and its file."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

from ....core.errors import UsageError
from ....files import parse_json, read_bytes, typed
from .features import BUCKETS, DENSE, Feature, Features

FORMAT = "grv scorer"
VERSION = 1
FURTHEST = 3.0  # spreads from the mean; what is further counts as this far
MAKE = "make one with grv learn --scorer"


@dataclass(frozen=True)
class Weight:
    """The weight of a feature, as a distance from its mean in spreads, at most `FURTHEST`."""

    name: str
    mean: float
    spread: float
    weight: float

    def part(self, feature: Feature) -> float:
        """What the feature adds to the score."""
        far = (feature.value - self.mean) / self.spread
        return self.weight * feature.counts * min(max(far, -FURTHEST), FURTHEST)


@dataclass(frozen=True)
class GivenWeight:
    """The weight of a given score, after it is mapped to the common scale (`theory.scales`)."""

    name: str
    values: tuple[float, ...]
    normals: tuple[float, ...]
    weight: float

    def part(self, score: float | None) -> float:
        """What the score adds; the same as the lowest one if there is none."""
        import numpy as np

        from ....theory.scales import on_scale

        known = -math.inf if score is None else score
        return self.weight * float(on_scale(self.values, self.normals, np.array([known]))[0])


@dataclass(frozen=True)
class ScorerEvidence:
    """The data that a scorer was fitted to; `labels` counts verdicts."""

    problems: int
    labels: int
    passed: int
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrainedModel:
    """A score fitted to verdicts: the log-odds of passing, relative to the problem's level.

    Attributes:
        dense: the weights of the features in `DENSE`, in this order.
        given: the weights of given scores, by the name of the scorer or column.
        grams: the weights of the buckets of n-grams.
        alike: the given score by whose exact values failures are counted; empty for this score.
        evidence: the data that it was fitted to.
        path: the file that it was read from, for messages.
    """

    dense: tuple[Weight, ...]
    given: tuple[GivenWeight, ...]
    grams: tuple[float, ...]
    alike: str
    evidence: ScorerEvidence
    path: str = field(default="the scorer", compare=False)

    def __post_init__(self) -> None:
        names = tuple(each.name for each in self.dense)
        if names != DENSE or len(self.grams) != BUCKETS:
            raise UsageError(f"its features must be {', '.join(DENSE)} and {BUCKETS} buckets")
        if not all(each.spread > 0 for each in self.dense):
            raise UsageError("a spread must be positive")
        if self.alike and self.alike not in self.needs:
            raise UsageError(f"it counts failures by {self.alike!r}, which is not a given score")

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of the given scores."""
        return tuple(each.name for each in self.given)

    def score(self, features: Features) -> float:
        """The score of a candidate."""
        total = math.fsum(self.grams[gram] for gram in features.grams)
        total /= math.sqrt(len(features.grams) or 1)
        total += sum(map(Weight.part, self.dense, features.dense))
        return total + sum(each.part(features.given.get(each.name)) for each in self.given)

    def to_text(self) -> str:
        """The content of the scorer's file."""
        record = {"format": FORMAT, "version": VERSION, **asdict(self)}
        del record["path"]
        return json.dumps(record) + "\n"

    @cached_property
    def hash(self) -> str:
        """The checksum of its content."""
        return hashlib.blake2b(self.to_text().encode(), digest_size=6).hexdigest()


def is_scorer(path: str) -> bool:
    """Whether a file says that it is a scorer; a prior is in JSON too."""
    try:
        record = parse_json(read_bytes(path).decode(errors="replace"))
    except (UsageError, ValueError):
        return False
    return isinstance(record, dict) and record.get("format") == FORMAT


def load_model(path: str) -> TrainedModel:
    """The scorer in a file that `grv learn --scorer` wrote."""
    try:
        content = read_bytes(path)
    except UsageError as error:
        raise UsageError(f"{error}; {MAKE}") from error
    return model_of(content.decode(errors="replace"), path)


def model_of(text: str, path: str = "the scorer") -> TrainedModel:
    """The scorer in the content of a file."""
    try:
        record = parse_json(text, finite=True)
    except ValueError as error:
        raise UsageError(f"{path}: not a scorer: {error}; {MAKE}") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise UsageError(f"{path}: not a scorer; {MAKE}")
    if record.get("version") != VERSION:
        raise UsageError(
            f"{path}: a scorer of version {record.get('version')!r}, but this grv reads version"
            f" {VERSION}; {MAKE}"
        )
    try:
        return replace(typed(TrainedModel, record), path=path)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{path}: a broken scorer: {error}; {MAKE}") from error
