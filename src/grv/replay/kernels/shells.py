"""The kernel of `adaptive`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.limits import Limits
from ...core.values import Costs
from ...policies import Adaptive
from ...theory.shells import shells
from ..orders import OrderBatch
from ..trials import Trials, in_flight, rounds_of
from .paths import NARROW, PathStage, staged, staged_ahead


def adaptive(policy: Adaptive, batch: OrderBatch, costs: Costs, limits: Limits) -> Trials | None:
    """Shell by shell, over all orders that are not solved; columns are ranks, best first."""
    width = limits.width
    if batch.keys is not None:
        return staged(batch, _shell_stages(policy, costs, len(batch.problem)), width)
    arrival = batch.ranked
    n = len(batch.problem)
    passes = np.take_along_axis(batch.passed, arrival, axis=1)
    waiting = np.ones(arrival.shape, dtype=np.bool_)
    left = np.arange(batch.size)
    solved = np.zeros(batch.size, dtype=np.bool_)
    generated = np.zeros(batch.size, dtype=np.int32)
    verified = np.zeros(batch.size, dtype=np.int32)
    passed = np.zeros(batch.size, dtype=np.int32)
    rounds = np.zeros((batch.size, 4), dtype=np.int32)
    drawn = 0
    exhausted = False
    for shell in shells(costs):
        asked = 0 if exhausted else 1
        exhausted |= drawn + shell.draws(policy.draws) > n
        drawn = min(n, drawn + shell.draws(policy.draws))
        place = np.cumsum(waiting & (arrival < drawn), axis=1, dtype=np.int32)
        chosen = waiting & (arrival < drawn) & (place <= shell.checks(policy.checks))
        hits = chosen & passes
        found = hits.any(axis=1)
        checks = chosen.sum(axis=1, dtype=np.int32)
        if width is not None:
            at = place[np.arange(len(left)), hits.argmax(axis=1)]
            checks = np.where(found, np.minimum(checks, -(-at // width) * width), checks)
        generated[left] = drawn
        verified[left] += checks
        passed[left] = (hits & (place <= checks[:, None])).sum(axis=1, dtype=np.int32)
        solved[left] = found
        rounds[left] += rounds_of(asked, in_flight(checks, width))
        going = ~found
        waiting &= ~chosen
        if drawn == n:
            empty = going & ~waiting.any(axis=1)
            # A request for more candidates is needed to learn that there are none.
            rounds[left[empty], 0] += not exhausted
            going &= ~empty
        if not going.any():
            break
        left = left[going]
        arrival = arrival[going]
        passes = passes[going]
        waiting = waiting[going]
    return Trials(solved, generated, verified, rounds, passed)


def adaptive_ahead(policy: Adaptive, batch: OrderBatch, costs: Costs, limits: Limits) -> Trials:
    """Shell by shell, with searches that look ahead."""
    stages = tuple(_shell_stages(policy, costs, len(batch.problem), limits.width or 1))
    return staged_ahead(
        batch, stages, lambda: adaptive(policy, batch, costs, NARROW), costs, limits
    )


def _shell_stages(
    policy: Adaptive, costs: Costs, candidates: int, beyond: int = 0
) -> Iterator[PathStage]:
    """The shells, up to one that verifies everything, and at least `beyond` candidates more."""
    drawn = 0
    for shell in shells(costs):  # pragma: no branch (there is always another shell)
        stage = PathStage(shell.draws(policy.draws), shell.checks(policy.checks))
        yield stage
        drawn += stage.draws
        if drawn > candidates and candidates + beyond <= stage.checks:
            break
