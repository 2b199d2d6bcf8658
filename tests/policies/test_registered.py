"""What holds for the table of policies as a whole."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.core.limits import Limits
from grv.core.pace import Pace
from grv.core.search import Policy
from grv.core.values import Costs
from grv.policies import (
    DEFAULT,
    POLICIES,
    Adaptive,
    Balanced,
    Fixed,
    KnownLaw,
    Threshold,
    VerifyAll,
    summary,
)
from grv.policies.spec import parse, spec
from grv.testing import World, run
from grv.testing.strategies import price_lists, worlds


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_has_its_file_and_its_contract(name: str) -> None:
    cls = POLICIES[name]
    room = cls.__module__.removeprefix("grv.policies.").partition(".")[0]
    tests = (Path(__file__).parent / f"test_{room}.py").read_text()

    assert name == room.replace("_", "-")
    assert "(PolicyContract" in tests
    assert f"{cls.__name__}(" in tests


@pytest.mark.parametrize("cls", POLICIES.values(), ids=POLICIES)
def test_a_policy_is_a_frozen_dataclass_that_says_whether_it_only_ranks(cls: type[object]) -> None:
    assert dataclasses.is_dataclass(cls)
    assert cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert isinstance(vars(cls)["rank_only"], bool)
    assert isinstance(vars(cls)["proven"], str | property)
    assert vars(cls)["relies_on"]
    assert 20 < len(summary(cls)) < 100
    assert summary(cls).endswith(".")


def test_the_default_is_registered() -> None:
    assert type(DEFAULT) in POLICIES.values()
    assert parse("default") is parse(" default( ) ") is DEFAULT
    assert parse(spec(DEFAULT)) == DEFAULT  # so a ledger keeps its own name, not `default`


@pytest.mark.parametrize(
    "policy",
    [
        Adaptive(),
        Balanced(),
        Fixed(6, 3),
        KnownLaw((0.0, 1.0), (0.1, 0.5)),
        Threshold(1),
        VerifyAll(),
    ],
    ids=repr,
)
@given(worlds(broken=False), price_lists(), st.sampled_from([None, 1]))
def test_knowing_the_keys_never_costs_more_and_never_loses_an_answer(
    policy: Policy, world: World, costs: Costs, width: int | None
) -> None:
    """Not true of every policy, and so not in the contract; true of these.

    `test_blind_slot.py` has those with blind slots.

    What was refuted with keys contains what was refuted without, step by step. With a price of
    failures of its own, the answer that only the keys have found may cost more than a failure.
    """
    costs = costs.planning
    blind = run(
        policy,
        costs,
        dataclasses.replace(world, keys=()),
        Limits(width=width, pace=Pace(overlap=False)),
    ).outcome
    keyed = run(policy, costs, world, Limits(width=width, pace=Pace(overlap=False))).outcome

    assert blind is not None
    assert keyed is not None
    assert keyed.solved >= blind.solved
    assert keyed.bill.total <= blind.bill.total
