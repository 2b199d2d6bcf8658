"""Tables and figures by their place in a publication, as data: what a job file asks a report for.

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

from ..core.errors import UsageError
from .contents import BY_NAME
from .report import Report
from .table import Table

_ID = re.compile(r"[\w-][\w.-]*")


@dataclass(frozen=True)
class Item:
    """One table or figure of a publication.

    Attributes:
        id: the name of its files.
        table: which table of the report it is made from.
        title: as it is printed.
        caption: as it is printed; the table's own where there is none.
        logs: which logs it shows; all where none is named.
        costs: which price lists.
        policies: which rows, in this order.
        columns: which columns, in this order.
        across: the column whose values stand side by side.
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
        if self.table not in BY_NAME:
            known = ", ".join(BY_NAME)
            raise UsageError(f"{self.id}: there is no table {self.table!r}; there are {known}")
        if BY_NAME[self.table].across and (self.columns or self.across):
            raise UsageError(f"{self.id}: {self.table} is side by side already; take summary")
        names = {column.name for column in BY_NAME[self.table].columns}
        unknown = {*self.columns, *filter(None, [self.across])} - names
        if unknown:
            raise UsageError(f"{self.id}: table {self.table} has no column {', '.join(unknown)}")

    def of(self, report: Report) -> Table:
        """The item, from a report that has its logs and price lists."""
        table = report[self.table]
        for name, wanted in (
            ("log", self.logs),
            ("costs", self.costs),
            ("policy", self.policies),
        ):
            table = _chosen(table, name, wanted)
        table = dataclasses.replace(
            table,
            name=self.id,
            title=self.title or table.title,
            caption=self.caption or table.caption,
        )
        return self._arranged(table)

    def _arranged(self, table: Table) -> Table:
        if self.columns:
            places = [[c.name for c in table.columns].index(name) for name in self.columns]
            table = dataclasses.replace(
                table,
                columns=tuple(table.columns[at] for at in places),
                rows=tuple(tuple(row[at] for at in places) for row in table.rows),
            )
        if not self.across:
            return table
        values = [c.name for c in table.columns if c.kind != "text"]
        return table.across(self.across, values)


def _chosen(table: Table, name: str, wanted: Sequence[str]) -> Table:
    """The rows with one of the values wanted, in the order wanted, if the table has the column."""
    if not wanted or name not in [column.name for column in table.columns]:
        return table
    places = {value: place for place, value in enumerate(wanted)}
    at = [column.name for column in table.columns].index(name)
    kept = [row for row in table.rows if row[at] in places]
    kept.sort(key=lambda row: places[str(row[at])])
    return dataclasses.replace(table, rows=tuple(kept))


def parse_items(records: Any, path: str = "") -> tuple[Item, ...]:
    """The items of a job file; whatever is wrong is said in one line."""
    if not isinstance(records, list) or not all(isinstance(each, Mapping) for each in records):
        raise UsageError(f"{path}: items must be a list of tables, [[report.items]]")
    items = tuple(_item(each, path) for each in records)
    ids = [item.id for item in items]
    if len(set(ids)) < len(ids):
        raise UsageError(f"{path}: two items have one id: {', '.join(ids)}")
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
