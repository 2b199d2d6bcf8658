"""The learning curve: paired with the default policy, window by window."""

from __future__ import annotations

import numpy as np
import pytest

from grv.comparing.compare import compare
from grv.core.values import Costs
from grv.logs.log import Log, LoggedProblem
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.request import ReportRequest

COSTS = Costs(1, 10)


def log(problems: int) -> Log:
    found = []
    for number in range(problems):
        chance = np.random.default_rng(number)
        passed = chance.random(30) < 0.2
        passed[number % 30] = True
        scores = chance.standard_normal(30) + 2 * passed
        found.append(LoggedProblem(f"p{number}", scores, passed))
    return Log(tuple(found))


@pytest.mark.slow
def test_it_is_the_cost_between_two_fits_over_that_of_the_default() -> None:
    made = log(12)
    asked = ReportRequest(costs=(COSTS,), policies=("learning", "varied"), orders=2)
    curve = list(make_report([ReportSource("x", log=made)], asked)["learning_curve"].records())

    assert [(row["first"], row["last"]) for row in curve] == [(1, 6), (7, 10), (11, 12)]
    assert (curve[0]["against"], curve[0]["low"], curve[0]["high"]) == (1, 1, 1)  # both are cold
    compared = compare(["learning", "varied"], made, COSTS, orders=2)
    learning, cold = (row.cost_by_position for row in compared.rows)
    assert learning is not None
    assert cold is not None
    for row in curve:
        window = slice(int(row["first"] or 0) - 1, int(row["last"] or 0))
        assert row["cost"] == pytest.approx(np.mean(learning[window]), rel=1e-3)
        assert row["cold"] == pytest.approx(np.mean(cold[window]), rel=1e-3)


@pytest.mark.parametrize(
    ("rows", "missing"),
    [(("varied",), "a policy that learns"), (("learning", "adaptive"), "the default policy")],
)
def test_without_both_rows_it_says_what_is_missing(rows: tuple[str, ...], missing: str) -> None:
    asked = ReportRequest(costs=(COSTS,), policies=rows, orders=1)
    report = make_report([ReportSource("x", log=log(3))], asked)

    assert not list(report["learning_curve"].records())
    assert any(missing in note for note in report["learning_curve"].notes)
