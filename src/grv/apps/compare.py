"""`grv compare`: what each policy would have cost on a log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import typer

from .console import (
    MEASURED,
    check_outputs,
    choice,
    listed,
    parse_cascade,
    parse_latency,
    parse_prices,
    parse_value,
    parse_whole,
    parse_width,
    progress,
    say,
)
from .live import defaults_from_job

if TYPE_CHECKING:
    from ..experiments.comparison import Comparison, Row


def _from_job(context: typer.Context, job: str | None) -> str | None:
    return defaults_from_job(context, job, "compare")


def compare(
    log: str = typer.Argument(
        metavar="LOG", help="Parquet, JSON lines or CSV; or a published generations.jsonl."
    ),
    rewards: str = typer.Option(
        None, metavar="FILE", help="The rewards.jsonl that goes with a generations.jsonl."
    ),
    score: str = typer.Option(
        None,
        metavar="NAME",
        help="The column that ranks candidates; or cascade(first, second, top=4, cost=0.5): the top"
        " 4 by one column are ranked by another, which costs 0.5 each, before one is verified; or a"
        " prior, for the combination of scores that it was learned with.",
    ),
    costs: list[str] = typer.Option(
        ["1,10"],
        metavar="G,V|measured[:G,V]",
        help="Cost of generating (and scoring) one candidate, and of verifying one; measured is"
        " what the log says that each one cost, with G,V for a first guess. Repeatable.",
    ),
    policy: list[str] = typer.Option(
        None,
        metavar="SPEC",
        help="A row of the table: default (what grv solve uses), balanced, alternate, hedged,"
        " varied, adaptive, adaptive-all, fixed(64, 4), verify-all, threshold(0.5), hindsight,"
        " uniform-matched, difficulty-K. Repeatable. Default: all that the paper compares.",
    ),
    orders: str = typer.Option("10", metavar="N", help="In how many orders each problem is tried."),
    seed: str = typer.Option("0", metavar="N", help="What the orders are drawn from."),
    order_scheme: str = typer.Option(
        "stable", metavar="stable|paper", help="How; paper draws them as the published code does."
    ),
    width: str = typer.Option(
        "1",
        metavar="1|N|all",
        help="Verifications in flight at once. 1 stops at the first pass; all pays for whole steps,"
        " as the published experiments do.",
    ),
    value: str = typer.Option(
        "inf",
        metavar="V",
        help="What a solved problem is worth, in the unit of the costs: policies give up when the"
        " expected cost to go exceeds it.",
        show_default=False,
    ),
    latency: str = typer.Option(
        None,
        metavar="G,V",
        help="Seconds that a batch generated, and a round of verification, take: says how long a"
        " search takes.",
    ),
    keys: bool = typer.Option(
        False, "--keys/--no-keys", help="Verify each equivalence class (column key) only once."
    ),
    unlabelled: str = typer.Option(
        "error", metavar="error|fail|drop", help="What to do with candidates without a label."
    ),
    unsolvable: str = typer.Option(
        "exclude", metavar="exclude|include", help="What to do with problems without any pass."
    ),
    json: str = typer.Option(None, metavar="FILE", help="Save the numbers."),
    csv: str = typer.Option(None, metavar="FILE", help="Save the rows as a table."),
    job: str = typer.Option(
        None,
        metavar="FILE",
        is_eager=True,
        callback=_from_job,
        help="These options in TOML, in a table [compare]; flags win.",
    ),
) -> None:
    """Replay policies on a log and compare what they cost.

    A log has one row a candidate, with the columns problem, candidate, passed, at least one score,
    and perhaps key. Every policy sees the same candidates in the same orders.

    \b
    grv compare log.parquet --score score_reward
    grv compare log.csv --costs 1,10 --costs 1,30 --policy adaptive --policy "fixed(64, 4)"
    grv compare log.csv --costs 1,10 --costs measured
    grv compare log.csv --value 500 --unsolvable include
    grv compare log.csv --width 8 --latency 20,60
    grv compare generations.jsonl --rewards rewards.jsonl --score r_last --order-scheme paper \\
        --width all --json table.json
    """
    given = [None if text == MEASURED else parse_prices(text) for text in costs]
    in_flight, worth = parse_width(width), parse_value(value)
    first, second, cascade = parse_cascade(score) or (score, None, None)
    waits = parse_latency(latency) if latency is not None else None
    how_many, drawn_from = parse_whole("--orders", orders), parse_whole("--seed", seed, 0)
    check_outputs([json, csv], [log, rewards, job], [score, *(policy or ())])
    from ..experiments.compare import Unsolvable
    from ..experiments.compare import compare as replay_all
    from ..experiments.rows import DEFAULT_ROWS, parse_row
    from ..learning.score_combination import read_scored
    from ..logs.readers import Unlabelled
    from ..replay.orders import Scheme

    rows = policy or list(DEFAULT_ROWS)
    for text in rows:
        parse_row(text)
    scheme = cast(Scheme, choice("--order-scheme", order_scheme, ("stable", "paper")))
    kept = cast(Unsolvable, choice("--unsolvable", unsolvable, ("exclude", "include")))
    labels = cast(Unlabelled, choice("--unlabelled", unlabelled, ("error", "fail", "drop")))
    logged = read_scored(log, first, second=second, rewards=rewards, unlabelled=labels)
    price_lists = [logged.measured if each is None else each for each in given]
    with progress("comparing") as tell:
        comparison = replay_all(
            rows,
            logged,
            price_lists,
            orders=how_many,
            seed=drawn_from,
            order_scheme=scheme,
            width=in_flight,
            keys=keys,
            unsolvable=kept,
            latency=waits,
            value=worth,
            cascade=cascade,
            progress=tell,
        )
    if json is not None:
        comparison.save(json)
    if csv is not None:
        comparison.save_csv(csv)
    say(*heading(comparison), "", *comparison.table().split("\n"), "", *words(comparison))


def heading(comparison: Comparison) -> list[str]:
    """What was compared, and what was left out."""
    log, settings = comparison.log, comparison.settings
    width = "whole steps are paid for" if settings["width"] == "all" else "stops at the first pass"
    keys = "each key verified once" if settings["keys"] else "no keys"
    lines = [
        f"{settings['log']}: {log.problems} problems, {log.solvable} of them solvable,"
        f" {log.candidates} candidates, score {settings['score']}" + _cascade_words(settings),
        f"{settings['orders']} orders a problem ({settings['order_scheme']}, seed"
        f" {settings['seed']}), width {settings['width']} ({width}), {keys}",
    ]
    if log.excluded:
        lines.append(f"left out, without any pass ({len(log.excluded)}): {', '.join(log.excluded)}")
    if log.unscored:
        lines.append(f"candidates without a score, which rank last: {log.unscored}")
    if log.unlabelled:
        lines.append(f"candidates without a label: {log.unlabelled}")
    if log.unpriced and any(row.measured for row in comparison.rows):
        lines.append(f"costs that are not known, taken to be the mean of the rest: {log.unpriced}")
    if settings["keys"] and log.contradictory:
        names = [f"{key} of {id}" for id, keys in log.contradictory.items() for key in keys]
        lines.append(f"keys with both labels, which are no classes ({len(names)}): {listed(names)}")
    return lines


def _cascade_words(settings: Mapping[str, Any]) -> str:
    cascade = settings["cascade"]
    if cascade is None:
        return ""
    return f", then {settings['second']} for the best {cascade['top']} at {cascade['cost']:g} each"


def words(comparison: Comparison) -> list[str]:
    """The result in plain words, a line a price list."""
    found: dict[str, dict[str, Row]] = {}
    for row in comparison.rows:
        found.setdefault(row.prices, {}).setdefault(row.policy, row)
    lines = []
    for prices, rows in found.items():
        adaptive, single = rows.get("adaptive"), rows.get("difficulty-1")
        if adaptive is None:
            continue
        line = f"At {prices} adaptive solves {adaptive.solved:.1%} of the trials"
        line += f" for {adaptive.shown(adaptive.cost)} each"
        if single is not None and single.cost > adaptive.cost:
            line += (
                f"; the cheapest single pair that solves as many as possible ({single.m} generated,"
                f" {single.k} verified) costs {single.cost / adaptive.cost:.1f} times that"
            )
        lines.append(line + ".")
        if adaptive.unsolvable_cost is not None:
            lines.append(
                "On problems without any pass it spends"
                f" {adaptive.shown(adaptive.unsolvable_cost)}, in vain."
            )
    return lines
