"""What `learned` and `learning` cost at most on every sequence, beside the policy `verify-all`.

The sequences are made against the policies: refuted majorities, repeated answers, pools that end,
passes at the lowest scores. Verify-all has the same candidates, keys and refutations.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import pytest
from hypothesis import given, settings

from grv.core.errors import UsageError
from grv.core.limits import Limits
from grv.core.pool import Pool
from grv.core.search import Policy, Search
from grv.core.values import REFUTED, Costs, Generate, Generated, Step, Stop, Verdict, Verified
from grv.learning.prior_file import load_prior
from grv.policies import Learned, Learning, Varied, VerifyAll
from grv.policies.learned.guard import Guard, guarded
from grv.policies.spec import parse, spec
from grv.testing import World, labelled, run
from grv.testing.strategies import price_lists, worlds
from grv.theory.guard import FACTOR, allowance, guarded_width_factor
from grv.theory.slots import block_draws

PRIOR = load_prior(str(Path(__file__).parent.parent / "assets" / "prior-1.json"))
POLICIES: dict[str, Policy] = {
    "cold": Learning(),
    "warm": Learned(PRIOR),
    "learned(factor=3)": Learned(PRIOR, factor=3),
    "varied(factor=2)": Varied(2),
}
PROMISES = {"cold": FACTOR, "warm": FACTOR, "learned(factor=3)": 3.0, "varied(factor=2)": 2.0}

pytestmark = pytest.mark.filterwarnings("ignore::grv.policies.learned.policy.UnlikeHistoryWarning")


def cost(policy: Policy, world: World, costs: Costs) -> float:
    return run(policy, costs, world).bill.total


def lowest_is_right(place: int, size: int) -> World:
    """Only one candidate passes; it has the lowest score."""
    return labelled(size, lambda i: (-100.0 if i == place else i % 7 + i / size, i == place))


def with_keys(world: World, keys: list[str | None]) -> World:
    return World(world.scores, world.verdicts, tuple(keys))


def mostly_refuted(place: int, size: int, *, one_in: int) -> World:
    """As before; of the others only one in `one_in` is not refuted."""
    keys: list[str | None] = [None if i % one_in == 0 else REFUTED for i in range(size)]
    keys[place] = None
    return with_keys(lowest_is_right(place, size), keys)


def mostly_repeated(place: int, size: int, *, one_in: int) -> World:
    """As before; of the others only one in `one_in` has an answer that has not come before."""
    keys: list[str | None] = [f"k{i // one_in}" for i in range(size)]
    keys[place] = "right"
    return with_keys(lowest_is_right(place, size), keys)


def blocks_of_answers(place: int, size: int) -> World:
    """The wrong answers before the right one are all the same; those after it all differ."""
    keys: list[str | None] = ["wrong" if i < place else f"k{i}" for i in range(size)]
    keys[place] = "right"
    return with_keys(lowest_is_right(place, size), keys)


def passes_below(size: int, passes: int, seed: int) -> World:
    """A pool in which the lowest scores pass, in random order."""
    places = list(range(size))
    random.Random(seed).shuffle(places)
    return labelled(size, lambda i: (float(places[i]), places[i] < passes))


WORLDS = {
    "the fifth is right": lowest_is_right(4, 4000),
    "the fortieth is right": lowest_is_right(39, 4000),
    "refuted majority": mostly_refuted(300, 4000, one_in=20),
    "all before it refuted": mostly_refuted(250, 4000, one_in=4000),
    "repeated answers": mostly_repeated(300, 4000, one_in=20),
    "one wrong answer": blocks_of_answers(200, 4000),
    "few refuted": mostly_refuted(100, 4000, one_in=2),
    "a pool of 100": passes_below(100, 10, seed=1),
    "a pool of 30": lowest_is_right(2, 30),
    "a pool of 100 with keys": mostly_repeated(60, 100, one_in=10),
}


@pytest.mark.parametrize("rho", [0.5, 1, 3, 10, 30, 100])
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_it_costs_at_most_the_factor_times_verify_all(policy: str, world: str, rho: float) -> None:
    costs = Costs(1, rho)
    theirs = cost(VerifyAll(), WORLDS[world], costs)
    assert cost(POLICIES[policy], WORLDS[world], costs) <= PROMISES[policy] * theirs + 1e-6


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(20))
def test_a_pool_that_ends_keeps_the_promise(policy: str, seed: int) -> None:
    costs, world = Costs(1, 100), passes_below(100, 10, seed)
    theirs = cost(VerifyAll(), world, costs)
    assert cost(POLICIES[policy], world, costs) <= PROMISES[policy] * theirs + 1e-6


@pytest.mark.slow
@settings(max_examples=150)
@given(worlds(), price_lists())
def test_in_any_world_it_costs_at_most_the_factor_times_verify_all(
    world: World, costs: Costs
) -> None:
    """With keys, refuted candidates, broken verdicts, and generators that end at any time.

    A broken verdict costs as much as a pass, so the bound needs that failures do too.
    """
    costs = costs.planning if Verdict.BROKEN in world.verdicts else costs
    theirs = cost(VerifyAll(), world, costs)
    for name, policy in POLICIES.items():
        assert cost(policy, world, costs) <= PROMISES[name] * theirs * (1 + 1e-9) + 1e-6


def hostile(seed: int) -> World:
    """Long sequences with a late pass at the lowest score, and keys of all kinds."""
    chance = random.Random(seed)
    place = chance.randrange(1, 400)
    kinds: list[str | None] = [None, REFUTED, "a", "b"]
    shares = [chance.random() ** 3 for _ in kinds]
    fresh = chance.random() < 0.5
    keys = chance.choices(kinds, shares, k=1500)
    keys = [f"{key}{i}" if fresh and key == "b" else key for i, key in enumerate(keys)]
    keys[place] = None if chance.random() < 0.5 else "right"
    rising = chance.choice([0.0, 1.0, -1.0])
    size = chance.choice([place + 1, place + 20, 1500])
    scores = tuple(rising * i + chance.random() for i in range(size))
    scores = (*scores[:place], -1e6, *scores[place + 1 :])
    verdicts = [Verdict.BROKEN if chance.random() < 0.02 else Verdict.FAILED for _ in scores]
    verdicts = [v if keys[i] != REFUTED else Verdict.FAILED for i, v in enumerate(verdicts)]
    verdicts[place] = Verdict.PASSED
    return World(scores, tuple(verdicts), tuple(keys[:size]))


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("policy", POLICIES)
def test_no_hostile_sequence_costs_more(policy: str, seed: int) -> None:
    costs, world = Costs(1, [2.5, 10, 40, 100][seed % 4]), hostile(seed)
    theirs = cost(VerifyAll(), world, costs)
    assert cost(POLICIES[policy], world, costs) <= PROMISES[policy] * theirs + 1e-6


def test_the_guard_of_varied_does_nothing_while_the_search_is_cheap() -> None:
    world = lowest_is_right(39, 200)
    ours, theirs = (run(policy, Costs(1, 10), world) for policy in (Varied(50), Varied()))
    # At the end of a pool they take other orders.
    drawn, same = (
        list(takewhile(lambda turn: "of the rest" not in turn.action.why, search.trace))
        for search in (ours, theirs)
    )
    assert drawn == same
    assert sum(isinstance(turn.action, Generate) for turn in drawn) > 10


def test_the_factor_of_varied_is_in_its_specification() -> None:
    assert spec(Varied()) == "varied"
    assert parse(spec(Varied(5))) == Varied(5)
    with pytest.raises(UsageError, match="varied: factor must be at least 2, not 1"):
        parse("varied(1)")
    with pytest.raises(UsageError, match="varied: factor must be at least 2"):
        Varied(float("nan"))


@dataclass(frozen=True)
class GuardedVerifyAll:
    """Spends all that the two guards allow."""

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        return guarded(VerifyAll().plan(pool, costs), pool, Guard(pool, costs))


def searched_with_memory(policy: Policy, guess: Costs, true: float, world: World) -> Search:
    """A search with measured costs whose first verdict costs nothing."""
    search = Search(policy, guess)
    while not isinstance(action := search.ask(), Stop):
        event = world.event(action, seen=search.arrived)
        if isinstance(event, Generated):
            event = Generated(event.scores, event.keys, float(len(event.scores)))
        elif isinstance(event, Verified):
            shared = frozenset(() if search.pool.verdicts else event.verdicts)
            event = Verified(event.verdicts, 0.0 if shared else true, shared=shared)
        search.tell(event)
    return search


@pytest.mark.parametrize("guess", [1.0, 1000.0])
@pytest.mark.parametrize("true", [3.0, 100.0])
def test_after_a_verdict_from_memory_the_first_price_starts_the_guard_again(
    guess: float, true: float
) -> None:
    """Rule 2 holds from the first verdict that was paid for on, at the true costs."""
    world = labelled(600, lambda i: (float(-i), False))
    search = searched_with_memory(GuardedVerifyAll(), Costs(1, guess), true, world)
    first, later = block_draws(true)
    spent, drawn, verdicts = 0.0, 0, 0
    for turn in search.trace:
        if isinstance(turn.event, Generated):
            if len(turn.event.scores) < turn.action.n:  # type: ignore[union-attr]
                break
            if verdicts >= 2:
                drawn += len(turn.event.scores)
                spent += len(turn.event.scores)
        elif isinstance(turn.event, Verified):
            spent += true if verdicts >= 2 else 0
            verdicts += 1
        begun = 1 + max(0, math.ceil((drawn - first) / later)) if drawn else 0
        assert spent <= allowance(true, begun) + 1e-6
    assert search.bill.shared == 1


@pytest.mark.parametrize("policy", ["cold", "warm"])
@pytest.mark.parametrize("guess", [1.0, 1000.0])
@pytest.mark.parametrize("true", [3.0, 100.0])
def test_with_a_verdict_from_memory_the_bound_holds_from_the_first_price_on(
    policy: str, guess: float, true: float
) -> None:
    world = lowest_is_right(20, 2000)
    search = searched_with_memory(POLICIES[policy], Costs(1, guess), true, world)
    before, paid = 0.0, False
    for turn in search.trace:
        if isinstance(turn.event, Generated | Verified) and not paid:
            before += turn.event.paid or 0.0
            paid = isinstance(turn.event, Verified) and not turn.event.shared
    theirs = cost(VerifyAll(), world, Costs(1, true))
    assert search.bill.total <= FACTOR * theirs + before


@pytest.mark.parametrize("width", [2, 4, 8, 16])
@pytest.mark.parametrize("world", ["the fifth is right", "the fortieth is right", "a pool of 30"])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_width_adds_at_most_as_many_verifications_again(
    policy: str, world: str, width: int
) -> None:
    """And so costs at most a proven factor more; overlap adds a tenth at most."""
    costs = Costs(1, 30)
    one, wide = (
        run(POLICIES[policy], costs, WORLDS[world], Limits(width=each)) for each in (1, width)
    )
    number = one.bill.verified
    assert wide.answers == one.answers
    assert wide.bill.verified <= min(2 * number, number + width - 1)
    assert wide.bill.total <= 1.1 * guarded_width_factor() * one.bill.total
