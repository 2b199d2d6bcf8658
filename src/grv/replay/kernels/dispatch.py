"""Runs a policy over many orders of a problem, with a fast kernel if there is one.

Each kernel is a special case of the engine and must equal it, including ties; a test proves it. The
engine runs policies without a kernel, and cases that a kernel does not cover.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.limits import Limits
from ...core.search import Policy, Search
from ...core.values import Costs, Measured
from ...policies import (
    Adaptive,
    Alternate,
    Balanced,
    Fixed,
    Hedged,
    Learned,
    Threshold,
    Varied,
    VerifyAll,
)
from ..engine import replayed
from ..orders import ManyOrders, OrderBatch, of_one_size
from ..trials import Trials, joined, patched, stacked
from .paths import path, path_ahead
from .shells import adaptive, adaptive_ahead
from .simple import (
    fixed,
    fixed_ahead,
    threshold,
    threshold_ahead,
    verify_all,
    verify_all_ahead,
)
from .together import TOGETHER
from .varied import varied, varied_ahead


def trials(
    policy: Policy,
    batch: OrderBatch,
    costs: Costs,
    limits: Limits = Limits(),  # noqa: B008 (a frozen value)
) -> Trials:
    """Run the policy in every order of the batch, with its kernel if one applies.

    Those of `WIDE` look ahead.
    """
    found = None
    limits = limits.of(batch.problem.id)
    if kernels_apply(costs, limits):
        kernel = (WIDE if limits.looks_ahead else KERNELS).get(type(policy))
        found = None if kernel is None else kernel(policy, batch, costs.planning, limits)
    if found is None:
        return engine_trials(policy, batch, costs, limits)
    return _completed(policy, batch, costs, found, np.ones(batch.size, dtype=np.bool_), limits)


def kernels_apply(costs: Costs, limits: Limits) -> bool:
    """Whether kernels cover these limits; each kernel may leave out some orders.

    They know `value`, `width` and `pace` without a deadline. Other limits, also those to come, are
    left to the engine; so are measured costs, because then a step depends on earlier payments.
    Kernels run on the costs that the policy plans with, and count the passes; then their trials are
    priced. Those that look ahead do not count passes, so a failure may have no price of its own.
    """
    pace = dataclasses.replace(limits.pace, deadline=math.inf)
    covered = Limits(value=limits.value, width=limits.width, pace=pace)
    priced = not (limits.looks_ahead and costs.has_failure)
    return limits == covered and priced and not isinstance(costs, Measured)


def _completed(
    policy: Policy,
    batch: OrderBatch,
    costs: Costs,
    found: Trials,
    covered: NDArray[np.bool_],
    limits: Limits,
) -> Trials:
    """What a kernel found, and the engine's trials where the kernel does not cover the case."""
    if math.isfinite(limits.value):
        # A search that is solved for at most the value never gives up. At the end of the log,
        # giving up may change a step.
        # A search that looks ahead also needs the money for one verification more. One that
        # verifies several at once needs the money for them in case that all of them pass.
        spare = costs.verify if limits.looks_ahead else 0.0
        alone = limits.width == 1 or not costs.has_failure
        most = costs if alone else Costs(costs.generate, costs.verify, score=costs.score)
        sure = found.solved & (found.costs(most) + spare <= limits.value)
        covered = covered & sure & (found.generated < len(batch.problem))
    if covered.all():
        return found
    rest = OrderBatch(batch.problem, batch.orders[~covered], batch.keyed)
    other = engine_trials(policy, rest, costs, limits)
    names = ["solved", "generated", "verified", "rounds"]
    names += [] if found.passed is None else ["passed"]
    return Trials(
        **{name: patched(getattr(found, name), ~covered, getattr(other, name)) for name in names}
    )


def many_trials(
    policy: Policy,
    batches: Sequence[OrderBatch],
    costs: Costs,
    limits: Limits = Limits(),  # noqa: B008 (a frozen value)
) -> list[Trials]:
    """The trials of each batch. The kernel of `learned` runs many problems together."""
    if type(policy) is Learned and kernels_apply(costs, limits):
        from .learned import learned

        each = zip(batches, learned(policy, batches, costs.planning, limits), strict=True)
        return [
            _completed(policy, batch, costs, found, ~unlike, limits)
            for batch, (found, unlike) in each
        ]
    return [trials(policy, batch, costs, limits) for batch in batches]


def stacked_trials(
    policy: Policy,
    batches: Sequence[OrderBatch],
    costs: Costs,
    limits: Limits = Limits(),  # noqa: B008 (a frozen value)
) -> Trials:
    """The trials of batches with equally many orders, `[problems, orders]`.

    Problems of one size run together if there is a kernel for it.
    """
    kernel = TOGETHER.get(type(policy))
    keyed = any(batch.keys is not None for batch in batches)
    alone = keyed or limits.looks_ahead or math.isfinite(limits.value)
    if kernel is None or alone or not kernels_apply(costs, limits):
        return stacked(many_trials(policy, batches, costs, limits))
    groups = of_one_size(batches)
    found = []
    for places in groups:
        same = [batches[place] for place in places]
        together, finished = kernel(policy, ManyOrders.of(same), costs.planning, limits.width)
        _finish(together, finished, policy, same, costs, limits)
        found.append(together.by_problem(len(same)))
    return joined(found, [place for places in groups for place in places])


def _finish(
    found: Trials,
    finished: NDArray[np.bool_],
    policy: Policy,
    batches: Sequence[OrderBatch],
    costs: Costs,
    limits: Limits,
) -> None:
    """Fill in the trials that a kernel of many problems has not finished."""
    start = 0
    for batch in batches:
        rest = start + np.flatnonzero(~finished[start : start + batch.size])
        if len(rest):
            orders = OrderBatch(batch.problem, batch.orders[rest - start], batch.keyed)
            other = trials(policy, orders, costs, limits)
            for name in _COUNTS:
                getattr(found, name)[rest] = getattr(other, name)
        start += batch.size


_COUNTS = ("solved", "generated", "verified", "rounds", "passed")


def engine_trials(policy: Policy, batch: OrderBatch, costs: Costs, limits: Limits) -> Trials:
    """Run the policy in every order of the batch, with the engine."""
    searches = [
        replayed(policy, batch.problem, costs, limits, order=order, keys=batch.keyed)
        for order in batch.orders.tolist()
    ]
    return searched_trials(searches, costs, limits)


def searched_trials(searches: Sequence[Search], costs: Costs, limits: Limits) -> Trials:
    """The trials of searches that have ended."""
    outcomes = [search.outcome for search in searches if search.outcome is not None]
    found = Trials(
        np.array([outcome.solved for outcome in outcomes]),
        np.array([outcome.bill.generated for outcome in outcomes], dtype=np.int32),
        np.array([outcome.bill.verified for outcome in outcomes], dtype=np.int32),
        np.array([dataclasses.astuple(search.rounds) for search in searches], dtype=np.int32),
        np.array([search.bill.verified - search.failed for search in searches], dtype=np.int32),
    )
    if limits.cascade is not None:
        again = [outcome.bill.rescored for outcome in outcomes]
        found = dataclasses.replace(found, rescored=np.array(again, dtype=np.int32))
    if limits.cascade is None and not isinstance(costs, Measured):
        return found
    return dataclasses.replace(found, paid=np.array([each.bill.total for each in outcomes]))


# A kernel takes the policy it is registered for, hence `Any`; it returns None if it does not cover
# the case.
Kernel = Callable[[Any, OrderBatch, Costs, Limits], Trials | None]
KERNELS: dict[type[Any], Kernel] = {
    Adaptive: adaptive,
    Alternate: path,
    Balanced: path,
    Fixed: fixed,
    Hedged: path,
    Threshold: threshold,
    Varied: varied,
    VerifyAll: verify_all,
}
WIDE: dict[type[Any], Kernel] = {
    Adaptive: adaptive_ahead,
    Alternate: path_ahead,
    Balanced: path_ahead,
    Fixed: fixed_ahead,
    Hedged: path_ahead,
    Threshold: threshold_ahead,
    Varied: varied_ahead,
    VerifyAll: verify_all_ahead,
}
