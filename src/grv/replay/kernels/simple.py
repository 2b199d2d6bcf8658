"""Kernels of `fixed`, `verify-all` and `threshold`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.limits import Limits
from ...core.values import Costs
from ...policies import Fixed, Threshold, VerifyAll
from ..orders import ManyOrders, OrderBatch
from ..trials import Trials, in_flight, rounds_of
from .blocks import Blocks, Solved, counted
from .paths import NARROW, PathStage, staged, staged_ahead


def fixed(policy: Fixed, batch: OrderBatch, costs: Costs, limits: Limits) -> Trials | None:
    """One round: generate, then verify the best."""
    if batch.keys is not None:
        return staged(batch, [PathStage(policy.m, policy.k)], limits.width)
    return fixed_without_keys(policy, batch, limits.width)


def fixed_without_keys(policy: Fixed, batch: OrderBatch | ManyOrders, width: int | None) -> Trials:
    """The same where every candidate is verified by itself."""
    m = min(policy.m, batch.candidates)
    k = min(policy.k, m)
    made = np.full(batch.size, m, dtype=np.int32)
    levels = batch.levels[:, :m]
    passed = batch.passed[:, :m]
    checks = np.full(batch.size, k, dtype=np.int32)
    if width is None:
        passes = _passes_among_best(levels, passed, k)
        return Trials(passes > 0, made, checks, rounds_of(1, np.minimum(checks, 1)), passes)
    worst = np.iinfo(levels.dtype).max
    best = np.where(passed, levels, worst).min(axis=1, keepdims=True)
    answer = (passed & (levels == best)).argmax(axis=1)
    older = np.arange(m) < answer[:, None]
    place = 1 + np.count_nonzero((levels < best) | (older & (levels == best)), axis=1)
    solved = passed.any(axis=1) & (place <= k)
    stops = np.minimum(-(-place // width) * width, checks)
    checks = np.where(solved, stops, checks).astype(np.int32)
    passes = solved.astype(np.int32)
    if width != 1:  # the others of a step are verified too
        ranked = np.take_along_axis(passed, np.argsort(levels, axis=1, kind="stable"), axis=1)
        passes = np.cumsum(ranked, axis=1, dtype=np.int32)[np.arange(batch.size), checks - 1]
    return Trials(solved, made, checks, rounds_of(1, in_flight(checks, width)), passes)


def _passes_among_best(
    levels: NDArray[np.integer], passed: NDArray[np.bool_], k: int
) -> NDArray[np.int32]:
    """How many of the k best of each row pass; among equals, the older ones are better."""
    last = np.partition(levels, k - 1, axis=1)[:, k - 1 : k]
    chosen = levels <= last
    many = np.flatnonzero(np.count_nonzero(chosen, axis=1) > k)
    if len(many):
        equal = levels[many] == last[many]
        room = k - np.count_nonzero(levels[many] < last[many], axis=1)
        chosen[many] &= ~equal | (np.cumsum(equal, axis=1) <= room[:, None])
    passes: NDArray[np.int32] = np.count_nonzero(chosen & passed, axis=1).astype(np.int32)
    return passes


def verify_all(policy: VerifyAll, batch: OrderBatch, costs: Costs, limits: Limits) -> Trials | None:
    """Verify every candidate as it arrives."""
    if batch.keys is not None:
        return staged(batch, [PathStage(1, blind=True)] * (len(batch.problem) + 1), limits.width)
    return verify_all_without_keys(batch)


def verify_all_without_keys(batch: OrderBatch | ManyOrders) -> Trials:
    """The same where every candidate is verified by itself."""
    solved = np.asarray(batch.passed.any(axis=1))
    generated = np.where(solved, batch.passed.argmax(axis=1) + 1, batch.candidates)
    return _streamed(solved, generated, generated)


def fixed_ahead(policy: Fixed, batch: OrderBatch, costs: Costs, limits: Limits) -> Trials:
    """One round, verified in blocks."""
    stages = [PathStage(policy.m, policy.k)]
    return staged_ahead(batch, stages, lambda: fixed(policy, batch, costs, NARROW), costs, limits)


def verify_all_ahead(policy: VerifyAll, batch: OrderBatch, costs: Costs, limits: Limits) -> Trials:
    """Verify every candidate as it arrives, in blocks."""
    stages = [PathStage(1, blind=True)] * (len(batch.problem) + 1 + (limits.width or 1))
    return staged_ahead(
        batch, stages, lambda: verify_all(policy, batch, costs, NARROW), costs, limits
    )


def threshold_ahead(
    policy: Threshold, batch: OrderBatch, costs: Costs, limits: Limits
) -> Trials | None:
    """Verify the candidates that score high enough, in blocks."""
    if batch.keys is not None:
        return None
    found = []
    chosen = (batch.problem.scores >= policy.t)[batch.orders].tolist()
    for wanted, passed in zip(chosen, batch.passed.tolist(), strict=True):
        blocks = Blocks(costs, limits, len(wanted))
        solved = False
        try:
            while blocks.generate(1, None):
                if wanted[blocks.used - 1]:
                    blocks.verify(passed[blocks.used - 1])
            blocks.finish()
        except Solved:
            solved = True
        found.append((solved, blocks))
    return counted(found)


def threshold(policy: Threshold, batch: OrderBatch, costs: Costs, limits: Limits) -> Trials | None:
    """Verify the candidates that score high enough, as they arrive."""
    if batch.keys is not None:
        return None
    return _stream(batch, (batch.problem.scores >= policy.t)[batch.orders])


def _stream(batch: OrderBatch, chosen: NDArray[np.bool_]) -> Trials:
    """Verify the chosen candidates as they arrive, until one passes."""
    passes = batch.passed & chosen
    solved = np.asarray(passes.any(axis=1))
    generated = np.where(solved, passes.argmax(axis=1) + 1, passes.shape[1])
    verified = np.cumsum(chosen, axis=1)[np.arange(batch.size), generated - 1]
    return _streamed(solved, generated, verified)


def _streamed(
    solved: NDArray[np.bool_], generated: NDArray[np.intp], verified: NDArray[np.intp]
) -> Trials:
    """The trials of searches that take one candidate after the other."""
    # A request for one more candidate is needed to learn that there are none.
    rounds = rounds_of(generated + ~solved, verified)
    return Trials(
        solved,
        generated.astype(np.int32),
        verified.astype(np.int32),
        rounds,
        solved.astype(np.int32),
    )
