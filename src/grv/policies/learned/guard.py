"""Runs a policy inside two guards, which bound the cost of the search whatever the policy does.

The first inserts balanced rounds, which bound the cost by a multiple of J*. The second verifies the
oldest open candidate in time, which bounds it by a multiple of verify-all. They work with any
policy: they carry out the policy's steps one at a time and insert those that `theory/guard.py`
requires.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...core.pool import Pool
from ...core.values import CandidateId, Costs, Generate, Step, Verify
from ...theory.decimals import exact_ratio
from ...theory.guard import FACTOR, Block, guard_blocks, oldest_limit

ROUNDING = 1e-9


class Guard:
    """The blocks of one search, the rest of their allowance, and the oldest open candidate.

    Attributes:
        asked: the candidates that were verified, in order.
    """

    def __init__(
        self, pool: Pool, costs: Costs, factor: float = FACTOR, *, oldest: bool = True
    ) -> None:
        self.asked: list[CandidateId] = []
        self._pool = pool
        self._factor = factor
        self._second = oldest  # whether there is a second guard
        self._settled = 0  # the number of candidates before the oldest open one, as last seen
        self._guess = exact_ratio(costs)
        self._guessed = True  # until the first verdict
        self._start()

    def _start(self) -> None:
        """Begin with the first block. What was spent before does not count."""
        self._before = len(self._pool), len(self._pool.verdicts)
        self._allowance = 0.0  # that of the blocks begun
        self._left = 0  # the draws left in the current block
        self._best: CandidateId | None = None  # the best candidate of the current block

    def _follow_costs(self) -> None:
        """Start again after the first verdict, if the price list was wrong."""
        if self._guessed and self._pool.verdicts:
            self._guessed = False
            if exact_ratio(self._pool.costs) != self._guess:
                self._start()

    def _next_block(self) -> Block:
        first, later = guard_blocks(exact_ratio(self._pool.costs), self._factor)
        return later if self._allowance else first

    @property
    def _rho(self) -> float:
        return float(exact_ratio(self._pool.costs))

    @property
    def _oldest(self) -> CandidateId:
        """The oldest open candidate, or the next one to be generated if none is open."""
        pool, number = self._pool, self._settled
        while number < len(pool) and not pool.is_open(CandidateId(number)):
            number += 1
        self._settled = number
        return CandidateId(number)

    @property
    def _room(self) -> float:
        """What may be spent on other things before the oldest open candidate is verified."""
        if not self._second:
            return math.inf
        rho = self._rho
        limit = oldest_limit(rho, self._oldest, self._factor)
        return limit + ROUNDING - rho - self.spent

    @property
    def spent(self) -> float:
        """The cost since the start, in candidates, at the current estimate of the costs."""
        drawn, verified = self._before
        return len(self._pool) - drawn + self._rho * (len(self._pool.verdicts) - verified)

    def has_room(self, id: CandidateId) -> bool:
        """Whether this verification fits into the allowance now.

        The rest of the current block is reserved. While a block is not complete, its best candidate
        may be still to come. So its verification is reserved, whatever has been verified. Those of
        the oldest open candidates that may come due before the next block begins are reserved too.
        """
        self._follow_costs()
        if self._pool.exhausted:
            return True
        rho = self._rho
        due = self._left > 0 or (id != self._best and self._due() != ())
        needed = rho + self._left + (rho if due else 0.0)
        if self.spent + needed > self._allowance + ROUNDING:
            return False
        room = math.inf if id == self._oldest else self._room
        while needed + 1 > room:
            needed, room = needed + rho, room + oldest_limit(rho, 0, self._factor)
        return self.spent + needed <= self._allowance + ROUNDING

    def carried_out(self, step: Step) -> Iterator[Step]:
        """The step of the guarded policy, preceded by the steps that the guard requires."""
        match step:
            case _ if self._pool.exhausted:  # there are no more blocks
                if isinstance(step, Verify):
                    self.asked.extend(step.ids)
                yield step
            case Generate(n, why):
                yield from self._generate(n, why)
            case Verify(ids, why):
                for id in ids:
                    while not self.has_room(id):
                        yield from self._generate(1, "guard: no verification is allowed yet")
                    yield from self._verify_oldest(self._rho)
                    yield from self._verify(id, why)

    def rounds(self) -> Iterator[Step]:
        """The steps after the policy has given up: balanced rounds, then the rest."""
        while not self._pool.exhausted:
            yield from self._generate(
                self._left or self._next_block().draws, "guard: a balanced round"
            )
        yield Verify(self._pool.best(self._pool.waiting), "guard: the rest, best first")

    def _due(self) -> tuple[CandidateId, ...]:
        """The verification that the current block requires: its best candidate, unless verified.

        If the key of that candidate is refuted, the best of the pool is verified instead.
        """
        if self._best is None or self._best in self._pool.verdicts:
            return ()
        return (self._best,) if self._pool.is_open(self._best) else self._pool.best(1)

    def _verify(self, id: CandidateId, why: str) -> Iterator[Step]:
        if self._pool.is_open(id):
            self.asked.append(id)
            yield Verify((id,), why)

    def _verify_oldest(self, cost: float) -> Iterator[Step]:
        """Verify the oldest open candidate, if it must be verified before this cost is paid."""
        overdue = cost > self._room and self._oldest < len(self._pool)
        if overdue and not self._pool.exhausted:
            yield from self._verify(self._oldest, "guard: the oldest, whatever its score")

    def _generate(self, n: int, why: str) -> Iterator[Step]:
        while n > 0 and not self._pool.exhausted:
            self._follow_costs()
            if not self._left:
                if self._due():
                    yield from self._verify_oldest(self._rho)
                for id in self._due():
                    yield from self._verify(id, "guard: the best of its block")
            yield from self._verify_oldest(1)
            self._follow_costs()
            if not self._left:
                block = self._next_block()
                self._allowance += block.allowance
                self._left, self._best = block.draws, None
            seen = len(self._pool)
            yield Generate(1 if n == 1 else max(1, int(min(n, self._left, self._room))), why)
            self._take(seen)
            n -= len(self._pool) - seen

    def _take(self, seen: int) -> None:
        """Take account of the draws from number `seen` on."""
        scores = self._pool.scores
        for number in range(seen, len(self._pool)):
            if self._best is None or scores[number] > scores[self._best]:
                self._best = CandidateId(number)
        self._left -= len(self._pool) - seen


def guarded(plan: Iterator[Step], pool: Pool, guard: Guard) -> Iterator[Step]:
    """The plan of a guarded policy: its steps and the guard's, then balanced rounds.

    A policy that generates although the generator is exhausted has also given up.
    """
    for step in plan:
        if pool.exhausted and isinstance(step, Generate):
            break
        yield from guard.carried_out(step)
    yield from guard.rounds()
