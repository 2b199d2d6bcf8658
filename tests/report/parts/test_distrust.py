"""Which policies to distrust if the score misleads."""

from __future__ import annotations

import pytest

from grv.comparing.rows import runs_live
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.parts.better_score import changed
from grv.report.parts.distrust import any_score, relies_on
from grv.report.request import ReportRequest, default_rows
from grv.testing import population


def test_every_policy_states_what_it_relies_on() -> None:
    assert all(relies_on(name) != "not stated" for name in default_rows() if runs_live(name))


def test_a_policy_with_a_bound_for_any_score_relies_on_nothing() -> None:
    for name in default_rows():
        if runs_live(name):
            assert any_score(name) == relies_on(name).startswith("nothing"), name
    assert all(map(any_score, ("alternate", "hedged", "varied", "verify-all")))


@pytest.mark.slow
def test_policies_that_rely_on_an_inverted_score_are_distrusted() -> None:
    log = population("coding", problems=12, candidates=80, seed=3)
    asked = ReportRequest(orders=4, many_orders=2, policies=("adaptive", "verify-all"))
    made = make_report([ReportSource("x", log=changed(log, 0.0, -4.0, seed=0))], asked)
    verdicts = {row["policy"]: row["verdict"] for row in made["distrust"].records()}
    assert str(verdicts["adaptive"]).startswith("distrust")
    assert "on 12 of 12 problems" in made["distrust"].notes[0]
