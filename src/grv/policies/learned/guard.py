"""A policy inside balanced rounds: whatever it does, the search costs at most a factor of J*.

The guard needs not know the policy: it carries out its steps one at a time, and puts in between
what `theory/guard.py` says.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...core.pool import Pool
from ...core.values import CandidateId, Costs, Generate, Step, Verify
from ...theory.decimals import exact_ratio
from ...theory.guard import FACTOR, guard_blocks

ROUNDING = 1e-9


class Guard:
    """The blocks of one search, and what is left of their allowance.

    Attributes:
        asked: the candidates that were verified, in order.
    """

    def __init__(self, pool: Pool, costs: Costs, factor: float = FACTOR) -> None:
        rho = exact_ratio(costs)
        self.asked: list[CandidateId] = []
        self._pool = pool
        self._rho = float(rho)
        self._next, self._later = guard_blocks(rho, factor)
        self._allowance = 0.0
        self._left = 0  # draws of the current block
        self._best: CandidateId | None = None  # of the current block

    @property
    def spent(self) -> float:
        """On the whole search, in candidates."""
        return len(self._pool) + self._rho * len(self._pool.verdicts)

    def has_room(self, id: CandidateId) -> bool:
        """Whether the allowance covers the verification of this candidate and what is owed.

        As long as a block is not complete its best may be still to come, and is owed whatever has
        been verified.
        """
        due = self._left > 0 or (id != self._best and self._due() != ())
        owed = self._left + (self._rho if due else 0.0)
        room = self._allowance + ROUNDING - self.spent - owed
        return self._pool.exhausted or self._rho <= room

    def carried_out(self, step: Step) -> Iterator[Step]:
        """The step of the guarded policy, and before it what the guard needs."""
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
                        yield from self._generate(1, "guard: before more is verified")
                    if self._pool.is_open(id):
                        yield self._verify(id, why)

    def rounds(self) -> Iterator[Step]:
        """Balanced rounds, then the rest: what is done when the policy has given up."""
        while not self._pool.exhausted:
            yield from self._generate(self._left or self._next.draws, "guard: a balanced round")
        yield Verify(self._pool.best(self._pool.waiting), "guard: the rest, best first")

    def _due(self) -> tuple[CandidateId, ...]:
        """What the current block owes: its best candidate, as far as that was not verified.

        Where the key of that one is refuted, it would fail; then the pool's best is tried instead.
        """
        if self._best is None or self._best in self._pool.verdicts:
            return ()
        return (self._best,) if self._pool.is_open(self._best) else self._pool.best(1)

    def _verify(self, id: CandidateId, why: str) -> Step:
        self.asked.append(id)
        return Verify((id,), why)

    def _generate(self, n: int, why: str) -> Iterator[Step]:
        while n > 0 and not self._pool.exhausted:
            if not self._left:
                for id in self._due():
                    yield self._verify(id, "guard: the best of its block")
                self._allowance += self._next.allowance
                self._left, self._best = self._next.draws, None
                self._next = self._later
            seen = len(self._pool)
            yield Generate(min(n, self._left), why)
            scores = self._pool.scores
            for number in range(seen, len(self._pool)):
                if self._best is None or scores[number] > scores[self._best]:
                    self._best = CandidateId(number)
            self._left -= len(self._pool) - seen
            n -= len(self._pool) - seen


def guarded(plan: Iterator[Step], pool: Pool, guard: Guard) -> Iterator[Step]:
    """The plan of a guarded policy: its own steps and the guard's, and balanced rounds after it.

    Who goes on generating when there are no more candidates has given up, too.
    """
    for step in plan:
        if pool.exhausted and isinstance(step, Generate):
            break
        yield from guard.carried_out(step)
    yield from guard.rounds()
