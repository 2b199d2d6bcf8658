"""Columns that are read row by row, in little memory: blocks of values become arrays or texts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 16  # values that are kept as Python objects
_MOST_TEXTS = 1 << 20  # distinct texts that share their memory
_BETWEEN = "\0"  # between the cells of a block


def column(values: list[Any]) -> NDArray[Any]:
    """A typed array if all values have one simple type, otherwise an array of objects."""
    kinds = set(map(type, values))
    if kinds in ({bool}, {float}) or (kinds == {int} and max(map(abs, values)) < 2**63):
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values  # np.array would unpack lists
    return array


class ValueBuffer:
    """The values of a column, each of any type."""

    def __init__(self, absent: int) -> None:
        """Begin a column with `absent` values None."""
        self._blocks: list[NDArray[Any]] = [np.full(absent, None)] if absent else []
        self._last: list[Any] = []
        self._texts: dict[str, str] = {}

    def add(self, value: Any) -> None:
        """Append a value."""
        if type(value) is str and len(self._texts) < _MOST_TEXTS:
            value = self._texts.setdefault(value, value)
        self._last.append(value)
        if len(self._last) == _BLOCK:
            self._end_block()

    def _end_block(self) -> None:
        if self._last:
            self._blocks.append(column(self._last))
            self._last = []

    def column(self) -> NDArray[Any]:
        """All values, as the function `column` gives them. The buffer is empty afterwards."""
        self._end_block()
        blocks = self._blocks
        self._blocks = []
        if len({block.dtype for block in blocks}) == 1:
            return np.concatenate(blocks)
        return column([value for block in blocks for value in block.tolist()])


class CellBuffer:
    """The cells of a column of text."""

    def __init__(self) -> None:
        self._blocks: list[str | list[str]] = []

    def extend(self, cells: list[str]) -> None:
        """Append a block of cells."""
        text = _BETWEEN.join(cells)
        self._blocks.append(text if text.count(_BETWEEN) == len(cells) - 1 else cells)

    def cells(self) -> list[str]:
        """All cells. The buffer is empty afterwards."""
        blocks = self._blocks
        self._blocks = []
        found: list[str] = []
        texts: dict[str, str] = {}
        for block in blocks:
            cells = block.split(_BETWEEN) if isinstance(block, str) else block
            if len(texts) < _MOST_TEXTS:
                cells = [texts.setdefault(cell, cell) for cell in cells]
            found += cells
        return found
