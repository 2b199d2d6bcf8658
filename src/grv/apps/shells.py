"""`grv shells`: the schedule of the adaptive policy."""

from __future__ import annotations

import itertools
import json as json_text

import typer

from ..core.errors import UsageError
from ..replay.text import aligned
from ..theory import shells as theory
from .console import parse_costs


def shells(
    costs: str = typer.Option("1,10", metavar="G,V", help="Cost of generating, and of verifying."),
    shells: int = typer.Option(12, "--shells", "-n", help="How many to print."),
    json: str = typer.Option(None, metavar="FILE", help="Save the schedule."),
) -> None:
    """Print the doubling cost shells of the adaptive policy (the paper's Algorithm 1).

    In shell s the policy generates m more candidates, then verifies the best k of those that wait.
    Shells without any strategy are skipped.

    \b
    grv shells --costs 1,10
    """
    prices = parse_costs(costs)
    if not 1 <= shells <= 1000:
        raise UsageError(f"--shells {shells}: give a number from 1 to 1000")
    found = list(itertools.islice(theory.shells(prices), shells))
    records = [
        {
            "s": shell.s,
            "low": shell.low,
            "high": shell.high,
            "b": shell.b,
            "j": shell.j,
            "m": shell.draws(),
            "k": shell.checks(),
            "cost": prices.of(shell.draws(), shell.checks()),
        }
        for shell in found
    ]
    if json is not None:
        from ..replay.writing import write_whole

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
    typer.echo(aligned(head, rows, left=0))
