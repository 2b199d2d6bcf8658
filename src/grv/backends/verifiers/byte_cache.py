"""A cache that is bounded by bytes, so that large values do not fill the memory."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class ByteCache(Generic[Key, Value]):
    """Keeps the values that were used last. The newest one stays, whatever its size.

    It has no lock: the caller holds one.

    Args:
        most_bytes: how many bytes all values have together.
        most: how many values there are.

    Attributes:
        size: the bytes of all values.
    """

    def __init__(self, most_bytes: int, most: int = sys.maxsize) -> None:
        self._most_bytes = most_bytes
        self._most = most
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._sizes: dict[Key, int] = {}
        self.size = 0

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value | None:
        """The value of a key, which is used last from now on; None if it is not here."""
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key]

    def put(self, key: Key, value: Value, size: int) -> None:
        """Keep a value that takes this many bytes; forget those that were not used for longest."""
        self._forget(key)
        self._values[key] = value
        self._sizes[key] = size
        self.size += size
        while len(self) > 1 and (self.size > self._most_bytes or len(self) > self._most):
            self._forget(next(iter(self._values)))

    def keys(self) -> list[Key]:
        """All keys; the last is the one that was used last."""
        return list(self._values)

    def values(self) -> list[Value]:
        """All values, in the order of their keys."""
        return list(self._values.values())

    def _forget(self, key: Key) -> None:
        self._values.pop(key, None)
        self.size -= self._sizes.pop(key, 0)


def size_of(data: Any) -> int:
    """About how many bytes JSON data takes in memory.

    >>> size_of({"answer": "x" * 1000}) > size_of({"answer": ""}) + 900
    True
    """
    size = sys.getsizeof(data)
    if isinstance(data, str | int | float):  # most of it
        return size
    if isinstance(data, Mapping):
        return size + sum(size_of(key) + size_of(value) for key, value in data.items())
    if isinstance(data, list | tuple):
        return size + sum(map(size_of, data))
    return size
