"""`grv demo --replay`: the comparison on the log that the package ships, and what it shows."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from ...text import aligned
from ..console import progress, say, say_table

if TYPE_CHECKING:
    from ...experiments.comparison import Comparison

# Each row, and the tools that work like it today.
LIKE = {
    "fixed(16, 4)": "best-of-n frameworks: one size for all problems",
    "difficulty-1": "the same, with the best size for these problems",
    "verify-all": "DSPy's BestOfN: verifies each candidate as it comes",
    "adaptive": "the published algorithm",
    "default": "grv",
    "hindsight": "no tool: it knows all verdicts in advance",
}
ORDERS = 100


def show_replay() -> None:
    """Replay the log that comes with grv, and print what a policy saves."""
    from ...experiments.compare import compare
    from ...logs.readers import read_log

    with (
        resources.as_file(resources.files("grv") / "data" / "sample.csv") as path,
        progress("comparing") as tell,
    ):
        comparison = compare(list(LIKE), read_log(str(path)), orders=ORDERS, progress=tell)
    log = comparison.log
    say(
        f"sample.csv comes with grv: {log.problems} problems, {log.candidates} synthetic"
        " candidates.",
        "Generating a candidate costs 1, verifying one costs 10. Means over"
        f" {ORDERS} random orders per problem:",
        "",
    )
    say_table(table(comparison))
    say("", *_saved(comparison))


def table(comparison: Comparison) -> str:
    """The rows, each with the tools that work like it."""
    head = ("policy", "works like", "generated", "verified", "cost", "solved")
    rows = [
        (
            *(row.policy, LIKE[row.policy]),
            *(f"{row.generated:.1f}", f"{row.verified:.1f}", f"{row.cost:.1f}"),
            f"{row.solved:.0%}",
        )
        for row in comparison.rows
    ]
    return aligned(head, rows, left=2)


def _saved(comparison: Comparison) -> list[str]:
    """The result in sentences."""
    own, arriving, single = (comparison[name] for name in ("default", "verify-all", "difficulty-1"))
    return [
        f"default costs {1 - own.cost / arriving.cost:.0%} less than verifying each candidate as it"
        f" comes, and {1 - own.cost / single.cost:.0%} less than",
        f"the best single size ({single.m} candidates), which is not known in advance.",
        "For your own candidates: grv compare LOG --score NAME --costs 1,10",
    ]
