"""What policies cost: the tables that need nothing but the rows of a comparison."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..experiments.comparison import Comparison, Row
from ..experiments.rows import REFERENCE
from .dataset import HINDSIGHT, price_name
from .rows import Sheets
from .table import Cell

_GROUPS = re.compile(r"difficulty-([0-9]+)")


def cost_tables(sheets: Sheets, name: str, comparison: Comparison) -> None:
    """The tables of one log's comparison, or of a saved one."""
    _summary(sheets, name, comparison.rows)
    _difficulty(sheets, name, comparison.rows)
    _groups(sheets, name, comparison.rows)
    _rounds(sheets, name, comparison.rows)


def _summary(sheets: Sheets, name: str, rows: Sequence[Row]) -> None:
    for row in rows:
        costs = price_name(row.costs)
        ratio = (row.ratio, row.low, row.high)
        means = (row.generated, row.verified, row.cost)
        pair = (row.m, row.k, row.trials)
        sheets.add("summary", [(name, costs, row.policy, *means, *ratio, row.solved, *pair)])
        brief = (row.cost, row.ratio, row.solved)
        sheets.add("ratio_ablation", [(name, row.policy, costs, *brief)])
        sheets.add("per_log", [(costs, row.policy, name, *brief)])
    if all(row.ratio is None for row in rows):
        sheets.note(
            ("summary", "ratio_ablation", "per_log", "difficulty"),
            f"{name}: without the row {REFERENCE} there is nothing to relate costs to.",
        )
    elif all(row.low is None for row in rows):
        sheets.note("summary", f"{name}: one problem alone has no interval.")


def _difficulty(sheets: Sheets, name: str, rows: Sequence[Row]) -> None:
    found: list[tuple[Cell, ...]] = []
    for row in rows:
        match = _GROUPS.fullmatch(row.policy)
        groups = int(match[1]) if match else None
        relation = (row.ratio, row.low, row.high)
        found.append(
            (name, price_name(row.costs), row.policy, groups, row.cost, *relation, row.solved)
        )
    sheets.add("difficulty", found)
    if not any(row[3] is not None for row in found):
        sheets.note("difficulty", f"{name}: no row difficulty-K was asked for.")
    if not any(row.policy == HINDSIGHT for row in rows):
        sheets.note("difficulty", f"{name}: the row {HINDSIGHT} was not asked for.")


def _groups(sheets: Sheets, name: str, rows: Sequence[Row]) -> None:
    for row in rows:
        for number, group in enumerate(row.groups or (), 1):
            place = (name, price_name(row.costs), row.policy, number)
            sheets.add("groups", [(*place, group.problems, *group.pass_rate, group.m, group.k)])


def _rounds(sheets: Sheets, name: str, rows: Sequence[Row]) -> None:
    for row in rows:
        generate, verify = row.generate_rounds, row.verify_rounds
        head = (name, price_name(row.costs), row.policy, row.cost)
        sheets.add("rounds", [(*head, generate + verify, generate, verify, row.seconds)])
        if row.seconds is None:
            sheets.note(
                "rounds",
                f"{name}: how long a round takes was not said, so there are rounds but no seconds.",
            )


def side_by_side(sheets: Sheets, logs: int, prices: int) -> None:
    """What to say of the tables that set price lists or logs side by side."""
    if prices < 2:
        sheets.note("ratio_ablation", "One price list was asked for, so there is one group.")
    if logs < 2:
        sheets.note("per_log", "There is one log, so there is one group.")
        sheets.note("paired", "There is one log, so there is nothing to set beside it.")
