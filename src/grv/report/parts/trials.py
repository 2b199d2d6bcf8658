"""The cost of each trial, sorted by the cheapest pair in hindsight."""

from __future__ import annotations

import numpy as np

from ...comparing.rows import REFERENCE
from .. import columns as c
from ..dataset import HINDSIGHT, MATCHED, Tried
from ..drawing import Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema, price_name
from ..table import Cell, points

_MOST_POINTS = 1000

TRIALS = TableSchema(
    name="trials",
    title="Trial by trial",
    caption="What each trial costs with adaptive and in hindsight. Trials are sorted by the cost in"
    " hindsight. Points show adaptive, the line its rolling median, the band the middle half."
    " Shaded trials are not solved by the single pair with the same mean cost as adaptive.",
    alt="Points of adaptive's cost over sorted trials on a logarithmic axis, with a rolling median"
    " and a band, above the rising curve of hindsight; shades where the matched pair fails.",
    columns=(
        c.LOG,
        c.COSTS,
        c.number("place", "place", "place of the row's last trial, from 1"),
        c.number("trials", "trials", "the number of neighbouring trials that the row averages"),
        c.text("problem", "problem", "the problem of the trials; empty if there are several"),
        c.cost("hindsight", "hindsight", "mean cost of hindsight"),
        c.cost("adaptive", "adaptive", "mean cost of adaptive"),
        c.percent("failed", "matched pair fails", "share of the trials that it does not solve"),
        c.cost("median", "adaptive, median", "median of neighbouring trials"),
        c.cost("low", "lower quartile", "a quarter of the neighbouring trials cost less"),
        c.cost("high", "upper quartile", "a quarter of the neighbouring trials cost more"),
    ),
    drawings=(
        Drawing(
            Axis("place", label="trials, cheapest in hindsight first"),
            Axis("adaptive", "log", label="cost"),
            (
                Layer("shade", "place", "failed", "trials", series="the matched pair fails"),
                Layer("points", "place", "adaptive", series="adaptive: a trial", tone="adaptive"),
                Layer("band", "place", "low", y2="high", tone="adaptive"),
                Layer("line", "place", "median", series="adaptive: median", tone="adaptive"),
                Layer("line", "place", "hindsight", series="hindsight"),
            ),
        ),
    ),
)


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """One row per trial; neighbouring trials are averaged if there are many."""
    needed = (HINDSIGHT, REFERENCE, MATCHED)
    missing = [name for name in needed if name not in dataset.request.rows]
    if missing:
        rows.note(TRIALS, f"{dataset.name}: this table needs the policies {', '.join(missing)}.")
        return
    pairs = []
    for costs in dataset.costs:
        hindsight, adaptive, matched = (dataset.tried[costs, name] for name in needed)
        prices = price_name(costs)
        for row in _sorted_trials(dataset, hindsight, adaptive, matched):
            rows.add(TRIALS, dataset.name, prices, *row)
        pairs.append(
            f"at {prices} it generates {matched.row.m}, verifies the best {matched.row.k} and"
            f" solves {matched.row.solved:.1%}"
        )
    rows.note(TRIALS, f"{dataset.name}: the matched pair: {'; '.join(pairs)}.")
    trials = hindsight.spent.size
    words = f"the median and the quartiles are over {2 * _reach(trials) + 1} neighbouring trials"
    if trials > _MOST_POINTS:
        words += f"; each point is the mean of about {trials / _MOST_POINTS:.1f} trials"
    rows.note(TRIALS, f"{dataset.name}: {words}.")


def _sorted_trials(
    dataset: Dataset, hindsight: Tried, adaptive: Tried, matched: Tried
) -> list[tuple[Cell, ...]]:
    """By the cost in hindsight; of equal costs, trials that the matched pair fails come last."""
    least = hindsight.spent.ravel()
    spent = adaptive.spent.ravel()
    failed = ~matched.trials.solved.ravel()
    order = np.lexsort((failed, least))
    orders = hindsight.spent.shape[1]
    reach = _reach(len(order))
    found: list[tuple[Cell, ...]] = []
    place = 0
    for part in np.array_split(order, min(len(order), _MOST_POINTS)):
        names = {dataset.main.problems[at // orders] for at in part.tolist()}
        problem = names.pop() if len(names) == 1 else ""
        means = points([least[part].mean(), spent[part].mean(), failed[part].mean()])
        middle = place + len(part) // 2
        around = spent[order[max(middle - reach, 0) : middle + reach + 1]]
        place += len(part)
        quartiles = points(np.quantile(around, [0.5, 0.25, 0.75]))
        found.append((place, len(part), problem, *means, *quartiles))
    return found


def _reach(trials: int) -> int:
    """The number of neighbours on each side in a rolling median."""
    return max(trials // 40, 2)


PART = Part("costs", (TRIALS,), of_log=add_log)
