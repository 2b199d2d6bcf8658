"""How often policies wait for results, and how long trials take."""

from __future__ import annotations

from ...comparing.comparison import Comparison
from .. import columns as c
from ..drawing import COST_AXIS, Axis, Drawing, Layer
from ..part import Part, RowCollector, TableSchema, price_name
from ..table import Column

ROUNDS = TableSchema(
    name="rounds",
    title="Time and cost",
    caption="How often each policy waits for results, and how long a trial takes if the duration of"
    " a round is known.",
    alt="A point for each policy: cost across, rounds or seconds up.",
    columns=(
        c.LOG,
        c.COSTS,
        c.POLICY,
        c.COST,
        c.number("rounds", "rounds", "mean number of rounds", 1),
        c.number("generate_rounds", "generating", "mean number of rounds of generation", 1),
        c.number("verify_rounds", "verifying", "mean number of rounds of verification", 1),
        Column("seconds", "time", "number", "mean time of a trial", unit="s", digits=1),
    ),
    drawings=(
        Drawing(
            COST_AXIS,
            Axis("rounds", "log", label="rounds"),
            (Layer("points", "cost", "rounds", by="policy"),),
            view="rounds",
        ),
        Drawing(
            COST_AXIS,
            Axis("seconds", "log"),
            (Layer("points", "cost", "seconds", by="policy"),),
            view="seconds",
        ),
    ),
)


def add_comparison(rows: RowCollector, name: str, comparison: Comparison) -> None:
    """One row per policy and price list."""
    for row in comparison.rows:
        generate = row.generate_rounds
        verify = row.verify_rounds
        head = (name, price_name(row.costs), row.policy, row.cost)
        rows.add(ROUNDS, *head, generate + verify, generate, verify, row.seconds)
    if any(row.seconds is None for row in comparison.rows):
        text = "there are no seconds, because the duration of a round is unknown (--latency)."
        rows.note(ROUNDS, f"{name}: {text}")


PART = Part("time", (ROUNDS,), add_comparison)
