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
from ...theory.guard import FACTOR, GuardBlock, guard_blocks, oldest_limit
from ..oldest_guard import ROUNDING, OldestGuard


class Guard(OldestGuard):
    """The blocks of one search, the rest of their allowance, and the oldest open candidate."""

    def __init__(
        self, pool: Pool, costs: Costs, factor: float = FACTOR, *, oldest: bool = True
    ) -> None:
        self._second = oldest  # whether there is a second guard
        super().__init__(pool, costs, factor)

    def _start(self) -> None:
        """Begin with the first block. What was spent before does not count."""
        super()._start()
        self._allowance = 0.0  # that of the blocks begun
        self._left = 0  # the draws left in the current block
        self._best: CandidateId | None = None  # the best candidate of the current block

    def _next_block(self) -> GuardBlock:
        first, later = guard_blocks(exact_ratio(self._pool.costs), self._factor)
        return later if self._allowance else first

    @property
    def _room(self) -> float:
        """What may be spent on other things before the oldest open candidate is verified."""
        return super()._room if self._second else math.inf

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
            needed = needed + rho
            room = room + oldest_limit(rho, 0, self._factor)
        return self.spent + needed <= self._allowance + ROUNDING

    def carried_out(self, step: Step) -> Iterator[Step]:
        """The step of the guarded policy, preceded by the steps that the guard requires."""
        match step:
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
        while best := self._pool.best(1):
            yield from self._verify_oldest(self._rho)
            yield from self._verify(best[0], "guard: the rest, best first")

    def _due(self) -> tuple[CandidateId, ...]:
        """The verification that the current block requires: its best candidate, unless verified.

        If the key of that candidate is refuted, the best of the pool is verified instead.
        """
        if self._best is None or self._best in self._pool.verdicts:
            return ()
        return (self._best,) if self._pool.is_open(self._best) else self._pool.best(1)

    def _generate(self, n: int, why: str) -> Iterator[Step]:
        while n > 0 and not self._pool.exhausted:
            self._follow_costs()
            if not self._left:
                if self._due():
                    yield from self._verify_oldest(self._rho)
                for id in self._due():
                    yield from self._verify(id, "guard: the best of its block")
                self._follow_costs()  # what was spent on the first verdict does not count
            yield from self._verify_oldest(1)
            self._follow_costs()
            if not self._left:
                block = self._next_block()
                self._allowance += block.allowance
                self._left = block.draws
                self._best = None
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
