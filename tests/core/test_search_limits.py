from __future__ import annotations

import dataclasses
import inspect
import math
from typing import Any

import pytest

from grv.comparing.settings import ComparisonSettings
from grv.core.errors import UsageError
from grv.core.limits import Limits
from grv.core.pace import Pace
from grv.core.search import Search
from grv.core.values import Cascade, Costs
from grv.pace_options import PaceOptions
from grv.policies import VerifyAll
from grv.replay.engine import replay, replayed
from grv.replay.kernels.dispatch import many_trials, trials
from grv.runtime.options import Spending


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("budget", -1, "the budget cannot be -1"),
        ("budget", math.nan, "the budget cannot be nan"),
        ("value", -1, "what an answer is worth cannot be -1"),
        ("width", 0, "the width must be at least 1, not 0"),
        ("answers", 0, "the number of answers must be at least 1, not 0"),
    ],
)
def test_limits_are_checked_where_they_are_made(field: str, value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Limits(**{field: value})
    with pytest.raises(UsageError, match=message):
        dataclasses.replace(Limits(), **{field: value})


def test_a_default_is_written_once() -> None:
    default = Limits()
    assert PaceOptions().pace == default.pace == Pace()
    assert ComparisonSettings().limits == default
    spending = Spending()
    assert (spending.budget, spending.value, spending.most) == (
        default.budget,
        default.value,
        default.most,
    )


@pytest.mark.parametrize("function", [Search, replay, replayed, trials, many_trials])
def test_limits_travel_whole(function: Any) -> None:
    parameters = inspect.signature(function).parameters
    assert parameters["limits"].default == Limits()
    assert not {each.name for each in dataclasses.fields(Limits)} & parameters.keys()


def test_a_search_looks_ahead_if_it_is_wide_and_wants_one_answer() -> None:
    assert Limits(width=2).looks_ahead
    for narrow in (Limits(), Limits(width=None), Limits(width=2, answers=2)):
        assert not narrow.looks_ahead
    assert Search(VerifyAll(), Costs(), Limits(width=3)).limits.width == 3


def test_without_second_scores_they_cost_nothing() -> None:
    assert Limits().second_cost == 0
    assert Limits(cascade=Cascade(3, 0.5)).second_cost == 0.5
