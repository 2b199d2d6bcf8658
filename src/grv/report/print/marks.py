"""The marks of figures for print, one function per kind of mark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Polygon
from matplotlib.ticker import FuncFormatter, NullLocator

from ..drawing import Layer
from ..style import LIGHT, RAMP_LIGHT, SHAPES
from .panel import Panel, RoundLog, Row, prices_of, values_of

_MARKERS = {"circle": "o", "square": "s", "diamond": "D", "triangle": "^", "cross": "x"}
_RAMP = LinearSegmentedColormap.from_list("ramp", list(RAMP_LIGHT))


def _across(rows: Sequence[Row], layer: Layer) -> np.ndarray[Any, np.dtype[np.float64]]:
    from_ = values_of(rows, layer.x)
    return (from_ + values_of(rows, layer.x2)) / 2 if layer.x2 else from_


def _up(panel: Panel, rows: Sequence[Row], layer: Layer) -> np.ndarray[Any, np.dtype[np.float64]]:
    if panel.drawing.y.scale != "names":
        return values_of(rows, layer.y)
    lanes = 1 + max(each.lane for each in panel.drawing.layers)
    shift = (layer.lane - (lanes - 1) / 2) * 0.7 / lanes
    return np.array(
        [panel.names.index(str(row[str(layer.y)])) + shift for row in rows], dtype=float
    )


def _line(panel: Panel, layer: Layer) -> None:
    for name, look, _, rows in panel.groups(layer):
        x = _across(rows, layer)
        y = values_of(rows, layer.y)
        order = np.argsort(x, kind="stable")
        x = x[order]
        y = y[order]
        panel.axes.plot(x, y, label=panel.label(layer, name), linewidth=1.4, **look)


def _step(panel: Panel, layer: Layer) -> None:
    for name, look, _, rows in panel.groups(layer):
        x = values_of(rows, layer.x)
        y = values_of(rows, layer.y)
        if layer.x2 and len(rows):
            x = np.append(x, values_of(rows, layer.x2)[-1])
            y = np.append(y, y[-1])
        panel.axes.step(x, y, where="post", label=panel.label(layer, name), **look)


def _points(panel: Panel, layer: Layer) -> None:
    for name, look, style, rows in panel.groups(layer):
        x = _across(rows, layer)
        y = _up(panel, rows, layer)
        marker = _MARKERS[SHAPES[style.shape]]
        if layer.hue and len(rows):
            values = values_of(rows, layer.hue)
            dots = panel.axes.scatter(x, y, c=values, cmap=_RAMP, norm=panel.scale, s=14, zorder=3)
            bar = panel.axes.figure.colorbar(dots, ax=panel.axes, label=layer.hue, pad=0.02)
            bar.ax.yaxis.set_major_locator(RoundLog())
            bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            bar.ax.yaxis.set_minor_locator(NullLocator())
            continue
        is_cloud = len(rows) > 150
        plain = {"s": 5, "alpha": 0.5, "linewidths": 0} if is_cloud else {"s": 20}
        label = panel.label(layer, name)
        panel.axes.scatter(x, y, marker=marker, color=look["color"], label=label, zorder=3, **plain)


def _bars(panel: Panel, layer: Layer) -> None:
    sideways = panel.drawing.y.scale == "names"
    for name, look, _, rows in panel.groups(layer):
        label = panel.label(layer, name)
        colour = look["color"]
        if sideways:
            lanes = 1 + max(each.lane for each in panel.drawing.layers)
            values = values_of(rows, layer.x)
            made = panel.axes.barh(
                _up(panel, rows, layer), values, 0.7 / lanes, color=colour, label=label
            )
            kind = next(each for each in panel.table.columns if each.name == layer.x)
            texts = [
                "" if np.isnan(value) else kind.brief(float(value)) + _partly(row)
                for value, row in zip(values, rows, strict=True)
            ]
            panel.axes.bar_label(made, texts, padding=3, fontsize=7)
            panel.axes.margins(x=0.15)
            continue
        left = values_of(rows, layer.x)
        right = values_of(rows, layer.x2)
        is_over = layer.by or any(each.mark == "rule" for each in panel.drawing.layers)
        alpha = 0.55 if is_over else 1.0
        widths = (right - left) * 0.95
        heights = values_of(rows, layer.y)
        panel.axes.bar(left, heights, widths, align="edge", color=colour, alpha=alpha, label=label)


def _partly(row: Row) -> str:
    """The share solved, to show beside a cost that does not solve everything."""
    solved = row.get("solved")
    is_part = isinstance(solved, int | float) and solved < 0.9995
    return f", solves {100 * float(str(solved)):.0f} %" if is_part else ""


def _interval(panel: Panel, layer: Layer) -> None:
    for _, look, _, rows in panel.groups(layer):
        plain = {"color": look["color"], "alpha": 0.7, "linewidth": 1.2}
        if panel.drawing.y.scale == "names":
            ends = values_of(rows, layer.x), values_of(rows, layer.x2)
            up = _up(panel, rows, layer)
            known = ~(np.isnan(ends[0]) | np.isnan(ends[1]))
            panel.axes.hlines(up[known], ends[0][known], ends[1][known], **plain)
            is_open = np.isnan(ends[1]) & ~np.isnan(ends[0])  # the end is beyond the range tried
            if is_open.any():
                last = np.full(is_open.sum(), _farthest(panel, layer))
                panel.axes.hlines(up[is_open], ends[0][is_open], last, **plain)
                panel.axes.plot(last, up[is_open], ">", color=look["color"], ms=3)
        else:
            x = _across(rows, replace(layer, y=""))
            low = values_of(rows, layer.y)
            high = values_of(rows, layer.y2)
            known = ~(np.isnan(low) | np.isnan(high) | np.isnan(x))
            panel.axes.vlines(x[known], low[known], high[known], **plain)


def _farthest(panel: Panel, layer: Layer) -> float:
    """The end of an interval without an end: beyond all that is drawn."""
    rows = panel.rows_of(layer)
    columns = [each.x for each in panel.drawing.layers] + [layer.x2]
    values = [values_of(rows, column) for column in columns if column != ""]
    return float(np.nanmax(np.concatenate(values)) * 1.2)


def _band(panel: Panel, layer: Layer) -> None:
    for _, look, _, rows in panel.groups(layer):
        low = values_of(rows, layer.y)
        high = values_of(rows, layer.y2)
        x = values_of(rows, layer.x)
        known = ~(np.isnan(low) | np.isnan(high) | np.isnan(x))
        x = x[known]
        low = low[known]
        high = high[known]
        outline = np.concatenate([np.stack([x, low], 1), np.stack([x, high], 1)[::-1]])
        if len(outline):  # an artist does not widen the axes
            plain = {"facecolor": look["color"], "alpha": 0.1, "linewidth": 0}
            panel.axes.add_artist(Polygon(outline, closed=True, **plain))


def _shade(panel: Panel, layer: Layer) -> None:
    named = layer.series
    for _, look, _, rows in panel.groups(layer):
        ends = values_of(rows, layer.x)
        widths = values_of(rows, layer.x2)
        for end, width, strength in zip(ends, widths, values_of(rows, layer.y), strict=True):
            if strength > 0:
                alpha = 0.28 * strength
                colour = look["color"]
                panel.axes.axvspan(
                    end - width, end, color=colour, alpha=alpha, linewidth=0, label=named or "_"
                )
                named = ""


def _rule(panel: Panel, layer: Layer) -> None:
    along_x = layer.x != ""
    for name, look, _, rows in panel.groups(layer):
        values = values_of(rows, layer.x if along_x else layer.y)
        for at, value in enumerate(dict.fromkeys(values[~np.isnan(values)].tolist())):
            label = panel.label(layer, name) if at == 0 else "_"
            line = panel.axes.axvline if along_x else panel.axes.axhline
            line(value, label=label, linewidth=1.1, **look)


def draw_equal_costs(panel: Panel) -> None:
    """Lines of equal cost, within the present ends of the axes."""
    prices = prices_of(panel.rows[0].get("costs")) if panel.rows else None
    if prices is None:
        return
    axes = panel.axes
    generate, verify, failure = prices
    passing = verify - failure  # one of the verifications passes
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    made = np.geomspace(left, right, 200)
    least = generate * left + failure * bottom + passing
    for cost in RoundLog().tick_values(least, generate * right + failure * top + passing):
        checked = (cost - passing - generate * made) / failure
        inside = (checked >= bottom) & (checked <= top)
        axes.plot(made[inside], checked[inside], color=LIGHT["faint"], alpha=0.4, linewidth=0.7)
        if inside.any():
            at = int(np.argmax(inside))
            words: dict[str, Any] = {"fontsize": 6, "color": LIGHT["faint"], "va": "bottom"}
            axes.text(made[at], checked[at], f" {cost:g}", clip_on=True, **words)
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)


MARKS: dict[str, Callable[[Panel, Layer], None]] = {
    "line": _line,
    "step": _step,
    "points": _points,
    "bars": _bars,
    "interval": _interval,
    "band": _band,
    "shade": _shade,
    "rule": _rule,
}
