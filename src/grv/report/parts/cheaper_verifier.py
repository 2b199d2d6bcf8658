"""What a cheaper verifier would save."""

from __future__ import annotations

from .. import columns as c
from ..dataset import CHEAPER, HINDSIGHT, with_cheaper_verifier
from ..drawing import Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema, price_name

CHEAPER_VERIFIER = TableSchema(
    name="cheaper_verifier",
    title="What would a cheaper verifier save?",
    caption="Costs at a fraction of the price of a verification. Each policy knows the new price.",
    alt="For each policy a curve of the cost against the price of a verification.",
    columns=(
        c.LOG,
        c.COSTS,
        c.percent("price", "verifier's price", "relative to the price list", 0),
        c.POLICY,
        c.COST,
        c.percent("saving", "saves", "share of its cost at the full price"),
    ),
    drawings=(
        Drawing(
            Axis("price", "log", label="price of a verification, 100 % at present"),
            Axis("cost", "log"),
            (
                Layer("line", "price", "cost", by="policy"),
                Layer("points", "price", "cost", by="policy"),
            ),
        ),
    ),
)


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """One row per price list, fraction and policy."""
    if len(dataset.plain_costs) < len(dataset.costs):
        text = f"{dataset.name}: measured costs have no single price that could be lowered."
        rows.note(CHEAPER_VERIFIER, text)
    for costs in dataset.plain_costs:
        for price in (1.0, *CHEAPER):
            lowered = with_cheaper_verifier(costs, price) if price < 1 else costs
            for name in dataset.curves:
                if name != HINDSIGHT:
                    was, cost = (dataset.tried[c, name].row.cost for c in (costs, lowered))
                    head = (dataset.name, price_name(costs), price, name)
                    rows.add(CHEAPER_VERIFIER, *head, cost, 1 - cost / was)


PART = Part("advice", (CHEAPER_VERIFIER,), of_log=add_log)
