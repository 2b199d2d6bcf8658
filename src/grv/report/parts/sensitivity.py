"""Costs over a range of cost ratios."""

from __future__ import annotations

from .. import columns as c
from ..dataset import IN_ORDER
from ..drawing import AT_PRICES, AT_Y_1, Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema


def _curves(column: str, low: str, high: str, view: str) -> Drawing:
    """A line and a band for each policy."""
    layers = (
        AT_PRICES,
        AT_Y_1,
        Layer("band", "rho", low, y2=high, by="policy"),
        Layer("line", "rho", column, by="policy"),
        Layer("points", "rho", column, by="policy"),
    )
    x = Axis("rho", "log", label="cost to verify divided by cost to generate")
    return Drawing(x, Axis(column, "log"), layers, view)


SENSITIVITY = TableSchema(
    name="sensitivity",
    title="Costs by cost ratio",
    caption="The cost of each policy at several ratios of the cost to verify and the cost to"
    " generate, relative to the baseline or to verifying in order of arrival, with 95 % intervals."
    " An interval may exceed the picture.",
    alt="A curve for each policy: relative cost against the cost ratio, on a logarithmic axis.",
    columns=(
        c.LOG,
        c.POLICY,
        c.number("rho", "cost ratio", "cost to verify / cost to generate, c_ver / c_gen", 2),
        c.COST,
        c.RATIO,
        c.LOW,
        c.HIGH,
        c.number("in_order", "× in order", "the cost divided by that of verifying in order", 2),
        c.number("in_order_low", "from", "lower end of the 95 % interval", 2),
        c.number("in_order_high", "to", "upper end of the 95 % interval", 2),
        c.SOLVED,
    ),
    drawings=(
        _curves("ratio", "low", "high", "relative to the baseline"),
        _curves("in_order", "in_order_low", "in_order_high", "relative to verifying in order"),
    ),
)


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """One row per policy and cost ratio."""
    for policy in dataset.curves:
        for costs in dataset.range_of_costs:
            tried = dataset.tried[costs, policy]
            numbers: list[float | None] = []
            for name in (dataset.curve_baseline, IN_ORDER):
                other = dataset.tried[costs, name]
                ends = dataset.interval(tried, other) or (None, None)
                numbers += [tried.row.cost / other.row.cost, *ends]
            head = (dataset.name, policy, costs.ratio, tried.row.cost / costs.candidate)
            rows.add(SENSITIVITY, *head, *numbers, tried.row.solved)
    rows.note(SENSITIVITY, f"{dataset.name}: the baseline is {dataset.curve_baseline}.")
    if len(dataset.problems) < 2:
        rows.note_no_interval(SENSITIVITY, dataset.name)


PART = Part("costs", (SENSITIVITY,), of_log=add_log)
