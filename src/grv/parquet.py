"""Untrusted Parquet files, with a limit on their unpacked size.

A few kilobytes of Parquet can encode billions of equal values. So the size that the values will
have is computed from the file's own account of itself, before anything is unpacked, and measured
after every batch, because that account may be false. Texts stay encoded by a dictionary: each is in
memory once, however many rows have it.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from .core.errors import LogError, UsageError, installing
from .files import error_line
from .memory import bytes_of, check_columns, expect, gigabytes

MOST_CELLS = 2_000_000_000
MOST_PARTS = 500_000  # columns times row groups; looking at each takes some microseconds
ALWAYS = 1 << 30  # bytes that any file may unpack to
RATIO = 1000  # how many bytes one byte of a file may unpack to, above that
_ROWS = 1 << 14  # rows of a batch
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}
_CODE = 4  # bytes of a text that is in a dictionary

_Result = TypeVar("_Result")


def read_parquet(path: str, take: Callable[[Any], _Result]) -> _Result:
    """The result of `take` for the `pyarrow.Table` in a file; texts are encoded by dictionaries.

    Raises:
        UsageError: pyarrow is not installed.
        LogError: the file cannot be read, is too large, or has values without a Python type.
    """
    with _errors(path) as pa:
        file = _opened(path)
        found = list(batches(file, path))
        return take(pa.Table.from_batches(found, schema=file.schema_arrow))


def read_rows(path: str) -> Iterator[dict[str, Any]]:
    """The rows of a file as plain values, with the errors of `read_parquet`."""
    with _errors(path):
        file = _opened(path)
        names = file.schema_arrow.names
        if len(set(names)) < len(names):
            raise ValueError("two columns have the same name")
        texts: dict[Any, Any] = {}
        for batch in batches(file, path):
            columns = [plain_values(column, texts) for column in batch.columns]
            for values in zip(*columns, strict=True):
                yield dict(zip(names, values, strict=True))


def plain_values(array: Any, texts: dict[Any, Any]) -> list[Any]:
    """The plain values of an array.

    Args:
        array: an array of pyarrow.
        texts: the texts of dictionaries so far, each under itself: equal ones become one object.
    """
    from pyarrow import types

    kind = array.type
    if types.is_dictionary(kind):
        words = [texts.setdefault(each, each) for each in array.dictionary.to_pylist()]
        words.append(None)
        return [words[code] for code in array.indices.fill_null(len(words) - 1).to_pylist()]
    parts: list[Any]
    if types.is_list(kind) or types.is_large_list(kind):
        values = plain_values(array.values, texts)
        ends = array.offsets.to_pylist()
        parts = [values[start:end] for start, end in itertools.pairwise(ends)]
    elif types.is_struct(kind):
        names = [kind.field(at).name for at in range(kind.num_fields)]
        columns = [plain_values(array.field(at), texts) for at in range(kind.num_fields)]
        rows = zip(*columns, strict=True) if columns else itertools.repeat((), len(array))
        parts = [dict(zip(names, row, strict=True)) for row in rows]
    elif types.is_nested(kind):
        raise TypeError(f"values of the type {kind}")
    else:
        return list(array.to_pylist())
    return [part if valid else None for part, valid in zip(parts, _valid(array), strict=True)]


def _valid(array: Any) -> list[bool]:
    return list(array.is_valid().to_pylist())


@contextmanager
def _errors(path: str) -> Iterator[Any]:
    """The module pyarrow; what it raises becomes one line."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise UsageError(
            f"{path}: reading Parquet needs pyarrow: {installing('parquet')}"
        ) from error
    kinds = (ArithmeticError, LookupError, OSError, TypeError, ValueError)
    try:
        yield pa
    except UsageError:
        raise
    except (pa.ArrowException, *kinds) as error:
        raise LogError(f"not a readable Parquet file: {error_line(error)}", path=path) from error


def _opened(path: str) -> Any:
    """The file, if what it unpacks to is within the limits."""
    import pyarrow.parquet as pq

    facts = pq.read_metadata(path)
    check_columns(path, facts.num_columns)
    if facts.num_columns * facts.num_row_groups > MOST_PARTS:
        raise LogError(
            f"{facts.num_row_groups:,} row groups; the limit for {facts.num_columns:,} columns is"
            f" {MOST_PARTS // facts.num_columns:,}: write it again with larger ones",
            path=path,
        )
    leaves = [facts.schema.column(at) for at in range(facts.num_columns)]
    values = unpacked = 0
    for number in range(facts.num_row_groups):
        group = facts.row_group(number)
        for at, leaf in enumerate(leaves):
            part = group.column(at)
            values += max(part.num_values, group.num_rows)
            width = leaf.length if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" else _CODE
            width = _WIDTHS.get(leaf.physical_type, width)
            unpacked += part.num_values * width + part.total_uncompressed_size
    values = max(values, facts.num_rows)
    if values > MOST_CELLS:
        raise LogError(f"{values:,} values; the limit is {MOST_CELLS:,}", path=path)
    size = os.path.getsize(path)
    needed = max(unpacked, bytes_of(values))
    if needed > _limit(path):
        raise LogError(
            f"{size:,} bytes that unpack to {gigabytes(needed)}, which no log does; refused",
            path=path,
        )
    expect(path, facts.num_rows, max(1, -(-values // max(1, facts.num_rows))))
    texts = [leaf.path for leaf in leaves if _is_text(leaf)]
    return pq.ParquetFile(path, read_dictionary=texts, buffer_size=1 << 20)


def _is_text(leaf: Any) -> bool:
    return bool(leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type != "DECIMAL")


def _limit(path: str) -> int:
    return max(ALWAYS, RATIO * os.path.getsize(path))


def batches(file: Any, path: str) -> Iterator[Any]:
    """The rows, some at a time; an error as soon as they take more than the limit."""
    import pyarrow as pa

    before = pa.total_allocated_bytes()
    limit = _limit(path)
    for batch in file.iter_batches(_ROWS):
        if (used := pa.total_allocated_bytes() - before) > limit:
            raise LogError(f"unpacks to more than {gigabytes(used)}; refused", path=path)
        yield batch
