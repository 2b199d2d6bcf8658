"""One budget for all problems: how many each schedule solves, against the money."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ...comparing.batch_row import BatchRow
from ...comparing.batches import batch_rows
from ...comparing.comparison import Comparison
from ...comparing.rows import parse_row, runs_live
from ...comparing.settings import TotalBudgets
from ...policies import DEFAULT
from ...policies.spec import spec
from .. import columns as c
from ..drawing import Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema, price_name

_BUDGETS = TotalBudgets.of("10%,25%,50%,75%,100%")

BATCH = TableSchema(
    name="batch",
    title="One budget for all problems",
    caption="The share of solvable problems that are solved if all problems, also those without an"
    " answer, share one budget. 100 % of the money is what the default policy needs to solve all"
    " solvable problems. hindsight knows what each search costs, oracle knows its mean. Intervals"
    " come from resampled batches.",
    alt="Rising curves of the share solved against the money, one for each schedule.",
    columns=(
        c.LOG,
        c.COSTS,
        c.text("series", "series", "the schedule; with several policies, the policy too"),
        c.text("schedule", "schedule", "which problem is next; see `grv compare --schedule`"),
        c.POLICY,
        c.percent("share", "money", "of what solving all solvable problems costs", 0),
        c.cost("budget", "budget", "the money for all problems together"),
        c.percent("solved", "solved", "the mean share of the solvable problems that are solved"),
        c.percent("low", "from", "lower end of the 95 % interval"),
        c.percent("high", "to", "upper end of the 95 % interval"),
    ),
    drawings=(
        Drawing(
            Axis("share", zero=True),
            Axis("solved", zero=True),
            (
                Layer("band", "share", "low", y2="high", by="series"),
                Layer("line", "share", "solved", by="series"),
                Layer("points", "share", "solved", by="series"),
            ),
        ),
    ),
)


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """The batches of a log."""
    how = dataset.request
    settings = dataclasses.replace(how, total_budget=how.total_budget or _BUDGETS)
    policies = [name for name in how.policies if runs_live(name)] or [spec(DEFAULT)]
    kinds = {number: (name, parse_row(name)) for number, name in enumerate(policies)}
    limits = dataclasses.replace(how.limits, cascade=dataset.cascade)
    with dataset.progress.stage():
        _add(rows, dataset.name, batch_rows(dataset.log, kinds, dataset.costs, settings, limits))


def add_comparison(rows: RowCollector, name: str, comparison: Comparison) -> None:
    """The batches of a saved comparison."""
    _add(rows, name, comparison.batches)


def _add(rows: RowCollector, name: str, batches: Sequence[BatchRow]) -> None:
    several = len({row.policy for row in batches}) > 1
    for row in batches:
        series = f"{row.schedule}, {row.policy}" if several else row.schedule
        rows.add(
            BATCH,
            name,
            price_name(row.costs),
            series,
            row.schedule,
            row.policy,
            row.share,
            row.budget,
            row.solved,
            row.low,
            row.high,
        )


PART = Part("costs", (BATCH,), of_comparison=add_comparison, of_log=add_log, stages=1)
