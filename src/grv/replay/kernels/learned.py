"""A fast replay of the policy `learned`, on many orders of many problems at once.

`grv learn` replays its history hundreds of times to find ties, votes and tilts. So all searches,
each with its own limits, advance together: generate one candidate for each, then verify in those
searches that want to, until none does. The guard's blocks, the mean of a prompt and the drift tests
depend only on the candidates drawn, not on verdicts, so they are shared by all searches of an
order. The results must equal the engine's; a test proves it. Searches whose scores differ from the
history are left to the engine.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.values import REFUTED_CODE, Costs
from ...policies.learned.belief import tables_of
from ...policies.learned.drift import SIZES, Drift
from ...policies.learned.guard import ROUNDING
from ...policies.learned.merit_ranking import MOST_DOUBLINGS, MOST_FAILED, SETTLED
from ...policies.learned.prior import Looks, Prior, Scale
from ...theory.decimals import exact_ratio
from ...theory.guard import FACTOR, guard_blocks
from ...theory.scales import on_scale
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
        levels: equal for equal scores.
        keys: key numbers, -1 for none.
        ranks: the rank of the candidate.
        leaders: the rank of the best candidate with its key so far, including itself.
        beaten: the rank of the previous leader if this candidate replaces it; else -1.
        doublings: of the number of candidates with its key so far.
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

    @classmethod
    def of(cls, batches: Sequence[OrderBatch]) -> StackedOrders:
        """All orders of these batches."""
        rows = [row for batch in batches for row in _rows(batch)]
        longest = max(len(row[0]) for row in rows)
        fills = (-np.inf, False, -1, -1, -1, -1, -1, 0)
        columns = [
            np.array([np.pad(x, (0, longest - len(x)), constant_values=fill) for x in column])
            for column, fill in zip(zip(*rows, strict=True), fills, strict=True)
        ]
        return cls(np.array([len(row[0]) for row in rows]), *columns)

    @cached_property
    def keyed(self) -> bool:
        """Whether any candidate has a key."""
        return bool((self.keys >= 0).any())

    @cached_property
    def _drifts(self) -> dict[tuple[Scale, Looks], Places]:
        return {}

    def drifts(self, prior: Prior) -> Places:
        """`[orders]`: the number of candidates at which drift is detected; 0 for never."""
        name = (prior.scale, prior.looks)
        if name not in self._drifts:
            arrived = np.take_along_axis(self.scores, self.ranks, axis=1)
            rows = zip(arrived, self.sizes.tolist(), strict=True)
            found = [_drifts_at(prior, row[:size].tolist()) for row, size in rows]
            self._drifts[name] = np.array(found)
        return self._drifts[name]


def _drifts_at(prior: Prior, scores: list[float]) -> int:
    drift = Drift(prior)
    for size in SIZES:
        if size <= len(scores) and drift.complaint(scores[:size]):
            return size
    return 0


def _rows(batch: OrderBatch) -> list[tuple[NDArray[Any], ...]]:
    """The arrays of each order, without its size."""
    found: list[tuple[NDArray[Any], ...]] = []
    for at, ranked in enumerate(batch.ranked):
        ranks = np.empty_like(ranked)
        ranks[ranked] = np.arange(len(ranked))
        keys = np.full(len(ranked), -1) if batch.keys is None else batch.keys[at]
        classes = _classes(ranks.tolist(), keys.tolist())
        scores = batch.problem.scores[batch.orders[at]][ranked]
        levels = batch.levels[at][ranked].astype(np.intp)
        found.append((scores, batch.passed[at][ranked], levels, keys[ranked], ranks, *classes))
    return found


def _classes(ranks: list[int], keys: list[int]) -> tuple[Places, Places, Places]:
    """Leaders, the leaders they replace, and doublings, in order of arrival."""
    best: dict[int, int] = {}
    sizes: dict[int, int] = {}
    leaders, beaten, doublings = np.array(ranks), np.full(len(ranks), -1), np.zeros_like(ranks)
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


@dataclass(frozen=True, eq=False)
class LearnedTrials:
    """The results of searches. Arrays are `[limits, orders]`.

    Attributes:
        solved: whether a candidate passed.
        generated: the number of candidates generated.
        verified: the number of candidates verified.
        asked: the rounds of generation, including the one that found no more candidates.
        unlike: whether the scores differ from the history; the other numbers are then invalid.
    """

    solved: Flags
    generated: Places
    verified: Places
    asked: Places
    unlike: Flags


@dataclass(frozen=True)
class MeritLimits:
    """The lowest merit at which a candidate is verified: before any candidate has a key, after."""

    plain: float
    keyed: float

    @classmethod
    def of(cls, prior: Prior, ratio: float) -> MeritLimits:
        """The limits of a prior."""
        return cls(prior.limit(ratio), prior.limit(ratio, keyed=True))


def learned_trials(
    prior: Prior,
    stack: StackedOrders,
    ratio: float,
    limits: Sequence[MeritLimits],
    factor: float = FACTOR,
) -> LearnedTrials:
    """Run all orders with each of the limits; a verification costs `ratio` candidates."""
    searches = _Searches(prior, stack, ratio, limits, factor)
    searches.carry_out()
    shape = (len(limits), len(stack.sizes))
    return LearnedTrials(
        searches.solved.reshape(shape),
        searches.generated.reshape(shape),
        searches.verified.reshape(shape),
        searches.asked.reshape(shape),
        searches.unlike.reshape(shape),
    )


class _Searches:
    """Searches that advance together; a search is one order with one pair of limits.

    The arrays in `stack`, and `bins`, `offered`, `sizes`, `sums` and `first`, are `[orders, ...]`;
    all others are `[searches, ...]`.
    """

    def __init__(
        self,
        prior: Prior,
        stack: StackedOrders,
        ratio: float,
        limits: Sequence[MeritLimits],
        factor: float,
    ) -> None:
        orders, longest = stack.ranks.shape
        searches = orders * len(limits)
        self.prior, self.stack, self.longest = prior, stack, longest
        self.of = np.tile(np.arange(orders), len(limits))
        self.limits = np.repeat([limit.plain for limit in limits], orders)
        self.keyed_limits = np.repeat([limit.keyed for limit in limits], orders)
        arrived = np.take_along_axis(stack.keys, stack.ranks, axis=1) >= 0
        self.keyed_from = np.where(arrived.any(axis=1), arrived.argmax(axis=1) + 1, longest + 1)
        self.rho = float(exact_ratio(Costs(1, ratio)))
        self.blocks = guard_blocks(exact_ratio(Costs(1, ratio)), factor)
        tables = tables_of(prior, ratio)
        self.weights = np.array(tables.weights)
        self.failing = np.array(tables.failing)
        self.worth = np.array(tables.worth).T
        self.ties = prior.tie ** np.arange(MOST_FAILED + 1)
        self.votes = 2 ** (prior.votes * np.arange(MOST_DOUBLINGS + 1))
        self.normals = on_scale(prior.scale.values, prior.scale.normals, stack.scores)
        self.sums = np.full(orders, prior.anchor * prior.centre)
        self.bins = np.zeros((orders, longest), dtype=np.intp)
        self.offered = np.zeros((orders, longest), dtype=np.bool_)
        self.sizes = np.zeros((orders, longest), dtype=np.intp)  # of keys, in doublings
        self.first = np.full(orders, longest)  # the best of the current block
        self.waiting = np.tile(stack.keys != REFUTED_CODE, (len(limits), 1))
        self.counts = np.zeros((searches, longest))  # the weight of each failure
        self.failed = np.zeros((searches, longest), dtype=np.intp)  # by level
        self.logs = np.tile(self.weights, (searches, 1))
        self.merits = np.zeros((searches, len(prior.shares)))
        self.top = np.full(searches, longest)
        self.merit = np.full(searches, -1.0)
        self.solved = np.zeros(searches, dtype=np.bool_)
        self.unlike = np.zeros(searches, dtype=np.bool_)
        self.generated, self.verified, self.asked = np.zeros((3, searches), dtype=np.intp)
        self.drifts = stack.drifts(prior)

    def carry_out(self) -> None:
        """Run until all searches have ended."""
        going = np.arange(len(self.of))
        ended: list[Places] = []
        allowance, end, block = 0.0, 0, self.blocks[0]
        for drawn in itertools.count(1):
            if drawn - 1 == end:
                going = self._settle(going)
                allowance += block.allowance
                end += block.draws
                block = self.blocks[1]
                self.first[:] = self.longest
            self.asked[going] += 1
            over = self.stack.sizes[self.of[going]] < drawn
            ended.append(going[over])
            going = going[~over]
            if not len(going):
                break
            going = self._generate(going, drawn)
            fits = self.keyed_from[self.of[going]] == drawn
            self.limits[going[fits]] = self.keyed_limits[going[fits]]
            going = self._verify(going, allowance - end, over=drawn == end)
        self._verify_rest(np.concatenate(ended))

    def _settle(self, going: Places) -> Places:
        """Verify the best of the completed block, as the guard requires.

        If its key is refuted, the best of the pool is verified instead.
        """
        first = self.first[self.of[going]]
        owing = first < self.longest
        owing[owing] = self.counts[going[owing], first[owing]] == 0
        who, best = going[owing], first[owing]
        open_ = self.waiting[who, best]
        on_offer = self.waiting[who] & self.offered[self.of[who]]
        best = np.where(open_, best, on_offer.argmax(axis=1))
        some = open_ | on_offer.any(axis=1)
        self._check(who[some], best[some])
        self._find_best(who)
        return going[~self.solved[going]]

    def _generate(self, going: Places, drawn: int) -> Places:
        """Generate the next candidate of every search."""
        stack = self.stack
        orders = np.unique(self.of[going])
        ranks, leaders = stack.ranks[orders, drawn - 1], stack.leaders[orders, drawn - 1]
        beaten = stack.beaten[orders, drawn - 1]
        self.offered[orders, ranks] = leaders == ranks
        self.offered[orders[beaten >= 0], beaten[beaten >= 0]] = False
        self.sizes[orders, leaders] = stack.doublings[orders, drawn - 1]
        self.sums[orders] += self.normals[orders, ranks]
        self.first[orders] = np.minimum(self.first[orders], ranks)
        self.generated[going] = drawn
        drifted = self.drifts[self.of[going]] == drawn
        self.unlike[going[drifted]] = True
        going = going[~drifted]
        if drawn <= SETTLED and drawn & (drawn - 1) == 0:
            self._place(orders, drawn)
            self._restart(going)
            self._find_best(going)
        else:
            self._compare(going, stack.leaders[self.of[going], drawn - 1])
            beaten = stack.beaten[self.of[going], drawn - 1]
            self._find_best(going[(beaten >= 0) & (beaten == self.top[going])])
        return going

    def _place(self, orders: Places, drawn: int) -> None:
        """Assign all candidates to bins again, relative to the mean of those drawn."""
        means = self.sums[orders] / (drawn + self.prior.anchor)
        relative = self.normals[orders] - means[:, None]
        self.bins[orders] = np.searchsorted(self.prior.edges, relative, side="right")

    def _restart(self, going: Places) -> None:
        """Compute the belief again from all failures so far."""
        counts, bins = self.counts[going], self.bins[self.of[going]]
        totals = np.stack(
            [(counts * (bins == b)).sum(axis=1) for b in range(len(self.failing))], axis=1
        )
        self.logs[going] = self.weights + totals @ self.failing
        self._believe(going)

    def _believe(self, who: Places) -> None:
        logs = self.logs[who]
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        self.merits[who] = weights @ self.worth / weights.sum(axis=1, keepdims=True)

    def _compare(self, going: Places, ranks: Places) -> None:
        """Compare one candidate per search, new or with a key that has grown, with the best."""
        orders = self.of[going]
        merit = self.merits[going, self.bins[orders, ranks]]
        merit *= self.ties[self.failed[going, self.stack.levels[orders, ranks]]]
        merit *= self.votes[self.sizes[orders, ranks]]
        merit[~self.waiting[going, ranks]] = -1.0
        best, top = self.merit[going], self.top[going]
        better = (merit > best) | ((merit == best) & (ranks < top))
        self.merit[going] = np.where(better, merit, best)
        self.top[going] = np.where(better, ranks, top)

    def _find_best(self, who: Places) -> None:
        """Find the best candidate on offer in these searches."""
        if not len(who):
            return
        orders = self.of[who]
        merits = np.take(self.merits, self.bins[orders] + self.merits.shape[1] * who[:, None])
        if self.prior.tie < 1:
            levels = self.stack.levels[orders]
            merits *= self.ties[np.take(self.failed, levels + self.longest * who[:, None])]
        if self.prior.votes > 0:
            merits *= self.votes[self.sizes[orders]]
        merits[~(self.waiting[who] & self.offered[orders])] = -1.0
        top = merits.argmax(axis=1)
        self.top[who] = top
        self.merit[who] = merits[np.arange(len(who)), top]

    def _verify(self, going: Places, room: float, *, over: bool) -> Places:
        """Verify candidates above the limit while the guard has room; see `Guard.has_room`.

        Until the block is complete, its best candidate may be still to come.
        """
        who = going
        while len(who):
            worth = self.merit[who] >= self.limits[who]
            who = who[worth & (self.merit[who] >= 0)]
            first = self.first[self.of[who]]
            owed = (self.counts[who, first] == 0) & (self.top[who] != first) | (not over)
            left = room + ROUNDING - self.rho * (self.verified[who] + owed)
            who = who[self.rho <= left]
            self._check(who, self.top[who])
            who = who[~self.solved[who]]
            self._find_best(who)
        return going[~self.solved[going]]

    def _verify_rest(self, who: Places) -> None:
        """After the last candidate, verify all open candidates, highest merit first."""
        self._find_best(who)
        while len(who := who[self.merit[who] >= 0]):
            self._check(who, self.top[who])
            who = who[~self.solved[who]]
            self._find_best(who)

    def _check(self, who: Places, ranks: Places) -> None:
        """Verify one candidate in each of these searches."""
        orders = self.of[who]
        self.verified[who] += 1
        self.solved[who] = self.stack.passed[orders, ranks]
        failed = ~self.solved[who]
        who, ranks, orders = who[failed], ranks[failed], orders[failed]
        levels = self.stack.levels[orders, ranks]
        before = self.failed[who, levels]
        counts = self.ties[before]
        self.counts[who, ranks] = counts
        if self.prior.tie < 1:
            self.failed[who, levels] = np.minimum(before + 1, MOST_FAILED)
        keys = self.stack.keys[orders, ranks]
        self.waiting[who, ranks] = False
        if self.stack.keyed:
            self.waiting[who] &= (self.stack.keys[orders] != keys[:, None]) | (keys < 0)[:, None]
        self.logs[who] += counts[:, None] * self.failing[self.bins[orders, ranks]]
        self._believe(who)
