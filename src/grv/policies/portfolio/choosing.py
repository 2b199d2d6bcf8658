"""Who acts next: by shares of spending, or by what earlier problems say, within those shares.

`BySpending` is the cold portfolio: its cost is at most that of any single generator divided by its
share. `ByExpectedPasses` is the learned one, which may deviate as long as `factor` times this bound
can still be kept. Proofs: docs/theory/portfolio.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...core.errors import UsageError
from ...core.values import Verify
from .joint import JointPrior, failures, fresh_share
from .portfolio import Member
from .shares import check_shares

FACTOR = 2.0  # what a learned portfolio may cost, in units of the cold bound


@dataclass(frozen=True)
class BySpending:
    """Spend on each generator in proportion to its share.

    The next verdict goes to the generator that would have spent the least after it, relative to
    its share.
    """

    shares: Mapping[str, float]

    def __post_init__(self) -> None:
        check_shares(self.shares)

    def choose(self, members: Sequence[Member]) -> Member:
        """The search with the earliest deadline."""
        return min(members, key=lambda member: deadline(member, self.shares))


@dataclass(frozen=True)
class ByExpectedPasses:
    """Take the attempt with the most expected passes per cost, inside a guard.

    Attributes:
        prior: how hard earlier problems were for each generator.
        shares: the shares of the cold portfolio, which the guard relies on.
        factor: the cost is at most this times the bound of the cold portfolio.
    """

    prior: JointPrior
    shares: Mapping[str, float]
    factor: float = FACTOR

    def __post_init__(self) -> None:
        check_shares(self.shares)
        if not self.factor >= 1:
            raise UsageError(f"the factor of the guard must be at least 1, not {self.factor:g}")

    def choose(self, members: Sequence[Member]) -> Member:
        """The search with the highest index, if the guard allows it."""
        failed = {member.name: failures(member.search.pool) for member in members}
        chances = self.prior.chances(failed)
        best = max(members, key=lambda member: _index(member, chances[member.name]))
        if self._allows(best, members):
            return best
        return min(members, key=lambda member: deadline(member, self.shares))

    def _allows(self, chosen: Member, members: Sequence[Member]) -> bool:
        """Whether the bound of every search can still be kept after this attempt."""
        first = min(deadline(member, self.shares) for member in members)
        cost = chosen.to_verdict()
        spent = {each.name: each.spent + cost * (each is chosen) for each in members}
        owed = sum(max(0.0, self.shares[name] * first - paid) for name, paid in spent.items())
        total = chosen.spent + chosen.search.elsewhere + cost
        return total + owed <= self.factor * first * (1 + 1e-12)


def deadline(member: Member, shares: Mapping[str, float]) -> float:
    """The total that may be spent when this search has its next verdict.

    If it passes then, the total is at most its own spending divided by its share.
    """
    return (member.spent + member.to_verdict()) / shares[member.name]


def _index(member: Member, chance: float) -> float:
    """Expected passes per cost of the next attempt."""
    pool = member.search.pool
    cost = member.to_verdict(fresh_share(pool))
    action = member.search.ask()
    tries = len(action.ids) if isinstance(action, Verify) else 1
    return (1 - (1 - chance) ** tries) / cost
