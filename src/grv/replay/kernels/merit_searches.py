"""Searches of the policy `learned` that advance together; a search is an order with its limits."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.values import Costs
from ...policies.learned.belief import tables_of
from ...policies.learned.prior import Prior
from ...policies.oldest_guard import ROUNDING
from ...theory.decimals import exact_ratio
from ...theory.guard import guard_blocks, oldest_limit
from .courses import Courses
from .stacked_orders import Flags, Numbers, Places, StackedOrders


@dataclass(frozen=True)
class MeritLimits:
    """The lowest merit at which a candidate is verified, and the ratio of costs it applies to.

    Attributes:
        ratio: the cost of a verification, in candidates.
        plain: the limit before any candidate has a key.
        keyed: the limit after that.
    """

    ratio: float
    plain: float
    keyed: float

    @classmethod
    def of(cls, prior: Prior, ratio: float) -> MeritLimits:
        """The limits of a prior."""
        return cls(ratio, prior.limit(ratio), prior.limit(ratio, keyed=True))


class MeritSearches(abc.ABC):
    """What all searches have in common: the blocks of the guard, the best, the end.

    The arrays in `stack` are `[orders, ...]`; all others are `[searches, ...]`.
    """

    def __init__(
        self,
        prior: Prior,
        stack: StackedOrders,
        limits: Sequence[MeritLimits],
        factor: float,
        courses: Courses | None,
    ) -> None:
        orders, longest = stack.ranks.shape
        searches = orders * len(limits)
        self.prior = prior
        self.stack = stack
        self.longest = longest
        self.of = np.tile(np.arange(orders), len(limits))
        self.limits = np.repeat([limit.plain for limit in limits], orders)
        ratios = list(dict.fromkeys(limit.ratio for limit in limits))
        self.kind = np.repeat([ratios.index(limit.ratio) for limit in limits], orders)
        exact = [exact_ratio(Costs(1, ratio)) for ratio in ratios]
        blocks = [block for rho in exact for block in guard_blocks(rho, factor)]
        self.block_draws = np.array([block.draws for block in blocks])  # first, later, first ...
        self.block_allowances = np.array([block.allowance for block in blocks])
        rho = [float(each) for each in exact]
        self.rho = np.array(rho)[self.kind]
        self.per_draw = np.array([oldest_limit(each, 0, factor) for each in rho])[self.kind]
        self.per_spared = factor * self.rho
        tables = [tables_of(prior, ratio) for ratio in ratios]
        self.weights = np.array(tables[0].weights)
        self.failing = np.array(tables[0].failing)
        self.passing = np.array(prior.chances)
        self.optima = np.array([table.optima for table in tables])  # [ratios, problems]
        self.ends = np.zeros(searches, dtype=np.intp)  # the draws until the block is complete
        self.allowance = np.zeros(searches)  # that of the blocks begun
        self.first = np.full(searches, longest)  # the best of the current block
        self.merits = np.zeros((searches, len(prior.shares)))
        self.top = np.full(searches, longest)
        self.merit = np.full(searches, -1.0)
        # Over: solved, or if it looks ahead: known. Unlike: its scores differ from the history.
        self.over, self.unlike, self.exhausted = np.zeros((3, searches), dtype=np.bool_)
        self.generated, self.verified, self.asked = np.zeros((3, searches), dtype=np.intp)
        self.oldest = np.zeros(searches, dtype=np.intp)  # see `Guard._oldest`
        self.last = np.full(searches, -1)  # the rank of the last candidate verified
        self.drifts = stack.drifts(prior)
        self.courses = courses
        self._prepare(limits)

    @abc.abstractmethod
    def _prepare(self, limits: Sequence[MeritLimits]) -> None:
        """Set up what only this kind of search needs."""

    @abc.abstractmethod
    def _settle(self, who: Places) -> None:
        """Verify the best of the completed block, as the guard requires."""

    @abc.abstractmethod
    def _generate(self, who: Places) -> None:
        """Take account of a new candidate in each of these searches."""

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

    def _set_merits(self, who: Places, weights: Numbers) -> Numbers:
        """Set the merits that follow from the weights of the prior's problems; return their sum."""
        total: Numbers = weights.sum(axis=1, keepdims=True)
        self.merits[who] = (weights * self.optima[self.kind[who]]) @ self.passing / total
        return total

    def _count(self, who: Places, ranks: Places) -> Flags:
        """Count one verification in each of these searches; return whether the search goes on."""
        self.verified[who] += 1
        passes = self.stack.passed[self.of[who], ranks]
        if self.courses is None:
            over = passes
        else:
            over = self.courses.add(who, self.verified[who], ranks, self.asked[who], passes)
        self.over[who] = over
        self.last[who] = ranks
        going_on: Flags = ~over
        return going_on

    @abc.abstractmethod
    def _has_failed(self, who: Places, ranks: Places) -> Flags:
        """Whether one candidate of each of these searches was verified."""

    def carry_out(self) -> None:
        """Run until all searches have ended."""
        going = np.arange(len(self.of))
        while len(going):
            self._draw(self._verify(going))
            going = going[~(self.over | self.unlike | self.exhausted)[going]]
        self._verify_rest(np.flatnonzero(self.exhausted & ~self.over))

    def _verify(self, going: Places) -> Places:
        """Verify one candidate where it is worth it and there is room; return the other searches.

        So each search has its own pace, and only the longest takes as many steps as there are.
        """
        ready = self._ready(going)
        self._verify_top(going[ready])
        others: Places = going[~ready]
        return others

    def _draw(self, who: Places) -> None:
        """Generate one candidate in each of these searches, after what the guard requires."""
        self._next_block(who[self.ends[who] == self.generated[who]])
        who = who[~self.over[who]]
        self._verify_oldest(who, 1.0)
        who = who[~self.over[who]]
        self.asked[who] += 1
        none_left = self.stack.sizes[self.of[who]] == self.generated[who]
        self.exhausted[who[none_left]] = True
        who = who[~none_left]
        self.generated[who] += 1
        drifted = self.drifts[self.of[who]] == self.generated[who]
        self.unlike[who[drifted]] = True
        who = who[~drifted]
        if len(who):
            self._generate(who)

    def _next_block(self, who: Places) -> None:
        """Verify the best of the completed block where it is due; then begin the next block."""
        if not len(who):
            return
        later = self.generated[who] > 0
        owing = who[later]
        owing = owing[self._owing(owing)]
        self._verify_oldest(owing, self.rho[owing])
        owing = owing[~self.over[owing]]
        self._settle(owing[self._owing(owing)])
        block = 2 * self.kind[who] + later
        self.ends[who] += self.block_draws[block]
        self.allowance[who] += self.block_allowances[block]
        self.first[who] = self.longest

    def _compare(self, going: Places, ranks: Places, merit: Numbers) -> None:
        """Compare one candidate per search, new or with a key that has grown, with the best."""
        best = self.merit[going]
        top = self.top[going]
        better = (merit > best) | ((merit == best) & (ranks < top))
        self.merit[going] = np.where(better, merit, best)
        self.top[going] = np.where(better, ranks, top)

    def _owing(self, who: Places) -> Flags:
        """Whether the best candidate of the current block has no verdict."""
        return ~self._has_failed(who, self.first[who])

    def _room(self, who: Places, cost: Numbers | float) -> Numbers:
        """As `Guard._room`; but where that exceeds `cost`, it may be less and still exceed it.

        The room grows with the number of the oldest open candidate. So that is found only where the
        last one known does not leave room enough.
        """
        rho = self.rho[who]
        per_draw = self.per_draw[who]
        spent = rho + self.generated[who] + rho * self.verified[who] - ROUNDING
        room: Numbers = per_draw * (self.oldest[who] + 1) - self._saved(who) - spent
        short = cost > room
        if short.any():
            self._find_oldest(who[short])
            room = per_draw * (self.oldest[who] + 1) - self._saved(who) - spent
        return room

    def _saved(self, who: Places) -> Numbers | float:
        """What the limit of the oldest is less because verify-all spares earlier candidates."""
        if not self.stack.has_classes:
            return 0.0
        saved: Numbers = self.per_spared[who] * self.stack.spared[self.of[who], self.oldest[who]]
        return saved

    def _find_oldest(self, who: Places) -> None:
        """Find the oldest open candidate of these searches."""
        while len(who := who[self.oldest[who] < self.generated[who]]):
            ranks = self.stack.ranks[self.of[who], self.oldest[who]]
            who = who[~self._is_open(who, ranks)]
            self.oldest[who] += 1

    def _verify_oldest(self, who: Places, cost: Numbers | float) -> None:
        """As `Guard._verify_oldest`."""
        overdue = cost > self._room(who, cost)
        if not overdue.any():
            return
        who = who[overdue]
        who = who[self.oldest[who] < self.generated[who]]
        self._check(who, self.stack.ranks[self.of[who], self.oldest[who]])
        self._find_best(who[~self.over[who]])

    def _verify_top(self, who: Places) -> None:
        """Verify the best candidate, unless the guard requires another one that makes it futile."""
        if not len(who):
            return
        wanted = self.top[who]
        self._verify_oldest(who, self.rho[who])
        still = ~self.over[who]
        still[still] = self._is_open(who[still], wanted[still])
        self._check(who[still], wanted[still])
        self._find_best(who[~self.over[who]])

    def _ready(self, who: Places) -> Flags:
        """Whether the best candidate of each search is worth verifying, and there is room."""
        merit = self.merit[who]
        ready: Flags = (merit >= self.limits[who]) & (merit >= 0)
        ready[ready] = self._has_room(who[ready])
        return ready

    def _has_room(self, who: Places) -> Flags:
        """As `Guard.has_room`, for the best candidate of each search.

        Until the block is complete, its best candidate may be still to come.
        """
        drawn = self.generated[who]
        top = self.top[who]
        rho = self.rho[who]
        left = self.ends[who] - drawn
        due = (left > 0) | (top != self.first[who]) & self._owing(who)
        needed = rho + left + np.where(due, rho, 0.0)
        within = self.allowance[who] + ROUNDING - drawn - rho * self.verified[who]
        fits: Flags = needed <= within
        if not fits.any():
            return fits
        who = who[fits]
        needed = needed[fits]
        room = self._room(who, needed + 1)
        is_oldest = top[fits] == self.stack.ranks[self.of[who], self.oldest[who]]
        room[is_oldest] = np.inf
        while (short := needed + 1 > room).any():
            needed[short] += rho[fits][short]
            room[short] += self.per_draw[who[short]]
        fits[fits] = needed <= within[fits]
        return fits

    def _verify_rest(self, who: Places) -> None:
        """After the last candidate, verify all open candidates: highest merit or oldest."""
        self._find_best(who)
        while len(who := who[self.merit[who] >= 0]):
            self._verify_top(who)
            who = who[~self.over[who]]
