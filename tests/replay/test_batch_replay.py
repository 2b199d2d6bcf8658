"""Batches: searches that share one budget. The fast path equals the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv import Costs, Limits, Search
from grv.logs.log import LoggedProblem
from grv.policies import Alternate, Balanced, Policy, Varied, VerifyAll
from grv.replay.batch import Course, CourseSteps, SearchSteps, course_of, run_batch, sorted_steps
from grv.replay.engine import replayed
from grv.schedules import SCHEDULES, parse

KEYED = [name for name in SCHEDULES if name != "stream"]
PRICES = [Costs(1, 10), Costs(1, 0.5), Costs(3, 7)]


@st.composite
def problems(draw: st.DrawFn) -> list[LoggedProblem]:
    made = []
    for number in range(draw(st.integers(1, 6))):
        size = draw(st.integers(1, 12))
        scores = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
        passed = draw(st.lists(st.booleans(), min_size=size, max_size=size))
        if draw(st.booleans()):  # some problems cannot be solved
            passed = [False] * size
        keys = draw(st.lists(st.integers(-1, 3), min_size=size, max_size=size))
        right = {key for key, verdict in zip(keys, passed, strict=True) if verdict}
        codes = [-1 if key in right else key for key in keys]
        made.append(
            LoggedProblem(
                str(number),
                np.array(scores, dtype=np.float64),
                np.array(passed, dtype=np.bool_),
                np.array(codes, dtype=np.int32),
            )
        )
    return made


@pytest.mark.slow
@pytest.mark.parametrize("policy", [Varied(), Balanced(), Alternate(), VerifyAll()])
@given(batch=problems(), costs=st.sampled_from(PRICES), keys=st.booleans(), data=st.data())
def test_a_course_is_the_search_cut_at_its_verdicts(
    policy: Policy, batch: list[LoggedProblem], costs: Costs, keys: bool, data: st.DataObject
) -> None:
    width = data.draw(st.sampled_from([1, 3, None]))
    limits = Limits(width=width)
    for problem in batch:
        order = range(len(problem))
        search = replayed(policy, problem, costs, limits, keys=keys)
        assert search.outcome is not None
        course = course_of(Search(policy, costs, limits), problem, order, keys=keys)

        assert course.cost == pytest.approx(search.outcome.bill.total)
        assert course.solved == search.outcome.solved
        verdicts = search.rounds.verify
        assert verdicts <= len(course.levels) <= verdicts + 1
        assert (np.diff(course.levels, prepend=0.0) >= 0).all()
        assert course.arrived[-1] == search.arrived


@pytest.mark.slow
@pytest.mark.parametrize("rule", [*KEYED, "cheapest-predicted(k=3)"])
@given(
    batch=problems(),
    costs=st.sampled_from(PRICES),
    share=st.floats(0, 1.2),
    data=st.data(),
)
def test_sorting_the_steps_equals_running_the_searches(
    rule: str, batch: list[LoggedProblem], costs: Costs, share: float, data: st.DataObject
) -> None:
    policy = Varied()
    expected = data.draw(st.lists(st.floats(0, 99), min_size=len(batch), max_size=len(batch)))
    courses = [course_of(Search(policy, costs), p, range(len(p)), keys=True) for p in batch]
    budget = share * math.fsum(course.cost for course in courses)
    parsed = parse(rule)
    live = run_batch(
        parsed.begin(budget=budget, problems=len(batch)),
        [SearchSteps(Search(policy, costs), p, range(len(p)), keys=True) for p in batch],
        budget,
        expected=expected,
    )
    keys = [
        np.array([parsed.key(level, m) for level in course.levels.tolist()])  # type: ignore[attr-defined]
        for course, m in zip(courses, expected, strict=True)
    ]
    steps = sorted_steps(courses, keys)
    (fast,) = steps.solved([budget])

    assert sorted(fast.tolist()) == np.flatnonzero(live.solved).tolist()
    assert live.spent.sum() <= budget * (1 + 1e-12)
    paid = run_batch(
        parsed.begin(budget=math.inf, problems=len(batch)),
        [CourseSteps(course) for course in courses],
        math.inf,
        expected=expected,
    )
    assert paid.steps == steps.problems.tolist()


def course(levels: list[float], *, solved: bool) -> Course:
    return Course(np.array(levels), solved, np.arange(len(levels)))


def test_a_search_that_cannot_be_paid_ends_and_a_cheaper_one_goes_on() -> None:
    courses = [course([10, 30], solved=True), course([12, 14, 16], solved=True)]
    keys = [each.levels for each in courses]
    result = run_batch(parse("least-spent").begin(), [*map(CourseSteps, courses)], 27)

    # 10 + 12 + 2 + 2 are paid; the step of 20 is not
    assert result.steps == [0, 1, 1, 1]
    assert result.solved.tolist() == [False, True]
    assert [found.tolist() for found in sorted_steps(courses, keys).solved([27, 21, 9])] == [
        [1],
        [],
        [],
    ]


@given(batch=problems(), at_once=st.integers(1, 4), share=st.floats(0, 1.2))
def test_with_several_at_once_the_total_stays_within_the_budget(
    batch: list[LoggedProblem], at_once: int, share: float
) -> None:
    costs = Costs(1, 10)
    courses = [course_of(Search(Varied(), costs), p, range(len(p))) for p in batch]
    budget = share * math.fsum(each.cost for each in courses)
    result = run_batch(
        parse("least-spent").begin(), [*map(CourseSteps, courses)], budget, at_once=at_once
    )

    assert result.spent.sum() <= budget * (1 + 1e-12)


def test_a_free_step_is_a_step() -> None:
    free = course([5, 5, 9], solved=True)
    result = run_batch(parse("least-spent").begin(), [CourseSteps(free)], 9)

    assert result.steps == [0, 0, 0]
    assert result.solved.tolist() == [True]
