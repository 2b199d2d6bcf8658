"""Reads files as tables of columns, whatever the columns mean."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import LogError, UsageError
from ..files import bounded_lines, error_line, json_lines
from ..parquet import read_parquet
from ..text import unquoted
from .columns import names


@dataclass(frozen=True, eq=False)
class ColumnTable:
    """Columns of equal length. Null is None in columns of dtype object; others have no null.

    Attributes:
        path: the file, for messages.
        columns: by name, in the order of the file.
        lines: the line of a text file, or the row of a table, of each entry.
        bare: problems without candidates.
        elsewhere: for columns from another file, that file and its lines.
    """

    path: str
    columns: dict[str, NDArray[Any]]
    lines: range | list[int]
    bare: tuple[int | str, ...] = ()
    elsewhere: Mapping[str, tuple[str, list[int]]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.lines)

    def place(self, at: int, column: str = "") -> tuple[str, int]:
        """The file and the line of an entry, or of its value in a column."""
        path, lines = self.elsewhere.get(column, (self.path, self.lines))
        return path, lines[at]


def read_table(path: str) -> ColumnTable:
    """The table in a Parquet, JSON-lines or CSV file; the ending of its name decides."""
    ending = Path(path).suffix.lower()
    readers: dict[str, Callable[[str], ColumnTable]] = {
        ".parquet": _read_parquet,
        ".csv": _read_csv,
        ".tsv": _read_csv,
        ".jsonl": _read_jsonl,
        ".ndjson": _read_jsonl,
        ".json": _read_jsonl,
    }
    if ending not in readers:
        raise UsageError(
            f"{path}: the name of a log must end in .parquet, .jsonl or .csv, not {ending!r}"
        )
    _check_readable(path)
    return readers[ending](path)


def _check_readable(path: str) -> None:
    """Refuse a file that cannot be read or is empty."""
    try:
        with open(path, "rb") as file:
            if not file.read(1):
                raise LogError("the file is empty", path=path)
    except (OSError, ValueError) as error:
        raise LogError(f"cannot be read: {error_line(error)}", path=path) from error


def _read_jsonl(path: str) -> ColumnTable:
    columns: dict[str, list[Any]] = {}
    lines: list[int] = []
    for number, record in json_lines(path):
        for name in record:
            if name not in columns:
                columns[name] = [None] * len(lines)
        for name, values in columns.items():
            values.append(record.get(name))
        lines.append(number)
    return ColumnTable(path, {name: column(values) for name, values in columns.items()}, lines)


def _read_csv(path: str) -> ColumnTable:
    lines: list[int] = []
    cells: list[list[str]] = []
    delimiter = "\t" if path.lower().endswith(".tsv") else ","
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(bounded_lines(file, path), delimiter=delimiter, strict=True)
        try:
            head = [unquoted(name) for name in next(reader, [])]
            if len(set(head)) < len(head):
                raise LogError("two columns have the same name", path=path, line=1)
            for row in reader:
                if not row:
                    continue
                if len(row) != len(head):
                    raise LogError(
                        f"{len(row)} values for {len(head)} columns",
                        path=path,
                        line=reader.line_num,
                    )
                cells.append([unquoted(cell) for cell in row])
                lines.append(reader.line_num)
        except (UnicodeDecodeError, csv.Error) as error:
            line = reader.line_num or None
            raise LogError(f"not a CSV file: {error}", path=path, line=line) from error
    columns = {
        name: column(_READ_CELLS.get(name, _values)([row[at] for row in cells]))
        for at, name in enumerate(head)
    }
    return ColumnTable(path, columns, lines)


def _read_parquet(path: str) -> ColumnTable:
    def take(table: Any) -> ColumnTable:
        pairs = zip(table.column_names, table.columns, strict=True)
        columns = {name: _from_arrow(chunks) for name, chunks in pairs}
        if len(columns) < table.num_columns:
            raise ValueError("two columns have the same name")
        return ColumnTable(path, columns, range(1, table.num_rows + 1))

    return read_parquet(path, take)


def _from_arrow(chunks: Any) -> NDArray[Any]:
    from pyarrow import types

    tests = (types.is_boolean, types.is_integer, types.is_floating)
    if chunks.null_count == 0 and any(test(chunks.type) for test in tests):
        found: NDArray[Any] = chunks.to_numpy()
        return found
    return column(chunks.to_pylist())


def _values(cells: list[str]) -> list[Any]:
    """The values of a CSV column: None, numbers or text."""
    if (numbers := _numbers(cells)) is not None:
        return numbers
    meaning = {text: _value(text) for text in set(cells)}
    return [meaning[text] for text in cells]


def _value(text: str) -> Any:
    if not text.strip():
        return None
    numbers = _numbers([text])
    return text if numbers is None else numbers[0]


def _numbers(cells: list[str]) -> list[Any] | None:
    """The cells as numbers if all are numbers. 1_000 is not a number."""
    for read in (int, float):
        try:
            return None if any("_" in text for text in cells) else [read(text) for text in cells]
        except ValueError:
            continue
    return None


_READ_CELLS: dict[str, Callable[[list[str]], list[Any]]] = {"problem": names, "key": list}


def column(values: list[Any]) -> NDArray[Any]:
    """A typed array if all values have one simple type, otherwise an array of objects."""
    kinds = set(map(type, values))
    if kinds in ({bool}, {float}) or (kinds == {int} and max(map(abs, values)) < 2**63):
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values  # np.array would unpack lists
    return array
