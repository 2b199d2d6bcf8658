"""The summary of a run does not depend on which problem ended first."""

from __future__ import annotations

import itertools

import pytest

from grv.apps.summary import OUT_OF_TOTAL, Summary
from grv.runtime.options import Spending

OUTCOMES = ("solved", "finished", "out of budget", OUT_OF_TOTAL, "failed")


@pytest.mark.parametrize("order", [*itertools.permutations(OUTCOMES)])
def test_outcomes_stand_in_one_order(order: tuple[str, ...]) -> None:
    summary = Summary(len(OUTCOMES))
    for number, outcome in enumerate(order):
        summary.add({"problem": f"p{number}"}, outcome)
    (first, *_) = summary.lines("ledger", Spending())
    assert first == (
        "5 problems: 1 solved, 1 finished, 1 out of budget, 1 out of the total budget, 1 failed"
    )


@pytest.mark.parametrize(
    ("paid", "said"),
    [
        (2.5, ", 2.5 paid in this run"),
        (0.0, ", 0 paid in this run"),
        (-0.5, ", 0.5 returned in this run, which earlier ones had reserved"),
    ],
)
def test_what_this_run_paid_is_never_negative(paid: float, said: str) -> None:
    summary = Summary(1)
    summary.add({"problem": "p"}, "solved")
    assert said in summary.lines("ledger", Spending(), paid=paid)[1]
