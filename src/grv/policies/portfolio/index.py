"""The step with the most expected passes per cost: the index of every step that is possible.

To verify a waiting candidate has the index h / c_ver. To generate has that of the best rule
"verify the new candidate if its bin is good enough": the index is then 1 / J of this rule, and a
candidate is worth a verification if h / c_ver is at least as high. This is the break-even of the
paper's Theorem 3.2, with the best of several generators to compare with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ...core.values import CandidateId, Costs
from .joint import JointPrior, Outlook
from .standing import Standing


@dataclass(frozen=True)
class Attempt:
    """A possible step: verify this candidate, or generate one if `id` is None."""

    standing: Standing
    id: CandidateId | None
    why: str

    @property
    def cost(self) -> float:
        """The cost of this step; to generate includes the verification of the new candidate."""
        costs = self.standing.member.search.pool.costs
        return costs.verify + (costs.candidate if self.id is None else 0.0)

    @property
    def is_next(self) -> bool:
        """Whether verify-all would take this step next."""
        waiting = self.standing.open
        return self.id is None if not waiting else self.id == waiting[0]


def best_attempt(standings: Sequence[Standing], prior: JointPrior) -> Attempt:
    """The step with the highest index; a verification first if they are equal.

    If the limits cover none, it is to generate: that ends the search of the first.
    """
    names = [each.member.name for each in standings]
    outlooks = prior.outlook({n: each.evidence for n, each in zip(names, standings, strict=True)})
    votes = _votes(standings)
    best: tuple[float, Attempt] | None = None
    for standing in standings:
        outlook = outlooks[standing.member.name]
        costs = standing.member.search.pool.costs
        if standing.open:
            id = max(standing.open, key=lambda id: _rank(standing, id, outlook, votes))
            chance = outlook.chances[standing.bins[id]]
            index = chance / costs.verify
            if best is None or index > best[0]:
                best = index, Attempt(standing, id, f"chance {chance:.0%}, the most per cost")
    for standing in standings:
        if standing.member.search.can_generate:
            outlook = outlooks[standing.member.name]
            costs = standing.member.search.pool.costs
            index = index_to_generate(outlook, costs, standing.fresh)
            if best is None or index > best[0]:
                best = index, Attempt(standing, None, "a new candidate promises the most per cost")
    return Attempt(standings[0], None, "nothing is affordable") if best is None else best[1]


def index_to_generate(outlook: Outlook, costs: Costs, fresh: float = 1.0) -> float:
    """Expected passes per cost of a new candidate that is verified if its bin is good enough.

    Args:
        outlook: the chance and the share of each bin.
        costs: the price list.
        fresh: the share of new candidates whose key has not failed; others are never verified.

    >>> index_to_generate(Outlook([0.1, 0.5], [0.5, 0.5]), Costs(1, 9))  # .25 passes for 1 + 4.5
    0.045454545454545456
    """
    passes = verified = best = 0.0
    for chance, share in sorted(zip(outlook.chances, outlook.shares, strict=True), reverse=True):
        passes += chance * share
        verified += share
        best = max(best, passes / (costs.candidate + fresh * verified * costs.verify))
    return best


def _votes(standings: Sequence[Standing]) -> Counter[str]:
    """How many open candidates of all generators share each key."""
    found: Counter[str] = Counter()
    for standing in standings:
        keys = map(standing.member.search.pool.key, standing.open)
        found.update(key for key in keys if key is not None)
    return found


def _rank(
    standing: Standing, id: CandidateId, outlook: Outlook, votes: Counter[str]
) -> tuple[float, int, float, int]:
    """By chance; in a bin by the votes of its key, then by score if higher ones are better."""
    pool = standing.member.search.pool
    up = outlook.chances[-1] - outlook.chances[0]
    score = pool.scores[id] * (up > 0) - pool.scores[id] * (up < 0) if up else 0.0
    return outlook.chances[standing.bins[id]], votes[pool.key(id) or ""], score, -id
