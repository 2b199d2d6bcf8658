"""`alike`: the numbers by which failures are counted, and what the search refuses."""

from __future__ import annotations

import math

import pytest

from grv.core.errors import EventError
from grv.core.limits import Limits
from grv.core.search import Search
from grv.core.values import Costs, Generate, Generated
from grv.policies import Fixed, Varied
from grv.policies.varied import _ScoreRun


def search() -> Search:
    made = Search(Fixed(3, 1), Costs(), Limits(width=None))
    assert made.ask() == Generate(3)
    return made


def test_by_default_they_are_the_scores() -> None:
    made = search()
    made.tell(Generated((3.0, 1.0, -math.inf)))
    assert made.pool.alike == [3.0, 1.0, -math.inf]


def test_they_do_not_rank() -> None:
    made = search()
    made.tell(Generated((3.0, 1.0, 2.0), alike=(0.0, 9.0, 0.0)))
    assert made.pool.alike == [0.0, 9.0, 0.0]
    assert made.pool.best(3) == (0, 2, 1)


@pytest.mark.parametrize(
    ("alike", "message"),
    [((1.0,), "3 candidates have 1 values of alike"), ((1.0, math.nan, 1.0), "a score is NaN")],
)
def test_wrong_ones_are_refused(alike: tuple[float, ...], message: str) -> None:
    made = search()
    with pytest.raises(EventError, match=message):
        made.tell(Generated((3.0, 1.0, 2.0), alike=alike))
    assert len(made.pool) == 0


def test_a_row_of_equal_values_ends_with_a_higher_score() -> None:
    """The proof of the bound needs that a new best candidate is verified at once."""
    run = _ScoreRun()
    run.limit = 2
    assert [run.is_over(score, 7.0) for score in (1.0, 1.0, 1.0)] == [False, False, True]
    assert [run.is_over(score, 7.0) for score in (1.0, 0.5)] == [False, False]
    assert [run.is_over(score, 7.0) for score in (2.0, 1.5)] == [False, False]
    assert run.is_over(1.4, 7.0)
    assert not run.is_over(1.4, 8.0)


def test_the_default_policy_turns_to_candidates_that_differ() -> None:
    made = Search(Varied(), Costs(1, 10), Limits(width=None))
    assert made.ask() == Generate(1)
    made.tell(Generated((0.0,), alike=(5.0,)))
    assert list(made.pool.alike) == [5.0]
