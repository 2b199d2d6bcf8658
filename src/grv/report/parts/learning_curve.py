"""What a policy that learns costs from one problem to the next, against the default policy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...comparing.arrivals import positions
from ...comparing.rows import PolicyRow, kind_of, learning_of
from ...learning.online import refits
from ...policies import DEFAULT
from ...replay.orders import Orders
from .. import columns as c
from ..dataset import Tried
from ..drawing import AT_Y_1, Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema, price_name
from ..statistics import interval

LEARNING_CURVE = TableSchema(
    name="learning_curve",
    title="Cheaper with every problem?",
    caption="Problems arrive in random order, another one in each repetition. Between two fits of"
    " the prior: the mean cost of the policy that learns, divided by that of the default policy on"
    " the same problems and candidates, with a 95 % interval over problems.",
    alt="The relative cost against the position of a problem, with a band; below 1 is cheaper.",
    columns=(
        c.LOG,
        c.COSTS,
        c.POLICY,
        c.number("first", "from problem", "the position of the first of these problems"),
        c.number("last", "to problem", "the position of the last of these problems"),
        c.COST,
        c.cost("cold", "cost of the default", "the mean cost of the default policy on the same"),
        c.number("against", "× the default", "the cost divided by that of the default policy", 2),
        c.LOW,
        c.HIGH,
    ),
    drawings=(
        Drawing(
            Axis("last", "log", label="problems so far"),
            Axis("against", "log"),
            (
                AT_Y_1,
                Layer("band", "last", "low", y2="high", by="costs"),
                Layer("line", "last", "against", by="costs"),
                Layer("points", "last", "against", by="costs"),
            ),
        ),
    ),
)


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """One row per price list and number of problems so far."""
    names = list(dict.fromkeys(dataset.request.rows))
    learning = [name for name in names if learning_of(kind_of(name)) is not None]
    cold = next((name for name in names if kind_of(name) == PolicyRow(DEFAULT)), None)
    if not learning or cold is None:
        wanted = "a policy that learns" if not learning else "the default policy"
        rows.note(LEARNING_CURVE, f"{dataset.name}: {wanted} is not among the rows.")
        return
    for costs in dataset.costs:
        for name in learning:
            tried = dataset.tried[costs, name], dataset.tried[costs, cold]
            for line in _windows(dataset, *tried):
                rows.add(LEARNING_CURVE, dataset.name, price_name(costs), name, *line)
    if len(dataset.problems) < 2:
        rows.note_no_interval(LEARNING_CURVE, dataset.name)


def _windows(
    dataset: Dataset, tried: Tried, cold: Tried
) -> Iterator[tuple[int, int, float, float, float, float | None, float | None]]:
    """The problems between two fits: their positions, both mean costs, the ratio, its interval."""
    asked = dataset.request
    size = len(dataset.problems)
    places = Orders(dataset.problems, 1, scheme=asked.order_scheme).places
    arrived = positions(places, asked.orders, asked.seed)
    stops = [0, *itertools.takewhile(lambda at: at < size, refits()), size]
    for start, stop in itertools.pairwise(stops):
        inside = (arrived >= start) & (arrived < stop)
        spent, base = ((each.spent * inside).sum(axis=1) for each in (tried, cold))
        trials = inside.sum()
        total = float(spent.sum())
        other = float(base.sum())
        if not other:
            continue  # all measured costs are zero
        yield (
            start + 1,
            stop,
            total / trials,
            other / trials,
            total / other,
            *_interval(dataset, spent, base),
        )


def _interval(
    dataset: Dataset, spent: NDArray[np.float64], base: NDArray[np.float64]
) -> tuple[float, float] | tuple[None, None]:
    """The 95 % interval of the ratio; a resample without any of these problems says nothing."""
    if np.count_nonzero(base) < 2:
        return None, None
    totals = dataset.resampled.totals(spent), dataset.resampled.totals(base)
    there = totals[1] > 0
    return interval(totals[0][there] / totals[1][there])


PART = Part("costs", (LEARNING_CURVE,), of_log=add_log)
