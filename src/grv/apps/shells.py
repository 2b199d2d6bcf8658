"""`grv shells`: the schedule of the adaptive policy."""

from __future__ import annotations

import itertools
import json as json_text

from ..core.values import Costs
from ..options import option
from ..parsing import costs_record, parse_costs
from ..text import aligned
from ..theory import shells as theory
from .console import check_outputs, say_table
from .options.command import command
from .oracle import COSTS, PRICES


@command
def shells(
    costs: Costs = option(PRICES, COSTS, metavar="G,V[,F]", parse=parse_costs, shown="1,10"),
    shells: int = option(12, "Number of shells to print.", "--shells", "-n", least=1, most=200),
    json: str | None = option(None, "Save the schedule.", metavar="FILE"),
) -> None:
    """Print the doubling cost shells of the adaptive policy (the paper's Algorithm 1).

    In shell s the policy generates m more candidates. Then it verifies the best k of those that
    are not verified yet. Shells without any strategy are skipped. If failures have a price F, the
    policy plans with it, and the costs are those of shells in which everything fails.

    \b
    grv shells --costs 1,10
    """
    check_outputs([json], [])
    first = itertools.islice(theory.shells(costs.planning), shells)
    records = [_record(shell, costs.planning) for shell in first]
    if json is not None:
        from ..files import write_whole

        record = {"costs": costs_record(costs)}
        write_whole(json, json_text.dumps({"format": 1, **record, "shells": records}) + "\n")
    spent = itertools.accumulate(float(record["cost"]) for record in records)
    rows = [
        (
            str(record["s"]),
            f"{record['low']:g} to {record['high']:g}",
            str(record["b"]),
            str(record["j"]),
            str(record["m"]),
            str(record["k"]),
            f"{record['cost']:g}",
            f"{total:g}",
        )
        for record, total in zip(records, spent, strict=True)
    ]
    head = ("shell", "strategies costing", "b*", "j*", "generate", "verify", "cost", "so far")
    say_table(aligned(head, rows, left=0))


def _record(shell: theory.Shell, prices: Costs) -> dict[str, float]:
    m = shell.draws()
    k = shell.checks()
    return {
        "s": shell.s,
        "low": shell.low,
        "high": shell.high,
        "b": shell.b,
        "j": shell.j,
        "m": m,
        "k": k,
        "cost": prices.of(m, k),
    }
