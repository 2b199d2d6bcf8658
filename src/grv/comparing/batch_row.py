"""What one budget for many problems buys: one row per schedule, policy, price list and budget."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..core.values import Costs
from ..parsing import costs_record, written_costs
from ..schedules import SCHEDULES


@dataclass(frozen=True)
class BatchRow:
    """One schedule and policy with one budget.

    Attributes:
        schedule: the rule, or the baseline.
        policy: what decides within a problem.
        costs: the price list.
        budget: the money for all problems.
        share: the budget as a share of the mean cost at which the default policy solves all
            solvable problems.
        problems: the number of problems.
        solvable: how many of them have a pass.
        solved: the mean share of the solvable problems that are solved.
        low: the lower end of its 95 % interval.
        high: the upper end.
    """

    schedule: str
    policy: str
    costs: Costs
    budget: float
    share: float
    problems: int
    solvable: int
    solved: float
    low: float
    high: float

    @property
    def prices(self) -> str:
        """The price list, as written in the option `--costs`."""
        return written_costs(self.costs, ".3g")

    def to_json(self) -> dict[str, Any]:
        """The record in the file of a comparison."""
        record = dataclasses.asdict(self)
        record["costs"] = costs_record(self.costs)
        return record


def batch_cells(rows: Sequence[BatchRow]) -> tuple[list[str], list[list[str]]]:
    """The head and the cells of a table for people: a column for each budget."""
    budgets = list(dict.fromkeys((row.budget, row.share) for row in rows))
    shown = {(row.schedule, row.policy, row.budget): row for row in rows}
    names = dict.fromkeys((row.schedule, row.policy) for row in rows)
    head = ["schedule", "policy", *(f"{100 * share:.3g} %" for _, share in budgets)]
    cells = []
    for schedule, policy in names:
        own = [shown[schedule, policy, budget] for budget, _ in budgets]
        shares = [f"{row.solved:.2f} ({row.low:.2f}-{row.high:.2f})" for row in own]
        cells.append([schedule, policy, *shares])
    return head, cells


def batch_words(rows: Sequence[BatchRow]) -> list[str]:
    """What the money buys, in a sentence for each budget: the first policy, rules that run live."""
    lines = []
    for budget, share in dict.fromkeys((row.budget, row.share) for row in rows):
        own = [row for row in rows if row.budget == budget and row.schedule in SCHEDULES]
        same = [row for row in own if row.policy == own[0].policy]
        if not same:
            continue
        best = sorted(same, key=lambda row: -row.solved)
        first, *others = best
        rest = "".join(f", {row.schedule} {100 * row.solved:.0f} %" for row in others)
        lines.append(
            f"With {_share_words(share)} ({budget:.4g}), {first.schedule} solves"
            f" {100 * first.solved:.0f} % of the {first.solvable} solvable problems{rest}."
        )
    return lines


def _share_words(share: float) -> str:
    """A share of the money that solving everything solvable costs."""
    names = {0.1: "a tenth of the money", 0.25: "a quarter of the money", 0.5: "half the money"}
    names |= {0.75: "three quarters of the money", 1.0: "the money for all solvable problems"}
    return names.get(round(share, 6), f"{100 * share:.3g} % of the money")
