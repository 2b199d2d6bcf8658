"""`grv simulate`: what policies cost on populations whose laws are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..comparing.settings import SimulationSize
from ..core.values import Costs
from ..options import option
from ..parsing import parse_costs
from .compare import width_words
from .console import check_outputs, progress, say, say_table
from .options.command import command
from .oracle import COSTS, PRICES

if TYPE_CHECKING:
    from ..comparing.simulation.simulate import Simulation


@command
def simulate(
    settings: SimulationSize,
    populations: tuple[str, ...] = option(
        (), "Which populations; all if none is given.", argument=True, metavar="POPULATION"
    ),
    policy: tuple[str, ...] = option(
        (),
        "A row of the table, as in grv compare. Repeatable. Default: default, balanced, alternate,"
        " hedged, adaptive, adaptive-all, verify-all.",
        metavar="SPEC",
        code=True,
    ),
    costs: tuple[Costs, ...] = option(
        (PRICES,), f"{COSTS} Repeatable.", metavar="G,V[,F]", parse=parse_costs, shown="1,10"
    ),
    json: str | None = option(None, "Save the numbers.", metavar="FILE"),
    list_: bool = option(False, "Print the populations, and stop.", "--list"),
) -> None:
    """Try policies on synthetic problems whose laws are known.

    So the lowest possible average cost, J*, is known for each problem, and costs are given
    relative to it. Every policy sees the same candidates. ">" marks a cost that is too low: a
    search reached the last candidate that the simulation has.

    \b
    grv simulate coding math --costs 1,10 --costs 1,30
    grv simulate needles --policy balanced --policy alternate --problems 500
    grv simulate coding --candidates 512 --seed 7 --json table.json
    grv simulate --list
    """
    from ..comparing.simulation.populations import ABOUT, POPULATIONS, population_named

    if list_:
        say(*[f"{name:12} {ABOUT[name]}" for name in POPULATIONS])
        return
    chosen = {name: population_named(name) for name in populations or POPULATIONS}
    check_outputs([json], [], policy)
    from ..comparing.simulation.simulate import DEFAULT_POLICIES
    from ..comparing.simulation.simulate import simulate as try_all

    with progress("simulating") as tell:
        simulation = try_all(
            chosen, policy or DEFAULT_POLICIES, costs, plan=settings, progress=tell
        )
    if json is not None:
        simulation.save(json)
    say(heading(simulation), "")
    say_table(simulation.table())
    say("", *_notes(simulation))


def heading(simulation: Simulation) -> str:
    """What was simulated."""
    settings = simulation.settings
    endless = settings["candidates"] == "endless"
    of_each = "endless streams" if endless else f"orders of {settings['candidates']} candidates"
    return (
        f"{settings['problems']} problems of each population, {settings['orders']} {of_each} each,"
        f" seed {settings['seed']}, {width_words(settings)}"
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
            f"> the policy reached the last of {settings['most']} candidates, in up to {most:.1%}"
            " of the trials."
        )
    return lines
