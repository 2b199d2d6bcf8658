"""`grv simulate`: what policies cost on populations whose laws are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ..core.errors import UsageError
from .console import check_outputs, parse_costs, parse_whole, parse_width, progress, say

if TYPE_CHECKING:
    from ..experiments.simulate import Simulation


def simulate(
    populations: list[str] = typer.Argument(
        None, metavar="POPULATION", help="Which ones; all where none is given."
    ),
    policy: list[str] = typer.Option(
        None,
        metavar="SPEC",
        help="A row of the table, as in grv compare. Repeatable. Default: default, balanced,"
        " alternate, hedged, adaptive, adaptive-all, verify-all.",
    ),
    costs: list[str] = typer.Option(
        ["1,10"], metavar="G,V", help="Cost of generating one, and of verifying one. Repeatable."
    ),
    candidates: str = typer.Option(
        "endless",
        metavar="N|endless",
        help="Pools of so many candidates with at least one pass, or streams without end.",
    ),
    problems: str = typer.Option("100", metavar="N", help="Problems of each population."),
    orders: str = typer.Option("10", metavar="N", help="Orders of a pool, or streams, a problem."),
    seed: str = typer.Option("0", metavar="N", help="What everything is drawn from."),
    width: str = typer.Option(
        "1", metavar="N|all", help="Verifications in flight at once; all pays for whole steps."
    ),
    json: str = typer.Option(None, metavar="FILE", help="Save the numbers."),
    list_: bool = typer.Option(False, "--list", help="Say which populations there are, and stop."),
) -> None:
    """Try policies on synthetic problems whose laws are known.

    So the least that a search can cost on average, J*, is known for each problem, and costs are
    told relative to it. Every policy sees the same candidates. ">" marks what would have cost more,
    had there not been an end to the candidates after all.

    \b
    grv simulate coding math --costs 1,10 --costs 1,30
    grv simulate needles --policy balanced --policy alternate --problems 500
    grv simulate coding --candidates 512 --seed 7 --json table.json
    grv simulate --list
    """
    from ..experiments.populations import ABOUT, ALL, population_named

    if list_:
        say(*[f"{name:12} {ABOUT[name]}" for name in ALL])
        return
    chosen = {name: population_named(name) for name in populations or ALL}
    price_lists = [parse_costs(text) for text in costs]
    in_flight = parse_width(width)
    check_outputs([json], [], policy or ())
    pool = None if candidates == "endless" else _pool_size(candidates)
    how_many, trials = parse_whole("--problems", problems), parse_whole("--orders", orders)
    drawn_from = parse_whole("--seed", seed, 0)
    from ..experiments.simulate import DEFAULT_POLICIES, Plan
    from ..experiments.simulate import simulate as try_all

    plan = Plan(how_many, trials, pool, drawn_from, in_flight)
    with progress("simulating") as tell:
        simulation = try_all(
            chosen, policy or DEFAULT_POLICIES, price_lists, plan=plan, progress=tell
        )
    if json is not None:
        simulation.save(json)
    say(heading(simulation), "", *simulation.table().split("\n"), "", *_notes(simulation))


def _pool_size(text: str) -> int:
    try:
        return parse_whole("--candidates", text)
    except UsageError as error:
        raise UsageError(f"{error}, or endless") from error


def heading(simulation: Simulation) -> str:
    """What was simulated."""
    settings = simulation.settings
    endless = settings["candidates"] == "endless"
    of_each = "endless streams" if endless else f"orders of {settings['candidates']} candidates"
    paid = "whole steps are paid for" if settings["width"] == "all" else "stops at the first pass"
    return (
        f"{settings['problems']} problems of each population, {settings['orders']} {of_each} each,"
        f" seed {settings['seed']}, width {settings['width']} ({paid})"
    )


def _notes(simulation: Simulation) -> list[str]:
    settings = simulation.settings
    lines = [
        "of J*: a problem's mean cost over the least possible if its law is known, averaged over"
        " problems.",
        "of adaptive-all: the mean cost over that of adaptive paying for whole shells. Intervals"
        " resample problems.",
    ]
    cut = [row for row in simulation.rows if row.ended]
    if settings["candidates"] == "endless" and cut:
        most = max(row.ended for row in cut)
        lines.append(
            f"> the policy came to the last of {settings['most']} candidates, in up to {most:.1%}"
            " of the trials."
        )
    return lines
