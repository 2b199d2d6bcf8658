"""A fast replay of the policy `learned`, on many orders of many problems at once.

`grv learn` replays its history hundreds of times to find ties, votes and tilts. So all searches,
each with its own limits, advance together: generate one candidate for each, then verify in those
searches that want to, until none does. The guard's blocks, the mean of a prompt and the drift tests
depend only on the candidates drawn, not on verdicts, so they are shared by all searches of an
order. The results must equal the engine's; a test proves it. Searches whose scores differ from the
history are left to the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.values import Costs
from ...policies import Learned
from ...policies.learned.prior import Prior
from ...theory.guard import FACTOR
from ..orders import OrderBatch
from ..trials import Trials, rounds_of
from .merit_searches import ClassedSearches, MeritLimits
from .plain_searches import PlainSearches
from .stacked_orders import Flags, Places, StackedOrders

__all__ = ["LearnedTrials", "MeritLimits", "StackedOrders", "learned", "learned_trials"]


@dataclass(frozen=True, eq=False)
class LearnedTrials:
    """The results of searches. Arrays are `[limits, orders]`.

    Attributes:
        solved: whether a candidate passed.
        generated: the number of candidates generated.
        verified: the number of candidates verified.
        asked: the rounds of generation, including the one that found no more candidates.
        unlike: whether the scores differ from the history; the other numbers are then invalid.
        checked: `[limits, orders, candidates]`, whether a candidate was verified, by rank.
    """

    solved: Flags
    generated: Places
    verified: Places
    asked: Places
    unlike: Flags
    checked: Flags

    def trials(self, rows: slice, limit: int = 0) -> Trials:
        """The trials of some orders with one of the limits."""
        checks = self.verified[limit, rows]
        counts = self.generated[limit, rows].astype(np.int32), checks.astype(np.int32)
        rounds = rounds_of(self.asked[limit, rows], checks)
        return Trials(self.solved[limit, rows], *counts, rounds)


def learned_trials(
    prior: Prior,
    stack: StackedOrders,
    ratio: float,
    limits: Sequence[MeritLimits],
    factor: float = FACTOR,
) -> LearnedTrials:
    """Run all orders with each of the limits; a verification costs `ratio` candidates."""
    plain = prior.tie == 1 and not stack.has_classes
    searches = (PlainSearches if plain else ClassedSearches)(prior, stack, ratio, limits, factor)
    searches.carry_out()
    shape = (len(limits), len(stack.sizes))
    return LearnedTrials(
        searches.solved.reshape(shape),
        searches.generated.reshape(shape),
        searches.verified.reshape(shape),
        searches.asked.reshape(shape),
        searches.unlike.reshape(shape),
        searches.checked.reshape(*shape, -1),
    )


def learned(
    policy: Learned, batches: Sequence[OrderBatch], costs: Costs
) -> list[tuple[Trials, Flags]]:
    """The kernel of `learned`: the trials of each batch, and which of them it does not cover."""
    prior, ratio = policy.prior, costs.ratio
    limits = [MeritLimits.of(prior, ratio)]
    found = learned_trials(prior, StackedOrders.of(batches), ratio, limits, policy.factor)
    made, start = [], 0
    for batch in batches:
        rows = slice(start, start + batch.size)
        start += batch.size
        made.append((found.trials(rows), found.unlike[0, rows]))
    return made
