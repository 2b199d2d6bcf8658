"""The conclusions say in words what the tables say in numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grv.comparing.compare import compare
from grv.core.values import Costs
from grv.report.build import make_report
from grv.report.inputs import ReportSource
from grv.report.report import Report
from grv.report.request import ReportRequest
from grv.testing import all_wrong, population
from support.reports import OTHER, two_logs

SPACE = "\N{NO-BREAK SPACE}"


@pytest.fixture(scope="module")
def report() -> Report:
    log = population("coding", problems=8, candidates=40, seed=4)
    request = ReportRequest(costs=(Costs(1, 10), Costs(1, 3)), orders=3, many_orders=10)
    return make_report([ReportSource("a log", log=log)], request)


@pytest.mark.slow
def test_three_questions_are_answered_from_the_tables(report: Report) -> None:
    costs, score, advice = report.conclusions
    rows = {row["policy"]: row for row in report["summary"].only(costs="1,10").records()}
    assert f"{rows['adaptive']['cost']:.3g} with adaptive," in costs.sentences[0]
    assert "If generating a candidate costs 1 and verifying it costs 10" in costs.sentences[0]
    auc = report["auc_summary"].records()[0]["mean"]
    assert isinstance(auc, float)
    assert f"{100 * auc:.0f}{SPACE}% of cases" in score.sentences[0]
    pays = report["pays_for_itself"].only(costs="1,10").records()
    best = max(pays, key=lambda row: float(row["saving"] or 0))
    assert f"At 1,10, {best['policy']} costs" in score.sentences[1]
    for prices, sentence in zip(("1,10", "1,3"), advice.sentences, strict=False):
        first = report["which_policy"].only(costs=prices).records()[0]
        assert (
            f"At {prices} the cheapest policy that can run live is {first['policy']}: " in sentence
        )
    assert "a perfect score would save" in advice.sentences[2]


def test_the_only_log_is_not_named_and_several_are(report: Report) -> None:
    assert "a log" not in str(report.conclusions)
    for conclusion in two_logs().conclusions:
        assert {sentence.split(":")[0] for sentence in conclusion.sentences} == {"first", "second"}


def test_policies_that_cost_the_same_are_named_together() -> None:
    log = population("coding", problems=8, candidates=40, seed=4)
    asked = ReportRequest(costs=(Costs(1, 1),), policies=("verify-all", "alternate"), orders=2)
    made = make_report([ReportSource("x", log=log)], replace(asked, many_orders=1))
    sentence = made.conclusions[2].sentences[0]
    assert "the cheapest policy that can run live is verify-all" in sentence
    assert "The next, alternate, costs as much, on every problem." in sentence


def test_spending_on_unsolvable_problems_is_reported() -> None:
    row = two_logs()["which_policy"].only(log="first", costs="1,10").records()[0]
    unsolved = two_logs()["unsolved"].only(log="first", costs="1,10", policy=row["policy"])
    share = unsolved.records()[0]["share"]
    assert isinstance(share, float)
    assert two_logs().conclusions[0].sentences[1] == (
        f"first: 1 problem has no candidate that passes. With {row['policy']} and without a budget,"
        f" this takes {100 * share:.0f}{SPACE}% of all spending."
    )


def test_a_log_that_answers_nothing_is_said_to() -> None:
    log = replace(OTHER, problems=(all_wrong(5).logged("a"), all_wrong(5).logged("b")))
    costs, score, advice = make_report(
        [ReportSource("x", log=log)], ReportRequest(orders=1)
    ).conclusions
    assert costs.sentences[0] == "No problem has a candidate that passes."
    assert score.sentences[0].startswith("Unknown")
    assert advice.sentences[0].startswith("Unknown")


def test_each_log_is_described_at_its_own_prices() -> None:
    saved = compare(("adaptive", "verify-all"), OTHER, Costs(1, 3), orders=2)
    sources = [ReportSource("saved", "comparison", None, saved), ReportSource("log", log=OTHER)]
    asked = ReportRequest(policies=("adaptive", "verify-all"), orders=2, many_orders=1)
    costs = make_report(sources, asked).conclusions[0].sentences
    assert costs[0].startswith("saved: If generating a candidate costs 1 and verifying it costs 3,")
    assert costs[1].startswith("log: At 1,10, the mean cost per problem is")
    alone = make_report(sources[:1]).conclusions
    assert alone[1].sentences == ("A saved comparison does not tell: report on the log itself.",)
