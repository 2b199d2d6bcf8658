"""Computes `docs/theory/figures/data.json`, and draws the figures of the learning theory from it.

python docs/make_figures.py          # both; some minutes
python docs/make_figures.py --draw   # the figures alone, from the numbers that are there
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from grv.core.values import Costs

FIGURES = Path(__file__).parent / "theory" / "figures"
COLOURS = (
    "#1b6ca8",
    "#c8553d",
    "#3a7d44",
    "#7b5ea7",
    "#b8860b",
    "#00a0a0",
    "#d16ba5",
    "#333333",
    "#8a8a8a",
    "#a0522d",
)
RUNS = 60


@dataclass(frozen=True)
class Line:
    """One series: its points, and how they are drawn."""

    name: str
    points: Sequence[tuple[float, float]]
    style: str = "solid"  # or dashed, dots, steps: level up to the next point


@dataclass(frozen=True)
class Chart:
    """Series over two axes, as an SVG of a few kilobytes."""

    title: str
    across: str
    up: str
    lines: Sequence[Line]
    log: bool = False

    def svg(self) -> str:
        """The whole picture."""
        values = [point for line in self.lines for point in line.points]
        across = self._scale([x for x, _ in values], 70, 510)
        up = self._scale([y for _, y in values], 300, 40)
        parts = [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 350"'
            ' font-family="sans-serif" font-size="12">',
            '<rect width="780" height="350" fill="white"/>',
            _text(290, 22, self.title, "middle", weight="bold"),
            _text(290, 340, self.across, "middle"),
            f'<g transform="rotate(-90 16 170)">{_text(16, 170, self.up, "middle")}</g>',
            '<path d="M70 40V300H510" fill="none" stroke="#444"/>',
        ]
        for value, at in across.ticks:
            parts.append(_text(at, 318, f"{value:g}", "middle"))
        for value, at in up.ticks:
            parts.append(f'<path d="M70 {at:.1f}H510" stroke="#ddd"/>')
            parts.append(_text(64, at + 4, f"{value:g}", "end"))
        for number, line in enumerate(self.lines):
            colour = COLOURS[number % len(COLOURS)]
            drawn = [(across.at(x), up.at(y)) for x, y in line.points]
            parts.append(_series(drawn, line.style, colour))
            below = 52 + 18 * number
            places = (536.0,) if line.style == "dots" else (527.0, 545.0)
            parts.append(_series([(x, below - 4.0) for x in places], line.style, colour))
            parts.append(_text(551, below, line.name, "start", colour=colour))
        return "\n".join([*parts, "</svg>", ""])

    def _scale(self, values: Sequence[float], start: float, end: float) -> _Scale:
        if self.log:
            low = math.log10(min(values))
            high = math.log10(max(values))
            return _Scale(math.log10, math.floor(low * 4) / 4, math.ceil(high * 4) / 4, start, end)
        size = 10 ** math.floor(math.log10(max(values)))
        step = next(part * size for part in (0.2, 0.5, 1, 2) if max(values) <= 6 * part * size)
        return _Scale(float, 0, step * math.ceil(max(values) / step - 1e-9), start, end, step)


@dataclass(frozen=True)
class _Scale:
    by: Callable[[float], float]
    low: float
    high: float
    start: float
    end: float
    step: float = 0.0

    def at(self, value: float) -> float:
        share = (self.by(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    @property
    def ticks(self) -> list[tuple[float, float]]:
        if self.by is math.log10:
            powers = range(math.ceil(self.low), math.floor(self.high) + 1)
            values = [part * 10.0**power for power in powers for part in (1, 3)]
            values = [value for value in values if math.log10(value) <= self.high]
        else:
            values = [self.step * part for part in range(round(self.high / self.step) + 1)]
        return [(value, self.at(value)) for value in values]


def _text(
    x: float, y: float, text: str, anchor: str, *, weight: str = "normal", colour: str = "#222"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}"'
        f' fill="{colour}">{escape(text)}</text>'
    )


def _series(points: Sequence[tuple[float, float]], style: str, colour: str) -> str:
    if style == "dots":
        dots = (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in points)
        return f'<g fill="{colour}" fill-opacity="0.6">{"".join(dots)}</g>'
    if style == "steps":
        levels = [y for _, y in points]
        points = [
            corner
            for (x, y), before in zip(points, [levels[0], *levels], strict=False)
            for corner in ((x, before), (x, y))
        ]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dash = ' stroke-dasharray="6 4"' if style == "dashed" else ""
    return f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'


def closing() -> dict[str, Any]:
    """How the interval of a random class closes, step by step."""
    from grv.theory.stars.classes import ConceptClass
    from grv.theory.stars.search import narrowing

    values = np.random.default_rng(30).random((200, 30)) < 0.3
    seen: list[tuple[int, int, int]] = []
    for step, star in enumerate(narrowing(ConceptClass(values.astype(np.float64))), 1):
        if not seen or (star.lower, star.upper) != seen[-1][1:]:
            seen.append((step, star.lower, star.upper))
    return {"steps": [*seen, (step, star.lower, star.upper)]}


def lower() -> dict[str, Any]:
    """Every sound policy against hard instances, at a cost ratio of 100."""
    from grv.comparing.simulation.star_trials import lineup, measure
    from grv.theory.stars.bounds import star_instance
    from grv.theory.stars.classes import family
    from grv.theory.stars.search import star_number

    rows = []
    for points in (1, 4, 16, 64, 256):
        of = family(f"singletons:{points}")
        assert of is not None
        instance = star_instance(of, star_number(of))
        policies = lineup(instance)[0]
        measured = measure(policies, instance, [Costs(1, 100)], runs=RUNS, patience=32)
        rows += [
            [row.policy, row.star, row.ratio, row.bound, row.tighter, row.cut_off]
            for row in measured
            if row.sound
        ]
    return {"ratio": 100, "runs": RUNS, "rows": rows}


def upper() -> dict[str, Any]:
    """Centered-star search on random classes and laws, in units of min(s_0, rho) J*."""
    from grv.comparing.simulation.star_trials import stream
    from grv.policies import CenteredStar
    from grv.theory.optimum import Law
    from grv.theory.stars.bounds import binary_optimum
    from grv.theory.stars.classes import ConceptClass
    from grv.theory.stars.search import star_number

    rows = []
    for case in range(120):
        chance = np.random.default_rng((case, 6))
        points = int(chance.integers(2, 11))
        rho = float(chance.choice([1, 3, 10, 30, 100]))
        values = chance.random((int(chance.integers(2, 20)), points)) < chance.choice([0.2, 0.5])
        values = values[values.any(axis=1)]
        if not len(values):
            continue
        of = ConceptClass(values.astype(np.float64))
        truth = values[int(chance.integers(len(values)))].astype(float)
        masses = chance.random(points) ** float(chance.choice([1, 8])) + 1e-4
        law = Law(tuple(map(float, range(points))), tuple(masses), tuple(truth))
        unit = min(star_number(of).upper, rho) * binary_optimum(law.pass_rate, Costs(1, rho))
        policy = CenteredStar(" ".join(of.rows()))
        spent = [stream(policy, law, Costs(1, rho), chance).bill.total for _ in range(RUNS)]
        rows.append([law.pass_rate, float(np.mean(spent)) / unit])
    return {"runs": RUNS, "rows": rows}


def hitting() -> dict[str, Any]:
    """Smallest hitting sets of whole random classes beside their star numbers."""
    from grv.theory.stars.classes import ConceptClass
    from grv.theory.stars.hitting import smallest_hitting_set
    from grv.theory.stars.search import star_number

    rows = []
    for case in range(80):
        chance = np.random.default_rng((case, 8))
        shape = (int(chance.integers(5, 60)), int(chance.integers(3, 16)))
        values = chance.random(shape) < chance.choice([0.15, 0.3, 0.6])
        traces = [np.flatnonzero(row).tolist() for row in values]
        star = star_number(ConceptClass(values.astype(np.float64))).upper
        rows.append([star, len(smallest_hitting_set(traces).members)])
    return {"rows": rows}


def learning() -> dict[str, Any]:
    """How often searching by learning finds, as the positive mass grows."""
    from grv.theory.proofs.active_learning import (
        FiniteSpace,
        disagreement_learner,
        pool_size,
        search_by_learning,
    )
    from grv.theory.stars.classes import intervals

    of = intervals(12)
    epsilon = 0.05
    delta = 0.2
    runs = 400
    concepts = of.binary()
    chance = np.random.default_rng(9)
    learner = disagreement_learner(partial(FiniteSpace, of))
    size = pool_size(of.concepts, epsilon, delta)
    rows = []
    for mass in (0.002, 0.005, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2):
        found = 0
        for _ in range(runs):
            truth = concepts[1 + int(chance.integers(of.concepts - 1))]
            law = np.where(truth, mass / truth.sum(), (1 - mass) / max(1, (~truth).sum()))
            pool = chance.choice(of.points, size=size, p=law / law.sum()).tolist()
            result = search_by_learning(learner, pool, truth.tolist().__getitem__)
            found += bool(truth[pool[result.index]])
        rows.append([mass / epsilon, found / runs])
    return {"delta": delta, "runs": runs, "rows": rows}


def separating() -> dict[str, Any]:
    """Labels for searching and for learning as d grows."""
    from grv.theory.proofs.separation import measure

    rows = []
    for d in (4, 8, 16, 32, 64, 128, 256):
        row = measure(d, 0.1, 0.1, runs=200)
        rows.append([d, row.search_labels, row.learn_labels, row.labels_bound, row.fewest_labels])
    return {"rows": rows}


def charts(data: dict[str, Any]) -> dict[str, Chart]:
    """Every figure, from the numbers alone."""
    steps = data["closing"]["steps"]
    rows = data["lower"]["rows"]
    stars = dict.fromkeys((row[1], row[3], row[4]) for row in rows)
    separation = data["separating"]["rows"]
    largest = max(star for star, _ in data["hitting"]["rows"])
    furthest = max(x for x, _ in data["learning"]["rows"])
    target = 1 - 2 * data["learning"]["delta"]
    return {
        "closing": Chart(
            "A random class of 200 concepts on 30 points",
            "steps of the method",
            "star number",
            [
                Line("upper bound", [(step, high) for step, _, high in steps], "steps"),
                Line("largest star so far", [(step, low) for step, low, _ in steps], "steps"),
            ],
        ),
        "lower-bound": Chart(
            f"Hard instances, c_ver / c_rew = {data['lower']['ratio']}",
            "star number",
            "cost / J*",
            [
                *_policies(rows),
                Line("proved, this instance", [(m, tight) for m, _, tight in stars], "dashed"),
                Line("1/4 min(s_0, ratio)", [(m, bound) for m, bound, _ in stars], "dashed"),
            ],
            log=True,
        ),
        "search-bound": Chart(
            "Centered-star search on random classes and laws",
            "chance that a candidate passes",
            "cost / (min(s_0, c_ver / c_rew) J*)",
            [
                Line("measured", data["upper"]["rows"], "dots"),
                Line("the paper's bound", [(0, 6), (1, 6)], "dashed"),
                Line("the same proof, sharper", [(0, 3), (1, 3)], "dashed"),
            ],
        ),
        "hitting-sets": Chart(
            "Smallest hitting sets of random classes",
            "centered star number",
            "members",
            [
                Line("a class each", data["hitting"]["rows"], "dots"),
                Line("the lemma's bound", [(0, 0), (largest, largest)], "dashed"),
            ],
        ),
        "learning-implies-search": Chart(
            "Searching by learning intervals",
            "positive mass / epsilon",
            "share of searches that find",
            [
                Line("measured", data["learning"]["rows"]),
                Line("1 - 2 delta, from 2 on", [(2, target), (furthest, target)], "dashed"),
            ],
        ),
        "separation": Chart(
            "One class, two tasks",
            "d",
            "labels",
            [
                Line("learning, measured", [(row[0], row[2]) for row in separation]),
                Line("every learner, exact", [(row[0], row[4]) for row in separation], "dashed"),
                Line("every learner, Hoeffding", [(r[0], r[3]) for r in separation], "dashed"),
                Line("searching, measured", [(row[0], row[1]) for row in separation]),
            ],
            log=True,
        ),
    }


def _policies(rows: Sequence[Sequence[Any]]) -> list[Line]:
    """A line for each policy that was sound every time; one for all that cost the same."""
    found: dict[tuple[tuple[float, float], ...], list[str]] = {}
    cut_off = {row[0] for row in rows if row[5] > 0}
    sizes = {row[1] for row in rows}
    for name in dict.fromkeys(row[0] for row in rows):
        points = tuple((row[1], row[2]) for row in rows if row[0] == name)
        if len(points) == len(sizes):
            found.setdefault(points, []).append(f"{name} (cut off)" if name in cut_off else name)
    return [Line(", ".join(names), points) for points, names in found.items()]


def main() -> None:
    """Compute, unless told not to, and draw."""
    numbers = FIGURES / "data.json"
    if "--draw" not in sys.argv:
        FIGURES.mkdir(exist_ok=True)
        parts = {
            part.__name__: part() for part in (closing, lower, upper, hitting, learning, separating)
        }
        numbers.write_text(json.dumps(parts) + "\n", encoding="utf-8")
    for name, chart in charts(json.loads(numbers.read_text(encoding="utf-8"))).items():
        (FIGURES / f"{name}.svg").write_text(chart.svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
