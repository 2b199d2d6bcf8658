"""Runs a policy so that the oldest open candidate is verified in time.

This bounds the cost of the search by a multiple of what verify-all costs on the same candidates,
whatever the policy does and whatever the scores are worth. Verify-all here is the policy of that
name: it skips refuted candidates and keys that have failed. See docs/theory/guard.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Set

from ..core.pool import Pool
from ..core.values import DROPPED, REFUTED, CandidateId, Costs, Generate, Step, Verdict, Verify
from ..theory.decimals import exact_ratio
from ..theory.guard import oldest_limit

ROUNDING = 1e-9


class OldestGuard:
    """What a search has spent, and the oldest candidate that could still pass.

    A candidate is *settled* if it has a verdict, or if its key is closed. All candidates before the
    oldest open one are settled. Verify-all pays for the verification of some of them only: the
    others are *spared*, because they were refuted, or because their key had come before.

    Args:
        pool: the candidates of the search.
        costs: the price list.
        factor: the bound on the cost, over that of verify-all.
        apart: candidates that are left out, all of them settled: neither their cost nor what
            verify-all pays for them counts.
        tried: the keys that verify-all has tried before the first candidate that counts.

    Attributes:
        asked: the candidates that were verified, in order.
    """

    def __init__(
        self,
        pool: Pool,
        costs: Costs,
        factor: float,
        *,
        apart: Set[CandidateId] = frozenset(),
        tried: Iterable[str] = (),
    ) -> None:
        self.asked: list[CandidateId] = []
        self._pool = pool
        self._factor = factor
        self._apart = apart
        self._place = 0  # the number of the oldest open candidate, as last seen
        self._settled = 0  # of the candidates before it, the number of those that count
        self._spared = 0  # of these, the number that verify-all does not verify
        self._tried = set(tried)  # the keys that verify-all has tried before it
        self._guess = exact_ratio(costs)
        self._priced = pool.costs  # those of which `_ratio` is the ratio
        self._ratio = float(exact_ratio(pool.costs))
        self._guessed = True  # until the first verdict that was paid for
        self._start()

    def carried_out(self, step: Step) -> Iterator[Step]:
        """The step of the guarded policy, preceded by the steps that the guard requires."""
        match step:
            case Generate():
                yield from self._generate_all(step)
            case Verify(ids, why):
                for id in ids:
                    self._follow_costs()
                    yield from self._verify_oldest(self._rho)
                    yield from self._verify(id, why)

    def due(self, cost: float) -> CandidateId | None:
        """The oldest open candidate, if it must be verified before this cost is paid."""
        return self._oldest if cost > self._room and self._oldest < len(self._pool) else None

    @property
    def spent(self) -> float:
        """The cost since the start, in candidates, at the current estimate of the costs."""
        drawn, verified = self._before
        return len(self._pool) - drawn + self._rho * (len(self._pool.verdicts) - verified)

    def _start(self) -> None:
        """Begin to count. What was spent before does not count."""
        self._before = len(self._pool), len(self._pool.verdicts)

    def _follow_costs(self) -> None:
        """Start again after the first verdict that was paid for, if the price list was wrong.

        A verdict that cost nothing says nothing about the price of a verification.
        """
        if self._guessed and len(self._pool.verdicts) > self._pool.shared:
            self._guessed = False
            if exact_ratio(self._pool.costs) != self._guess:
                self._start()

    @property
    def _rho(self) -> float:
        costs = self._pool.costs
        if costs is not self._priced:
            self._priced = costs
            self._ratio = float(exact_ratio(costs))
        return self._ratio

    @property
    def _oldest(self) -> CandidateId:
        """The oldest open candidate, or the next one to be generated if none is open."""
        self._advance()
        return CandidateId(self._place)

    def _advance(self) -> None:
        """Count the candidates before the oldest open one."""
        pool = self._pool
        while self._place < len(pool) and not pool.is_open(id := CandidateId(self._place)):
            if id not in self._apart:
                self._settle(id)
            self._place += 1

    def _settle(self, id: CandidateId) -> None:
        """Count a candidate that is settled, as all before it are."""
        key = self._pool.key(id)
        self._settled += 1
        if key in (REFUTED, DROPPED) or key in self._tried:
            self._spared += 1
        elif key is not None and self._pool.verdicts.get(id) is not Verdict.BROKEN:
            self._tried.add(key)

    @property
    def _room(self) -> float:
        """What may be spent on other things before the oldest open candidate is verified."""
        rho = self._rho
        self._advance()
        limit = oldest_limit(rho, self._settled, self._factor, spared=self._spared)
        return limit + ROUNDING - rho - self.spent

    def _verify(self, id: CandidateId, why: str, *, exactly: bool = False) -> Iterator[Step]:
        if self._pool.is_open(id):
            self.asked.append(id)
            yield Verify((id,), why, exactly=exactly)

    def _verify_oldest(self, cost: float) -> Iterator[Step]:
        """Verify the oldest open candidate, if it must be verified before this cost is paid."""
        due = self.due(cost)
        if due is not None:
            why = "guard: the oldest, whatever its score"
            yield from self._verify(due, why, exactly=True)

    def _generate_all(self, step: Generate) -> Iterator[Step]:
        """Generate the candidates of a step, in parts if the oldest must be verified meanwhile."""
        left = step.n
        while left > 0 and not self._pool.exhausted:
            self._follow_costs()
            yield from self._verify_oldest(1)
            self._follow_costs()
            number = max(1, math.floor(min(left, self._room)))
            seen = len(self._pool)
            yield Generate(number, step.why, step.ahead if number == left else None)
            left -= number
            if len(self._pool) - seen < number:
                return
