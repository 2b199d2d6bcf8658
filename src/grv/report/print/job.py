"""The tables and figures of a publication, as a job file lists them.

```toml
[report]
costs = ["1,10"]

[[report.logs]]
name = "math"
path = "math.parquet"

[[report.items]]
id = "table-1"
table = "summary"
logs = ["math"]
columns = ["policy", "cost", "ratio", "solved"]
```
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.errors import UsageError
from ...options import Family, from_table, option

if TYPE_CHECKING:
    from ..drawing import Drawing
    from ..report import Report
    from ..table import Cell, Table

SOLVABLE = "solvable problems"  # the name of the row with their number

_ID = re.compile(r"[\w-][\w.-]*")


@dataclass(frozen=True)
class FigureItem(Family):
    """One table or figure of a publication."""

    id: str = option(..., "The name of its files.", job_only=True)
    table: str = option(..., "The table of the report that it shows.", job_only=True)
    title: str = option("", "Replaces the title of the table.", job_only=True)
    caption: str = option("", "Replaces the caption of the table.", job_only=True)
    logs: tuple[str, ...] = option((), "The logs to show; all if empty.", job_only=True)
    costs: tuple[str, ...] = option((), "The price lists to show; all if empty.", job_only=True)
    policies: tuple[str, ...] = option((), "The rows, in this order; all if empty.", job_only=True)
    columns: tuple[str, ...] = option(
        (), "The columns, in this order; all if empty.", job_only=True
    )
    across: str = option("", "The column whose values are set side by side.", job_only=True)
    solvable: bool = option(
        False,
        "Whether the first row has the number of solvable problems, in the column of costs.",
        job_only=True,
    )
    draw: bool = option(False, "Whether it is a figure.", job_only=True)
    view: str = option("", "Which picture, if the table has several.", job_only=True)

    @classmethod
    def parse(cls, table: Mapping[str, Any]) -> FigureItem:
        """From a table of a job file."""
        try:
            return from_table(cls, table)
        except UsageError as error:
            raise UsageError(f"{table.get('id', 'an item')}: {error}") from error

    def __post_init__(self) -> None:
        from ..parts import TABLES

        super().__post_init__()
        if not _ID.fullmatch(self.id):
            raise UsageError(f"{self.id!r}: an id names files: letters, digits, points and dashes")
        if self.table not in TABLES:
            known = ", ".join(TABLES)
            raise UsageError(f"there is no table {self.table!r}; choose one of {known}")
        schema = TABLES[self.table]
        if schema.spread and (self.columns or self.across):
            raise UsageError(
                f'table {self.table} already has one column per log; use table = "summary"'
            )
        if self.draw and not schema.drawings:
            raise UsageError(f"table {self.table} has no figure; remove draw = true")
        names = {column.name for column in schema.columns}
        unknown = {*self.columns, *filter(None, [self.across])} - names
        if unknown:
            raise UsageError(f"table {self.table} has no column {', '.join(unknown)}")
        if self.solvable and not {"log", "policy", "cost"} <= names:
            raise UsageError(f"table {self.table} has no place for solvable problems; use summary")
        views = [drawing.view for drawing in schema.drawings]
        if self.view and self.view not in views:
            known = ", ".join(filter(None, views)) or "none"
            raise UsageError(f"table {self.table} has no view {self.view!r}; there are {known}")

    @property
    def drawing(self) -> Drawing | None:
        """The picture; None for a table."""
        from ..parts import TABLES

        drawings = TABLES[self.table].drawings if self.draw else ()
        fitting = [each for each in drawings if not self.view or each.view == self.view]
        return fitting[0] if fitting else None

    def of(self, report: Report) -> Table:
        """The table of the item, from a report that has its logs and price lists."""
        table = report[self.table]
        wanted = {"log": self.logs, "costs": self.costs, "policy": self.policies}
        for name, values in wanted.items():
            table = _chosen(table, name, values)
        if self.solvable:
            table = _with_solvable(table, {log.name: log.solvable for log in report.logs})
        title = self.title or table.title
        caption = self.caption or table.caption
        table = dataclasses.replace(table, name=self.id, title=title, caption=caption)
        if self.columns:
            table = table.select(self.columns)
        if self.across:
            numbers = [column.name for column in table.columns if column.kind != "text"]
            table = table.across(self.across, numbers)
        return table


def _chosen(table: Table, name: str, wanted: Sequence[str]) -> Table:
    """The rows with one of the wanted values, in that order, if the table has the column."""
    if not wanted or name not in [column.name for column in table.columns]:
        return table
    rows = [row for value in dict.fromkeys(wanted) for row in table.only(**{name: value}).rows]
    return dataclasses.replace(table, rows=tuple(rows))


def _with_solvable(table: Table, solvable: Mapping[str, int]) -> Table:
    """The table with one more row per log and price list, before the others."""
    from ..table import Count

    names = [column.name for column in table.columns]
    keys = dict.fromkeys((str(row["log"]), row.get("costs")) for row in table.records())
    counts: list[dict[str, Cell]] = [
        {"log": log, "costs": costs, "policy": SOLVABLE, "cost": Count(solvable[log])}
        for log, costs in keys
    ]
    first = [tuple(count.get(name) for name in names) for count in counts]
    return dataclasses.replace(table, rows=(*first, *table.rows))


def check_ids(items: Sequence[FigureItem]) -> None:
    """Refuse two items that would write the same files."""
    ids = [item.id for item in items]
    if len(set(ids)) < len(ids):
        raise UsageError(f"two items have the same id: {', '.join(ids)}")
