"""Which policy to use: the cheapest that solves the most, and how certain that is."""

from __future__ import annotations

import numpy as np

from .. import columns as c
from ..dataset import Tried
from ..drawing import AT_X_1, POLICY_AXIS, Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema

WHICH_POLICY = TableSchema(
    name="which_policy",
    title="Which policy should I use?",
    caption="Policies that can run live. Those that solve the most come first, cheapest first. The"
    " share says how often each is the cheapest when the problems are resampled.",
    alt="A bar for each policy: the share of resamples in which it is the cheapest.",
    columns=(
        c.LOG,
        c.COSTS,
        c.POLICY,
        c.COST,
        c.SOLVED,
        c.percent("cheapest", "cheapest", "share of resamples in which it is the cheapest"),
        c.number("against_best", "× best", "cost divided by that of the cheapest policy", 2),
        c.number("low", "from", "lower end of its 95 % interval", 2),
        c.number("high", "to", "upper end of its 95 % interval", 2),
        c.text("words", "verdict", "in words"),
    ),
    drawings=(
        Drawing(
            Axis("cheapest", zero=True, label="share of resamples in which it is the cheapest"),
            POLICY_AXIS,
            (Layer("bars", "cheapest", "policy", by="policy"),),
            view="share of resamples",
        ),
        Drawing(
            Axis("against_best", "log"),
            POLICY_AXIS,
            (
                AT_X_1,
                Layer("interval", "low", "policy", x2="high", by="policy"),
                Layer("points", "against_best", "policy", by="policy"),
            ),
            view="cost over the cheapest",
        ),
    ),
)


_UNKNOWN = "the cheapest on the candidates with a label"


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """One row per live policy and price list."""
    names = dataset.request.live
    if not names:
        rows.note(WHICH_POLICY, f"{dataset.name}: none of the policies can run live.")
        return
    for costs, prices in dataset.named_costs:
        tried = {name: dataset.tried[costs, name] for name in names}
        by_cost = sorted(tried, key=lambda name: tried[name].row.cost)
        most = max(each.row.solved for each in tried.values())
        able = [name for name in by_cost if tried[name].row.solved >= most - 1e-9]
        labelled = {name: tried[name] for name in able}
        shares = {} if dataset.bounded is not None else _cheapest(dataset, labelled)
        best = tried[able[0]]
        for name in (*able, *(name for name in by_cost if name not in able)):
            row = tried[name].row
            ends = dataset.interval(tried[name], best) or (None, None)
            words = "solves fewer" if name not in able else ""
            if name == able[0]:
                words = _words(shares.get(name)) if dataset.bounded is None else _UNKNOWN
            head = (dataset.name, prices, name, row.cost, row.solved)
            rows.add(WHICH_POLICY, *head, shares.get(name), row.cost / best.row.cost, *ends, words)
        if dataset.bounded is not None and dataset.advice.get(prices):
            rows.note(WHICH_POLICY, f"{dataset.name}: {dataset.advice[prices]}")
    if len(dataset.problems) < 2:
        rows.note_no_interval(WHICH_POLICY, dataset.name)


def _cheapest(dataset: Dataset, tried: dict[str, Tried]) -> dict[str, float]:
    """The share of resamples in which each is the cheapest; ties are divided."""
    if len(dataset.problems) < 2:
        return {}
    totals = np.array([dataset.totals(each) for each in tried.values()])
    wins = totals <= totals.min(axis=0) * (1 + 1e-12)
    shares = (wins / wins.sum(axis=0)).mean(axis=1)
    return dict(zip(tried, shares.tolist(), strict=True))


def _words(share: float | None) -> str:
    """The verdict on the cheapest policy."""
    if share is None:
        return "the cheapest here"
    certainty = "certainly" if share >= 0.95 else "probably" if share >= 0.7 else "possibly"
    return f"{certainty} the cheapest"


PART = Part("advice", (WHICH_POLICY,), of_log=add_log)
