"""Searches of `learned` with keys, refuted candidates, or a discount for scores that have failed.

Results equal the engine's; a test proves it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.values import REFUTED_CODE
from ...policies.learned.merit_ranking import MOST_DOUBLINGS, MOST_FAILED, SETTLED
from ...theory.scales import on_scale
from .merit_searches import MeritLimits, MeritSearches
from .stacked_orders import Flags, Places


class ClassedSearches(MeritSearches):
    """Searches with keys, refuted candidates, or a discount for scores that have failed.

    What is on offer is kept for each order, not for each search; so all searches keep pace.
    `bins`, `offered`, `sizes` and `sums` are `[orders, ...]`.
    """

    def _prepare(self, limits: Sequence[MeritLimits]) -> None:
        prior = self.prior
        stack = self.stack
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
        best = self.first[who]
        open_ = self.waiting[who, best]
        on_offer = self.waiting[who] & self.offered[self.of[who]]
        best = np.where(open_, best, on_offer.argmax(axis=1))
        some = open_ | on_offer.any(axis=1)
        self._check(who[some], best[some])
        self._find_best(who)

    def _verify(self, going: Places) -> Places:
        """Verify candidates while they are worth it and there is room, in all searches."""
        who = going
        while len(who := who[self._ready(who)]):
            self._verify_top(who)
            who = who[~self.over[who]]
        left: Places = going[~self.over[going]]
        return left

    def _generate(self, going: Places) -> None:
        stack = self.stack
        drawn = int(self.generated[going[0]])
        orders = np.unique(self.of[going])
        ranks = stack.ranks[orders, drawn - 1]
        leaders = stack.leaders[orders, drawn - 1]
        beaten = stack.beaten[orders, drawn - 1]
        self.offered[orders, ranks] = leaders == ranks
        self.offered[orders[beaten >= 0], beaten[beaten >= 0]] = False
        self.sizes[orders, leaders] = stack.doublings[orders, drawn - 1]
        self.sums[orders] += self.normals[orders, ranks]
        self.first[going] = np.minimum(self.first[going], stack.ranks[self.of[going], drawn - 1])
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

    def _place(self, orders: Places, drawn: int) -> None:
        """Assign all candidates to bins again, relative to the mean of those drawn."""
        means = self.sums[orders] / (drawn + self.prior.anchor)
        relative = self.normals[orders] - means[:, None]
        self.bins[orders] = np.searchsorted(self.prior.edges, relative, side="right")

    def _restart(self, going: Places) -> None:
        """Compute the belief again from all failures so far."""
        counts = self.counts[going]
        bins = self.bins[self.of[going]]
        totals = np.stack(
            [(counts * (bins == b)).sum(axis=1) for b in range(len(self.failing))], axis=1
        )
        self.logs[going] = self.weights + totals @ self.failing
        self._believe(going)

    def _believe(self, who: Places) -> None:
        logs = self.logs[who]
        self._set_merits(who, np.exp(logs - logs.max(axis=1, keepdims=True)))

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
        who = who[failed]
        ranks = ranks[failed]
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
