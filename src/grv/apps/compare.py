"""`grv compare`: what each policy would have cost on a log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..experiments.settings import TableSettings
from ..logs.reading import Reading
from ..options import option
from ..parsing import parse_cascade, parse_score
from .console import check_outputs, listed, progress, say, say_table
from .options.command import command
from .options.job import job_option

if TYPE_CHECKING:
    from ..experiments.comparison import Comparison, Row

LOG = "A log in Parquet, JSON lines or CSV; or a published generations.jsonl or verified.jsonl."
SCORE = (
    "The column that ranks candidates; or cascade(first, second, top=4, cost=0.5): before one of"
    " the best 4 by the first column is verified, the second column ranks them, for 0.5 each; or a"
    " prior, for the combination of scores that it was learned with."
)


@command
def compare(
    settings: TableSettings,
    reading: Reading,
    log: str = option(..., LOG, argument=True, metavar="LOG"),
    score: str | None = option(None, SCORE, metavar="NAME", parse=parse_score),
    json: str | None = option(None, "Save the numbers.", metavar="FILE"),
    csv: str | None = option(None, "Save the rows as a table.", metavar="FILE"),
    job: str | None = job_option(", in a table [compare]"),
) -> None:
    """Replay policies on a log and compare what they cost.

    A log has one row per candidate, with the columns problem, candidate, passed, at least one
    score, and optionally key. Every policy sees the same candidates in the same orders. Ratios are
    relative to the row named adaptive; without it there are none.

    \b
    grv compare log.parquet --score score_reward
    grv compare log.csv --costs 1,10 --costs 1,30 --policy adaptive --policy "fixed(64, 4)"
    grv compare log.csv --costs 1,10 --costs measured
    grv compare log.csv --value 500 --unsolvable include
    grv compare log.csv --width 8 --latency 20,60
    grv compare generations.jsonl --rewards rewards.jsonl --score r_last --order-scheme paper \\
        --width all --json table.json
    """
    check_outputs([json, csv], [log, reading.rewards, job], [score, *settings.policies])
    with progress("comparing") as tell:
        from ..experiments.compare import compare as replay_all
        from ..experiments.rows import DEFAULT_ROWS, parse_row
        from ..learning.score_combination import read_scored

        rows = settings.policies or DEFAULT_ROWS
        for text in rows:
            parse_row(text)
        first, second, cascade = parse_cascade(score) or (score, None, None)
        logged = read_scored(log, first, second=second, reading=reading)
        prices = [logged.measured if each is None else each for each in settings.costs]
        comparison = replay_all(rows, logged, prices, settings, cascade=cascade, progress=tell)
    if json is not None:
        comparison.save(json)
    if csv is not None:
        comparison.save_csv(csv)
    say(*heading(comparison), "")
    say_table(comparison.table())
    say("", *words(comparison))


def heading(comparison: Comparison) -> list[str]:
    """What was compared, and what was left out."""
    log, settings = comparison.log, comparison.settings
    keys = "each key verified once" if settings["keys"] else "no keys"
    lines = [
        f"{settings['log']}: {log.problems} problems, {log.solvable} of them solvable,"
        f" {log.candidates} candidates, score {settings['score']}" + _cascade_words(settings),
        f"{settings['orders']} orders per problem ({settings['order_scheme']}, seed"
        f" {settings['seed']}), {width_words(settings)}, {keys}",
    ]
    if log.excluded:
        lines.append(f"left out, without any pass ({len(log.excluded)}): {', '.join(log.excluded)}")
    if log.unscored:
        lines.append(f"candidates without a score, which rank last: {log.unscored}")
    if log.unlabelled:
        lines.append(f"candidates without a label: {log.unlabelled}")
    if log.unpriced and any(row.measured for row in comparison.rows):
        lines.append(f"unknown costs, replaced by the mean of the known ones: {log.unpriced}")
    if settings["keys"] and log.contradictory:
        names = [f"{key} of {id}" for id, keys in log.contradictory.items() for key in keys]
        lines.append(f"keys with both labels, not used as classes ({len(names)}): {listed(names)}")
    return lines


def width_words(settings: Mapping[str, Any]) -> str:
    """The width, and when a search stops."""
    match settings["width"]:
        case "all":
            stops = "whole steps are paid for"
        case 1:
            stops = "stops at the first pass"
        case width:
            stops = f"{width} at once; stops after the batch with the first pass"
    return f"width {settings['width']} ({stops})"


def _cascade_words(settings: Mapping[str, Any]) -> str:
    cascade = settings["cascade"]
    if cascade is None:
        return ""
    return f", then {settings['second']} for the best {cascade['top']} at {cascade['cost']:g} each"


def words(comparison: Comparison) -> list[str]:
    """The result in a sentence per price list."""
    from ..experiments.rows import REFERENCE

    if all(row.policy != REFERENCE for row in comparison.rows):
        return [f"No ratios: add --policy {REFERENCE}."]
    found: dict[str, dict[str, Row]] = {}
    for row in comparison.rows:
        found.setdefault(row.prices, {}).setdefault(row.policy, row)
    lines = []
    for prices, rows in found.items():
        adaptive, single = rows[REFERENCE], rows.get("difficulty-1")
        line = f"At {prices} adaptive solves {adaptive.solved:.1%} of the trials"
        line += f" for {adaptive.shown(adaptive.cost)} each"
        if single is not None and single.cost > adaptive.cost:
            line += (
                f"; the cheapest single pair that solves as many as possible ({single.m} generated,"
                f" {single.k} verified) costs {single.cost / adaptive.cost:.1f} times that"
            )
        lines.append(line + ".")
        if adaptive.unsolvable_cost is not None:
            spent = adaptive.shown(adaptive.unsolvable_cost)
            lines.append(f"On each problem without any pass it spends {spent}, without a result.")
    return lines
