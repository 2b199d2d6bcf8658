"""How each table is drawn: axes, and layers of marks over its columns.

Data, not code: the page (`assets/`) and the figures for print (`plots.py`) draw from the same
descriptions, so that they cannot show different things.
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
        column: whose label and kind the axis has.
        scale: `names` for a column of text, each value having its own place.
        zero: whether the axis begins at zero, whatever the values.
        label: instead of the column's.
        own: whether each log has its own ends, its values not being comparable with others'.
    """

    column: str
    scale: Scale = "linear"
    zero: bool = False
    label: str = ""
    own: bool = False


@dataclass(frozen=True)
class Layer:
    """One kind of mark, a mark for each row.

    Attributes:
        mark: `line` through the rows, `step` that holds up to the next row (or from x to x2),
            `points`, `bars`, `interval` from x to x2 or from y to y2, `band` between y and y2,
            `shade` of the x2 units up to x, as strong as y; `rule`, a line across at x or y; `iso`,
            lines of equal cost over numbers generated and verified.
        x: a column, or a number; `costs` is the ratio of the price list.
        y: likewise.
        x2: the other end of a bin or interval; other marks are in the middle of a bin.
        y2: likewise.
        by: the column whose values are drawn apart, each in its own colour.
        hue: the column of numbers that colours run along.
        series: what the legend calls it, where it is one thing.
        where: a column and the value it must have.
        table: another table to take the rows from.
        lane: in which of the lanes of a named place it lies, where several share the place.
        tone: the style's name, where it is not that of the series.
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
    """One picture of a table; `view` names it where a table has several."""

    x: Axis
    y: Axis
    layers: tuple[Layer, ...]
    view: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain data, without what is not said."""
        layers = [
            {k: v for k, v in asdict(one).items() if v not in ("", None)} for one in self.layers
        ]
        return {"x": asdict(self.x), "y": asdict(self.y), "layers": layers, "view": self.view}


def _by_policy(column: str, low: str, high: str, *marks: Layer, view: str = "") -> Drawing:
    """A point and its interval for each policy, policies one under the other, around 1."""
    layers = (
        *marks,
        Layer("interval", low, "policy", x2=high, by="policy"),
        Layer("points", column, "policy", by="policy"),
    )
    return Drawing(Axis(column, "log"), Axis("policy", "names"), layers, view)


def _curves(x: Axis, y: Axis, low: str, high: str, *marks: Layer, view: str = "") -> Drawing:
    """A line for each policy over a band."""
    layers = (
        *marks,
        Layer("band", x.column, low, y2=high, by="policy"),
        Layer("line", x.column, y.column, by="policy"),
        Layer("points", x.column, y.column, by="policy"),
    )
    return Drawing(x, y, layers, view)


_RHO = Axis("rho", "log", label="cost to verify over cost to generate")
_PRICES = Layer("rule", "costs", series="this price list", tone="quiet")
_EVEN_X = Layer("rule", 1.0, tone="quiet")
_EVEN_Y = Layer("rule", y=1.0, tone="quiet")
_NAMES = Axis("policy", "names")

DRAWINGS: dict[str, tuple[Drawing, ...]] = {
    "summary": (
        Drawing(
            Axis("cost", zero=True, label="mean cost of a trial"),
            _NAMES,
            (Layer("bars", "cost", "policy", by="policy"),),
        ),
    ),
    "paired": (
        Drawing(
            Axis("against", "log"),
            _NAMES,
            (
                _EVEN_X,
                Layer("interval", "low", "policy", x2="high", by="log"),
                Layer("points", "against", "policy", by="log"),
            ),
        ),
    ),
    "optimal_pairs": (
        Drawing(
            Axis("generated", "log"),
            Axis("verified", "log"),
            (Layer("iso"), Layer("points", "generated", "verified", hue="cost")),
        ),
    ),
    "difficulty": (
        Drawing(
            Axis("groups", label="difficulty groups"),
            Axis("ratio", "log"),
            (
                *(
                    Layer("rule", y="ratio", by="policy", where=("policy", name))
                    for name in ("hindsight", "adaptive", "verify-all")
                ),
                Layer("interval", "groups", "low", y2="high", series="difficulty groups"),
                Layer("line", "groups", "ratio", series="difficulty groups"),
                Layer("points", "groups", "ratio", series="difficulty groups"),
            ),
        ),
    ),
    "budget_curve": (
        Drawing(
            Axis("cost", "log", label="mean cost of a trial"),
            Axis("solved", zero=True),
            (
                Layer(
                    *("step", "cost", "solved"), series="best uniform pair", where=("kind", "curve")
                ),
                Layer("points", "cost", "solved", by="series", where=("kind", "mark")),
            ),
        ),
    ),
    "trials": (
        Drawing(
            Axis("place", label="trials, cheapest in hindsight first"),
            Axis("adaptive", "log", label="cost"),
            (
                Layer("shade", "place", "failed", "trials", series="the matched pair fails"),
                Layer("points", "place", "adaptive", series="adaptive: a trial", tone="adaptive"),
                Layer("band", "place", "low", y2="high", tone="adaptive"),
                Layer("line", "place", "median", series="adaptive: median", tone="adaptive"),
                Layer("line", "place", "hindsight", series="hindsight"),
            ),
        ),
    ),
    "sensitivity": (
        _curves(
            *(_RHO, Axis("ratio", "log"), "low", "high"),
            *(_PRICES, _EVEN_Y),
            view="relative to adaptive",
        ),
        _curves(
            *(_RHO, Axis("in_order", "log"), "in_order_low", "in_order_high"),
            *(_PRICES, _EVEN_Y),
            view="relative to verifying in order",
        ),
    ),
    "rank_pass": (
        Drawing(
            Axis("rank", zero=True),
            Axis("pass_rate", zero=True),
            (
                Layer("points", "rank", "pass_rate", series="pass rate", tone="quiet"),
                Layer("line", "rank", "rolling", series="rolling mean", tone="first"),
            ),
        ),
    ),
    "coverage": (
        Drawing(
            Axis("k", "log"),
            Axis("by_score", zero=True, label="holds a pass"),
            (
                Layer("line", "k", "at_random", series="k at random", tone="second"),
                Layer("line", "k", "by_score", series="k best by score", tone="first"),
            ),
        ),
    ),
    "auc": (
        Drawing(
            Axis("from", label="AUC"),
            Axis("problems", zero=True),
            (
                Layer("bars", "from", "problems", x2="to", tone="first"),
                Layer("rule", 0.5, series="chance", tone="quiet"),
                Layer("rule", "mean", table="auc_summary", series="mean", tone="second"),
                Layer("rule", "median", table="auc_summary", series="median", tone="third"),
            ),
        ),
    ),
    "score_distribution": (
        Drawing(
            Axis("from", label="score", own=True),
            Axis("share", zero=True, label="share of the verdict's candidates"),
            (Layer("bars", "from", "share", x2="to", by="verdict"),),
        ),
    ),
    "calibration": (
        Drawing(
            Axis("score", own=True),
            Axis("pass_rate", zero=True),
            (
                Layer("interval", "score", "low", y2="high", tone="first"),
                Layer("line", "score", "pass_rate", tone="first"),
                Layer("points", "score", "pass_rate", tone="first"),
            ),
        ),
    ),
    "monotonicity": (
        Drawing(
            Axis("from", label="place in the ranking, best to the right"),
            Axis("pass_rate", zero=True),
            (
                Layer("step", "from", "isotonic", x2="to", series="never falls", tone="second"),
                Layer("interval", "from", "low", "to", "high", tone="first"),
                Layer("points", "from", "pass_rate", "to", series="pass rate", tone="first"),
            ),
        ),
    ),
    "distrust": (
        Drawing(
            Axis("misled", "log", label="× cost of verifying in order"),
            _NAMES,
            (
                _EVEN_X,
                Layer("interval", "low", "policy", x2="high", tone="second"),
                Layer(
                    *("points", "misled", "policy"),
                    series="where the score misleads",
                    tone="second",
                ),
                Layer("points", "others", "policy", series="elsewhere", tone="first", lane=1),
            ),
        ),
    ),
    "which_policy": (
        Drawing(
            Axis("cheapest", zero=True, label="share of resamples in which it is the cheapest"),
            _NAMES,
            (Layer("bars", "cheapest", "policy", by="policy"),),
            view="share of resamples",
        ),
        _by_policy("against_best", "low", "high", _EVEN_X, view="cost over the cheapest"),
    ),
    "pays_for_itself": (
        Drawing(
            Axis("saving", label="saved against verifying in order of arrival"),
            _NAMES,
            (
                Layer("rule", 0.0, tone="quiet"),
                Layer("interval", "low", "policy", x2="high", by="policy"),
                Layer("points", "saving", "policy", by="policy"),
            ),
            view="what it saves",
        ),
        Drawing(
            Axis("break_even", "log", label="cheaper from this cost ratio on"),
            _NAMES,
            (
                _PRICES,
                Layer("interval", "break_even_low", "policy", x2="break_even_high", by="policy"),
                Layer("points", "break_even", "policy", by="policy"),
            ),
            view="from which cost ratio on",
        ),
    ),
    "better_score": (
        Drawing(
            Axis("auc", label="mean AUC of the score"),
            Axis("cost", zero=True),
            (
                Layer("line", "auc", "cost", by="policy"),
                Layer("points", "auc", "cost", by="policy"),
                Layer("rule", "auc", where=("now", 1), series="the score as it is", tone="quiet"),
            ),
        ),
    ),
    "cheaper_verifier": (
        Drawing(
            Axis("price", "log", label="price of a verification, now 100 %"),
            Axis("cost", "log"),
            (
                Layer("line", "price", "cost", by="policy"),
                Layer("points", "price", "cost", by="policy"),
            ),
        ),
    ),
    "rounds": (
        Drawing(
            Axis("cost", "log", label="mean cost of a trial"),
            Axis("rounds", "log", label="rounds of waiting"),
            (Layer("points", "cost", "rounds", by="policy"),),
            view="rounds",
        ),
        Drawing(
            Axis("cost", "log", label="mean cost of a trial"),
            Axis("seconds", "log"),
            (Layer("points", "cost", "seconds", by="policy"),),
            view="seconds",
        ),
    ),
    "unsolved": (
        Drawing(
            Axis("cost", zero=True, label="mean cost of a trial"),
            _NAMES,
            (
                Layer("bars", "solvable_cost", "policy", series="solvable", tone="first"),
                Layer("bars", "cost", "policy", series="unsolvable", tone="second", lane=1),
            ),
        ),
    ),
}
