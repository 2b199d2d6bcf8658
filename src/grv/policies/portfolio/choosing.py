"""Who acts next: by shares of spending, or by what earlier problems say, within those shares.

`BySpending` is the cold portfolio: its cost is at most that of any single generator divided by its
share. `ByExpectedPasses` is the learned one. It decides what to verify too, and may do anything as
long as `factor` times the bound can still be kept. Proofs: docs/theory/portfolio.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...core.errors import UsageError
from ...core.values import Generate, Verify
from .index import Attempt, best_attempt
from .joint import JointPrior
from .portfolio import Member
from .shares import check_shares
from .standing import Standing

FACTOR = 2.5  # what a learned portfolio may cost, in units of the cold bound


@dataclass(frozen=True)
class BySpending:
    """Spend on each generator in proportion to its share.

    The next verdict goes to the generator that would have spent the least after it, relative to
    its share.
    """

    shares: Mapping[str, float]
    steers: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_shares(self.shares)

    def choose(self, members: Sequence[Member]) -> Member:
        """The search with the earliest deadline: the total when it has its next verdict."""
        return min(
            members, key=lambda each: (each.spent + each.to_verdict) / self.shares[each.name]
        )


@dataclass(frozen=True)
class ByExpectedPasses:
    """Take the step with the most expected passes per cost, inside a guard.

    Attributes:
        prior: how hard earlier problems were for each generator, and what its score was worth.
        shares: the shares of the guard.
        factor: for every generator g, cost <= factor * verify_all(g) / share(g), where
            verify_all(g) is the cost of verifying each candidate of g as it arrives.
    """

    prior: JointPrior
    shares: Mapping[str, float]
    factor: float = FACTOR
    steers: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_shares(self.shares)
        if not self.factor >= 1:
            raise UsageError(f"the factor of the guard must be at least 1, not {self.factor:g}")

    def choose(self, members: Sequence[Member]) -> Member:
        """The search with the best step, which is set; if the guard allows it."""
        standings = [Standing.of(member, self.prior) for member in members]
        attempt = best_attempt(standings, self.prior)
        if not self._allows(attempt, standings):
            first = min(standings, key=self._deadline)
            attempt = Attempt(first, first.open[0] if first.open else None, "the guard: its turn")
        standing = attempt.standing
        id = attempt.id
        why = attempt.why
        standing.member.steer(Generate(1, why) if id is None else Verify((id,), why))
        return standing.member

    def _deadline(self, standing: Standing) -> float:
        """The total that may be spent when the oldest open candidate has its verdict."""
        return standing.to_verdict / self.shares[standing.member.name]

    def _allows(self, attempt: Attempt, standings: Sequence[Standing]) -> bool:
        """Whether the bound of every search can still be kept after this step."""
        first = min(map(self._deadline, standings))
        after = {each.member.name: each.done for each in standings}
        if attempt.is_next:
            after[attempt.standing.member.name] += attempt.cost
        owed = sum(max(0.0, self.shares[name] * first - done) for name, done in after.items())
        member = attempt.standing.member
        total = member.spent + member.search.elsewhere + attempt.cost
        return total + owed <= self.factor * first * (1 + 1e-12)
