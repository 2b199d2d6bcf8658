"""One budget for all problems of a log: rows, intervals, baselines."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grv
from grv.comparing.allocations import BASELINES as ALLOCATIONS
from grv.comparing.allocations import BatchProblem, named_allocation
from grv.comparing.batch_row import BatchRow, batch_cells, batch_words
from grv.comparing.learning_batch import LearningBatch
from grv.comparing.settings import BASELINES, Schedules, TotalBudgets
from grv.core.values import Measured
from grv.logs.log import Log, LoggedProblem
from grv.policies import Learning, Varied
from grv.replay.batch import Course, CourseSteps, run_batch
from grv.replay.engine import replay
from grv.replay.orders import Orders
from grv.report.inputs import parse_comparison, read_comparison
from grv.schedules import SCHEDULES, InOrder, LeastSpent

COSTS = grv.Costs(1, 10)


def logged(id: str, passes: int, size: int = 20, expected: float | None = None) -> LoggedProblem:
    """A problem whose last candidates pass; scores say nothing."""
    passed = np.arange(size) >= size - passes
    generator = np.random.default_rng(size + passes)
    return LoggedProblem(id, generator.random(size), passed, expected=expected)


def batch_log(*, predicted: bool = False) -> Log:
    """Three of twelve problems cannot be solved, three are easy."""
    passes = [0, 0, 0, 1, 1, 2, 2, 4, 8, 12, 16, 19]
    made = [
        logged(f"p{number:02}", each, expected=200.0 / (1 + each) if predicted else None)
        for number, each in enumerate(passes)
    ]
    return Log(tuple(made))


def rows_of(found: grv.Comparison, schedule: str) -> list[BatchRow]:
    return [row for row in found.batches if row.schedule == schedule]


def test_unsolvable_problems_count_and_least_spent_is_not_stopped_by_them() -> None:
    found = grv.compare(["default"], batch_log(), COSTS, total_budget="25%,50%", jobs=1)

    assert {row.schedule for row in found.batches} == {
        "least-spent",
        "in-order",
        "hindsight",
        "oracle",
    }
    for row in found.batches:
        assert (row.problems, row.solvable, row.policy) == (12, 9, "varied")
        assert row.low <= row.solved <= row.high
    for spread, ordered, oracle, best in zip(
        *(rows_of(found, name) for name in ("least-spent", "in-order", "oracle", "hindsight")),
        strict=True,
    ):
        assert ordered.solved < spread.solved <= best.solved
        assert spread.solved <= oracle.solved <= best.solved
        assert spread.budget == ordered.budget


@pytest.mark.slow
def test_a_share_is_of_what_the_default_policy_needs_for_all_solvable_problems() -> None:
    log = batch_log()
    found = grv.compare(["verify-all", "default"], log, COSTS, total_budget="50%", jobs=1)
    alone = grv.compare(["default"], log, COSTS, jobs=1)  # without unsolvable problems
    (row,) = [row for row in rows_of(found, "least-spent") if row.policy == "varied"]

    assert row.budget == pytest.approx(0.5 * 9 * alone["default"].cost)
    same = grv.compare(["default"], log, COSTS, total_budget=row.budget, jobs=1)
    assert rows_of(same, "least-spent")[0].share == pytest.approx(0.5)
    assert rows_of(same, "least-spent")[0].solved == row.solved


def test_hindsight_solves_everything_with_all_the_money_of_the_dearest_order() -> None:
    found = grv.compare(["default"], batch_log(), COSTS, total_budget="300%", jobs=1)

    assert rows_of(found, "hindsight")[0].solved == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_gives_a_share_that_rises_with_the_budget(name: str) -> None:
    found = grv.compare(
        ["default"], batch_log(), COSTS, total_budget="10%,40%,500%", schedule=name, jobs=1
    )
    shares = [row.solved for row in rows_of(found, name)]

    assert shares == sorted(shares)
    assert shares[-1] == 1
    policies = {row.policy for row in rows_of(found, name)}
    assert policies == {"verify-all" if name in ("reset", "elimination", "two-stage") else "varied"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SCHEDULES if name != "cheapest-predicted"])
def test_every_rule_gives_a_share(name: str) -> None:
    found = grv.compare(["default"], batch_log(), COSTS, total_budget="40%", schedule=name, jobs=1)

    assert 0 < rows_of(found, name)[0].solved <= 1


def test_good_predictions_solve_more_and_without_any_the_schedule_is_refused() -> None:
    both = "least-spent,cheapest-predicted(k=3)"
    found = grv.compare(
        ["default"], batch_log(predicted=True), COSTS, total_budget="25%", schedule=both, jobs=1
    )
    (predicted,) = rows_of(found, "cheapest-predicted(k=3)")

    assert predicted.solved > rows_of(found, "least-spent")[0].solved
    with pytest.raises(grv.GrvError, match="cheapest-predicted needs a column 'expected_cost'"):
        grv.compare(["default"], batch_log(), COSTS, total_budget="25%", schedule=both)


def test_a_prediction_is_read_from_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    head = "problem,candidate,passed,score,expected_cost\n"
    path.write_text(head + "a,0,1,0.5,40\na,1,0,0.1,\nb,0,0,0.2,\nb,1,1,0.3,\n", encoding="utf-8")

    assert [problem.expected for problem in Log.load(path).problems] == [40.0, None]


def test_the_table_of_allocations_and_the_names_of_the_help_are_the_same() -> None:
    assert tuple(ALLOCATIONS) == BASELINES


def member(levels: list[float], scores: list[float], *, solved: bool = True) -> BatchProblem:
    course = Course(np.array(levels), solved, np.arange(1, len(levels) + 1))
    return BatchProblem(course, course.cost, None, np.array(scores))


def order_of(name: str, batch: list[BatchProblem], budget: float) -> list[int]:
    _, allocation = named_allocation(name)
    schedule = allocation.begin(batch, budget)  # type: ignore[union-attr]
    return run_batch(schedule, [CourseSteps(each.course) for each in batch], budget).steps


def test_equal_shares_leave_money_and_a_rolling_share_gives_it_to_later_problems() -> None:
    batch = [member([10], [0.5]), member([10, 20, 30, 40], [0.5] * 4)]

    assert order_of("equal-shares", batch, 50) == [0, 1, 1]  # 25 each
    assert order_of("rolling-share", batch, 50) == [0, 1, 1, 1, 1]  # the second may spend 40


def test_elimination_prefers_high_scores_and_two_stage_what_may_rise_most() -> None:
    low = member([11 * n for n in range(1, 9)], [0.1] * 8, solved=False)
    high = member([11 * n for n in range(1, 9)], [0.9] * 8, solved=False)
    order = order_of("elimination", [low, high], 99)
    assert order[:2] == [0, 1]
    assert order.count(1) > order.count(0)

    flat = member([11 * n for n in range(1, 21)], [0.5] * 20, solved=False)
    wild = member([11 * n for n in range(1, 21)], [0.1, 0.9] * 10, solved=False)
    order = order_of("two-stage", [flat, wild], 220)  # each explores up to 82.5
    assert order[:14] == [0] * 7 + [1] * 7
    assert set(order[14:]) == {1}


def test_the_words_say_what_the_money_buys() -> None:
    found = grv.compare(["default"], batch_log(), COSTS, total_budget="50%,60%", jobs=1)
    half, more = batch_words(found.batches)

    assert half.startswith("With half the money (")
    assert ", least-spent solves " in half
    assert " % of the 9 solvable problems, in-order " in half
    assert more.startswith("With 60 % of the money (")
    head, cells = batch_cells(found.batches)
    assert head == ["schedule", "policy", "50 %", "60 %"]
    assert len(cells) == 4


def test_rows_are_saved_and_read_again(tmp_path: Path) -> None:
    found = grv.compare(["default"], batch_log(), COSTS, total_budget="50%", jobs=1)
    found.save(tmp_path / "found.json")
    record = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))

    assert record["settings"]["total_budget"] == "50%"
    assert record["settings"]["schedule"] == "least-spent,in-order"
    assert read_comparison(str(tmp_path / "found.json")).batches == found.batches
    measured = BatchRow("least-spent", "default", Measured(1, 10), 5, 0.5, 2, 1, 0.5, 0, 1)
    record["batches"] = [measured.to_json()]
    assert parse_comparison(record).batches == (measured,)
    record["batches"] = [{**measured.to_json(), "solved": "all"}]
    with pytest.raises(grv.LogError, match="not what grv compare --json writes"):
        parse_comparison(record)
    plain = grv.compare(["default"], batch_log(), COSTS, jobs=1).to_json()
    assert "batches" not in plain
    assert "schedule" not in plain["settings"]


def test_the_number_of_processes_changes_nothing() -> None:
    one, two = (
        grv.compare(["default"], batch_log(), COSTS, total_budget="30%", jobs=jobs)
        for jobs in (1, 2)
    )

    assert one.batches == two.batches


@pytest.mark.parametrize("text", ["0", "-5", "x", "10%,", "nan", "inf"])
def test_a_wrong_budget_is_refused(text: str) -> None:
    with pytest.raises(grv.UsageError, match="give positive numbers or shares"):
        TotalBudgets.of(text)


def test_a_comma_inside_brackets_does_not_divide() -> None:
    text = "least-spent, cheapest-predicted(k=1)"

    assert Schedules.of(text).names == ("least-spent", "cheapest-predicted(k=1)")
    with pytest.raises(grv.UsageError, match="unknown schedule 'leest-spent'; did you mean"):
        Schedules.of("leest-spent")
    with pytest.raises(grv.UsageError, match="reset takes no parameters"):
        Schedules.of("reset(3)")


def test_batches_need_a_policy_and_all_labels() -> None:
    with pytest.raises(grv.UsageError, match="at least one row that is a policy"):
        grv.compare(["hindsight"], batch_log(), COSTS, total_budget="50%")
    log = {"problem": ["a", "a"], "candidate": [0, 1], "score": [1, 2], "passed": [True, None]}
    log["censored"] = [True, True]
    with pytest.raises(grv.GrvError, match="label"):
        grv.compare(["default"], log, COSTS, total_budget="50%")


def test_a_policy_that_learns_takes_the_newest_prior_when_it_goes_on() -> None:
    orders = Orders(batch_log().problems, 2)
    batch = LearningBatch(orders, "score", COSTS, grv.Limits())
    spread = batch.run(Learning(), LeastSpent(), 0, math.inf)
    ordered = batch.run(Learning(), InOrder(), 0, math.inf)

    assert not spread.decided[:6].any()  # the first fit is after six problems
    assert spread.decided[-1]
    assert spread.decided.mean() > ordered.decided.mean()
    for run in (spread, ordered):  # with money without end, everything solvable is solved
        assert sorted(run.steps.problems[run.steps.solves].tolist()) == list(range(3, 12))
    assert len(set(ordered.steps.problems.tolist())) == 12
    assert (np.diff(np.unique(ordered.steps.problems, return_index=True)[1]) != 0).all()


def test_rows_that_learn_are_in_the_table() -> None:
    found = grv.compare(["learning"], batch_log(), COSTS, total_budget="50%,500%", orders=3, jobs=1)
    shares = [row.solved for row in found.batches if row.policy == "learning"]

    assert [row.schedule for row in found.batches] == ["least-spent", "least-spent"] + [
        "in-order"
    ] * 2
    assert shares[1] == shares[3] == 1
    assert shares[0] > shares[2]


def test_a_policy_that_learns_predicts_what_the_log_does_not() -> None:
    rule = "cheapest-predicted(k=3)"
    how: dict[str, Any] = {"total_budget": "50%", "schedule": rule, "orders": 3, "jobs": 1}
    policies = ["learning", "default"]  # without a column, the default has no row
    (predicted,) = rows_of(grv.compare(policies, batch_log(), COSTS, **how), rule)
    known_log = batch_log(predicted=True)
    (known,) = rows_of(grv.compare(["learning"], known_log, COSTS, **how), rule)

    assert predicted.policy == "learning"
    assert predicted.solved < known.solved


def test_without_a_prior_a_batch_that_learns_is_the_batch_of_the_guarded_default() -> None:
    orders = Orders(batch_log().problems[:4], 1)  # fewer than six finish
    run = LearningBatch(orders, "score", COSTS, grv.Limits()).run(
        Learning(), InOrder(), 0, math.inf
    )
    total = sum(
        replay(Varied(5), batch.problem, COSTS, order=batch.orders[0]).bill.total
        for batch in orders.batches()
    )

    assert run.steps.costs.sum() == pytest.approx(total)
