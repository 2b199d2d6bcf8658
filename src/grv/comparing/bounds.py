"""Comparisons on logs with missing labels: bounds instead of estimates.

In the log of a live run, a search chose what to verify: the best candidates first, and none after
the first pass. Labels are missing where scores are low, so neither "failed" nor "leave out" is a
fair guess. But costs can be bounded. Up to its first pass, a policy sees failures only, so what it
does until then does not depend on labels; more passes only end it earlier. Therefore each trial
costs least if all missing labels are passes, and most if all are failures. Whatever the labels are,
the mean cost lies between.

If a verification that fails has a lower price, this holds with the failure's price for all of them.
A pass adds the difference, once for each solved trial, and the share of solved trials is bounded
too. So the bounds of the cost are wider by the difference times what is unknown of that share.

This does not hold for baselines that choose pairs by the labels, nor for `learning`, which learns
from the labels of other problems, nor for measured costs, of which
those of candidates that were never verified are unknown.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from ..core.errors import LogError, UsageError
from ..core.values import Costs, Measured
from ..logs.log import Log
from .comparison import CensoredBounds, Comparison, Row
from .rows import DifficultyRow, HindsightRow, RowKind, UniformRow, kind_of, learning_of
from .settings import ComparisonSettings, Unsolvable


def has_bounds(kind: RowKind | None, settings: ComparisonSettings) -> bool:
    """Whether a row can be bounded if labels are missing."""
    if isinstance(kind, HindsightRow):  # with these settings it skips trials, by their labels
        return math.isinf(settings.value) and settings.unsolvable is Unsolvable.EXCLUDE
    return not isinstance(kind, UniformRow | DifficultyRow) and learning_of(kind) is None


def check_bounded(
    rows: Mapping[int, tuple[str, RowKind]],
    log: Log,
    prices: Sequence[Costs],
    settings: ComparisonSettings,
) -> None:
    """Refuse what cannot be bounded on a log with missing labels."""
    missing = f"{log.unlabelled} candidates have no label"
    refused = [name for name, kind in rows.values() if not has_bounds(kind, settings)]
    if refused:
        raise UsageError(
            f"{', '.join(refused)} cannot be compared: {missing}, and these rows choose what to do"
            " by all labels. Choose other rows with --policy"
        )
    if any(isinstance(costs, Measured) for costs in prices):
        raise LogError(
            f"measured costs cannot be compared: {missing}, and the cost of verifying them is"
            " unknown. Give prices, as in --costs 1,10",
            path=log.path,
        )
    if settings.width != 1 and any(costs.has_failure for costs in prices):
        raise UsageError(
            f"{missing}, and with --width {settings.width or 'all'} it is not known how many of the"
            " verifications fail: give --costs G,V or --width 1"
        )


def bounded(least: Comparison, most: Comparison) -> Comparison:
    """The comparison whose rows have bounds; other numbers are those of the highest costs.

    Args:
        least: the comparison if all missing labels are passes.
        most: the comparison if all are failures, on the same problems.
    """
    rows = [
        dataclasses.replace(
            high, ratio=None, low=None, high=None, exact=None, bounds=_bounds(low, high, base)
        )
        for low, high, base in zip(least.rows, most.rows, _baselines(least, most), strict=True)
    ]
    return dataclasses.replace(most, rows=tuple(rows), trials=(), problems=most.problems)


def _baselines(least: Comparison, most: Comparison) -> list[tuple[Row, Row] | None]:
    """For each row, the baseline at its price list; None without one, or for the baseline."""
    baselines: list[tuple[Row, Row] | None] = []
    for row in most.rows:
        base = [
            (low, high)
            for low, high in zip(least.rows, most.rows, strict=True)
            if high.policy == most.baseline and high.costs == row.costs
        ]
        baselines.append(base[0] if base else None)
    return baselines


def _bounds(low: Row, high: Row, base: tuple[Row, Row] | None) -> CensoredBounds:
    cost = _bounded_cost(low, high)
    ratio = None
    if base is not None and base[0].cost > 0:
        least, most = _bounded_cost(*base)
        ratio = (1.0, 1.0) if low.policy == base[0].policy else (cost[0] / most, cost[1] / least)
    counts: dict[str, tuple[float, float]] = {}
    if not isinstance(kind_of(low.policy), HindsightRow):  # its cheapest pair may have more of one
        for name in ("generated", "verified", "rounds"):
            counts[name] = (getattr(low, name), getattr(high, name))
    return CensoredBounds(
        cost=cost,
        solved=(high.solved, low.solved),
        **counts,
        ratio=ratio,
        net=None if high.net is None or low.net is None else (high.net, low.net),
    )


def _bounded_cost(low: Row, high: Row) -> tuple[float, float]:
    """The bounds of the mean cost: the rows' own, wider by what passes may add."""
    more = (high.costs.verify - high.costs.failure) * (low.solved - high.solved)
    return low.cost - more, high.cost + more
