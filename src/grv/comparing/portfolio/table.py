"""The result of a comparison of generators: rows with intervals, and what to buy."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...files import write_whole
from ...text import aligned, csv_text
from ..significance import Resampled
from .trials import GeneratorTrials


@dataclass(frozen=True)
class GeneratorRow:
    """One way to use the generators. Means are over trials: a problem in one order.

    Attributes:
        name: the row's name.
        solved: the share of trials solved.
        cost: the mean cost.
        cost_low: the lower end of the 95 % interval of the mean cost, by resampling problems.
        cost_high: the upper end.
        ratio: the mean cost over that of the baseline.
        low: the lower end of the 95 % interval of the ratio.
        high: the upper end.
        spent: the mean cost by generator.
        answers: by generator, its share of the answers.
    """

    name: str
    solved: float
    cost: float
    cost_low: float | None
    cost_high: float | None
    ratio: float
    low: float | None
    high: float | None
    spent: Mapping[str, float]
    answers: Mapping[str, float]

    @classmethod
    def of(
        cls,
        name: str,
        trials: GeneratorTrials,
        base: GeneratorTrials,
        names: Sequence[str],
        resampled: Resampled,
    ) -> GeneratorRow:
        """The row of these trials."""
        costs = trials.costs
        low, high = resampled.ratio(costs, np.ones_like(costs)) or (None, None)
        ratio_low, ratio_high = resampled.ratio(costs, base.costs) or (None, None)
        answers = trials.answered.sum(axis=(0, 1))
        return cls(
            name,
            float(trials.solved.mean()),
            float(costs.mean()),
            low,
            high,
            float(costs.mean() / base.costs.mean()),
            ratio_low,
            ratio_high,
            dict(zip(names, trials.spent.mean(axis=(0, 1)).tolist(), strict=True)),
            dict(zip(names, (answers / max(1, answers.sum())).tolist(), strict=True)),
        )

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of the table for people."""
        between = "" if self.cost_low is None else f"{self.cost_low:.1f}-{self.cost_high:.1f}"
        ratios = "" if self.low is None else f"{self.low:.2f}-{self.high:.2f}"
        return (
            self.name,
            f"{self.cost:.1f}",
            between,
            f"x{self.ratio:.2f}",
            ratios,
            f"{self.solved:.1%}",
        )


@dataclass(frozen=True, eq=False)
class GeneratorComparison:
    """The rows of a comparison of generators.

    Attributes:
        settings: what was compared.
        rows: one per way to use the generators.
        left_out: the problems that no generator solves.
        needed: for each generator, the problems that only it solves.
        problems: the names of the problems.
        trials: the trials by row, for further work.
    """

    settings: Mapping[str, Any]
    rows: tuple[GeneratorRow, ...]
    left_out: tuple[str, ...] = ()
    needed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    trials: Mapping[str, GeneratorTrials] = field(default_factory=dict, repr=False)

    def __getitem__(self, name: str) -> GeneratorRow:
        """The row with this name."""
        return next(row for row in self.rows if row.name == name)

    def table(self) -> str:
        """The rows as plain text."""
        head = ("row", "cost", "95 %", "ratio", "95 %", "solved")
        return aligned(head, [row.cells for row in self.rows], left=1)

    def advice(self) -> list[str]:
        """What each generator contributes, which problems need it, and what to buy."""
        names = list(self.settings["costs"])
        mixed = self["portfolio-learned"]
        lines = []
        for name in names:
            alone = self[f"only({name})"]
            need = self.needed.get(name, ())
            lines.append(
                f"{name}: alone it solves {alone.solved:.1%} for {alone.cost:.1f} each; in the"
                f" learned portfolio it has {mixed.answers[name]:.0%} of the answers and"
                f" {mixed.spent[name] / mixed.cost:.0%} of the cost; {len(need)} problems need it"
                + (f" ({_few(need)})" if need else "")
            )
        unused = [n for n in names if mixed.answers[n] < 0.01 and not self.needed.get(n)]
        if unused:
            lines.append(f"not worth its cost here: {', '.join(unused)}")
        return [*lines, self._best()]

    def _best(self) -> str:
        """The cheapest way that solves most, among those that can run live."""
        live = [row for row in self.rows if row.name != "oracle-generator"]
        most = max(row.solved for row in live)
        best = min((row for row in live if row.solved == most), key=lambda row: row.cost)
        return (
            f"The cheapest row that solves {most:.1%} is {best.name}: {best.cost:.1f} each,"
            f" {best.cost / self['portfolio'].cost - 1:+.0%} against the cold portfolio."
        )

    def to_json(self) -> dict[str, Any]:
        """The numbers, as plain data."""
        return {
            "settings": dict(self.settings),
            "rows": [asdict(row) for row in self.rows],
            "left_out": list(self.left_out),
            "needed": {name: list(problems) for name, problems in self.needed.items()},
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the numbers as JSON; the file is replaced atomically."""
        write_whole(path, json.dumps(self.to_json(), indent=1) + "\n")

    def save_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the rows as CSV; the file is replaced atomically."""
        names = list(self.settings["costs"])
        plain = ["name", "solved", "cost", "cost_low", "cost_high", "ratio", "low", "high"]
        head = [*plain, *(f"spent_{n}" for n in names), *(f"answers_{n}" for n in names)]
        rows = [
            [
                *(getattr(row, each) for each in plain),
                *(row.spent[n] for n in names),
                *(row.answers[n] for n in names),
            ]
            for row in self.rows
        ]
        write_whole(path, csv_text(head, rows))


def needed_by(
    problems: Sequence[str], solved: Mapping[str, NDArray[np.bool_]]
) -> dict[str, tuple[str, ...]]:
    """For each generator, the problems that it solves in some order and no other one does."""
    solves = {name: each.any(axis=1) for name, each in solved.items()}
    total = np.sum(list(solves.values()), axis=0)
    return {
        name: tuple(problems[at] for at in np.flatnonzero(each & (total == 1)).tolist())
        for name, each in solves.items()
    }


def _few(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
