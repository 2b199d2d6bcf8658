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
from typing import Any, get_type_hints

from ...core.errors import UsageError
from ..parts import TABLES
from ..report import Report
from ..table import Table

_ID = re.compile(r"[\w-][\w.-]*")


@dataclass(frozen=True)
class Item:
    """One table or figure of a publication.

    Attributes:
        id: the name of its files.
        table: the table of the report that it shows.
        title: replaces the title of the table.
        caption: replaces the caption of the table.
        logs: the logs to show; all if empty.
        costs: the price lists to show; all if empty.
        policies: the rows, in this order; all if empty.
        columns: the columns, in this order; all if empty.
        across: the column whose values are set side by side.
        draw: whether it is a figure.
    """

    id: str
    table: str
    title: str = ""
    caption: str = ""
    logs: tuple[str, ...] = ()
    costs: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    across: str = ""
    draw: bool = False

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise UsageError(f"{self.id!r}: an id names files: letters, digits, points and dashes")
        if self.table not in TABLES:
            known = ", ".join(TABLES)
            raise UsageError(f"{self.id}: there is no table {self.table!r}; choose one of {known}")
        schema = TABLES[self.table]
        if schema.spread and (self.columns or self.across):
            raise UsageError(f"{self.id}: {self.table} is side by side already; use summary")
        if self.draw and not schema.drawings:
            raise UsageError(f"{self.id}: table {self.table} has no figure; remove draw = true")
        names = {column.name for column in schema.columns}
        unknown = {*self.columns, *filter(None, [self.across])} - names
        if unknown:
            raise UsageError(f"{self.id}: table {self.table} has no column {', '.join(unknown)}")

    def of(self, report: Report) -> Table:
        """The table of the item, from a report that has its logs and price lists."""
        table = report[self.table]
        wanted = {"log": self.logs, "costs": self.costs, "policy": self.policies}
        for name, values in wanted.items():
            table = _chosen(table, name, values)
        title, caption = self.title or table.title, self.caption or table.caption
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


def parse_items(records: Any, path: str = "") -> tuple[Item, ...]:
    """The items of a job file."""
    if not isinstance(records, list) or not all(isinstance(each, Mapping) for each in records):
        raise UsageError(f"{path}: items must be a list of tables, [[report.items]]")
    items = tuple(_item(each, path) for each in records)
    ids = [item.id for item in items]
    if len(set(ids)) < len(ids):
        raise UsageError(f"{path}: two items have the same id: {', '.join(ids)}")
    return items


def _item(record: Mapping[str, Any], path: str) -> Item:
    kinds = get_type_hints(Item)
    name = record.get("id", "an item")
    for key, value in record.items():
        if key not in kinds:
            raise UsageError(f"{path}: {name} has unknown option {key}")
        texts = isinstance(value, list) and all(isinstance(each, str) for each in value)
        if not (texts if kinds[key] == tuple[str, ...] else isinstance(value, kinds[key])):
            raise UsageError(f"{path}: {name}: {key} cannot be {value!r}")
    for key in ("id", "table"):
        if key not in record:
            raise UsageError(f"{path}: {name} needs {key}")
    tuples: dict[str, Any] = {
        key: tuple(v) if isinstance(v, list) else v for key, v in record.items()
    }
    return Item(**tuples)
