"""`grv oracle`: what each problem costs at best."""

from __future__ import annotations

import dataclasses
import json as json_text
from typing import cast

import typer

from ..text import aligned
from .console import check_outputs, choice, parse_costs, parse_whole, progress, say


def oracle(
    log: str = typer.Argument(
        metavar="LOG", help="Parquet, JSON lines or CSV; or a published generations.jsonl."
    ),
    rewards: str = typer.Option(
        None, metavar="FILE", help="The rewards.jsonl that goes with a generations.jsonl."
    ),
    score: str = typer.Option(None, metavar="NAME", help="The column that ranks candidates."),
    costs: str = typer.Option("1,10", metavar="G,V", help="Cost of generating, and of verifying."),
    orders: str = typer.Option("10", metavar="N", help="In how many orders hindsight is taken."),
    seed: str = typer.Option("0", metavar="N", help="What the orders are drawn from."),
    unlabelled: str = typer.Option(
        "error", metavar="error|fail|drop", help="What to do with candidates without a label."
    ),
    json: str = typer.Option(None, metavar="FILE", help="Save the numbers."),
) -> None:
    """Print what each problem would cost somebody who knew its law.

    tau* is the chance of passing from which on a verification is worth its cost, and J* the least
    expected cost, both taking the logged candidates as the law: how often each score passes is
    known. Where all scores differ that means knowing every label; J_t, the cost of the best score
    threshold, is what the ranking alone can do. Hindsight knows the very order of candidates.

    \b
    grv oracle log.parquet --score score_reward --costs 1,10
    """
    prices = parse_costs(costs)
    how_many, drawn_from = parse_whole("--orders", orders), parse_whole("--seed", seed, 0)
    check_outputs([json], [log, rewards])
    from ..experiments.oracle import oracle as price
    from ..files import write_whole
    from ..logs.readers import Unlabelled, read_log

    labels = cast(Unlabelled, choice("--unlabelled", unlabelled, ("error", "fail", "drop")))
    logged = read_log(log, score=score, rewards=rewards, unlabelled=labels)
    with progress("pricing") as tell:
        rows = price(logged, prices, orders=how_many, seed=drawn_from, progress=tell)
    if json is not None:
        record = {
            "format": 1,
            "costs": {"generate": prices.generate, "verify": prices.verify},
            "score": logged.score,
            "rows": [dataclasses.asdict(row) for row in rows],
        }
        write_whole(json, json_text.dumps(record, indent=1) + "\n")
    cells = [
        (
            row.problem,
            str(row.candidates),
            f"{row.pass_rate:.4f}",
            *(
                "-" if value is None else f"{value:.{digits}f}"
                for value, digits in (
                    (row.tau, 4),
                    (row.optimum, 2),
                    (row.threshold, 4),
                    (row.threshold_cost, 2),
                    (row.hindsight, 2),
                )
            ),
        )
        for row in rows
    ]
    head = ("problem", "candidates", "pass rate", "tau*", "J*", "threshold", "J_t", "hindsight")
    say(*aligned(head, cells).split("\n"))
    hopeless = sum(row.tau is None for row in rows)
    if hopeless:
        say(f"{hopeless} problems have no pass, and so no optimum.")
