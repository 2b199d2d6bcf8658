"""A small typed table: the numbers behind a figure, saved and tested on their own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from ..core.errors import UsageError
from ..frames import make_frame
from .print.formats import aligned_text, booktabs, comma_separated, markdown

Kind = Literal["text", "number", "percent", "cost"]
Cell = str | float | int | None


class Count(int):
    """A whole number that is shown without decimals in a column of any kind."""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        name: for programs.
        label: for people.
        kind: `text`, `number`, `cost`, or `percent`: a share from 0 to 1, shown in %.
        meaning: an explanation of the values.
        unit: the unit of a number, if it has one.
        digits: the number of decimal places shown.
        group: a heading that this column shares with its neighbours.
    """

    name: str
    label: str
    kind: Kind
    meaning: str
    unit: str = ""
    digits: int = 0
    group: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise UsageError(f"a column is {', '.join(get_args(Kind))}, not {self.kind!r}")

    def shown(self, value: Cell) -> str:
        """A value formatted for people; empty for None."""
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        if self.kind == "percent":
            return f"{100 * value:.{self.digits}f} %"
        if isinstance(value, Count):
            return str(value)
        if self.kind == "cost" and 0 < abs(value) < 10:  # the unit may be large, such as dollars
            return f"{value:.{max(self.digits, 2)}f}" if abs(value) >= 1 else f"{value:.3g}"
        return f"{value:.{self.digits}f}"

    def brief(self, value: float) -> str:
        """A value formatted for the label of a mark: large numbers without decimals."""
        is_large = self.kind != "percent" and abs(value) >= 1000
        return f"{value:,.0f}" if is_large else self.shown(value)


@dataclass(frozen=True)
class Table:
    """Rows under typed columns, with explanations.

    Attributes:
        name: for programs.
        title: for people.
        caption: how to read the table.
        alt: a description of the figure, for readers who cannot see it.
        columns: at least one.
        rows: one value per column; None if there is none.
        notes: what was left out, what the numbers assume, why the table is empty.
    """

    name: str
    title: str
    caption: str
    alt: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if len(set(names)) < len(names) or not names:
            raise UsageError(f"table {self.name}: columns need different names: {names}")
        for row in self.rows:
            if len(row) != len(names):
                raise UsageError(f"table {self.name}: {len(row)} values for {len(names)} columns")
            for column, value in zip(self.columns, row, strict=True):
                _check(self.name, column, value)

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[Cell]:
        """The values of one column."""
        at = self._at(name)
        return [row[at] for row in self.rows]

    def records(self) -> list[dict[str, Cell]]:
        """The rows as dictionaries by column name."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def to_frame(self) -> Any:
        """The rows as a pandas frame, or a polars frame if pandas is not installed."""
        return make_frame({column.name: self.column(column.name) for column in self.columns})

    def only(self, **values: Cell) -> Table:
        """The rows in which these columns have these values."""
        places = [(self._at(name), value) for name, value in values.items()]
        kept = tuple(row for row in self.rows if all(row[at] == value for at, value in places))
        return replace(self, rows=kept)

    def select(self, names: Sequence[str]) -> Table:
        """The table with these columns, in this order."""
        places = [self._at(name) for name in names]
        columns = tuple(self.columns[at] for at in places)
        return replace(
            self, columns=columns, rows=tuple(tuple(row[at] for at in places) for row in self.rows)
        )

    def without(self, *names: str) -> Table:
        """The table without these columns."""
        return self.select([column.name for column in self.columns if column.name not in names])

    def across(self, name: str, values: Sequence[str]) -> Table:
        """Set the values of a text column side by side: one group of columns per value.

        Other columns stay. Rows that agree in them become one row.

        Args:
            name: the column whose values become groups.
            values: the columns of each group.
        """
        groups = list(dict.fromkeys(str(value) for value in self.column(name)))
        stays = [c for c in self.columns if c.name != name and c.name not in values]
        spread = [
            replace(self.columns[self._at(v)], name=f"{v} {group}", group=group)
            for group in groups
            for v in values
        ]
        found: dict[tuple[Cell, ...], dict[str, Cell]] = {}
        for record in self.records():
            key = tuple(record[column.name] for column in stays)
            cells = found.setdefault(key, {})
            cells |= {f"{v} {record[name]}": record[v] for v in values}
        rows = tuple((*key, *(cells.get(c.name) for c in spread)) for key, cells in found.items())
        return replace(self, columns=(*stays, *spread), rows=rows)

    def _at(self, name: str) -> int:
        for at, column in enumerate(self.columns):
            if column.name == name:
                return at
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "name": self.name,
            "title": self.title,
            "caption": self.caption,
            "alt": self.alt,
            "columns": [asdict(column) for column in self.columns],
            "rows": [list(row) for row in self.rows],
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Table:
        """From what `to_json` gives."""
        return cls(
            record["name"],
            record["title"],
            record["caption"],
            record["alt"],
            tuple(Column(**column) for column in record["columns"]),
            tuple(map(tuple, record["rows"])),
            tuple(record["notes"]),
        )

    def to_csv(self) -> str:
        """As CSV, in full precision."""
        return comma_separated([column.name for column in self.columns], self.rows)

    def to_text(self) -> str:
        """As aligned text for a terminal, followed by the notes."""
        return "\n".join([aligned_text(*self._shown()), *self.notes])

    def to_markdown(self) -> str:
        """As Markdown, followed by the notes."""
        return markdown(*self._shown(), self.notes)

    def to_latex(self) -> str:
        """As a LaTeX `table` with booktabs; the notes are comments."""
        return booktabs(*self._shown(), self.name, self.caption, self.notes)

    def _shown(self) -> tuple[list[tuple[str, str, bool]], list[list[str]]]:
        """The group, the label and whether it is text, per column; then the formatted cells."""
        head = [
            (column.group, f"{column.label} ({column.unit})" if column.unit else column.label)
            for column in self.columns
        ]
        texts = [column.kind == "text" for column in self.columns]
        cells = [
            [column.shown(value) for column, value in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]
        return [(*h, text) for h, text in zip(head, texts, strict=True)], cells


def _check(table: str, column: Column, value: Cell) -> None:
    if value is None:
        return
    is_text = isinstance(value, str)
    if is_text != (column.kind == "text"):
        raise UsageError(f"table {table}: column {column.name} is {column.kind}, not {value!r}")
    if not isinstance(value, str) and not math.isfinite(value):
        raise UsageError(f"table {table}: column {column.name} has {value}")


def significant(value: float, digits: int = 5) -> float:
    """The value rounded to significant digits, to keep the many points of drawings short."""
    return float(f"{value:.{digits}g}")


def points(values: Iterable[float]) -> list[float]:
    """Values rounded for a drawing."""
    return [significant(float(value)) for value in values]
