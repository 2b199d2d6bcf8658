"""A fast replay of the policy `learned`, on many orders of many problems at once.

`grv learn` replays its history hundreds of times to find ties, votes and tilts. So all searches,
each with its own limits and ratio of costs, advance together: in each step, every search verifies
or generates one candidate. The mean of a prompt and the drift tests depend only on the candidates
drawn, not on verdicts, so they are shared by all searches of an order. The results must equal the
engine's; a test proves it. Searches whose scores differ from the history are left to the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.limits import Limits
from ...core.values import Costs
from ...policies import Learned
from ...policies.learned.prior import Prior
from ...theory.guard import FACTOR
from ..orders import OrderBatch
from ..trials import Trials, rounds_of
from .classed_searches import ClassedSearches
from .courses import Courses
from .merit_searches import MeritLimits
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
        rounds: `[limits, orders, 4]`, see `Trials`.
        unlike: whether the scores differ from the history; the other numbers are then invalid.
        checked: `[limits, orders, candidates]`, whether a candidate was verified, by rank.
        passed: the number of candidates verified that passed.
    """

    solved: Flags
    generated: Places
    verified: Places
    rounds: NDArray[np.int32]
    unlike: Flags
    checked: Flags
    passed: Places

    def trials(self, rows: slice, limit: int = 0) -> Trials:
        """The trials of some orders with one of the limits."""
        return Trials(
            self.solved[limit, rows],
            self.generated[limit, rows].astype(np.int32),
            self.verified[limit, rows].astype(np.int32),
            self.rounds[limit, rows],
            self.passed[limit, rows].astype(np.int32),
        )


def learned_trials(
    prior: Prior,
    stack: StackedOrders,
    limits: Sequence[MeritLimits],
    factor: float = FACTOR,
    ahead: tuple[Costs, Limits] | None = None,
) -> LearnedTrials:
    """Run all orders with each of the limits.

    `ahead` has the costs and the limits of searches that look ahead.
    """
    plain = prior.tie == 1 and not stack.has_classes
    shape = (len(limits), len(stack.sizes))
    courses = None
    if ahead is not None:
        courses = Courses(len(limits) * len(stack.sizes), stack.ranks.shape[1], *ahead)
    kind = PlainSearches if plain else ClassedSearches
    searches = kind(prior, stack, limits, factor, courses)
    searches.carry_out()
    unlike = searches.unlike.reshape(shape)
    if courses is None:
        solved = searches.over
        made = searches.generated
        checks = searches.verified
        rounds = rounds_of(searches.asked, searches.verified)
        checked = searches.checked
    else:
        each = stack, searches.of, searches.verified, searches.asked
        counts, checked = courses.counted(*each)
        solved, made, checks = counts[:, 0] > 0, *counts[:, 1:3].T
        rounds = rounds_of(*counts[:, 3:].T)
    checked = checked.reshape(*shape, -1)
    return LearnedTrials(
        solved.reshape(shape),
        made.reshape(shape),
        checks.reshape(shape),
        rounds.reshape(*shape, -1),
        unlike,
        checked,
        (checked & stack.passed).sum(axis=2),
    )


def learned(
    policy: Learned, batches: Sequence[OrderBatch], costs: Costs, limits: Limits
) -> list[tuple[Trials, Flags]]:
    """The kernel of `learned`: the trials of each batch, and which of them it does not cover."""
    stack = StackedOrders.of(batches)
    merits = [MeritLimits.of(policy.prior, costs.ratio)]
    ahead = (costs, limits) if limits.looks_ahead else None
    found = learned_trials(policy.prior, stack, merits, policy.factor, ahead)
    made = []
    start = 0
    for batch in batches:
        rows = slice(start, start + batch.size)
        start += batch.size
        made.append((found.trials(rows), found.unlike[0, rows]))
    return made
