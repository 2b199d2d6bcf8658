"""Searches of `learned` in which a merit depends on the bin alone: no keys, no discount for ties.

So the best candidate of a search is the best open candidate of one of its bins, and only these few
are compared. The weights of the prior's problems are multiplied by the chance of each failure,
which is faster than adding logarithms. Results equal the engine's; a test proves it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...policies.learned.merit_ranking import SETTLED
from ...theory.scales import on_scale
from .merit_searches import MeritLimits, MeritSearches
from .stacked_orders import Flags, Numbers, Places

_AT_ONCE = 512  # searches whose candidates are placed together
_SMALL = 1e-200  # weights with a sum below this are scaled up
_NONE = 255  # no bin: the candidate has not arrived, or was verified


class PlainSearches(MeritSearches):
    """The open candidates of each search by rank, each with its bin; and the best of every bin.

    `bins` and `placed` are `[orders, ...]`, in order of arrival: the bin of a candidate when it
    arrives, and those of the first n candidates if all are assigned again when the n-th arrives.
    """

    def _prepare(self, limits: Sequence[MeritLimits]) -> None:
        shape = (len(self.of), self.longest)
        self.bins = np.zeros(self.stack.ranks.shape, dtype=np.uint8)
        self.placed: dict[int, NDArray[np.uint8]] = {}
        self._place()
        self.replaces = np.zeros(self.longest + 1, dtype=np.bool_)
        self.replaces[list(self.placed)] = True
        self.open = np.full(shape, _NONE, dtype=np.uint8)  # the bin of each open candidate
        self.failed = np.zeros(shape, dtype=np.bool_)
        self.heads = np.full((len(self.of), len(self.prior.shares)), self.longest)
        self.chances = np.exp(self.failing)
        self.problems = np.tile(np.exp(self.weights), (len(self.of), 1))

    def _has_failed(self, who: Places, ranks: Places) -> Flags:
        failed: Flags = self.failed[who, ranks]
        return failed

    def _is_open(self, who: Places, ranks: Places) -> Flags:
        open_: Flags = ~self.failed[who, ranks]
        return open_

    @property
    def failures(self) -> Flags:
        """`[searches, ranks]`: whether the candidate was verified and failed."""
        return self.failed.copy()

    def _settle(self, who: Places) -> None:
        self._check(who, self.first[who])
        self._find_best(who[~self.over[who]])

    def _generate(self, who: Places) -> None:
        orders = self.of[who]
        drawn = self.generated[who]
        ranks = self.stack.ranks[orders, drawn - 1]
        bins = self.bins[orders, drawn - 1]
        self.first[who] = np.minimum(self.first[who], ranks)
        self.open[who, ranks] = bins
        self.heads[who, bins] = np.minimum(self.heads[who, bins], ranks)
        self._compare(who, ranks, self.merits[who, bins])
        again = self.replaces[drawn]
        if again.any():
            for number in np.unique(drawn[again]).tolist():
                self._restart(who[drawn == number], number)
            self._find_best(who[again])

    def _place(self) -> None:
        """Assign candidates to bins, relative to the mean of those drawn so far.

        All are assigned again whenever their number has doubled, up to `SETTLED`.
        """
        scale = self.prior.scale
        anchor = self.prior.anchor
        by_rank = on_scale(scale.values, scale.normals, self.stack.scores)
        normals = np.take_along_axis(by_rank, np.maximum(self.stack.ranks, 0), axis=1)
        before = np.full((len(normals), 1), anchor * self.prior.centre)
        sums = np.cumsum(np.hstack([before, normals[:, :SETTLED]]), axis=1)
        drawn = 1
        while drawn <= min(SETTLED, self.longest):
            stop = self.longest if 2 * drawn > SETTLED else 2 * drawn
            relative = normals[:, :stop] - (sums[:, drawn] / (drawn + anchor))[:, None]
            bins = np.searchsorted(self.prior.edges, relative, side="right").astype(np.uint8)
            self.bins[:, drawn - 1 : stop] = bins[:, drawn - 1 :]
            self.placed[drawn] = bins[:, :drawn].copy()
            drawn *= 2

    def _restart(self, going: Places, drawn: int) -> None:
        """Compute belief, open candidates and heads again, from all failures so far."""
        ranks = self.stack.ranks[:, :drawn]
        bins = self.placed[drawn]
        size = len(self.failing)
        totals = np.empty((len(going), size))
        for start in range(0, len(going), _AT_ONCE):
            part = going[start : start + _AT_ONCE]
            placed = ranks[self.of[part]]
            own = bins[self.of[part]]
            failed = np.take_along_axis(self.failed[part], placed, axis=1)
            rows = np.arange(len(part))[:, None] * size + own
            counts = np.bincount(rows[failed], minlength=len(part) * size)
            totals[start : start + len(part)] = counts.reshape(-1, size)
            self.open[part[:, None], placed] = np.where(failed, _NONE, own)
            heads = np.full(len(part) * size, self.longest)
            np.minimum.at(heads, rows[~failed], placed[~failed])
            self.heads[part] = heads.reshape(-1, size)
        logs = self.weights + totals @ self.failing
        self._believe_in(going, np.exp(logs - logs.max(axis=1, keepdims=True)))

    def _believe_in(self, who: Places, weights: Numbers) -> None:
        """Set the weights of the prior's problems, and the merits that follow from them."""
        total = self._set_merits(who, weights)
        small = total[:, 0] < _SMALL
        weights[small] /= total[small]
        self.problems[who] = weights

    def _find_best(self, who: Places) -> None:
        heads = self.heads[who]
        merits = np.where(heads < self.longest, self.merits[who], -1.0)
        best = merits.max(axis=1)
        self.merit[who] = best
        self.top[who] = np.where(merits == best[:, None], heads, self.longest).min(axis=1)

    def _check(self, who: Places, ranks: Places) -> None:
        failed = self._count(who, ranks)
        who = who[failed]
        ranks = ranks[failed]
        self.failed[who, ranks] = True
        bins = self.open[who, ranks]
        self.open[who, ranks] = _NONE
        self._believe_in(who, self.problems[who] * self.chances[bins])
        behind = self.heads[who, bins] == ranks
        who = who[behind]
        bins = bins[behind]
        self.heads[who, bins] = self._next_heads(who, bins)

    def _next_heads(self, who: Places, bins: NDArray[np.uint8]) -> Places:
        """The best open candidate of one bin in each of these searches."""
        here = self.open[who] == bins[:, None]
        found = here.argmax(axis=1)
        return np.asarray(np.where(here[np.arange(len(who)), found], found, self.longest))
