"""Values in nested records, by dotted paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def look_up(entry: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The value of the first field that the entry has; None if it has none.

    >>> look_up({"scores": {"match": {"answer": "4"}}}, ["answer", "scores.match.answer"])
    '4'
    """
    for name in names:
        value = entry.get(name)
        if value is None and "." in name:
            value = _walked(entry, name.split("."))
        if value is not None:
            return value
    return None


def _walked(value: Any, path: Sequence[str]) -> Any:
    for part in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value
