"""The kernel of `adaptive`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.limits import Limits
from ...core.values import Costs
from ...policies import Adaptive
from ...theory.shells import shells
from ..orders import ManyOrders, OrderBatch
from ..trials import Trials, in_flight, rounds_of
from .paths import NARROW, PathStage, staged, staged_ahead


def adaptive(policy: Adaptive, batch: OrderBatch, costs: Costs, limits: Limits) -> Trials | None:
    """Shell by shell, over all orders that are not solved."""
    if batch.keys is not None:
        stages = _shell_stages(policy, costs, len(batch.problem))
        return staged(batch, stages, limits.width)
    return adaptive_without_keys(policy, batch, costs, limits.width)


def adaptive_without_keys(
    policy: Adaptive, batch: OrderBatch | ManyOrders, costs: Costs, width: int | None
) -> Trials:
    """The same where every candidate is verified by itself.

    Orders that are not solved have verified equally many, so `drawn` and `verified` are numbers.
    Columns are candidates in order of arrival.
    """
    n = batch.candidates
    levels = batch.levels.copy()  # of candidates that wait for their verification
    gone = np.iinfo(levels.dtype).max
    passes = batch.passed
    left = np.arange(batch.size)
    found = Trials(
        np.zeros(batch.size, dtype=np.bool_),
        np.zeros(batch.size, dtype=np.int32),
        np.zeros(batch.size, dtype=np.int32),
        np.zeros((batch.size, 4), dtype=np.int32),
        np.zeros(batch.size, dtype=np.int32),
    )
    assert found.passed is not None
    drawn = verified = 0
    exhausted = False
    for shell in shells(costs):
        asked = 0 if exhausted else 1
        draws = shell.draws(policy.draws)
        exhausted |= drawn + draws > n
        drawn = min(n, drawn + draws)
        checks = min(shell.checks(policy.checks), drawn - verified)
        own = levels[:, :drawn]
        if checks == drawn - verified and width is None:
            hits = passes[:, :drawn] & (own < gone)
        else:
            best = np.argsort(own, axis=1, kind="stable")[:, :checks]
            hits = np.take_along_axis(passes, best, axis=1)
            np.put_along_axis(levels, best, gone, axis=1)
        solved = hits.any(axis=1)
        paid = np.full(len(left), checks, dtype=np.int32)
        if width is not None and checks:
            stops = np.minimum(checks, -(-(hits.argmax(axis=1) + 1) // width) * width)
            paid = np.where(solved, stops, paid).astype(np.int32)
            hits &= np.arange(checks) < paid[:, None]
        found.generated[left] = drawn
        found.verified[left] = verified + paid
        found.passed[left] = np.count_nonzero(hits, axis=1)
        found.solved[left] = solved
        found.rounds[left] += rounds_of(asked, in_flight(paid, width))
        if checks == drawn - verified:
            levels[:, :drawn] = gone
        verified += checks
        going = ~solved
        if verified == n:
            # A request for more candidates is needed to learn that there are none.
            found.rounds[left[going], 0] += not exhausted
            break
        left = left[going]
        if not len(left):
            break
        levels = levels[going]
        passes = passes[going]
    return found


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
