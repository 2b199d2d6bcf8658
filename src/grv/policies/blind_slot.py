"""A blind slot: new candidates until one could pass, which is verified whatever its score.

Verify-all pays 1 for every candidate, and rho more only for those that it verifies. It does not
verify candidates that were refuted, nor keys that have come before: these are *spared*. A slot that
ended at a spared candidate would pay for a whole round what verify-all gets for 1. So the slot goes
on, until a candidate is not spared or verify-all has paid 1 + rho for the slot's candidates. Then
the bound against verify-all holds with keys and refutations; see docs/theory/keys.md.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Set

from ..core.pool import Pool
from ..core.values import DROPPED, REFUTED, CandidateId, Generate, Step, Verdict
from ..theory.decimals import exact_ratio
from ..theory.slots import most_blind_draws

Ahead = Callable[[int], int]


class BlindSlots:
    """The blind slots of one search, and which of their candidates verify-all would verify.

    Attributes:
        keyed: whether a candidate of these slots had a key.
        drawn: the candidates of these slots.
    """

    def __init__(self, pool: Pool) -> None:
        self.keyed = False
        self.drawn: set[CandidateId] = set()
        self._pool = pool
        self._last: CandidateId | None = None  # the candidate of the last slot that was not spared
        self._tried: set[str] = set()  # the keys that verify-all has verified

    def draw(
        self, ahead: Ahead, *, repeats: bool = True
    ) -> Generator[Step, None, CandidateId | None]:
        """Generate the candidates of a slot, only one if it is not to be repeated.

        Returns the candidate that verify-all would verify, or None if there is none.
        """
        self._try_last()
        draws = 0
        while not self._pool.exhausted:
            newest = CandidateId(len(self._pool))
            yield Generate(1, "one to verify whatever its score", ahead)
            draws += 1
            if newest < len(self._pool):
                self.drawn.add(newest)
                if not self._is_spared(newest):
                    self._last = newest
                    return newest
            if not repeats or draws >= most_blind_draws(exact_ratio(self._pool.costs)):
                break
        return None

    @property
    def tried(self) -> Set[str]:
        """The keys that verify-all has verified, after all slots."""
        self._try_last()
        return self._tried

    def _try_last(self) -> None:
        """Count the candidate of the last slot: its verdict is known now."""
        if self._last is None or self._pool.verdicts.get(self._last) is Verdict.BROKEN:
            return
        key = self._pool.key(self._last)
        if key is not None:
            self._tried.add(key)

    def _is_spared(self, id: CandidateId) -> bool:
        """Whether verify-all would not verify this candidate, after those of the earlier slots."""
        key = self._pool.key(id)
        if key is None:
            return False
        self.keyed = True
        return key in (REFUTED, DROPPED) or key in self._tried
