"""`grv shells`: the schedule of the adaptive policy."""

from __future__ import annotations

import itertools
import json as json_text

import typer

from ..core.values import Costs
from ..text import aligned
from ..theory import shells as theory
from .console import check_outputs, parse_costs, parse_whole, say


def shells(
    costs: str = typer.Option("1,10", metavar="G,V", help="Cost of generating, and of verifying."),
    shells: str = typer.Option("12", "--shells", "-n", metavar="N", help="How many to print."),
    json: str = typer.Option(None, metavar="FILE", help="Save the schedule."),
) -> None:
    """Print the doubling cost shells of the adaptive policy (the paper's Algorithm 1).

    In shell s the policy generates m more candidates, then verifies the best k of those that wait.
    Shells without any strategy are skipped.

    \b
    grv shells --costs 1,10
    """
    prices = parse_costs(costs)
    check_outputs([json], [])
    number = parse_whole("--shells", shells, most=200)
    found = itertools.islice(theory.shells(prices), number)
    records = [_record(shell, prices) for shell in found]
    if json is not None:
        from ..files import write_whole

        record = {"costs": {"generate": prices.generate, "verify": prices.verify}}
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
    say(*aligned(head, rows, left=0).split("\n"))


def _record(shell: theory.Shell, prices: Costs) -> dict[str, float]:
    m, k = shell.draws(), shell.checks()
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
