"""Runs a policy inside two guards, which bound the cost of the search whatever the policy does.

The first inserts balanced rounds, which bound the cost by a multiple of J*. The second inserts
blind verifications, which bound it by a multiple of verify-all. They work with any policy: they
carry out the policy's steps one at a time and insert the steps that `theory/guard.py` requires.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...core.pool import Pool
from ...core.values import CandidateId, Costs, Generate, Step, Verify
from ...theory.decimals import exact_ratio
from ...theory.guard import FACTOR, Block, blind_limit, guard_blocks

ROUNDING = 1e-9


class Guard:
    """The blocks and blind draws of one search, and the rest of their allowance.

    Attributes:
        asked: the candidates that were verified, in order.
    """

    def __init__(
        self, pool: Pool, costs: Costs, factor: float = FACTOR, *, blind: bool = True
    ) -> None:
        self.asked: list[CandidateId] = []
        self._pool = pool
        self._factor = factor
        self._second = blind  # whether there is a second guard
        self._guess = exact_ratio(costs)
        self._guessed = True  # until the first verdict
        self._start()

    def _start(self) -> None:
        """Begin with the first block. What was spent before does not count."""
        self._before = len(self._pool), len(self._pool.verdicts)
        self._allowance = 0.0  # that of the blocks begun
        self._left = 0  # the draws left in the current block
        self._best: CandidateId | None = None  # the best candidate of the current block
        self._blind = 0  # the number of blind draws
        self._wanted = False  # whether the next draw is blind because a verification waits for it

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
    def _limit(self) -> float:
        """What may be spent until the next blind draw is verified."""
        return blind_limit(self._rho, self._blind, self._factor) if self._second else math.inf

    @property
    def spent(self) -> float:
        """The cost since the start, in candidates, at the current estimate of the costs."""
        drawn, verified = self._before
        return len(self._pool) - drawn + self._rho * (len(self._pool.verdicts) - verified)

    def has_room(self, id: CandidateId) -> bool:
        """Whether both guards allow this verification now.

        The first guard reserves the rest of the current block. While a block is not complete, its
        best candidate may be still to come. So its verification is reserved, whatever has been
        verified. The second guard reserves the next blind draw. If only that one is missing, the
        next draw is blind.
        """
        self._follow_costs()
        if self._pool.exhausted:
            return True
        rho, limit = self._rho, self._limit + ROUNDING
        due = self._left > 0 or (id != self._best and self._due() != ())
        best = rho if due else 0.0
        spent, owed = self.spent + rho, self._left + best
        if spent + owed + 1 + rho > limit:  # the rest of the block may include a blind draw
            owed += rho
        if spent + owed > self._allowance + ROUNDING:
            return False
        self._wanted = spent + (0.0 if self._left else best) + 1 + rho > limit
        return not self._wanted

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
                    if self._pool.is_open(id):
                        yield self._verify(id, why)

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

    def _verify(self, id: CandidateId, why: str) -> Step:
        self.asked.append(id)
        return Verify((id,), why)

    def _generate(self, n: int, why: str) -> Iterator[Step]:
        while n > 0 and not self._pool.exhausted:
            self._follow_costs()
            if not self._left:
                for id in self._due():
                    yield self._verify(id, "guard: the best of its block")
                self._follow_costs()
                block = self._next_block()
                self._allowance += block.allowance
                self._left, self._best = block.draws, None
            seen, sighted = len(self._pool), self._sighted(min(n, self._left))
            yield Generate(sighted or 1, why if sighted else "guard: one to verify blind")
            self._take(seen)
            n -= len(self._pool) - seen
            if not sighted and len(self._pool) > seen:
                self._blind, self._wanted = self._blind + 1, False
                if self._pool.is_open(newest := CandidateId(seen)):
                    yield self._verify(newest, "guard: the new one, whatever its score")

    def _sighted(self, n: int) -> int:
        """How many of the next `n` draws may come before a blind one.

        After the last draw of a block its best is verified before the next draw.
        """
        if self._wanted or self._limit == math.inf:
            return 0 if self._wanted else n
        room = self._limit + ROUNDING - self.spent - 1 - self._rho
        if n == self._left and n + self._rho > room:
            n -= 1
        return min(n, max(0, math.floor(room)))

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
