"""Figures for print, from the same descriptions as those of the page; `look.py` holds the look."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from ..drawings import Axis, Drawing, Layer
from ..style import DASHES, HUES_LIGHT, LIGHT, PRINT, RAMP_LIGHT, SHAPES, Style, styles
from ..table import Cell, Table

_MARKERS = {"circle": "o", "square": "s", "diamond": "D", "triangle": "^", "cross": "x"}
_RAMP = LinearSegmentedColormap.from_list("ramp", list(RAMP_LIGHT))
Row = dict[str, Cell]


@dataclass(frozen=True)
class Panel:
    """One pair of axes, and what is drawn there."""

    axes: Axes
    table: Table
    drawing: Drawing
    rows: tuple[Row, ...]
    others: dict[str, tuple[Row, ...]]
    names: tuple[str, ...]
    looks: dict[str, Style]
    scale: Normalize

    def rows_of(self, layer: Layer) -> list[Row]:
        """The rows that a layer draws."""
        rows = self.others.get(layer.table, ()) if layer.table else self.rows
        if layer.where is None:
            return list(rows)
        name, value = layer.where
        return [row for row in rows if row[name] == value]

    def groups(self, layer: Layer) -> Iterator[tuple[str, dict[str, Any], Style, list[Row]]]:
        """Name, line style, style and rows of what a layer draws apart."""
        rows = self.rows_of(layer)
        if not layer.by:
            yield (layer.series, *self._look(layer.tone or layer.series or "first"), rows)
            return
        for name in dict.fromkeys(str(row[layer.by]) for row in rows):
            yield (name, *self._look(name), [row for row in rows if row[layer.by] == name])

    def _look(self, name: str) -> tuple[dict[str, Any], Style]:
        style = self.looks.get(name, self.looks["first"])
        dash = DASHES[style.dash]
        line = (0, tuple(float(part) / 2 for part in dash.split())) if dash else "-"
        return {"color": HUES_LIGHT[style.hue], "linestyle": line}, style

    def label(self, layer: Layer, name: str) -> str:
        """What the legend calls it: nothing where the axis does, or where it was said before."""
        if layer.by and layer.by == self.drawing.y.column and self.drawing.y.scale == "names":
            return "_"
        return name or "_"


def plot(
    table: Table,
    drawing: Drawing,
    others: dict[str, Table] | None = None,
    looks: dict[str, Style] | None = None,
) -> Figure:
    """A table drawn, a panel for each of its logs.

    Args:
        table: at one price list.
        drawing: how.
        others: further tables that the drawing takes lines from.
        looks: the styles of names, so that figures of one report agree.
    """
    records = table.records()
    coloured = any(layer.by == "log" for layer in drawing.layers)
    logs = [None] if coloured else list(dict.fromkeys(row.get("log") for row in records))
    names = tuple(dict.fromkeys(str(row[drawing.y.column]) for row in records))
    looks = looks or styles(names)
    with mpl.rc_context(PRINT):
        height = 0.9 + 0.26 * len(names) if drawing.y.scale == "names" else 3.0
        figure = Figure(figsize=(4.8 * len(logs), height), layout="constrained")
        every = figure.subplots(1, len(logs), squeeze=False, sharey=True, sharex=not drawing.x.own)
        panels: list[Panel] = []
        for axes, log in zip(every[0], logs, strict=True):
            own = tuple(row for row in records if log is None or row.get("log") == log)
            also = {
                name: tuple(row for row in one.records() if log is None or row.get("log") == log)
                for name, one in (others or {}).items()
            }
            panels.append(
                Panel(axes, table, drawing, own, also, names, looks, _scale(table, drawing))
            )
            _draw(panels[-1])
            if len(logs) > 1:
                axes.set_title(str(log))
        for panel in panels:
            _finish(panel)
        _legend(figure, every[0])
    return figure


def save(figure: Figure, path: Path, kind: str) -> None:
    """Write a figure as `pdf` or `png`, the same bytes for the same numbers."""
    with mpl.rc_context(PRINT):
        plain = {"CreationDate": None} if kind == "pdf" else {"Software": None}
        figure.savefig(path, format=kind, metadata=plain)


def _draw(panel: Panel) -> None:
    axes, drawing = panel.axes, panel.drawing
    for which, axis in (("x", drawing.x), ("y", drawing.y)):
        _set_axis(panel, which, axis)
    for layer in drawing.layers:
        _MARKS[layer.mark](panel, layer)
    axes.grid(visible=True, axis="x" if drawing.y.scale == "names" else "both")


def _finish(panel: Panel) -> None:
    """What needs the ends of axes, which panels share, and so can only be done last."""
    if panel.drawing.y.zero:
        panel.axes.set_ylim(bottom=0)
    if panel.drawing.x.zero:
        panel.axes.set_xlim(left=0)
    if any(layer.mark == "iso" for layer in panel.drawing.layers):
        _iso(panel)


def _scale(table: Table, drawing: Drawing) -> Normalize:
    """From numbers to colours, the same in all panels."""
    hue = next((layer.hue for layer in drawing.layers if layer.hue), "")
    values = [value for value in table.column(hue) if isinstance(value, int | float)] if hue else []
    if values and 0 < min(values) < max(values):
        return LogNorm(min(values), max(values))
    return Normalize(min(values, default=0), max(values, default=1))


def _set_axis(panel: Panel, which: str, axis: Axis) -> None:
    column = next(each for each in panel.table.columns if each.name == axis.column)
    unit = f" ({column.unit})" if column.unit else ""
    one: Any = panel.axes.xaxis if which == "x" else panel.axes.yaxis
    if axis.scale == "names":
        panel.axes.set_yticks(range(len(panel.names)), panel.names)
        panel.axes.set_ylim(len(panel.names) - 0.4, -0.6)
        return
    one.set_label_text(axis.label or column.label + unit)
    if axis.scale == "log":
        (panel.axes.set_xscale if which == "x" else panel.axes.set_yscale)("log")
    factor = 100 if column.kind == "percent" else 1
    percent = " %" if column.kind == "percent" else ""
    one.set_major_formatter(
        FuncFormatter(
            lambda value, _: "" if percent and value > 1.0001 else f"{factor * value:g}{percent}"
        )
    )
    values = {value for value in panel.table.column(axis.column) if value is not None}
    if axis.scale == "linear" and not axis.zero and len(values) <= 8 and _are_whole(values):
        one.set_ticks(sorted(values, key=float))
    if axis.scale == "log":
        one.set_minor_formatter(NullFormatter())
        one.set_major_locator(_RoundLog())
        one.set_minor_locator(NullLocator())


def _are_whole(values: Iterable[Cell]) -> bool:
    return all(isinstance(value, int | float) and value == int(value) for value in values)


class _RoundLog(MaxNLocator):
    """Ticks at 1, 2 and 5 times powers of ten, or at the powers alone where those are many."""

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """As matplotlib asks for them."""
        low, high = max(min(vmin, vmax), 1e-300), max(vmin, vmax)
        powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
        for steps in ((1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
            ticks = np.sort(np.concatenate([powers * step for step in steps]))
            ticks = ticks[(ticks >= low * 0.999) & (ticks <= high * 1.001)]
            if 2 <= len(ticks) <= 7:
                break
        return [float(tick) for tick in ticks[:: max(1, len(ticks) // 7)]]


def _values(rows: Sequence[Row], name: str | float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A column as numbers, with gaps; a constant; or the ratios of price lists."""
    if isinstance(name, float | int):
        return np.full(max(1, len(rows)), float(name))
    if name == "costs":
        return np.array([_ratio(row.get("costs")) for row in rows], dtype=float)
    return np.array([row[name] if row[name] is not None else np.nan for row in rows], dtype=float)


def _prices(costs: Cell) -> tuple[float, float] | None:
    try:
        generate, verify = (float(part) for part in str(costs).split(","))
    except ValueError:
        return None
    return generate, verify


def _ratio(costs: Cell) -> float:
    prices = _prices(costs)
    return prices[1] / prices[0] if prices else float("nan")


def _across(rows: Sequence[Row], layer: Layer) -> np.ndarray[Any, np.dtype[np.float64]]:
    from_ = _values(rows, layer.x)
    return (from_ + _values(rows, layer.x2)) / 2 if layer.x2 else from_


def _up(panel: Panel, rows: Sequence[Row], layer: Layer) -> np.ndarray[Any, np.dtype[np.float64]]:
    if panel.drawing.y.scale != "names":
        return _values(rows, layer.y)
    lanes = 1 + max(each.lane for each in panel.drawing.layers)
    shift = (layer.lane - (lanes - 1) / 2) * 0.7 / lanes
    return np.array(
        [panel.names.index(str(row[str(layer.y)])) + shift for row in rows], dtype=float
    )


def _line(panel: Panel, layer: Layer) -> None:
    for name, look, _, rows in panel.groups(layer):
        x, y = _across(rows, layer), _values(rows, layer.y)
        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
        panel.axes.plot(x, y, label=panel.label(layer, name), linewidth=1.4, **look)


def _step(panel: Panel, layer: Layer) -> None:
    for name, look, _, rows in panel.groups(layer):
        x, y = _values(rows, layer.x), _values(rows, layer.y)
        if layer.x2 and len(rows):
            x, y = np.append(x, _values(rows, layer.x2)[-1]), np.append(y, y[-1])
        panel.axes.step(x, y, where="post", label=panel.label(layer, name), **look)


def _points(panel: Panel, layer: Layer) -> None:
    for name, look, style, rows in panel.groups(layer):
        x, y = _across(rows, layer), _up(panel, rows, layer)
        marker = _MARKERS[SHAPES[style.shape]]
        if layer.hue and len(rows):
            values = _values(rows, layer.hue)
            dots = panel.axes.scatter(x, y, c=values, cmap=_RAMP, norm=panel.scale, s=14, zorder=3)
            bar = panel.axes.figure.colorbar(dots, ax=panel.axes, label=layer.hue, pad=0.02)
            bar.ax.yaxis.set_major_locator(_RoundLog())
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
        label, colour = panel.label(layer, name), look["color"]
        if sideways:
            lanes = 1 + max(each.lane for each in panel.drawing.layers)
            values = _values(rows, layer.x)
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
        left, right = _values(rows, layer.x), _values(rows, layer.x2)
        is_over = layer.by or any(each.mark == "rule" for each in panel.drawing.layers)
        alpha = 0.55 if is_over else 1.0
        widths = (right - left) * 0.95
        heights = _values(rows, layer.y)
        panel.axes.bar(left, heights, widths, align="edge", color=colour, alpha=alpha, label=label)


def _partly(row: Row) -> str:
    """What must be said beside a cost: that it does not solve everything."""
    solved = row.get("solved")
    is_part = isinstance(solved, int | float) and solved < 0.9995
    return f", solves {100 * float(str(solved)):.0f} %" if is_part else ""


def _interval(panel: Panel, layer: Layer) -> None:
    for _, look, _, rows in panel.groups(layer):
        plain = {"color": look["color"], "alpha": 0.7, "linewidth": 1.2}
        if panel.drawing.y.scale == "names":
            ends = _values(rows, layer.x), _values(rows, layer.x2)
            up = _up(panel, rows, layer)
            known = ~(np.isnan(ends[0]) | np.isnan(ends[1]))
            panel.axes.hlines(up[known], ends[0][known], ends[1][known], **plain)
            is_open = np.isnan(ends[1]) & ~np.isnan(ends[0])  # beyond what was tried
            if is_open.any():
                last = np.full(is_open.sum(), _farthest(panel, layer))
                panel.axes.hlines(up[is_open], ends[0][is_open], last, **plain)
                panel.axes.plot(last, up[is_open], ">", color=look["color"], ms=3)
        else:
            x = _across(rows, replace(layer, y=""))
            low, high = _values(rows, layer.y), _values(rows, layer.y2)
            known = ~(np.isnan(low) | np.isnan(high) | np.isnan(x))
            panel.axes.vlines(x[known], low[known], high[known], **plain)


def _farthest(panel: Panel, layer: Layer) -> float:
    """Where an interval without an end is cut off: beyond whatever is drawn."""
    rows = panel.rows_of(layer)
    columns = [each.x for each in panel.drawing.layers] + [layer.x2]
    values = [_values(rows, column) for column in columns if column != ""]
    return float(np.nanmax(np.concatenate(values)) * 1.2)


def _band(panel: Panel, layer: Layer) -> None:
    for _, look, _, rows in panel.groups(layer):
        low, high = _values(rows, layer.y), _values(rows, layer.y2)
        x = _values(rows, layer.x)
        known = ~(np.isnan(low) | np.isnan(high) | np.isnan(x))
        x, low, high = x[known], low[known], high[known]
        outline = np.concatenate([np.stack([x, low], 1), np.stack([x, high], 1)[::-1]])
        if len(outline):  # as an artist, so that it may leave the picture
            plain = {"facecolor": look["color"], "alpha": 0.1, "linewidth": 0}
            panel.axes.add_artist(Polygon(outline, closed=True, **plain))


def _shade(panel: Panel, layer: Layer) -> None:
    named = layer.series
    for _, look, _, rows in panel.groups(layer):
        ends, widths = _values(rows, layer.x), _values(rows, layer.x2)
        for end, width, strength in zip(ends, widths, _values(rows, layer.y), strict=True):
            if strength > 0:
                alpha, colour = 0.28 * strength, look["color"]
                panel.axes.axvspan(
                    end - width, end, color=colour, alpha=alpha, linewidth=0, label=named or "_"
                )
                named = ""


def _rule(panel: Panel, layer: Layer) -> None:
    along_x = layer.x != ""
    for name, look, _, rows in panel.groups(layer):
        values = _values(rows, layer.x if along_x else layer.y)
        for at, value in enumerate(dict.fromkeys(values[~np.isnan(values)].tolist())):
            label = panel.label(layer, name) if at == 0 else "_"
            line = panel.axes.axvline if along_x else panel.axes.axhline
            line(value, label=label, linewidth=1.1, **look)


def _nothing(panel: Panel, layer: Layer) -> None:
    """Lines of equal cost are drawn last, when the ends of the axes are known."""


def _iso(panel: Panel) -> None:
    prices = _prices(panel.rows[0].get("costs")) if panel.rows else None
    if prices is None:
        return
    axes, (generate, verify) = panel.axes, prices
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    made = np.geomspace(left, right, 200)
    most = generate * right + verify * top
    for cost in _RoundLog().tick_values(generate * left + verify * bottom, most):
        checked = (cost - generate * made) / verify
        inside = (checked >= bottom) & (checked <= top)
        axes.plot(made[inside], checked[inside], color=LIGHT["faint"], alpha=0.4, linewidth=0.7)
        if inside.any():
            at = int(np.argmax(inside))
            words: dict[str, Any] = {"fontsize": 6, "color": LIGHT["faint"], "va": "bottom"}
            axes.text(made[at], checked[at], f" {cost:g}", clip_on=True, **words)
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)


_MARKS = {
    "line": _line,
    "step": _step,
    "points": _points,
    "bars": _bars,
    "interval": _interval,
    "band": _band,
    "shade": _shade,
    "rule": _rule,
    "iso": _nothing,
}


def _legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """One legend for all panels, under them."""
    found: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            found[label] = (*found.get(label, ()), handle)[:2] if label in found else (handle,)
    if found:
        wide = 0.5 + 0.058 * max(map(len, found))  # inches, about
        columns = max(1, min(4, len(found), int(figure.get_figwidth() / wide)))
        signs: list[Any] = list(found.values())  # of several handles, one over the other
        figure.legend(signs, list(found), loc="outside lower center", ncols=columns, frameon=False)
