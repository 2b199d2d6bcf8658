"""How a table is drawn: axes, and layers of marks over its columns.

A drawing is data, not code. The page (`page/assets`) and the figures for print (`print/plots.py`)
read the same drawing, so both show the same picture.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Scale = Literal["linear", "log", "names"]
Mark = Literal["line", "step", "points", "bars", "interval", "band", "shade", "rule", "iso"]


@dataclass(frozen=True)
class Axis:
    """One direction of a drawing.

    Attributes:
        column: the column that gives the axis its label and kind.
        scale: `names` for a column of text: each value has its own place.
        zero: whether the axis always begins at zero.
        label: replaces the label of the column.
        own: whether each log has its own range, because values of two logs are not comparable.
    """

    column: str
    scale: Scale = "linear"
    zero: bool = False
    label: str = ""
    own: bool = False


@dataclass(frozen=True)
class Layer:
    """One kind of mark, drawn once per row.

    Attributes:
        mark: `line` through the rows; `step`, constant up to the next row (or from x to x2);
            `points`; `bars`; `interval` from x to x2 or from y to y2; `band` between y and y2;
            `shade` of the x2 units up to x, with opacity y; `rule`, a line across at x or y;
            `iso`, lines of equal cost over the numbers generated and verified.
        x: a column, or a number; `costs` means the cost ratio of the price list.
        y: as x.
        x2: the other end of a bin or interval; other marks are drawn in the middle of a bin.
        y2: the other end on the y axis.
        by: the column whose values are drawn separately, each in its own style.
        hue: the numeric column that gives the colour.
        series: the name in the legend, if the layer has one.
        where: a column and the value it must have.
        table: another table to take the rows from.
        lane: the position beside other layers that share a named place.
        tone: the name of the style, if it is not that of the series.
    """

    mark: Mark
    x: str | float = ""
    y: str | float = ""
    x2: str = ""
    y2: str = ""
    by: str = ""
    hue: str = ""
    series: str = ""
    where: tuple[str, str | float | None] | None = None
    table: str = ""
    lane: int = 0
    tone: str = ""


@dataclass(frozen=True)
class Drawing:
    """One picture of a table. A table with several drawings names each with `view`."""

    x: Axis
    y: Axis
    layers: tuple[Layer, ...]
    view: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain data, without empty fields of layers."""
        layers = [
            {k: v for k, v in asdict(one).items() if v not in ("", None)} for one in self.layers
        ]
        return {"x": asdict(self.x), "y": asdict(self.y), "layers": layers, "view": self.view}


POLICY_AXIS = Axis("policy", "names")
COST_AXIS = Axis("cost", "log", label="mean cost of a trial")
AT_PRICES = Layer("rule", "costs", series="this price list", tone="quiet")
AT_X_1 = Layer("rule", 1.0, tone="quiet")
AT_Y_1 = Layer("rule", y=1.0, tone="quiet")
