"""Orders of several problems as arrays, for searches that advance together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...core.values import REFUTED_CODE
from ...policies.learned.drift import FALSE_ALARM, SIZES
from ...policies.learned.merit_ranking import MOST_DOUBLINGS
from ...policies.learned.prior import Looks, Prior, Scale
from ...theory.scales import distances, on_scale, pooled_shares
from ..orders import OrderBatch

Numbers = NDArray[np.float64]
Places = NDArray[np.intp]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class StackedOrders:
    """Orders of several problems, stacked into arrays.

    Arrays are `[orders, candidates]`, best candidate first; on ties, the older first. The last four
    are in order of arrival. Shorter orders are padded at the end.

    Attributes:
        sizes: `[orders]`, the number of candidates.
        scores: -inf if missing.
        passed: whether the candidate passes.
        levels: equal for equal values of `alike`, by default the scores.
        keys: key numbers, -1 for none.
        ranks: the rank of the candidate.
        leaders: the rank of the best candidate with its key so far, including itself.
        beaten: the rank of the previous leader if this candidate replaces it; else -1.
        doublings: of the number of candidates with its key so far.
        batches: the problems, in the same sequence.
    """

    sizes: Places
    scores: Numbers
    passed: Flags
    levels: Places
    keys: Places
    ranks: Places
    leaders: Places
    beaten: Places
    doublings: Places
    batches: tuple[OrderBatch, ...]

    @classmethod
    def of(cls, batches: Sequence[OrderBatch]) -> StackedOrders:
        """All orders of these batches."""
        sizes = np.repeat([len(batch.problem) for batch in batches], [b.size for b in batches])
        shape = (len(sizes), int(sizes.max()))
        ranks = np.full(shape, -1, dtype=np.intp)
        none = np.broadcast_to(np.intp(-1), shape)
        classes = any(batch.keys is not None for batch in batches)
        found = cls(
            sizes,
            scores=np.full(shape, -np.inf),
            passed=np.zeros(shape, dtype=np.bool_),
            levels=np.full(shape, -1, dtype=np.intp),
            keys=none.copy() if classes else none,
            ranks=ranks,
            leaders=none.copy() if classes else ranks,
            beaten=none.copy() if classes else none,
            doublings=none + 1 if classes else np.broadcast_to(np.intp(0), shape),
            batches=tuple(batches),
        )
        start = 0
        for batch in batches:
            found._add(batch, slice(start, start + batch.size))
            start += batch.size
        return found

    def _add(self, batch: OrderBatch, rows: slice) -> None:
        """Fill in the rows of one problem."""
        n = len(batch.problem)
        ranked = batch.ranked
        ranks = np.empty_like(ranked)
        np.put_along_axis(ranks, ranked, np.arange(n)[None, :], axis=1)
        arrived = np.take_along_axis(batch.orders, ranked, axis=1)
        self.scores[rows, :n] = batch.problem.scores[arrived]
        self.passed[rows, :n] = batch.problem.passed[arrived]
        self.levels[rows, :n] = batch.problem.alike_levels[arrived]
        self.ranks[rows, :n] = self.leaders[rows, :n] = ranks
        if batch.keys is None:
            return
        self.keys[rows, :n] = np.take_along_axis(batch.keys, ranked, axis=1)
        for at, keys in enumerate(batch.keys):
            classes = _classes(ranks[at].tolist(), keys.tolist())
            for array, values in zip(
                (self.leaders, self.beaten, self.doublings), classes, strict=True
            ):
                array[rows.start + at, :n] = values

    @cached_property
    def keyed(self) -> bool:
        """Whether any candidate has a key."""
        return bool((self.keys >= 0).any())

    @cached_property
    def has_classes(self) -> bool:
        """Whether any candidate has a key or is refuted."""
        return any(batch.keys is not None for batch in self.batches)

    @cached_property
    def spared(self) -> Places:
        """`[orders, candidates + 1]`: of the first n to arrive, how many verify-all spares.

        These are refuted, or another candidate with their key has come before.
        """
        found = np.zeros((self.ranks.shape[0], self.ranks.shape[1] + 1), dtype=np.intp)
        for row, (size, ranks) in enumerate(zip(self.sizes.tolist(), self.ranks, strict=True)):
            keys = self.keys[row, ranks[:size]]
            repeats = np.ones(size, dtype=np.bool_)
            repeats[np.unique(keys, return_index=True)[1]] = False
            spared = (keys >= 0) & (repeats | (keys == REFUTED_CODE))
            found[row, 1 : size + 1] = np.cumsum(spared)
        return found

    @cached_property
    def _drifts(self) -> dict[tuple[Scale, Looks], Places]:
        return {}

    def drifts(self, prior: Prior) -> Places:
        """`[orders]`: the number of candidates at which drift is detected; 0 for never."""
        name = (prior.scale, prior.looks)
        if name not in self._drifts:
            parts = [_drifts_of(prior, batch) for batch in self.batches]
            self._drifts[name] = np.concatenate(parts)
        return self._drifts[name]


def _drifts_of(prior: Prior, batch: OrderBatch) -> Places:
    """Equals `Drift.complaint` of every order; a test proves it."""
    scores = batch.problem.scores
    pooled = pooled_shares(on_scale(prior.scale.values, prior.scale.normals, scores))
    low = prior.scale.values[0]
    high = prior.scale.values[-1]
    beyond = (scores > -np.inf) & ~((low <= scores) & (scores <= high))
    found = np.zeros(batch.size, dtype=np.intp)
    risk = FALSE_ALARM / 2
    for size in SIZES:
        if size > len(scores):
            break
        chance = math.sqrt(math.log(4 / risk) / (2 * size))
        risk /= 2
        orders = batch.orders[:, :size]
        scored = (scores[orders] > -np.inf).sum(axis=1)
        share = beyond[orders].sum(axis=1) / np.maximum(scored, 1)
        strange = share > prior.looks.outside + chance
        strange |= distances(scores[orders], pooled[orders]) > prior.looks.distance + chance
        found[strange & (scored > 0) & (found == 0)] = size
    return found


def _classes(ranks: list[int], keys: list[int]) -> tuple[Places, Places, Places]:
    """Leaders, the leaders they replace, and doublings, in order of arrival."""
    best: dict[int, int] = {}
    sizes: dict[int, int] = {}
    leaders = np.array(ranks)
    beaten = np.full(len(ranks), -1)
    doublings = np.zeros_like(ranks)
    for at, (rank, key) in enumerate(zip(ranks, keys, strict=True)):
        if key < 0:
            continue
        sizes[key] = sizes.get(key, 0) + 1
        doublings[at] = min(sizes[key].bit_length() - 1, MOST_DOUBLINGS)
        before = best.setdefault(key, rank)
        leaders[at] = best[key] = min(rank, before)
        if rank < before:
            beaten[at] = before
    return leaders, beaten, doublings
