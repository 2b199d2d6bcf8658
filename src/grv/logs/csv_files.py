"""Reads CSV files as columns.

One reader takes every file, row by row, and is the definition: it says what is wrong with a file,
and where. Most files are *plain*: no quotes, no blank lines, one line per row. These are split as a
whole; a large one is read by Arrow, if pyarrow is installed. Whatever these two readers do not take
goes to the one that takes everything. Tests prove that all give the same columns.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import LogError
from ..files import LONGEST_LINE, bounded_lines
from ..memory import check_columns
from ..text import unquoted
from .buffers import CellBuffer, column
from .columns import names

Columns = dict[str, NDArray[Any]]

_ROWS = 1 << 16  # rows that are kept as lists
_PART = 1 << 20  # characters of a plain file that are split together
FOR_ARROW = 4 << 20  # bytes of a file that is worth the import of pyarrow
_BOM = b"\xef\xbb\xbf"
_NOT_PLAIN = (b'"', b"'", b"\0", b"\n\n", b"\n\r\n")  # quotes, and blank lines


def read_csv(path: str) -> tuple[Columns, Sequence[int]]:
    """The columns of a file, and the line of each row.

    Raises:
        LogError: it is not a CSV file, or not a table.
    """
    plain = read_plain(path)
    return read_any(path) if plain is None else plain


def read_any(path: str) -> tuple[Columns, Sequence[int]]:
    """The same for every file, row by row."""
    lines = array("q")
    columns = list[CellBuffer]()
    csv.field_size_limit(LONGEST_LINE)  # a text is a cell; the module's own limit is 128 kB
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(bounded_lines(file, path), delimiter=_delimiter(path), strict=True)
        try:
            head = _head(next(reader, []), path)
            columns = [CellBuffer() for _ in head]
            rows: list[list[str]] = []
            for row in reader:
                if not row:
                    continue
                if len(row) != len(head):
                    raise LogError(
                        f"{len(row)} values for {len(head)} columns",
                        path=path,
                        line=reader.line_num,
                    )
                rows.append([unquoted(cell) for cell in row])
                lines.append(reader.line_num)
                if len(rows) == _ROWS:
                    _move(rows, columns)
            _move(rows, columns)
        except UnicodeDecodeError as error:
            raise LogError("not UTF-8 text: save it as UTF-8", path=path) from error
        except csv.Error as error:
            line = reader.line_num or None
            raise LogError(f"not a CSV file: {error}", path=path, line=line) from error
    return _of_cells(head, columns), lines


def read_plain(path: str) -> tuple[Columns, Sequence[int]] | None:
    """The same for a plain file; None if it is another one, or is not right."""
    with open(path, "rb") as file:
        content = file.read()
    if any(each in content for each in _NOT_PLAIN) or content.count(b"\r") > content.count(b"\r\n"):
        return None
    start = len(_BOM) * content.startswith(_BOM)
    end = content.find(b"\n")
    first = content[start:end].removesuffix(b"\r")
    rows = content.count(b"\n", end + 1) + (not content.endswith(b"\n"))
    if end < 0 or not first or not rows or len(first) >= LONGEST_LINE:
        return None
    delimiter = _delimiter(path)
    try:
        head = _head(first.decode().split(delimiter), path)
    except (LogError, UnicodeDecodeError):
        return None  # what is wrong first may be something else
    columns: Columns | None = None
    if len(content) >= FOR_ARROW:
        columns = by_arrow(content, head, delimiter, rows)
    if columns is None:
        columns = _by_splitting(content, end + 1, head, delimiter)
    return None if columns is None else (columns, range(2, rows + 2))


def _delimiter(path: str) -> str:
    return "\t" if path.lower().endswith(".tsv") else ","


def _head(first: Sequence[str], path: str) -> list[str]:
    """The names of the columns."""
    check_columns(path, len(first))
    head = [unquoted(name) for name in first]
    if len(set(head)) < len(head):
        raise LogError("two columns have the same name", path=path, line=1)
    if len(head) == 1 and (other := next((each for each in ";\t,|" if each in head[0]), None)):
        raise LogError(
            f"columns are separated by commas, in a .tsv file by tabs, not by {other!r}",
            path=path,
            line=1,
        )
    return head


def _move(rows: list[list[str]], columns: list[CellBuffer]) -> None:
    """Move the cells of the rows into their columns."""
    if rows:
        for cells, buffer in zip(zip(*rows, strict=True), columns, strict=True):
            buffer.extend(list(cells))
        rows.clear()


def _of_cells(head: Sequence[str], columns: Sequence[CellBuffer]) -> Columns:
    return {
        name: column(_reader(name)(cells.cells()))
        for name, cells in zip(head, columns, strict=True)
    }


def _by_splitting(
    content: bytes, start: int, head: Sequence[str], delimiter: str
) -> Columns | None:
    """The columns of a plain file; None if a row is not right."""
    columns = [_PlainColumn(name) for name in head]
    try:
        for part in _parts(content, start):
            lines = part.decode().replace("\r", "").removesuffix("\n").split("\n")
            if {line.count(delimiter) for line in lines} != {len(head) - 1}:
                return None
            if len(part) > LONGEST_LINE and max(map(len, lines)) >= LONGEST_LINE:
                return None
            cells = delimiter.join(lines).split(delimiter)
            for number, each in enumerate(columns):
                each.extend(cells[number :: len(head)])
    except UnicodeDecodeError:
        return None
    return {name: each.column() for name, each in zip(head, columns, strict=True)}


class _PlainColumn:
    """A column whose cells come in blocks: arrays of numbers, as long as all are of one type."""

    def __init__(self, name: str) -> None:
        self._read = _reader(name)
        self._blocks: list[NDArray[Any]] | None = [] if self._read is _values else None
        self._cells = CellBuffer()

    def extend(self, cells: list[str]) -> None:
        """Append a block of cells."""
        self._cells.extend(cells)
        if self._blocks is None:
            return
        # If a cell before is not whole, whole ones are of the type of the others.
        is_float = bool(self._blocks) and self._blocks[0].dtype.kind == "f"
        numbers = _numbers(cells, (float,) if is_float else (int, float))
        block = None if numbers is None else column(numbers)
        is_other = block is not None and self._blocks and block.dtype != self._blocks[0].dtype
        if block is None or is_other or block.dtype == np.object_:  # too large for an array
            self._blocks = None
        else:
            self._blocks.append(block)

    def column(self) -> NDArray[Any]:
        """All values, as the list of all cells gives them."""
        if self._blocks is None:
            return column(self._read(self._cells.cells()))
        return np.concatenate(self._blocks)


def _parts(content: bytes, start: int) -> Iterator[bytes]:
    """The content in parts of whole lines."""
    while start < len(content):
        end = content.find(b"\n", start + _PART) + 1 or len(content)
        yield content[start:end]
        start = end


def by_arrow(content: bytes, head: Sequence[str], delimiter: str, rows: int) -> Columns | None:
    """The columns of a plain file; None without pyarrow, or if Arrow does not take the file."""
    try:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv
    except ImportError:
        return None
    numbers = [str(number) for number in range(len(head))]  # names may be empty
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(content),
            arrow_csv.ReadOptions(use_threads=False, column_names=numbers, skip_rows=1),
            arrow_csv.ParseOptions(delimiter=delimiter, quote_char=False),
            arrow_csv.ConvertOptions(column_types=dict.fromkeys(numbers, pa.string())),
        )
    except pa.ArrowException:
        return None
    if table.num_rows != rows:
        return None
    return {
        name: _of_texts(name, table[number]) for name, number in zip(head, numbers, strict=True)
    }


def _of_texts(name: str, texts: Any) -> NDArray[Any]:
    """A column from an array of Arrow; as from the list of its cells."""
    if name not in _READ_CELLS and (numbers := _arrow_numbers(texts)) is not None:
        return numbers
    coded = texts.dictionary_encode().unify_dictionaries().combine_chunks()
    # What a cell means depends on the others only by whether all are numbers of a kind.
    distinct = column(_reader(name)(coded.dictionary.to_pylist()))
    found: NDArray[Any] = distinct[coded.indices.to_numpy(zero_copy_only=False)]
    return found


def _arrow_numbers(texts: Any) -> NDArray[Any] | None:
    """The numbers that cells are, if Arrow and Python read the same in all of them."""
    import pyarrow as pa
    from pyarrow import compute

    try:
        whole: NDArray[Any] = texts.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        pass
    else:
        # Arrow reads 0x1f too, and the least number is too large for `column`.
        is_hexadecimal = any(
            compute.any(compute.match_substring(texts, letter)).as_py() for letter in "xX"
        )
        return None if is_hexadecimal or whole.min() == np.iinfo(np.int64).min else whole
    try:
        numbers: NDArray[Any] = texts.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    # Arrow reads nan(1) too. If all are whole, Python may read them as whole numbers.
    is_plain = np.isfinite(numbers).all() and (numbers != np.floor(numbers)).any()
    return numbers if is_plain else None


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


def _numbers(
    cells: list[str], kinds: Sequence[type[int | float]] = (int, float)
) -> list[Any] | None:
    """The cells as numbers if all are numbers, of the first kind if possible. 1_000 is none."""
    for kind in kinds:
        try:
            numbers = list(map(kind, cells))
        except ValueError:
            continue
        return None if "_" in "".join(cells) else numbers
    return None


_READ_CELLS: dict[str, Callable[[list[str]], list[Any]]] = {"problem": names, "key": list}


def _reader(name: str) -> Callable[[list[str]], list[Any]]:
    """What reads the cells of a column."""
    return _READ_CELLS.get(name, _values)
