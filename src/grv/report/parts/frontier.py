"""What sooner costs: the default policy at several widths."""

from __future__ import annotations

import dataclasses

from ...comparing.compare import compare
from ...policies import DEFAULT, spec
from .. import columns as c
from ..drawing import COST_AXIS, Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema, price_name
from ..table import Column

WIDTHS = (1, 2, 4, 8, 16)

FRONTIER = TableSchema(
    name="frontier",
    title="What sooner costs",
    caption="The default policy with up to 1, 2, 4, 8 and 16 verifications in flight at once."
    " Further left is cheaper, further down is sooner.",
    alt="A falling line: mean cost across, mean seconds to the answer up, one point per width.",
    columns=(
        c.LOG,
        c.COSTS,
        c.POLICY,
        c.number("width", "width", "verifications in flight at once"),
        c.COST,
        Column("seconds", "time", "number", "mean time of a trial", unit="s", digits=1),
        c.number("dearer", "× cost", "the mean cost divided by that with width 1, paired", 2),
        c.number("sooner", "times sooner", "the mean time with width 1 divided by this one", 2),
        c.cost("both", "with waiting", "cost and time together, at the price of waiting"),
    ),
    drawings=(
        Drawing(
            COST_AXIS,
            Axis("seconds", "log"),
            (
                Layer("line", "cost", "seconds", by="policy"),
                Layer("points", "cost", "seconds", by="policy"),
            ),
        ),
    ),
)


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """One row per price list and width."""
    asked = dataset.request
    if asked.latency is None:
        text = "the duration of a round is unknown (--latency)."
        rows.note(FRONTIER, f"{dataset.name}: there are no seconds, because {text}")
        return
    name = spec.spec(DEFAULT)
    for costs in dataset.costs:
        first = None
        for width in WIDTHS:
            how = dataclasses.replace(asked, width=width, wait_price=0.0, baseline=None)
            (row,) = compare([name], dataset.log, costs, how, cascade=dataset.cascade).rows
            first = first or row
            assert row.seconds is not None
            assert first.seconds is not None
            sooner = first.seconds / row.seconds if row.seconds else None
            ratios = (row.cost / first.cost if first.cost else None, sooner)
            both = row.cost + asked.wait_price * row.seconds if asked.wait_price else None
            head = (dataset.name, price_name(costs), name, width)
            rows.add(FRONTIER, *head, row.cost, row.seconds, *ratios, both)


PART = Part("time", (FRONTIER,), of_log=add_log)
