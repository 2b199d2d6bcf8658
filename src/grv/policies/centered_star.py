"""Centered-star search, for problems with a known class of concepts."""

from __future__ import annotations

import bisect
import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from ..core.errors import UsageError
from ..core.pool import Pool
from ..core.values import CandidateId, Costs, Generate, Step, Verdict, Verify
from ..theory.decimals import whole
from .promises import promises_of, sentence
from .verify_all import VerifyAll

if TYPE_CHECKING:
    from ..theory.stars.classes import ConceptClass

Concepts = tuple[frozenset[int], ...]  # for each concept, the points at which candidates pass

_EXACT = 20_000  # concepts times points; larger classes use `quick_hitting_set`
_NODES = 100  # the node limit of `smallest_hitting_set`
_STEPS = 2_000  # the step limit of `star_number`; after it, the upper bound is used


@dataclass(frozen=True)
class CenteredStar:
    """Generate a batch and verify the fewest candidates that show whether any of it passes.

    This is the paper's centered-star search (Algorithm 2). It needs a binary class of concepts that
    contains the truth: a candidate's score is its point, and whether it passes depends only on the
    point. s_0 is the centered star number of the class. If s_0 is above c_ver / c_rew, unknown or
    infinite, every candidate is verified as it arrives.

    Choose it if the score names a kind of answer, and you know which kinds can be right together.
    Nothing is guaranteed if the class does not contain the truth. When every concept is refuted,
    the policy verifies all open candidates and then every new one.

    Attributes:
        concepts: a family, such as "intervals:16", or the concepts, such as "0011 0110".
            "intervals:inf" means an infinite class; the empty string means an unknown one.
        points: the scores of the points, increasing. Any other score counts as the next lower
            point; nothing passes below the first point. Default: 0, 1, 2, ...
        remember: whether refuted concepts stay refuted in later batches, so that no point is
            verified twice. The paper's algorithm does not remember; the bound holds in both cases.

    Examples:
        >>> import grv
        >>> policy = grv.policies.CenteredStar("thresholds:8")
        >>> from grv.testing import World, dialogue
        >>> print(*dialogue(policy, grv.Costs(1, 3), World.of("1- 5- 3- 7+ 2- 4-")), sep=", ")
        generate 3, verify 1, generate 3, verify 1, solved by 3
    """

    concepts: str = ""
    points: tuple[float, ...] = ()
    remember: bool = True
    example: ClassVar[str] = "centered-star('thresholds:8')"
    rank_only: ClassVar[bool] = False
    relies_on: ClassVar[str] = "the class of concepts it was given"
    proven: ClassVar[str] = sentence(promises_of("centered-star"))

    def __post_init__(self) -> None:
        if not isinstance(self.concepts, str) or not isinstance(self.points, tuple):
            raise TypeError
        following = zip(self.points, self.points[1:], strict=False)
        if any(math.isnan(point) for point in self.points) or not all(a < b for a, b in following):
            raise UsageError("centered-star: the points must be increasing numbers")
        if (known := _class(self.concepts)) is None:
            return
        if self.points and len(self.points) != known.points:
            raise UsageError(
                f"centered-star: the concepts have {known.points} points, but {len(self.points)}"
                " points are given"
            )
        if not known.values.any():
            raise UsageError("centered-star: nothing passes under any concept (s_0 = 0)")

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield batches and the verifications that certify them, or verify everything."""
        known = _known(self.concepts)
        generate, verify = whole(costs)
        if known is None or known.star * generate > verify:
            yield from VerifyAll().plan(pool, costs)
            return
        size = -(-verify * known.star // generate)
        points = self.points or range(known.points)
        alive = known.concepts
        while not pool.exhausted and alive:
            start = len(pool)
            yield Generate(size, f"a batch, sized for the star number {known.star}")
            batch = map(CandidateId, range(start, len(pool)))
            place = {id: bisect.bisect_right(points, pool.scores[id]) - 1 for id in batch}
            left = yield from _certified(pool, place, alive, known.exact)
            alive = left if self.remember else known.concepts
        if not alive:
            while pool.waiting:
                yield Verify(pool.best(pool.waiting), "no concept of the class fits the verdicts")
            yield from VerifyAll().plan(pool, costs)


def _certified(
    pool: Pool, place: dict[CandidateId, int], alive: Concepts, exact: bool
) -> Generator[Step, None, Concepts]:
    """Verify until no candidate of a batch passes under any concept; return the concepts left.

    This takes one hitting set, or more if verdicts are broken. `place` maps each candidate to the
    number of its point, -1 below the first point.
    """
    from ..theory.stars.hitting import quick_hitting_set, smallest_hitting_set

    while True:
        failed = {at for id, at in place.items() if _has_failed(pool, id)}
        alive = tuple(concept for concept in alive if failed.isdisjoint(concept))
        oldest = {at: id for id, at in reversed(place.items()) if pool.is_open(id)}
        traces = [concept.intersection(oldest) for concept in alive]
        found = smallest_hitting_set(traces, nodes=_NODES) if exact else quick_hitting_set(traces)
        if not found.members:
            return alive
        ids = tuple(oldest[at] for at in reversed(found.members))  # the highest score first
        yield Verify(ids, f"if these fail, all {len(place)} of the batch fail")


def _has_failed(pool: Pool, id: CandidateId) -> bool:
    """Whether the candidate is known to fail, by its verdict or by its key."""
    return not pool.is_open(id) and pool.verdicts.get(id) is not Verdict.BROKEN


@dataclass(frozen=True)
class _KnownClass:
    """A class of concepts and its star number, or an upper bound on it."""

    star: int
    points: int
    concepts: Concepts
    exact: bool  # whether the class is small enough for `smallest_hitting_set`


@lru_cache(maxsize=64)
def _class(text: str) -> ConceptClass | None:
    """The class that a text describes; None if it is unknown or infinite."""
    from ..theory.stars.classes import FAMILIES, family, of_rows

    name, _, size = text.partition(":")
    if not text or (name in FAMILIES and size == "inf"):
        return None
    known = family(text)
    if known is not None:
        return known
    rows = text.split()
    if len({len(row) for row in rows}) != 1 or not set("".join(rows)) <= {"0", "1"}:
        raise UsageError(
            "centered-star: concepts must be a family, such as 'intervals:16', or strings of 0 and"
            f" 1 of equal length, such as '0011 0110', not {text[:40]!r}"
        )
    return of_rows(rows)


@lru_cache(maxsize=64)
def _known(text: str) -> _KnownClass | None:
    known = _class(text)
    if known is None:
        return None
    from ..theory.stars.search import star_number

    concepts = {frozenset(row.nonzero()[0].tolist()) for row in known.values} - {frozenset()}
    return _KnownClass(
        star_number(known, steps=_STEPS).upper,
        known.points,
        tuple(sorted(concepts, key=sorted)),
        known.values.size <= _EXACT,
    )
