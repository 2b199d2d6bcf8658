"""Runs a policy over many orders of a problem, with a fast kernel if there is one.

Each kernel is a special case of the engine and must equal it, including ties; a test proves it. The
engine runs policies without a kernel, and cases that a kernel does not cover.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.pace import Pace
from ...core.search import Policy, Search
from ...core.values import Cascade, Costs, Measured
from ...pacing import PACE
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
from .paths import AheadOptions, path, path_ahead
from .shells import adaptive, adaptive_ahead
from .simple import (
    fixed,
    fixed_ahead,
    threshold,
    threshold_ahead,
    verify_all,
    verify_all_ahead,
)
from .varied import varied, varied_ahead


def trials(
    policy: Policy,
    batch: OrderBatch,
    costs: Costs,
    *,
    width: int | None,
    value: float = math.inf,
    cascade: Cascade | None = None,
    pace: Pace = PACE,
    answers: int = 1,
) -> Trials:
    """Run the policy in every order of the batch, with its kernel if one applies.

    Kernels do not apply if costs are measured, because then a step depends on earlier payments, or
    if there are second scores or several answers. Those of `WIDE` look ahead.
    """
    found = None
    how = Conditions(width, value, pace, answers)
    if kernels_apply(costs, cascade, how):
        if how.ahead is not None:
            wide = WIDE.get(type(policy))
            found = None if wide is None else wide(policy, batch, costs, how.ahead)
        else:
            kernel = KERNELS.get(type(policy))
            found = None if kernel is None else kernel(policy, batch, costs, width)
    if found is None:
        return engine_trials(policy, batch, costs, how, cascade=cascade)
    return _completed(policy, batch, costs, found, np.ones(batch.size, dtype=np.bool_), how)


@dataclass(frozen=True)
class Conditions:
    """The width, the value of an answer, the pace of a search, and how many answers it finds."""

    width: int | None
    value: float = math.inf
    pace: Pace = PACE
    answers: int = 1

    @property
    def ahead(self) -> AheadOptions | None:
        """How far a search looks ahead; None if it does not."""
        return None if self.width in (None, 1) else AheadOptions(self.width, self.pace)


def kernels_apply(costs: Costs, cascade: Cascade | None, how: Conditions) -> bool:
    """Whether kernels cover these conditions; each kernel may leave out some orders."""
    is_plain = cascade is None and how.answers == 1 and math.isinf(how.pace.deadline)
    return is_plain and not isinstance(costs, Measured)


def _completed(
    policy: Policy,
    batch: OrderBatch,
    costs: Costs,
    found: Trials,
    covered: NDArray[np.bool_],
    how: Conditions,
) -> Trials:
    """What a kernel found, and the engine's trials where the kernel does not cover the case."""
    if math.isfinite(how.value):
        # A search that is solved for at most the value never gives up. At the end of the log,
        # giving up may change a step.
        # A search that looks ahead also needs the money for one verification more.
        spare = 0.0 if how.ahead is None else costs.verify
        sure = found.solved & (found.costs(costs) + spare <= how.value)
        covered = covered & sure & (found.generated < len(batch.problem))
    if covered.all():
        return found
    rest = OrderBatch(batch.problem, batch.orders[~covered], batch.keyed)
    other = engine_trials(policy, rest, costs, how)
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
    pace: Pace = PACE,
    answers: int = 1,
) -> list[Trials]:
    """The trials of each batch. The kernel of `learned` runs many problems together."""
    how = Conditions(width, value, pace, answers)
    if type(policy) is Learned and kernels_apply(costs, cascade, how):
        each = zip(batches, learned(policy, batches, costs, how.ahead), strict=True)
        return [
            _completed(policy, batch, costs, found, ~unlike, how) for batch, (found, unlike) in each
        ]
    more: dict[str, Any] = {"value": value, "cascade": cascade, "pace": pace, "answers": answers}
    return [trials(policy, batch, costs, width=width, **more) for batch in batches]


def engine_trials(
    policy: Policy,
    batch: OrderBatch,
    costs: Costs,
    how: Conditions,
    *,
    cascade: Cascade | None = None,
) -> Trials:
    """Run the policy in every order of the batch, with the engine."""
    searches = [
        replayed(
            policy,
            batch.problem,
            costs,
            order=order,
            value=how.value,
            cascade=cascade,
            width=how.width,
            keys=batch.keyed,
            pace=how.pace,
            answers=how.answers,
        )
        for order in batch.orders.tolist()
    ]
    return searched_trials(searches, costs, cascade)


def searched_trials(
    searches: Sequence[Search], costs: Costs, cascade: Cascade | None = None
) -> Trials:
    """The trials of searches that have ended."""
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
WideKernel = Callable[[Any, OrderBatch, Costs, AheadOptions], Trials | None]
WIDE: dict[type[Any], WideKernel] = {
    Adaptive: adaptive_ahead,
    Alternate: path_ahead,
    Balanced: path_ahead,
    Fixed: fixed_ahead,
    Hedged: path_ahead,
    Threshold: threshold_ahead,
    Varied: varied_ahead,
    VerifyAll: verify_all_ahead,
}
