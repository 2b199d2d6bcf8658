"""The kinds of columns: labels, whole numbers, scores, prices."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..files import is_number
from ..parsing import LARGEST_COST
from ..text import is_name


@dataclass(frozen=True)
class ColumnKind:
    """One kind of column.

    Attributes:
        dtype: the type of the array.
        read: converts one untrusted value; its `ValueError` says what the value must be.
        plain: whether a typed column is valid as a whole, so that `read` is not needed.
    """

    dtype: type[np.generic]
    read: Callable[[Any], float]
    plain: Callable[[NDArray[Any]], bool]


def is_absent(value: Any) -> bool:
    """Whether a value is null: None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def _label(value: Any) -> int:
    if is_absent(value):
        return -1
    if isinstance(value, bool | int | float) and value in (0, 1):
        return int(value)
    if isinstance(value, str) and value.lower() in _LABELS:
        return _LABELS[value.lower()]
    raise ValueError("true or false")


_LABELS = {"true": 1, "false": 0, "1": 1, "0": 0, "passed": 1, "failed": 0, "broken": -1}


def _whole(value: Any) -> int:
    if is_number(value) and float(value).is_integer() and abs(value) < 2**63:
        return int(value)
    raise ValueError("a whole number")


def _score(value: Any) -> float:
    if value is None:
        return math.nan
    if is_number(value):
        return float(value)
    raise ValueError("a finite number, or null (in CSV an empty cell) if there is none")


def _price(value: Any) -> float:
    if value is None:
        return math.nan
    if is_number(value) and 0 <= value <= LARGEST_COST:
        return float(value)
    raise ValueError(f"finite and not negative, at most {LARGEST_COST:g}, or null")


def names(texts: Sequence[str]) -> list[int] | list[str]:
    """Names from a format without types: numbers if all are whole numbers."""
    return [int(text) for text in texts] if all(map(_WHOLE.fullmatch, texts)) else list(texts)


_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")  # 007 is not a number but a name


def key_name(value: Any) -> str | None:
    """The name of an equivalence class; None for null and for an empty text."""
    if is_absent(value) or value == "":
        return None
    name = str(value)
    if isinstance(value, list | dict) or not is_name(name):
        raise ValueError("text, a number or null")
    return name


def _all_finite(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "fiu" and bool(np.isfinite(values).all())


def _all_labels(values: NDArray[Any]) -> bool:
    if values.dtype.kind == "b":
        return True
    return values.dtype.kind in "fiu" and bool(((values == 0) | (values == 1)).all())


def _all_prices(values: NDArray[Any]) -> bool:
    return bool(((values >= 0) & (values <= LARGEST_COST)).all())


LABEL = ColumnKind(np.int8, _label, _all_labels)  # -1 is null
WHOLE = ColumnKind(np.int64, _whole, lambda values: values.dtype.kind == "i")
SCORE = ColumnKind(np.float64, _score, _all_finite)  # NaN is null
PRICE = ColumnKind(  # NaN is null
    np.float64, _price, lambda values: _all_finite(values) and _all_prices(values)
)
