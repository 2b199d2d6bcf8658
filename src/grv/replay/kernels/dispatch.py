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

from ...core.search import Policy
from ...core.values import Cascade, Costs, Measured
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
from ..orders import OrderBatch
from ..trials import Trials, patched
from .learned import learned
from .paths import path
from .shells import adaptive
from .simple import fixed, threshold, verify_all
from .varied import varied


def trials(
    policy: Policy,
    batch: OrderBatch,
    costs: Costs,
    *,
    width: int | None,
    value: float = math.inf,
    cascade: Cascade | None = None,
    answers: int = 1,
) -> Trials:
    """Run the policy in every order of the batch, with its kernel if one applies.

    Kernels do not apply if costs are measured, because then a step depends on earlier payments, or
    if there are second scores or several answers.
    """
    kernel = KERNELS.get(type(policy)) if _applies(costs, cascade, answers) else None
    found = None if kernel is None else kernel(policy, batch, costs, width)
    if found is None:
        more: dict[str, Any] = {"value": value, "cascade": cascade, "answers": answers}
        return engine_trials(policy, batch, costs, width=width, **more)
    covered = np.ones(batch.size, dtype=np.bool_)
    return _completed(policy, batch, costs, found, covered, width=width, value=value)


def _applies(costs: Costs, cascade: Cascade | None, answers: int) -> bool:
    return cascade is None and answers == 1 and not isinstance(costs, Measured)


def _completed(
    policy: Policy,
    batch: OrderBatch,
    costs: Costs,
    found: Trials,
    covered: NDArray[np.bool_],
    *,
    width: int | None,
    value: float,
) -> Trials:
    """What a kernel found, and the engine's trials where the kernel does not cover the case."""
    if math.isfinite(value):
        # A search that is solved for at most the value never gives up. At the end of the log,
        # giving up may change a step.
        sure = found.solved & (found.costs(costs) <= value)
        covered = covered & sure & (found.generated < len(batch.problem))
    if covered.all():
        return found
    rest = OrderBatch(batch.problem, batch.orders[~covered], batch.keyed)
    other = engine_trials(policy, rest, costs, width=width, value=value)
    names = ("solved", "generated", "verified", "rounds")
    return Trials(*(patched(getattr(found, n), ~covered, getattr(other, n)) for n in names))


def many_trials(
    policy: Policy,
    batches: Sequence[OrderBatch],
    costs: Costs,
    *,
    width: int | None,
    value: float = math.inf,
    cascade: Cascade | None = None,
    answers: int = 1,
) -> list[Trials]:
    """The trials of each batch. The kernel of `learned` runs many problems together."""
    if type(policy) is Learned and _applies(costs, cascade, answers):
        return [
            _completed(policy, batch, costs, found, ~unlike, width=width, value=value)
            for batch, (found, unlike) in zip(batches, learned(policy, batches, costs), strict=True)
        ]
    more: dict[str, Any] = {"value": value, "cascade": cascade, "answers": answers}
    return [trials(policy, batch, costs, width=width, **more) for batch in batches]


def engine_trials(
    policy: Policy,
    batch: OrderBatch,
    costs: Costs,
    *,
    width: int | None,
    value: float = math.inf,
    cascade: Cascade | None = None,
    answers: int = 1,
) -> Trials:
    """Run the policy in every order of the batch, with the engine."""
    searches = [
        replayed(
            policy,
            batch.problem,
            costs,
            order=order,
            value=value,
            cascade=cascade,
            width=width,
            keys=batch.keyed,
            answers=answers,
        )
        for order in batch.orders.tolist()
    ]
    outcomes = [search.outcome for search in searches if search.outcome is not None]
    found = Trials(
        np.array([outcome.solved for outcome in outcomes]),
        np.array([outcome.bill.generated for outcome in outcomes], dtype=np.int32),
        np.array([outcome.bill.verified for outcome in outcomes], dtype=np.int32),
        np.array([dataclasses.astuple(search.rounds) for search in searches], dtype=np.int32),
    )
    if cascade is not None:
        again = [outcome.bill.rescored for outcome in outcomes]
        found = dataclasses.replace(found, rescored=np.array(again, dtype=np.int32))
    if cascade is None and not isinstance(costs, Measured):
        return found
    return dataclasses.replace(found, paid=np.array([each.bill.total for each in outcomes]))


# A kernel takes the policy it is registered for, hence `Any`; it returns None if it does not cover
# the case.
Kernel = Callable[[Any, OrderBatch, Costs, int | None], Trials | None]
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
