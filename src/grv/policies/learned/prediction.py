"""What a search is predicted to cost, by a prior and what the search has seen so far."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.pool import Pool
from ...core.values import CandidateId, Costs
from .belief import Belief
from .merit_ranking import MeritRanking
from .prior import Prior


def predicted_cost(
    prior: Prior, pool: Pool, verified: Sequence[CandidateId], costs: Costs
) -> float:
    """The optimal cost J* of the problem, as the prior believes after these failures.

    Args:
        prior: fitted to other problems.
        pool: the candidates of this one.
        verified: those that were verified, in order.
        costs: the price list.
    """
    belief = Belief(prior, costs.ratio)
    MeritRanking(pool, prior, belief).update(verified)
    return belief.optimum * costs.verify
