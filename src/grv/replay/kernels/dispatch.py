"""Fast paths: a policy over many orders of a problem at once.

Each kernel is a special case of the engine and must equal it, ties included; a test proves it. A
policy without a kernel, or a case that its kernel does not cover, goes through the engine.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.search import Policy
from ...core.values import Cascade, Costs, Measured
from ...policies import Adaptive, Alternate, Balanced, Fixed, Hedged, Threshold, Varied, VerifyAll
from ..engine import replayed
from ..orders import Batch
from ..trials import Trials, patched
from .paths import path
from .shells import adaptive
from .simple import fixed, threshold, verify_all
from .varied import varied


def trials(
    policy: Policy,
    batch: Batch,
    costs: Costs,
    *,
    width: int | None,
    value: float = math.inf,
    cascade: Cascade | None = None,
) -> Trials:
    """The policy in every order of the batch, by its kernel if it has one that applies.

    None applies where costs are measured: what is paid for depends on what has been paid before.
    None knows of second scores.
    """
    applies = cascade is None and not isinstance(costs, Measured)
    kernel = KERNELS.get(type(policy)) if applies else None
    found = None if kernel is None else kernel(policy, batch, costs, width)
    if found is None:
        return engine_trials(policy, batch, costs, width=width, value=value, cascade=cascade)
    # Who solves it for no more than it is worth never thought of giving up; the end of the log
    # might change what is asked for.
    sure = found.solved & (found.costs(costs) <= value) & (found.generated < len(batch.problem))
    if math.isinf(value) or sure.all():
        return found
    rest = Batch(batch.problem, batch.orders[~sure], batch.keyed)
    other = engine_trials(policy, rest, costs, width=width, value=value)
    names = ("solved", "generated", "verified", "rounds")
    return Trials(*(patched(getattr(found, n), ~sure, getattr(other, n)) for n in names))


def engine_trials(
    policy: Policy,
    batch: Batch,
    costs: Costs,
    *,
    width: int | None,
    value: float = math.inf,
    cascade: Cascade | None = None,
) -> Trials:
    """The policy in every order of the batch, by the engine."""
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


# A kernel takes the policy it is registered for, hence `Any`; it returns None for a case that it
# does not cover.
Kernel = Callable[[Any, Batch, Costs, int | None], Trials | None]
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
