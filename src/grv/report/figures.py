"""The figures of a report as objects: they show themselves in a notebook, and can be saved."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError, installing
from ..core.values import Costs
from ..files import replacing
from ..logs.log import Log
from . import columns as c
from .drawing import POLICY_AXIS, Axis, Drawing, Layer
from .schema import TableSchema
from .table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..comparing.comparison import Comparison
    from .report import Report
    from .style import Style

KINDS = ("svg", "pdf", "png")


class Picture:
    """One figure. A notebook shows it; `figure` is matplotlib's, `svg` the text of an SVG file."""

    def __init__(
        self,
        name: str,
        table: Table,
        drawing: Drawing,
        others: dict[str, Table] | None = None,
        look: dict[str, Style] | None = None,
    ) -> None:
        self.name = name
        self.table = table
        self.drawing = drawing
        self._others = others or {}
        self._look = look

    def __repr__(self) -> str:
        return f"Picture({self.name!r}: {self.table.title})"

    @property
    def figure(self) -> Figure:
        """The figure of matplotlib, to change before it is shown or saved."""
        check_matplotlib()
        from .print.plots import plot

        return plot(self.table, self.drawing, self._others, self._look)

    @property
    def svg(self) -> str:
        """The figure as SVG; equal numbers give equal text."""
        return self._written("svg").decode("utf-8")

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the figure as SVG, PDF or PNG, by the ending of the name."""
        kind = Path(path).suffix.lower().removeprefix(".")
        if kind not in KINDS:
            raise UsageError(f"{path}: the name of a figure must end in {', '.join(KINDS)}")
        written = self._written(kind)
        with replacing(path) as temporary:
            temporary.write_bytes(written)

    def _written(self, kind: str) -> bytes:
        figure = self.figure
        from .print.plots import save

        stream = io.BytesIO()
        save(figure, stream, kind)
        return stream.getvalue()


def check_matplotlib() -> None:
    """Refuse to draw if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UsageError(f"figures need matplotlib: {installing('figures')}") from error


def figures_of(report: Report) -> dict[str, Picture]:
    """All figures of a report, by the name of their file."""
    from .page.page import styles_of
    from .print.printing import sheets_of

    look = styles_of(report)
    found = {}
    for sheet in sheets_of(report):
        if sheet.drawing is not None:
            names = {layer.table for layer in sheet.drawing.layers} - {""}
            others = {name: report[name] for name in names}
            found[sheet.name] = Picture(sheet.name, sheet.table, sheet.drawing, others, look)
    return found


def picture_of(comparison: Comparison, prices: str | None = None) -> Picture:
    """The mean cost of each row of a comparison, at one price list.

    Args:
        comparison: the comparison.
        prices: the price list, as in `--costs`; it is needed if there are several.
    """
    from .parts.summary import SUMMARY, add_comparison
    from .rows import RowCollector

    if comparison.is_bounded:
        return _picture_of_bounds(comparison, prices)
    wanted = _chosen(comparison, prices)
    rows = RowCollector()
    add_comparison(rows, "log", comparison)
    found = next(t for t in rows.tables([SUMMARY]))
    at = [row.prices for row in comparison.rows]
    own = tuple(row for row, price in zip(found.rows, at, strict=True) if price == wanted)
    table = SUMMARY.table(own, found.notes)
    return Picture("summary", table, SUMMARY.drawings[0])


def _chosen(comparison: Comparison, prices: str | None) -> str:
    """The price list to draw."""
    lists = list(dict.fromkeys(row.prices for row in comparison.rows))
    wanted = prices.replace(" ", "") if prices is not None else lists[0]
    if wanted not in lists or (prices is None and len(lists) > 1):
        shown = "; ".join(lists)
        raise UsageError(f"choose a price list, as in plot({lists[0]!r}); there are {shown}")
    return wanted


_BOUNDS = TableSchema(
    name="bounds",
    title="What each policy would have cost, whatever the missing labels are",
    caption="The lowest and highest mean cost of a trial.",
    alt="An interval for the mean cost of each policy.",
    columns=(
        c.POLICY,
        c.cost("low", "from", "the mean cost if all missing labels are passes"),
        c.cost("high", "to", "the mean cost if all missing labels are failures"),
    ),
    drawings=(
        Drawing(
            Axis("high", zero=True, label="mean cost of a trial, lowest to highest"),
            POLICY_AXIS,
            (Layer("interval", "low", "policy", x2="high", by="policy"),),
        ),
    ),
)


def _picture_of_bounds(comparison: Comparison, prices: str | None) -> Picture:
    wanted = _chosen(comparison, prices)
    rows = [
        (row.policy, row.least_cost, row.cost) for row in comparison.rows if row.prices == wanted
    ]
    return Picture("bounds", _BOUNDS.table(rows, ()), _BOUNDS.drawings[0])


def report_on(log: Log, costs: Costs | Sequence[Costs] = Costs(), **options: Any) -> Report:  # noqa: B008 - frozen
    """The report of one log, as `grv report` makes it.

    Args:
        log: the log.
        costs: one price list, or several.
        options: the options of `grv report`: `policies`, `orders`, `baseline` and so on.
    """
    from .build import make_report
    from .inputs import ReportSource
    from .request import ReportRequest

    prices = (costs,) if isinstance(costs, Costs) else tuple(costs)
    name = Path(log.path).stem or "log"
    return make_report([ReportSource(name, log=log)], ReportRequest(costs=prices, **options))
