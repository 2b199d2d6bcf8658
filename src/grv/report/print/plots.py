"""Figures for print, from the same drawings as those of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from ...text import visible
from ..drawing import Axis, Drawing
from ..style import PRINT, Style, styles
from ..table import Cell, Table
from .marks import MARKS, draw_equal_costs
from .panel import Panel, RoundLog


def plot(
    table: Table,
    drawing: Drawing,
    others: dict[str, Table] | None = None,
    look: dict[str, Style] | None = None,
) -> Figure:
    """A figure of a table, with one panel per log.

    Args:
        table: the rows of one price list.
        drawing: how to draw it.
        others: other tables that the drawing takes rows from.
        look: the styles of names, so that figures of one report agree.
    """
    records = table.records()
    coloured = any(layer.by == "log" for layer in drawing.layers)
    logs = [None] if coloured else list(dict.fromkeys(row.get("log") for row in records))
    names = tuple(dict.fromkeys(str(row[drawing.y.column]) for row in records))
    look = look or styles(names)
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
                Panel(axes, table, drawing, own, also, names, look, _scale(table, drawing))
            )
            _draw(panels[-1])
            if len(logs) > 1:
                axes.set_title(visible(str(log)))
        for panel in panels:
            _finish(panel)
        _legend(figure, every[0])
    return figure


_DATES = {"pdf": "CreationDate", "png": "Software", "svg": "Date"}


def save(figure: Figure, path: Path | IO[bytes], kind: str) -> None:
    """Write a figure as `pdf`, `png` or `svg`; the same numbers give the same bytes."""
    with mpl.rc_context(PRINT):
        figure.savefig(path, format=kind, metadata={_DATES[kind]: None})


def _draw(panel: Panel) -> None:
    axes = panel.axes
    drawing = panel.drawing
    for which, axis in (("x", drawing.x), ("y", drawing.y)):
        _set_axis(panel, which, axis)
    for layer in drawing.layers:
        if layer.mark != "iso":  # drawn last, when the ends of the axes are known
            MARKS[layer.mark](panel, layer)
    axes.grid(visible=True, axis="x" if drawing.y.scale == "names" else "both")


def _finish(panel: Panel) -> None:
    """Set the ends of the axes, which panels share, and draw what depends on them."""
    if panel.drawing.y.zero:
        panel.axes.set_ylim(bottom=0)
    if panel.drawing.x.zero:
        panel.axes.set_xlim(left=0)
    if any(layer.mark == "iso" for layer in panel.drawing.layers):
        draw_equal_costs(panel)


def _scale(table: Table, drawing: Drawing) -> Normalize:
    """The scale from numbers to colours, the same in all panels."""
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
        panel.axes.set_yticks(range(len(panel.names)), [*map(visible, panel.names)])
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
        one.set_major_locator(RoundLog())
        one.set_minor_locator(NullLocator())


def _are_whole(values: Iterable[Cell]) -> bool:
    return all(isinstance(value, int | float) and value == int(value) for value in values)


def _legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """One legend for all panels, below them."""
    found: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            found[label] = (*found.get(label, ()), handle)[:2] if label in found else (handle,)
    if found:
        wide = 0.5 + 0.058 * max(map(len, found))  # inches, roughly
        columns = max(1, min(4, len(found), int(figure.get_figwidth() / wide)))
        signs: list[Any] = list(found.values())  # a tuple of handles is drawn as one sign
        figure.legend(signs, list(found), loc="outside lower center", ncols=columns, frameon=False)
