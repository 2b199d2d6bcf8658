"""Runs a plan ahead of the verdicts, so that several verifications are in flight at once.

A policy decides one verification after another. The search asks for them in *blocks*: it tells the
plan that a verification has failed as soon as it is collected, and continues until the block is
full. So a block is the course of the search with width 1, as far as that course is known if nothing
passes. Generation and second scores that the course needs before the block is full come first.

A block is sent before it is full if it would wait for too many candidates. They are needed only if
all open verifications fail, and with keys there may be no end of them: if the model always gives
the same answer, no other candidate is open.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .errors import PolicyError
from .pace import Pace
from .pool import Pool
from .stock import Stock
from .values import (
    Action,
    CandidateId,
    Event,
    Generate,
    Generated,
    Rescore,
    Rescored,
    Stop,
    Task,
    Verdict,
    Verified,
    Verify,
)

if TYPE_CHECKING:
    from .search import Search


class LookAhead:
    """Collects the blocks of one search, whose state it shares."""

    def __init__(self, search: Search, width: int, pace: Pace) -> None:
        self._search, self._width, self._pace = search, width, pace
        self._whys: list[str] = []  # the different reasons of a block
        # What the plan wants next: not yet served, or seen before its turn.
        self._after: Action | Exception | None = None
        self._waited = 0  # candidates requested while verifications of the block are open
        self._block = self._size(0, 0.0)

    def choose(self) -> Action:
        """The next action: a block, or what the course needs first."""
        search = self._search
        while len(search._open) < self._block:
            wanted = self._next()
            if isinstance(wanted, Stop | Exception):
                if search._open:
                    self._after = wanted if isinstance(wanted, Exception) else None
                    break
                if isinstance(wanted, Exception):
                    raise wanted
                return wanted
            if search._open and self._waits_too_long(wanted):
                self._after = wanted
                break
            request = self._served(wanted)
            if request is not None:
                return request
        ids = tuple(search._open)
        self._block = self._size(search._verified + len(ids), search._clock.verify)
        why, *others = self._whys
        self._whys, self._waited = [], 0
        if others:
            why = f"{why}; and {len(ids) - 1} more, in case it fails"
        return Verify(ids, why, self._meanwhile() if self._pace.overlap else 0)

    def told(self, event: Event) -> None:
        """Take in the result of an action, which is in the trace."""
        search, stock = self._search, self._search._stock
        match event, search._asked:
            case Generated(scores), Generate(n):
                stock.add(event)
                stock.ended |= len(scores) < n
                self._serve()
            case Verified(verdicts), Verify():
                search._open.clear()
                if event.meanwhile is not None:
                    stock.add(event.meanwhile)
                    stock.ended |= len(event.meanwhile.scores) < search._asked.meanwhile
                if Verdict.PASSED in verdicts.values():
                    self._correct()
                elif Verdict.BROKEN in verdicts.values():
                    self._restart()
            case Rescored(), _:
                search.pool._add_rescored(event)

    def _serve(self) -> None:
        """Give the plan the candidates that it waits for."""
        if isinstance(self._after, Generate):
            wanted, self._after = self._after, None
            self._served(wanted)

    def _next(self) -> Action | Exception:
        """What the plan wants next. An error of the plan waits for the open verifications."""
        if self._after is not None:
            wanted, self._after = self._after, None
            return wanted
        try:
            return self._search._follow()
        except Exception as error:
            return error

    def _served(self, wanted: Task) -> Task | None:
        """Carry out what the plan wants with what is known; else return what to ask for."""
        pool, stock = self._search.pool, self._search._stock
        match wanted:
            case Generate(n):
                if n > len(stock) and not stock.ended:
                    self._after = wanted
                    number = self._request(wanted, self._block - len(self._search._open))
                    self._waited += number if self._search._open else 0
                    return Generate(number, wanted.why)
                is_short = n > len(stock)
                pool._add_generated(stock.take(n), exhausted=is_short)
            case Rescore(ids, why):
                pool._add_rescored(Rescored({i: stock.second[i] for i in ids if i in stock.second}))
                unknown = tuple(id for id in ids if id not in stock.second)
                return Rescore(unknown, why) if unknown else None
            case Verify(ids, why):
                for id in ids:
                    self._verify(id, why)
        return None

    def _verify(self, id: CandidateId, why: str) -> None:
        """Add a verification to the block; count it as failed until its verdict arrives."""
        search, stock = self._search, self._search._stock
        if id in search._open:  # the plan has changed the pool
            raise PolicyError(f"cannot verify {id} twice")
        key = search.pool.key(id)
        verdict = stock.verdicts.pop(id, None)
        if verdict is None and key is not None and key in stock.refuted:
            search.pool._close(key)
            return
        if verdict is None:
            self._whys += [] if why in self._whys else [why]
            search._open.append(id)
            verdict = Verdict.FAILED
        search.pool._add_verified(Verified({id: verdict}))

    def _waits_too_long(self, wanted: Action) -> bool:
        """Whether to send the open verifications rather than to generate more for the block.

        A plan that says how many candidates a block needs has them all, but with keys not all can
        be verified. Then it gets more once, for the price of the verifications that are missing.
        For other plans, waiting may cost as much as the open verifications and one candidate for
        each.
        """
        stock, pool = self._search._stock, self._search.pool
        if not isinstance(wanted, Generate) or wanted.n <= len(stock) or stock.ended:
            return False
        if wanted.ahead is None:
            return wanted.n - len(stock) > self._room
        return pool.keyed and self._waited > 0

    @property
    def _room(self) -> int:
        """How many more candidates may be requested while verifications are open."""
        costs, number = self._search.pool.costs, len(self._search._open)
        return number + int(costs.verify * number / costs.candidate) - self._waited

    def _request(self, step: Generate, slots: int) -> int:
        """How many candidates to ask for: those of this step, and those until the block is full.

        Limits on the bill must also cover the verifications for which they are generated.
        """
        search = self._search
        missing, limit = step.n - len(search._stock), min(search._budget, search._value)
        if step.ahead is None or (search._open and search.pool.keyed):
            spare = 0 if search._open else 1
            affordable = search._affordable("generate", limit, spare=spare)
            return max(missing, min(self._needed(step, slots), affordable))
        while slots > 1 and search._total(self._needed(step, slots), slots) > limit:
            slots -= 1
        return self._needed(step, slots)

    def _needed(self, step: Generate, slots: int) -> int:
        """The candidates of a step and of the verifications that follow, up to `slots` in all."""
        search = self._search
        missing = step.n - len(search._stock)
        costs, waits = search.pool.costs, slots < self._block  # for open verifications
        if step.ahead is not None:
            if waits and search.pool.keyed:
                return max(missing, math.ceil(costs.verify * slots / costs.candidate))
            return missing + (step.ahead(slots) if slots > 1 else 0)
        size = self._pace.batch(self._width, search.arrived, costs.candidate, search._clock)
        return max(missing, min(size, self._room) if waits else size)

    def _meanwhile(self) -> int:
        """How many candidates to generate while the block is verified."""
        search = self._search
        wanted = self._next()
        if isinstance(wanted, Stop):
            return 0
        self._after = wanted
        stock = search._stock
        if not isinstance(wanted, Generate) or wanted.n <= len(stock) or stock.ended:
            return 0
        n = self._needed(wanted, self._block)
        if search._is_short or search._total(n) > min(search._budget, search._value):
            return 0
        price, size = search._account.reserve.of(n, 0), len(search._open)
        spent = search._total()
        if self._pace.overlaps(price, spent, size, search._verified, search._clock):
            return n
        return 0

    def _size(self, verified: int, pending: float) -> int:
        """The size of the block after `verified` verifications, in `pending` seconds from now."""
        search = self._search
        cost = search._total() / verified if verified else search.pool.costs.of(1, 1)
        return self._pace.block(self._width, verified, cost, search._clock, pending)

    def _correct(self) -> None:
        """Replace the verdicts that were taken for granted by those that are known."""
        search = self._search
        known = Stock.of(search._trace, ended=search._stock.ended)
        used, exhausted = len(search.pool), search.pool.exhausted
        search._fill(Pool())
        search.pool._add_generated(known.take(used), exhausted=exhausted)
        search.pool._add_verified(Verified(known.verdicts))

    def _restart(self) -> None:
        """Run the plan again from the start, over what is known: a verdict was not as expected."""
        search = self._search
        search._stock = Stock.of(search._trace, ended=search._stock.ended)
        self._after = None
        search._fill(Pool())
