"""The policy `learning` by itself: it chooses between the default and `learned`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given

from grv.core.errors import UsageError
from grv.core.limits import Limits
from grv.core.values import Costs
from grv.learning.prior_file import load_prior, parse_policy
from grv.policies import DEFAULT, Learned, Learning, Varied
from grv.policies.spec import spec
from grv.testing import World, run
from grv.testing.contracts import PolicyContract
from grv.testing.strategies import price_lists, worlds
from grv.theory.guard import FACTOR

PRIOR = load_prior(str(Path(__file__).parent.parent / "assets" / "prior-1.json"))


class TestLearning(PolicyContract):
    policy = Learning()


@pytest.mark.slow
@example(World.of("0- 0- 0-f 1- 0- 0-f 0?p 0?p 1-"), Costs(1, 10))
@given(worlds(), price_lists())
def test_a_search_without_history_is_that_of_the_default(world: World, costs: Costs) -> None:
    """Until the guard, or the default at the end of the generator, verifies the oldest one."""
    ours, theirs = (
        run(policy, costs, world, Limits(width=None)) for policy in (Learning(), DEFAULT)
    )
    for our, their in zip(ours.trace, theirs.trace, strict=False):
        if our.action.why.startswith("guard:") or their.action.why == "the oldest of the rest":
            return
        assert our == their
    assert len(ours.trace) == len(theirs.trace)


def test_with_a_prior_it_is_learned() -> None:
    assert Learning().chosen(PRIOR) == Learned(PRIOR)
    assert Learning().chosen(None) == Varied(FACTOR)
    assert Varied(math.inf) == DEFAULT


def test_its_history_is_named_in_its_specification() -> None:
    one = parse_policy("learning('old.ledger')")
    assert one == Learning(("old.ledger",))
    assert parse_policy(spec(one)) == one
    assert parse_policy("learning(['a', 'b'])") == Learning(("a", "b"))
    assert spec(Learning()) == "learning"


@pytest.mark.parametrize("wrong", [("",), (3,), ("a", None)])
def test_a_history_is_names_of_ledgers(wrong: Any) -> None:
    with pytest.raises(UsageError, match="the history must be names of ledgers"):
        Learning(wrong)
