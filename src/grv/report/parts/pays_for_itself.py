"""Whether the score pays for itself, compared with verifying in order of arrival."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import columns as c
from ..dataset import IN_ORDER
from ..drawing import AT_PRICES, POLICY_AXIS, Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema
from ..table import Column

Array = NDArray[np.float64]

PAYS_FOR_ITSELF = TableSchema(
    name="pays_for_itself",
    title="Does this score pay for itself?",
    caption="Each policy compared with verifying in order of arrival, which needs no score: what it"
    " saves, what a score is worth per candidate, and the cost ratio from which it saves anything.",
    alt="For each policy an interval of the cost ratio from which it is cheaper.",
    columns=(
        c.LOG,
        c.COSTS,
        c.POLICY,
        c.COST,
        c.cost("in_order", "in order", "mean cost of verifying in order of arrival"),
        c.percent("saving", "saves", "share saved of the cost of verifying in order"),
        c.percent("low", "from", "lower end of the 95 % interval"),
        c.percent("high", "to", "upper end of the 95 % interval"),
        Column(
            "worth",
            "worth a candidate",
            "cost",
            "the price per score at which nothing is saved any more",
            digits=3,
        ),
        c.number("break_even", "break-even", "cost ratio from which it is cheaper", 2),
        c.number("break_even_low", "from", "lower end of the 95 % interval", 2),
        c.number("break_even_high", "to", "upper end of the 95 % interval", 2),
        c.text("words", "of the ratios tried", "those where it is cheaper, and where certainly"),
    ),
    drawings=(
        Drawing(
            Axis("saving", label="saved, compared with verifying in order of arrival"),
            POLICY_AXIS,
            (
                Layer("rule", 0.0, tone="quiet"),
                Layer("interval", "low", "policy", x2="high", by="policy"),
                Layer("points", "saving", "policy", by="policy"),
            ),
            view="what it saves",
        ),
        Drawing(
            Axis("break_even", "log", label="cheaper from this cost ratio"),
            POLICY_AXIS,
            (
                AT_PRICES,
                Layer("interval", "break_even_low", "policy", x2="break_even_high", by="policy"),
                Layer("points", "break_even", "policy", by="policy"),
            ),
            view="from which cost ratio on",
        ),
    ),
)


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """One row per live policy that ranks, and price list."""
    rows.note(
        PAYS_FOR_ITSELF,
        "The worth of a score is an amount on top of the price list: the cost to generate is the"
        " same with and without scores. The break-even is interpolated between the ratios tried.",
    )
    for name in dataset.ranking:
        even = _break_even(dataset, name)
        words = _words(dataset, name)
        for costs, prices in dataset.named_costs:
            tried = dataset.tried[costs, name]
            in_order = dataset.tried[costs, IN_ORDER]
            mine = tried.row.cost
            theirs = in_order.row.cost
            ends = dataset.interval(tried, in_order)
            spread = (1 - ends[1], 1 - ends[0]) if ends else (None, None)
            worth = (theirs - mine) / tried.row.generated
            head = (dataset.name, prices, name, mine, theirs)
            rows.add(PAYS_FOR_ITSELF, *head, 1 - mine / theirs, *spread, worth, *even, words)
    if not dataset.ranking:
        rows.note(PAYS_FOR_ITSELF, dataset.no_ranking)
    if len(dataset.problems) < 2:
        rows.note_no_interval(PAYS_FOR_ITSELF, dataset.name)


def _break_even(dataset: Dataset, name: str) -> tuple[float | None, float | None, float | None]:
    """The cost ratio from which the policy is cheaper than in order, and its interval."""
    rhos = np.array([costs.ratio for costs in dataset.range_of_costs])
    pairs = [
        (dataset.tried[costs, name], dataset.tried[costs, IN_ORDER])
        for costs in dataset.range_of_costs
    ]
    now = np.array([[up.by_problem.sum() / down.by_problem.sum() for up, down in pairs]])
    found = [float(break_even(rhos, now)[0])]
    if len(dataset.problems) > 1:
        ratios = np.array([dataset.totals(up) / dataset.totals(down) for up, down in pairs]).T
        ends = np.quantile(break_even(rhos, ratios), [0.025, 0.975], method="nearest")
        found += ends.tolist()
    here, low, high = (*(value if np.isfinite(value) else None for value in found), None, None)[:3]
    return here, low, high


def break_even(rhos: Array, ratios: Array) -> Array:
    """`[n]`: the rho from which relative costs `[n, rhos]` stay at 1 or below.

    Interpolated, on a logarithmic scale, between the last rho with a relative cost above 1 and the
    next. The first rho if none is above 1; infinite if the last one is.
    """
    places = np.log(rhos)
    above = ratios > 1
    last = ratios.shape[1] - 1 - above[:, ::-1].argmax(axis=1)  # the last one above 1
    rows = np.arange(len(ratios))
    following = np.minimum(last + 1, ratios.shape[1] - 1)
    start = ratios[rows, last]
    end = ratios[rows, following]
    gap = np.where(start > end, start - end, 1.0)
    share = np.clip((start - 1) / gap, 0.0, 1.0)
    crossing = np.exp(places[last] + share * (places[following] - places[last]))
    crossing[~above.any(axis=1)] = rhos[0]
    crossing[above[:, -1]] = np.inf
    return np.asarray(crossing)


def _words(dataset: Dataset, name: str) -> str:
    """The ratios tried at which the policy is cheaper than in order, and certainly so."""
    cheaper = []
    certainly = []
    for costs in dataset.range_of_costs:
        tried = dataset.tried[costs, name]
        in_order = dataset.tried[costs, IN_ORDER]
        if tried.row.cost >= in_order.row.cost:
            continue
        cheaper.append(f"{costs.ratio:g}")
        ends = dataset.interval(tried, in_order)
        if ends is not None and ends[1] < 1:
            certainly.append(f"{costs.ratio:g}")
    if not cheaper:
        first = dataset.range_of_costs[0].ratio
        last = dataset.range_of_costs[-1].ratio
        return f"more expensive at every ratio tried, from {first:g} to {last:g}"
    text = f"cheaper at {', '.join(cheaper)}"
    return f"{text}, certainly at {', '.join(certainly) or 'none'}"


PART = Part("advice", (PAYS_FOR_ITSELF,), of_log=add_log)
