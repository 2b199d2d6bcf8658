"""`grv oracle`: what each problem costs at best."""

from __future__ import annotations

import dataclasses
import json as json_text

from ..core.values import Costs
from ..files import write_whole
from ..logs.reading_options import Labels
from ..options import MOST, option
from ..parallel import Parallel
from ..parsing import costs_record, parse_costs
from ..text import aligned, counted
from .compare import LOG
from .console import check_outputs, progress, say, say_table
from .options.command import command

PRICES = Costs()
COSTS = (
    "Cost of generating one candidate, and of verifying one; F is the cost of a verification that"
    " fails, if that is less."
)


@command
def oracle(
    reading: Labels,
    parallel: Parallel,
    log: str = option(..., LOG, argument=True, metavar="LOG"),
    score: str | None = option(None, "The column that ranks candidates.", metavar="NAME"),
    costs: Costs = option(PRICES, COSTS, metavar="G,V[,F]", parse=parse_costs, shown="1,10"),
    orders: int = option(10, "Number of orders for hindsight.", least=1, most=MOST),
    seed: int = option(0, "Seed of the orders.", least=0),
    json: str | None = option(None, "Save the numbers.", metavar="FILE"),
) -> None:
    """Print the lowest possible cost per problem, if the pass rate at each score were known.

    tau* is the pass probability at which a verification is worth its cost. J* is the lowest
    expected cost. Both treat the logged candidates as the whole distribution, drawn with
    replacement: the pass rate at each score is known. If all scores differ, that means knowing
    every label. J_t is the expected cost with the best threshold: verify each candidate with at
    least that score. It equals J* if higher scores pass no less often. Hindsight also knows the
    order of the candidates, so it may cost less than J*. If failures have a price F, it decides
    about tau* and the threshold; a pass adds V - F to each cost.

    \b
    grv oracle log.parquet --score score_reward --costs 1,10
    """
    check_outputs([json], [log, reading.rewards])
    with progress("pricing") as tell:
        from ..comparing.oracle_rows import oracle as price
        from ..logs.readers import read_log

        logged = read_log(log, score=score, rewards=reading.rewards, unlabelled=reading.unlabelled)
        rows = price(logged, costs, orders=orders, seed=seed, progress=tell, jobs=parallel.jobs)
    if json is not None:
        record = {
            "format": 1,
            "costs": costs_record(costs),
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
    say_table(aligned(head, cells))
    hopeless = sum(row.tau is None for row in rows)
    if hopeless:
        say(f"without a pass, and so without an optimum: {counted(hopeless, 'problem')}")
