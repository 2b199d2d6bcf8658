"""The cheapest pair that would have found a pass, for each order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..core.limits import Limits
from ..core.values import Bill, Costs, Measured
from ..policies import Fixed
from ..theory.hindsight import available, cheapest_pairs, least_checks, least_checks_of_all
from .engine import replayed
from .orders import OrderBatch, of_one_size
from .trials import Trials, in_flight, joined, rounds_of, stacked


def least_checks_of(batch: OrderBatch) -> NDArray[np.int32]:
    """`[orders, candidates]`: the fewest verifications that find a pass; n + 1 if none passes."""
    keys = batch.keys
    if keys is None:
        return least_checks_of_all(batch.levels, batch.passed)
    orders = zip(batch.levels, batch.passed, keys, strict=True)
    return np.array([least_checks(*order) for order in orders])


def paid_checks_of(
    batch: OrderBatch, least: NDArray[np.int32], limits: Limits
) -> NDArray[np.int32]:
    """`[orders, candidates]`: how many verifications a pair (m, k) pays for if k is large enough.

    A pair pays for the smaller of k and this number: whole blocks up to that of the first pass, or
    everything there is to verify if none passes.
    """
    n = least.shape[1]
    keys = batch.keys
    if keys is None:
        there = np.broadcast_to(available(n), least.shape)
    else:
        there = np.array([available(n, row) for row in keys])
    if limits.width is None:
        return there
    pace = limits.of(batch.problem.id).pace
    ends = np.array(pace.ends(limits.width, n + 1), dtype=np.int32)
    return np.where(least > n, there, np.minimum(there, ends[np.searchsorted(ends, least)]))


def hindsight_trials(
    batch: OrderBatch,
    least: NDArray[np.int32],
    costs: Costs,
    limits: Limits = Limits(),  # noqa: B008 (a frozen value)
) -> Trials:
    """The cheapest sufficient pair of each order; if no pair suffices, nothing is spent."""
    if isinstance(costs, Measured):
        return _measured_hindsight(batch, least, costs, limits)
    return cheapest_trials(least, costs, limits)


def many_hindsight(
    batches: Sequence[OrderBatch],
    least: Sequence[NDArray[np.int32]],
    costs: Costs,
    limits: Limits,
) -> Trials:
    """Those of several batches, `[problems, orders]`."""
    if isinstance(costs, Measured):
        both = zip(batches, least, strict=True)
        return stacked([_measured_hindsight(*each, costs, limits) for each in both])
    groups = of_one_size(batches)
    found = [
        cheapest_trials(np.concatenate([least[place] for place in places]), costs, limits)
        for places in groups
    ]
    problems = [
        trials.by_problem(len(places)) for trials, places in zip(found, groups, strict=True)
    ]
    return joined(problems, [place for places in groups for place in places])


def cheapest_trials(least: NDArray[np.int32], costs: Costs, limits: Limits) -> Trials:
    """The same at a price list, of the orders of any problems with as many candidates."""
    draws, checks = cheapest_pairs(least, costs)
    solved = draws > 0
    return Trials(
        solved,
        draws,
        checks,
        rounds_of(solved.astype(np.int32), in_flight(checks, limits.width)),
        solved.astype(np.int32),
    )


def _measured_hindsight(
    batch: OrderBatch, least: NDArray[np.int32], costs: Measured, limits: Limits
) -> Trials:
    """The same if each candidate has its own cost.

    It is enough to consider m at which a pass arrives that is better than all earlier ones: between
    two of these, more candidates only add to the cost of generating and verifying. (With keys they
    may also bring a cheaper candidate of the same key; this is ignored.)
    """
    rows = []
    for at, order in enumerate(batch.orders.tolist()):
        bills = [
            replayed(Fixed(m, k), batch.problem, costs, order=order, keys=batch.keyed).bill
            for m, k in _best_passes(batch, at, least[at])
        ]
        rows.append(min(bills, key=lambda bill: bill.total, default=Bill(0, 0, 0.0)))
    checks = np.array([bill.verified for bill in rows], dtype=np.int32)
    solved = checks > 0
    return Trials(
        solved,
        np.array([bill.generated for bill in rows], dtype=np.int32),
        checks,
        rounds_of(solved.astype(np.int32), in_flight(checks, limits.width)),
        solved.astype(np.int32),
        np.array([bill.total for bill in rows]),
    )


def _best_passes(batch: OrderBatch, at: int, least: NDArray[np.int32]) -> Iterator[tuple[int, int]]:
    """The pairs at which a pass arrives that ranks above all earlier passes."""
    best = None
    for place in np.flatnonzero(batch.passed[at]).tolist():
        level = int(batch.levels[at, place])
        if best is None or level < best:
            best = level
            yield place + 1, int(least[place])
