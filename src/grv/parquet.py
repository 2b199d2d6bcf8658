"""Untrusted Parquet files, with a limit on their unpacked size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .core.errors import LogError, UsageError, installing
from .files import error_line

MOST_CELLS = 200_000_000  # a few bytes of Parquet can encode billions of equal values

_Found = TypeVar("_Found")


def read_parquet(path: str, take: Callable[[Any], _Found]) -> _Found:
    """The result of `take` for the `pyarrow.Table` in a file.

    Raises:
        UsageError: pyarrow is not installed.
        LogError: the file cannot be read, is too large, or has values without a Python type.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UsageError(
            f"{path}: reading Parquet needs pyarrow: {installing('parquet')}"
        ) from error
    kinds = (ArithmeticError, LookupError, OSError, TypeError, ValueError)
    try:
        facts = pq.read_metadata(path)
        cells = facts.num_rows * max(1, facts.num_columns)
        if cells <= MOST_CELLS:
            return take(pq.read_table(path))
    except (pa.ArrowException, *kinds) as error:
        raise LogError(f"not a readable Parquet file: {error_line(error)}", path=path) from error
    raise LogError(f"{cells:,} values; the limit is {MOST_CELLS:,}", path=path)
