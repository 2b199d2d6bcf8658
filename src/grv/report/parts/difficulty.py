"""Baselines that know each problem's pass rate, by the number of difficulty groups."""

from __future__ import annotations

import re

from ...comparing.comparison import Comparison
from .. import columns as c
from ..dataset import HINDSIGHT
from ..drawing import Axis, Drawing, Layer
from ..part import Part, RowCollector, TableSchema, price_name

_GROUPED = re.compile(r"difficulty-([0-9]+)")

DIFFICULTY = TableSchema(
    name="difficulty",
    title="Costs relative to the baseline, by number of difficulty groups",
    caption="These rows know each problem's pass rate and use one pair per group of similar"
    " problems. Hindsight also knows the order. The numbers include the other policies.",
    alt="The cost of each row relative to the baseline against the number of groups, with"
    " intervals, and lines for the policies without groups.",
    columns=(
        c.LOG,
        c.COSTS,
        c.POLICY,
        c.number("groups", "groups", "the number of difficulty groups, if the row has any"),
        c.COST,
        c.RATIO,
        c.LOW,
        c.HIGH,
        c.SOLVED,
    ),
    drawings=(
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
)
GROUPS = TableSchema(
    name="groups",
    title="The difficulty groups",
    caption="For each number of groups, the division into groups that costs least, with the pass"
    " rates and the pair of each group. The hardest group comes first.",
    alt="A table of groups.",
    columns=(
        c.LOG,
        c.COSTS,
        c.POLICY,
        c.number("group", "group", "from 1, hardest first"),
        c.PROBLEMS,
        c.percent("from", "pass rate from", "the lowest pass rate in the group", 2),
        c.percent("to", "to", "the highest pass rate in the group", 2),
        c.PAIR_M,
        c.PAIR_K,
    ),
)


def add_comparison(rows: RowCollector, name: str, comparison: Comparison) -> None:
    """One row per policy and price list, and one per group."""
    for row in comparison.rows:
        match = _GROUPED.fullmatch(row.policy)
        head = (name, price_name(row.costs), row.policy)
        numbers = (row.cost, row.ratio, row.low, row.high, row.solved)
        rows.add(DIFFICULTY, *head, int(match[1]) if match else None, *numbers)
        for at, group in enumerate(row.groups or (), 1):
            rows.add(GROUPS, *head, at, group.problems, *group.pass_rate, group.m, group.k)
    policies = {row.policy for row in comparison.rows}
    if all(row.ratio is None for row in comparison.rows):
        rows.note(DIFFICULTY, f"{name}: there are no ratios, because there is no baseline.")
    else:
        rows.note(DIFFICULTY, f"{name}: ratios are relative to {comparison.baseline}.")
    if not any(map(_GROUPED.fullmatch, policies)):
        rows.note(DIFFICULTY, f"{name}: no difficulty-K is among the policies.")
    if HINDSIGHT not in policies:
        rows.note(DIFFICULTY, f"{name}: {HINDSIGHT} is not among the policies.")


PART = Part("costs", (DIFFICULTY, GROUPS), add_comparison)
