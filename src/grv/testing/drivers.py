"""Run policies in made-up worlds: the third driver of a `Search`, beside live and replay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..core.limits import Limits
from ..core.pool import Pool
from ..core.search import Policy, Search
from ..core.values import (
    Action,
    CandidateId,
    Costs,
    Generate,
    Generated,
    Reason,
    Rescore,
    Step,
    Stop,
    Verify,
    arrivals,
)
from .worlds import World


@dataclass(frozen=True)
class Scripted:
    """A policy that takes the given steps, legal or not. Tests of drivers use it."""

    steps: tuple[Step, ...]

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield the steps."""
        yield from self.steps


def run(
    policy: Policy,
    costs: Costs,
    world: World,
    limits: Limits = Limits(),  # noqa: B008 (a frozen value)
) -> Search:
    """Run a search to its end, and return it with its trace and its pool."""
    search = Search(policy, costs, limits)
    drive(search, world)
    return search


def drive(search: Search, world: World) -> None:
    """Execute the actions of a search until it stops. It may have been started before."""
    while not isinstance(action := search.ask(), Stop):
        search.tell(world.event(action, seen=search.arrived))


def dialogue(
    policy: Policy,
    costs: Costs,
    world: World,
    limits: Limits = Limits(),  # noqa: B008 (a frozen value)
) -> list[str]:
    """The actions of a search in words; the last line says how it ended.

    >>> from grv.policies import Fixed
    >>> dialogue(Fixed(4, 2), Costs(), World.of("1- 3- 2+ 0-"))
    ['generate 4', 'verify 1', 'verify 1', 'solved by 2']
    """
    search = run(policy, costs, world, limits)
    return [*(words(turn.action) for turn in search.trace), words(search.ask())]


def verified(search: Search) -> list[CandidateId]:
    """The candidates that the search verified, in order."""
    asked = [turn.action for turn in search.trace]
    return [id for action in asked if isinstance(action, Verify) for id in action.ids]


def batches(search: Search) -> list[Generated]:
    """All candidates that arrived, in order."""
    return [batch for turn in search.trace for batch in arrivals(turn.event)]


def words(action: Action) -> str:
    """An action in words, as in a dialogue."""
    match action:
        case Generate(n):
            return f"generate {n}"
        case Verify(ids):
            return f"verify {len(ids)}"
        case Rescore(ids):
            return f"rescore {len(ids)}"
        case Stop(Reason.SOLVED, answer):
            return f"solved by {answer}"
        case Stop(reason):
            return reason.value
