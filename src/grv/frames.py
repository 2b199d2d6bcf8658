"""Data frames of pandas, polars and pyarrow: read as columns of plain values, and made from them.

None of these libraries is needed unless a frame of it is given or asked for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from .core.errors import UsageError

_LIBRARIES = ("pandas", "polars", "pyarrow")


def frame_columns(frame: Any) -> dict[str, list[Any]]:
    """The columns of a frame, by name, as plain values; missing values are None.

    pandas marks a missing number by NaN, so NaN in a pandas frame is None here.

    Args:
        frame: a pandas or polars data frame, a pyarrow table, or a mapping of names to values.
    """
    match _library(frame):
        case "pandas" if hasattr(frame, "columns"):
            columns = [(name, _pandas_values(frame[name])) for name in _unique(frame.columns)]
        case "polars" if hasattr(frame, "collect"):
            raise UsageError("a lazy frame has no values yet: give frame.collect()")
        case "polars" if hasattr(frame, "get_columns"):
            columns = [(each.name, each.to_list()) for each in frame.get_columns()]
        case "pyarrow" if hasattr(frame, "column_names"):
            names = _unique(frame.column_names)
            columns = [(name, frame.column(name).to_pylist()) for name in names]
        case _ if isinstance(frame, Mapping):
            columns = [(name, list(values)) for name, values in frame.items()]
        case _:
            hint = ""
            if isinstance(frame, str | os.PathLike):
                hint = "; grv.Log.load reads a file"
            elif isinstance(frame, list):
                hint = "; pandas.DataFrame makes a data frame of a list of rows"
            raise UsageError(
                "give a pandas or polars data frame, a pyarrow table, or a mapping of columns, not"
                f" a {type(frame).__name__}{hint}"
            )
    return {str(name): [_plain(value) for value in values] for name, values in columns}


def index_names(frame: Any) -> list[str]:
    """The names of a pandas index, which are not columns."""
    if _library(frame) != "pandas":
        return []
    return [str(name) for name in frame.index.names if name is not None]


def make_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """A pandas frame of these columns, or a polars frame if pandas is not installed."""
    try:
        import pandas
    except ImportError:
        pass
    else:
        return pandas.DataFrame({name: list(values) for name, values in columns.items()})
    try:
        import polars
    except ImportError as error:
        raise UsageError("a data frame needs pandas or polars: pip install pandas") from error
    return polars.DataFrame({name: list(values) for name, values in columns.items()}, strict=False)


def _library(frame: Any) -> str:
    """The library that a frame is of, also if its class is derived from one of the library's."""
    modules = {kind.__module__.partition(".")[0] for kind in type(frame).__mro__}
    return next((name for name in _LIBRARIES if name in modules), "")


def _unique(names: Any) -> list[Any]:
    found = list(names)
    if len(set(map(str, found))) < len(found):
        raise UsageError("two columns of the frame have the same name")
    return found


def _pandas_values(series: Any) -> list[Any]:
    missing = series.isna().tolist()
    values = series.tolist()
    return [None if gone else value for value, gone in zip(values, missing, strict=True)]


def _plain(value: Any) -> Any:
    """A value without the types of NumPy."""
    return value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value
