"""Reads files as tables of columns, whatever the columns mean."""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ..core.errors import LogError, UsageError
from ..files import error_line, json_lines
from ..memory import check_columns, expect
from ..parquet import plain_values, read_parquet
from .buffers import ValueBuffer, column
from .csv_files import read_csv

# bytes of a large file, and of the part that is looked at
_LARGE = 256 << 20
_BEGINNING = 1 << 20


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
    lines: Sequence[int]
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
        hint = f"; for a ledger: grv runs export {path} -o log.csv" if ending == ".ledger" else ""
        raise UsageError(
            f"{path}: the name of a log must end in .parquet, .jsonl or .csv, not {ending!r}{hint}"
        )
    _check_readable(path)
    if readers[ending] is not _read_parquet:
        _expect_lines(path)
    return readers[ending](path)


def _check_readable(path: str) -> None:
    """Refuse a file that cannot be read or is empty. It is read more than once."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise LogError("not a file: save a pipe's content in one first", path=path)
    try:
        with open(path, "rb") as file:
            if not file.read(1):
                raise LogError("the file is empty", path=path)
    except (OSError, ValueError) as error:
        raise LogError(f"cannot be read: {error_line(error)}", path=path) from error


def _expect_lines(path: str) -> None:
    """Say what a large file of lines takes, judged by its beginning."""
    size = os.path.getsize(path)
    if size < _LARGE:
        return
    with open(path, "rb") as file:
        beginning = file.read(_BEGINNING)
    lines = beginning.count(b"\n")
    if lines:  # without any, the first line is refused
        cells = beginning.count(b"," if b"," in beginning else b"\t") / lines + 1
        expect(path, size * lines // len(beginning), math.ceil(cells))


def _read_jsonl(path: str) -> ColumnTable:
    columns: dict[str, ValueBuffer] = {}
    lines = array("q")
    for number, record in json_lines(path):
        for name in record:
            if name not in columns:
                check_columns(path, len(columns) + 1)
                columns[name] = ValueBuffer(absent=len(lines))
        for name, values in columns.items():
            values.add(record.get(name))
        lines.append(number)
    return ColumnTable(path, {name: each.column() for name, each in columns.items()}, lines)


def _read_csv(path: str) -> ColumnTable:
    columns, lines = read_csv(path)
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
    found: NDArray[Any]
    if chunks.null_count == 0 and any(test(chunks.type) for test in tests):
        found = chunks.to_numpy()
        return found
    if types.is_dictionary(chunks.type):
        coded = chunks.unify_dictionaries().combine_chunks()  # equal texts share their memory
        texts = column([*coded.dictionary.to_pylist(), None])
        found = texts[coded.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)]
        return found
    words: dict[Any, Any] = {}
    return column([value for chunk in chunks.chunks for value in plain_values(chunk, words)])
