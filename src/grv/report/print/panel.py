"""One pair of axes of a figure for print, and the numbers that are drawn there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator

from ...text import visible
from ..drawing import Drawing, Layer
from ..style import DASHES, HUES_LIGHT, Style
from ..table import Cell, Table

Row = dict[str, Cell]


@dataclass(frozen=True)
class Panel:
    """One pair of axes, and the rows drawn there."""

    axes: Axes
    table: Table
    drawing: Drawing
    rows: tuple[Row, ...]
    others: dict[str, tuple[Row, ...]]
    names: tuple[str, ...]
    styles: dict[str, Style]
    scale: Normalize

    def rows_of(self, layer: Layer) -> list[Row]:
        """The rows that a layer draws."""
        rows = self.others.get(layer.table, ()) if layer.table else self.rows
        if layer.where is None:
            return list(rows)
        name, value = layer.where
        return [row for row in rows if row[name] == value]

    def groups(self, layer: Layer) -> Iterator[tuple[str, dict[str, Any], Style, list[Row]]]:
        """Name, line style, style and rows of each series of a layer."""
        rows = self.rows_of(layer)
        if not layer.by:
            yield (layer.series, *self._style(layer.tone or layer.series or "first"), rows)
            return
        for name in dict.fromkeys(str(row[layer.by]) for row in rows):
            yield (name, *self._style(name), [row for row in rows if row[layer.by] == name])

    def _style(self, name: str) -> tuple[dict[str, Any], Style]:
        style = self.styles.get(name, self.styles["first"])
        dash = DASHES[style.dash]
        line = (0, tuple(float(part) / 2 for part in dash.split())) if dash else "-"
        return {"color": HUES_LIGHT[style.hue], "linestyle": line}, style

    def label(self, layer: Layer, name: str) -> str:
        """The name in the legend; `_` hides it, for example if the axis has the name."""
        if layer.by and layer.by == self.drawing.y.column and self.drawing.y.scale == "names":
            return "_"
        return visible(name) or "_"


class RoundLog(MaxNLocator):
    """Ticks at round multiples of powers of ten; fewer multiples over a wide range."""

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """The ticks, as matplotlib requests them."""
        low = max(min(vmin, vmax), 1e-300)
        high = max(vmin, vmax)
        powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
        for steps in ((1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
            ticks = np.sort(np.concatenate([powers * step for step in steps]))
            ticks = ticks[(ticks >= low * 0.999) & (ticks <= high * 1.001)]
            if 2 <= len(ticks) <= 7:
                break
        return [float(tick) for tick in ticks[:: max(1, len(ticks) // 7)]]


def values_of(rows: Sequence[Row], name: str | float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A column as numbers, NaN for None; a constant; or the cost ratios of price lists."""
    if isinstance(name, float | int):
        return np.full(max(1, len(rows)), float(name))
    if name == "costs":
        return np.array([_ratio(row.get("costs")) for row in rows], dtype=float)
    return np.array([row[name] if row[name] is not None else np.nan for row in rows], dtype=float)


def prices_of(costs: Cell) -> tuple[float, float, float] | None:
    """The prices of a candidate, a verification and a failed one; None for measured costs."""
    try:
        generate, verify, *failure = (float(part) for part in str(costs).split(","))
    except ValueError:
        return None
    return generate, verify, next(iter(failure), verify)


def _ratio(costs: Cell) -> float:
    prices = prices_of(costs)
    return prices[1] / prices[0] if prices else float("nan")
