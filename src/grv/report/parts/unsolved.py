"""What policies spend on problems without any candidate that passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...comparing.rows import PolicyRow, parse_row
from ...core.search import Policy
from ...replay.kernels.dispatch import trials
from ...replay.orders import OrderBatch
from .. import columns as c
from ..dataset import Tried
from ..drawing import POLICY_AXIS, Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema

UNSOLVED = TableSchema(
    name="unsolved",
    title="What unsolved problems cost",
    caption="The mean cost of a trial on problems without any candidate that passes. A search"
    " without a budget spends everything that the log has.",
    alt="Two bars for each policy: spending on solvable and on unsolvable problems.",
    columns=(
        c.LOG,
        c.COSTS,
        c.POLICY,
        c.number("problems", "unsolvable", "problems without any pass"),
        c.COST,
        c.cost("solvable_cost", "solvable", "mean cost of a trial on a solvable problem"),
        c.percent("share", "of all spending", "share spent on unsolvable problems"),
        c.cost("per_solved", "per answer", "all spending divided by the problems solved"),
    ),
    drawings=(
        Drawing(
            Axis("cost", zero=True, label="mean cost of a trial"),
            POLICY_AXIS,
            (
                Layer("bars", "solvable_cost", "policy", series="solvable", tone="first"),
                Layer("bars", "cost", "policy", series="unsolvable", tone="second", lane=1),
            ),
        ),
    ),
)


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """One row per price list and live policy."""
    log = dataset.log
    if not log.unsolvable:
        rows.note(UNSOLVED, f"{dataset.name}: every problem with candidates is solvable.")
        return
    solvable = np.array([problem.solvable for problem in dataset.problems])
    for (at, name), amounts in _spending(dataset).items():
        costs, prices = dataset.named_costs[at]
        numbers: tuple[float | None, ...] = (float(np.mean(amounts)), None, 1.0, None)
        if log.solvable:
            numbers = _shares(dataset.tried[costs, name], solvable, amounts)
        rows.add(UNSOLVED, dataset.name, prices, name, len(amounts), *numbers)
    rows.note(
        UNSOLVED,
        f"{dataset.name}: {len(log.unsolvable)} of {len(log.problems)} problems have no candidate"
        " that passes. What they cost depends on how many candidates the log has. Live, a budget"
        " limits it.",
    )


def _spending(dataset: Dataset) -> dict[tuple[int, str], list[float]]:
    """The mean cost of each unsolvable problem, by price list and policy."""
    policies: dict[str, Policy] = {}
    for name in dataset.request.live:
        kind = parse_row(name)
        assert isinstance(kind, PolicyRow)
        policies[name] = kind.policy
    asked = [(at, name) for at in range(len(dataset.costs)) for name in policies]

    limits = replace(dataset.request.limits, answers=1, cascade=dataset.cascade)

    def amounts(batch: OrderBatch) -> list[float]:
        found = []
        for at, name in asked:
            costs = dataset.costs[at]
            tried = trials(policies[name], batch, costs, limits)
            found.append(float(tried.costs(costs).mean()))
        return found

    by_problem = list(dataset.visit(amounts, of=dataset.log.unsolvable))
    return {each: [spent[at] for spent in by_problem] for at, each in enumerate(asked)}


def _shares(
    tried: Tried, solvable: NDArray[np.bool_], amounts: Sequence[float]
) -> tuple[float, float, float, float | None]:
    """Mean costs on unsolvable and solvable problems, the share of the former, cost per answer."""
    on_solvable = tried.by_problem[solvable]
    lost = sum(amounts)
    total = sum(amounts) + float(on_solvable.sum())
    answers = float(tried.trials.solved[solvable].mean(axis=1).sum())
    means = lost / len(amounts), float(on_solvable.mean())
    return *means, lost / total, total / answers if answers else None


PART = Part("time", (UNSOLVED,), of_log=add_log, needs_pass=False)
