"""Searches of the policy `learned` that advance together; a search is an order with two limits."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.values import REFUTED_CODE, Costs
from ...policies.learned.belief import tables_of
from ...policies.learned.drift import SIZES
from ...policies.learned.guard import ROUNDING
from ...policies.learned.merit_ranking import MOST_DOUBLINGS, MOST_FAILED, SETTLED
from ...policies.learned.prior import Prior
from ...theory.decimals import exact_ratio
from ...theory.guard import guard_blocks, oldest_limit
from ...theory.scales import on_scale
from .courses import Courses
from .stacked_orders import Flags, Numbers, Places, StackedOrders


@dataclass(frozen=True)
class MeritLimits:
    """The lowest merit at which a candidate is verified: before any candidate has a key, after."""

    plain: float
    keyed: float

    @classmethod
    def of(cls, prior: Prior, ratio: float) -> MeritLimits:
        """The limits of a prior."""
        return cls(prior.limit(ratio), prior.limit(ratio, keyed=True))


class MeritSearches(abc.ABC):
    """What all searches have in common: the blocks of the guard, the best, the end.

    The arrays in `stack` and `first` are `[orders, ...]`; all others are `[searches, ...]`.
    """

    def __init__(
        self,
        prior: Prior,
        stack: StackedOrders,
        ratio: float,
        limits: Sequence[MeritLimits],
        factor: float,
        courses: Courses | None,
    ) -> None:
        orders, longest = stack.ranks.shape
        searches = orders * len(limits)
        self.prior, self.stack, self.longest = prior, stack, longest
        self.of = np.tile(np.arange(orders), len(limits))
        self.limits = np.repeat([limit.plain for limit in limits], orders)
        self.rho = float(exact_ratio(Costs(1, ratio)))
        self.blocks = guard_blocks(exact_ratio(Costs(1, ratio)), factor)
        self.per_draw = oldest_limit(self.rho, 0, factor)
        tables = tables_of(prior, ratio)
        self.weights = np.array(tables.weights)
        self.failing = np.array(tables.failing)
        self.worth = np.array(tables.worth).T
        self.first = np.full(orders, longest)  # the best of the current block
        self.merits = np.zeros((searches, len(prior.shares)))
        self.top = np.full(searches, longest)
        self.merit = np.full(searches, -1.0)
        self.over = np.zeros(searches, dtype=np.bool_)  # solved, or if it looks ahead: known
        self.unlike = np.zeros(searches, dtype=np.bool_)
        self.generated, self.verified, self.asked = np.zeros((3, searches), dtype=np.intp)
        self.oldest = np.zeros(searches, dtype=np.intp)  # see `Guard._oldest`
        self.last = np.full(searches, -1)  # the rank of the last candidate verified
        self.drifts = stack.drifts(prior)
        self.courses = courses

    @abc.abstractmethod
    def _settle(self, who: Places) -> None:
        """Verify the best of the completed block, as the guard requires."""

    @abc.abstractmethod
    def _generate(self, going: Places, drawn: int) -> Places:
        """Generate the next candidate of every search."""

    @abc.abstractmethod
    def _find_best(self, who: Places) -> None:
        """Find the best candidate on offer in these searches."""

    @abc.abstractmethod
    def _check(self, who: Places, ranks: Places) -> None:
        """Verify one candidate in each of these searches."""

    @abc.abstractmethod
    def _is_open(self, who: Places, ranks: Places) -> Flags:
        """Whether one candidate of each of these searches can be verified."""

    @property
    @abc.abstractmethod
    def failures(self) -> Flags:
        """`[searches, ranks]`: whether the candidate was verified and failed."""

    @property
    def checked(self) -> Flags:
        """`[searches, ranks]`: whether the candidate was verified."""
        found = self.failures
        over = np.flatnonzero(self.over)
        found[over, self.last[over]] = True
        return found

    def _count(self, who: Places, ranks: Places) -> Flags:
        """Count one verification in each of these searches; return whether the search goes on."""
        self.verified[who] += 1
        passes = self.stack.passed[self.of[who], ranks]
        if self.courses is None:
            over = passes
        else:
            over = self.courses.add(who, self.verified[who], ranks, self.asked[who], passes)
        self.over[who], self.last[who] = over, ranks
        going_on: Flags = ~over
        return going_on

    @abc.abstractmethod
    def _has_failed(self, who: Places, ranks: Places) -> Flags:
        """Whether one candidate of each of these searches was verified."""

    def carry_out(self) -> None:
        """Run until all searches have ended."""
        going = np.arange(len(self.of))
        ended: list[Places] = []
        allowance, end, block = 0.0, 0, self.blocks[0]
        for drawn in itertools.count(1):
            if drawn - 1 == end:
                going = self._complete(going, drawn - 1)
                allowance += block.allowance
                end += block.draws
                block = self.blocks[1]
                self.first[:] = self.longest
            self._verify_oldest(going, drawn - 1, 1.0)
            going = going[~self.over[going]]
            self.asked[going] += 1
            over = self.stack.sizes[self.of[going]] < drawn
            if over.any():
                ended.append(going[over])
                going = going[~over]
            if not len(going):
                break
            going = self._generate(self._without_drift(going, drawn), drawn)
            going = self._verify(going, drawn, end, allowance)
        self._verify_rest(np.concatenate([*ended, going]))

    def _without_drift(self, going: Places, drawn: int) -> Places:
        """Leave out the searches whose scores turn out to differ from the history."""
        self.generated[going] = drawn
        if drawn not in SIZES:
            return going
        drifted = self.drifts[self.of[going]] == drawn
        self.unlike[going[drifted]] = True
        kept: Places = going[~drifted]
        return kept

    def _compare(self, going: Places, ranks: Places, merit: Numbers) -> None:
        """Compare one candidate per search, new or with a key that has grown, with the best."""
        best, top = self.merit[going], self.top[going]
        better = (merit > best) | ((merit == best) & (ranks < top))
        self.merit[going] = np.where(better, merit, best)
        self.top[going] = np.where(better, ranks, top)

    def _complete(self, going: Places, drawn: int) -> Places:
        """Verify the best of the completed block where it is due; see `Guard._due`."""
        if drawn:
            self._verify_oldest(going[self._owing(going)], drawn, self.rho)
            going = going[~self.over[going]]
            self._settle(going[self._owing(going)])
        return going[~self.over[going]]

    def _owing(self, who: Places) -> Flags:
        """Whether the best candidate of the current block has no verdict."""
        return ~self._has_failed(who, self.first[self.of[who]])

    def _room(self, who: Places, drawn: int) -> Numbers:
        """As `Guard._room`, after the oldest open candidate of each search is found."""
        moving = who
        while len(moving := moving[self.oldest[moving] < drawn]):
            ranks = self.stack.ranks[self.of[moving], self.oldest[moving]]
            moving = moving[~self._is_open(moving, ranks)]
            self.oldest[moving] += 1
        limit = self.per_draw * (self.oldest[who] + 1) + ROUNDING
        room: Numbers = limit - self.rho - (drawn + self.rho * self.verified[who])
        return room

    def _verify_oldest(self, who: Places, drawn: int, cost: float) -> None:
        """As `Guard._verify_oldest`."""
        overdue = (cost > self._room(who, drawn)) & (self.oldest[who] < drawn)
        if overdue.any():
            who = who[overdue]
            self._check(who, self.stack.ranks[self.of[who], self.oldest[who]])
            self._find_best(who[~self.over[who]])

    def _verify(self, going: Places, drawn: int, end: int, allowance: float) -> Places:
        """Verify candidates above the limit while they fit; see `Guard.has_room`.

        Until the block is complete, its best candidate may be still to come.
        """
        merit = self.merit[going]
        who = going[(merit >= self.limits[going]) & (merit >= 0)]
        rho = self.rho
        while len(who):
            top, room = self.top[who], self._room(who, drawn)
            due = self._owing(who) & (top != self.first[self.of[who]]) | (drawn < end)
            needed = rho + (end - drawn) + np.where(due, rho, 0.0)
            is_oldest = top == self.stack.ranks[self.of[who], self.oldest[who]]
            room[is_oldest] = np.inf
            while (short := needed + 1 > room).any():
                needed[short] += rho
                room[short] += self.per_draw
            who = who[drawn + rho * self.verified[who] + needed <= allowance + ROUNDING]
            wanted = self.top[who]
            self._verify_oldest(who, drawn, rho)
            still = ~self.over[who]
            still[still] = self._is_open(who[still], wanted[still])
            self._check(who[still], wanted[still])
            who = who[~self.over[who]]
            self._find_best(who)
            merit = self.merit[who]
            who = who[(merit >= self.limits[who]) & (merit >= 0)]
        return going[~self.over[going]]

    def _verify_rest(self, who: Places) -> None:
        """After the last candidate, verify all open candidates, highest merit first."""
        self._find_best(who)
        while len(who := who[self.merit[who] >= 0]):
            self._check(who, self.top[who])
            who = who[~self.over[who]]
            self._find_best(who)


class ClassedSearches(MeritSearches):
    """Searches with keys, refuted candidates, or a discount for scores that have failed.

    `bins`, `offered`, `sizes` and `sums` are `[orders, ...]`.
    """

    def __init__(
        self,
        prior: Prior,
        stack: StackedOrders,
        ratio: float,
        limits: Sequence[MeritLimits],
        factor: float,
        courses: Courses | None,
    ) -> None:
        super().__init__(prior, stack, ratio, limits, factor, courses)
        (orders, longest), searches = stack.ranks.shape, len(self.of)
        self.keyed_limits = np.repeat([limit.keyed for limit in limits], orders)
        arrived = np.take_along_axis(stack.keys, stack.ranks, axis=1) >= 0
        self.keyed_from = np.where(arrived.any(axis=1), arrived.argmax(axis=1) + 1, longest + 1)
        self.ties = prior.tie ** np.arange(MOST_FAILED + 1)
        self.votes = 2 ** (prior.votes * np.arange(MOST_DOUBLINGS + 1))
        self.normals = on_scale(prior.scale.values, prior.scale.normals, stack.scores)
        self.sums = np.full(orders, prior.anchor * prior.centre)
        self.bins = np.zeros((orders, longest), dtype=np.intp)
        self.offered = np.zeros((orders, longest), dtype=np.bool_)
        self.sizes = np.zeros((orders, longest), dtype=np.intp)  # of keys, in doublings
        self.waiting = np.tile(stack.keys != REFUTED_CODE, (len(limits), 1))
        self.logs = np.tile(self.weights, (searches, 1))
        self.counts = np.zeros((searches, longest))  # the weight of each failure
        self.failed = np.zeros((searches, longest), dtype=np.intp)  # by level

    def _has_failed(self, who: Places, ranks: Places) -> Flags:
        failed: Flags = self.counts[who, ranks] > 0
        return failed

    def _is_open(self, who: Places, ranks: Places) -> Flags:
        open_: Flags = self.waiting[who, ranks]
        return open_

    @property
    def failures(self) -> Flags:
        """`[searches, ranks]`: whether the candidate was verified and failed."""
        failed: Flags = self.counts > 0
        return failed

    def _settle(self, who: Places) -> None:
        """Verify the best of the completed block.

        If its key is refuted, the best of the pool is verified instead.
        """
        best = self.first[self.of[who]]
        open_ = self.waiting[who, best]
        on_offer = self.waiting[who] & self.offered[self.of[who]]
        best = np.where(open_, best, on_offer.argmax(axis=1))
        some = open_ | on_offer.any(axis=1)
        self._check(who[some], best[some])
        self._find_best(who)

    def _generate(self, going: Places, drawn: int) -> Places:
        stack = self.stack
        orders = np.unique(self.of[going])
        ranks, leaders = stack.ranks[orders, drawn - 1], stack.leaders[orders, drawn - 1]
        beaten = stack.beaten[orders, drawn - 1]
        self.offered[orders, ranks] = leaders == ranks
        self.offered[orders[beaten >= 0], beaten[beaten >= 0]] = False
        self.sizes[orders, leaders] = stack.doublings[orders, drawn - 1]
        self.sums[orders] += self.normals[orders, ranks]
        self.first[orders] = np.minimum(self.first[orders], ranks)
        if drawn <= SETTLED and drawn & (drawn - 1) == 0:
            self._place(orders, drawn)
            self._restart(going)
            self._find_best(going)
        else:
            self._reconsider(going, stack.leaders[self.of[going], drawn - 1])
            beaten = stack.beaten[self.of[going], drawn - 1]
            self._find_best(going[(beaten >= 0) & (beaten == self.top[going])])
        fits = self.keyed_from[self.of[going]] == drawn
        self.limits[going[fits]] = self.keyed_limits[going[fits]]
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

    def _reconsider(self, going: Places, ranks: Places) -> None:
        """Compare one candidate per search, new or with a key that has grown, with the best."""
        orders = self.of[going]
        merit = self.merits[going, self.bins[orders, ranks]]
        merit *= self.ties[self.failed[going, self.stack.levels[orders, ranks]]]
        merit *= self.votes[self.sizes[orders, ranks]]
        merit[~self.waiting[going, ranks]] = -1.0
        self._compare(going, ranks, merit)

    def _find_best(self, who: Places) -> None:
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

    def _check(self, who: Places, ranks: Places) -> None:
        failed = self._count(who, ranks)
        who, ranks = who[failed], ranks[failed]
        orders = self.of[who]
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
