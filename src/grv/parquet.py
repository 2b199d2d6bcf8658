"""Parquet files from outside, with a bound on what they unpack to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .core.errors import LogError, UsageError

MOST_CELLS = 200_000_000  # a few bytes of Parquet can stand for billions of equal values

_Found = TypeVar("_Found")


def read_parquet(path: str, take: Callable[[Any], _Found]) -> _Found:
    """What `take` makes of the `pyarrow.Table` in a file.

    Raises:
        UsageError: pyarrow is not installed.
        LogError: the file cannot be read, holds too much, or has values that Python has not.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UsageError(
            f"{path}: reading Parquet needs pyarrow: pip install 'grv[parquet]'"
        ) from error
    kinds = (ArithmeticError, LookupError, OSError, TypeError, ValueError)
    try:
        facts = pq.read_metadata(path)
        cells = facts.num_rows * max(1, facts.num_columns)
        if cells <= MOST_CELLS:
            return take(pq.read_table(path))
    except (pa.ArrowException, *kinds) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise LogError(f"not a readable Parquet file: {reason}", path=path) from error
    raise LogError(f"{cells:,} values, and at most {MOST_CELLS:,} are read", path=path)
