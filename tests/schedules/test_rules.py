"""Every rule keeps the contract of a schedule, and orders searches as its docstring says."""

from __future__ import annotations

import math
import random
import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv import UsageError
from grv.schedules import SCHEDULES, Rule, Schedule, parse, prediction_weight, written
from grv.schedules.stream import SpendingCurve

WHOLE = [name for name in SCHEDULES if name != "stream"]  # those that never drop a search


def begun(rule: str, problems: int = 100, budget: float = 1e6) -> Schedule:
    return parse(rule).begin(budget=budget, problems=problems)


def steps(
    schedule: Schedule, costs: Sequence[Sequence[float]], at_once: int = 1, seed: int = 0
) -> list[int]:
    """Run searches whose verdicts cost `costs[problem]`; the order of the steps."""
    rng = random.Random(seed)
    spent = [0.0] * len(costs)
    verdicts = [0] * len(costs)
    for place, own in enumerate(costs):
        schedule.add(place, next_cost=own[0])
    order: list[int] = []
    out: list[int] = []
    while True:
        while len(out) < at_once and (asked := schedule.ask()) is not None:
            out.append(asked)
            order.append(asked)
        if not out:
            return order
        problem = out.pop(rng.randrange(len(out)))
        spent[problem] += costs[problem][verdicts[problem]]
        verdicts[problem] += 1
        ended = verdicts[problem] == len(costs[problem])
        next_cost = 0.0 if ended else costs[problem][verdicts[problem]]
        schedule.tell(problem, spent=spent[problem], next_cost=next_cost, ended=ended)


COSTS = st.lists(st.lists(st.floats(0.01, 100), min_size=1, max_size=6), min_size=1, max_size=8)


@pytest.mark.parametrize("rule", WHOLE)
@given(costs=COSTS, at_once=st.integers(1, 5), seed=st.integers(0, 99))
def test_every_step_is_taken_once_whatever_the_concurrency(
    rule: str, costs: list[list[float]], at_once: int, seed: int
) -> None:
    order = steps(begun(rule), costs, at_once, seed)

    assert [order.count(problem) for problem in range(len(costs))] == [len(c) for c in costs]


@given(costs=COSTS)
def test_least_spent_takes_the_step_that_ends_at_the_lowest_level(
    costs: list[list[float]],
) -> None:
    levels = sorted(
        (sum(own[: number + 1]), problem, number)
        for problem, own in enumerate(costs)
        for number in range(len(own))
    )

    assert steps(begun("least-spent"), costs) == [problem for _, problem, _ in levels]


@given(costs=COSTS)
def test_in_order_ends_a_problem_before_the_next(costs: list[list[float]]) -> None:
    order = steps(begun("in-order"), costs)

    assert order == [problem for problem, own in enumerate(costs) for _ in own]


@given(costs=COSTS)
def test_doubling_goes_through_the_file_at_every_power_of_two(costs: list[list[float]]) -> None:
    expected = sorted(
        (math.ceil(math.log2(sum(own[: number + 1])) - 1e-12), problem, number)
        for problem, own in enumerate(costs)
        for number in range(len(own))
    )

    assert steps(begun("doubling"), costs) == [problem for _, problem, _ in expected]


@pytest.mark.parametrize("level", [0.25, 1.0, 2.0, 1024.0])
def test_a_power_of_two_is_its_own_level(level: float) -> None:
    rule = SCHEDULES["doubling"]()

    assert rule.key(level, 0.0) == level
    assert rule.key(level * 1.0001, 0.0) == 2 * level
    assert rule.key(0.0, 0.0) == 0.0


def test_equal_keys_go_in_the_order_of_the_file_and_not_in_the_order_they_were_added() -> None:
    schedule = begun("least-spent")
    for problem in (2, 0, 1):
        schedule.add(problem, next_cost=11)

    assert [schedule.ask() for _ in range(4)] == [0, 1, 2, None]


def test_a_problem_of_twice_the_weight_may_spend_twice_as_much() -> None:
    schedule = begun("least-spent")
    schedule.add(0, spent=10, next_cost=5)
    schedule.add(1, weight=2, spent=20, next_cost=5)
    schedule.add(2, weight=2, spent=20, next_cost=11)

    assert [schedule.ask() for _ in range(3)] == [1, 0, 2]


def test_what_a_resumed_search_has_spent_counts() -> None:
    schedule = begun("least-spent")
    schedule.add(0, spent=100, next_cost=1)
    schedule.add(1, next_cost=50)
    schedule.add(2, spent=5, ended=True)

    assert [schedule.ask() for _ in range(3)] == [1, 0, None]


@pytest.mark.parametrize("k", [0, 0.3, 1, 3])
def test_a_prediction_counts_k_times(k: float) -> None:
    schedule = begun(f"cheapest-predicted(k={k})")
    keys = {}
    for problem, (expected, spent) in enumerate([(100, 0), (10, 40), (50, 60), (1, 200)]):
        schedule.add(problem, expected=expected, spent=spent, next_cost=11)
        keys[problem] = k * expected + spent + 11

    assert [schedule.ask() for _ in keys] == sorted(keys, key=lambda problem: keys[problem])


def test_a_problem_without_a_prediction_takes_the_mean_and_a_new_one_replaces_the_old() -> None:
    schedule = begun("cheapest-predicted(k=1)")
    schedule.add(0, expected=30, next_cost=1)
    schedule.add(1, expected=10, next_cost=1)
    schedule.add(2, next_cost=1)  # 20, the mean

    assert schedule.ask() == 1
    schedule.tell(1, spent=1, next_cost=1, expected=100)
    assert [schedule.ask() for _ in range(3)] == [2, 0, 1]


def test_how_much_a_prediction_counts_rises_with_its_correlation() -> None:
    assert [prediction_weight(c) for c in (0.3, 0.5, 0.7, 0.9)] == [0.3, 0.5, 1, 3]
    assert prediction_weight(0.6) == pytest.approx(0.75)
    assert prediction_weight(-0.5) == 0
    assert prediction_weight(1) == 3


@pytest.mark.parametrize("rule", SCHEDULES)
def test_only_a_search_that_is_out_can_be_reported(rule: str) -> None:
    schedule = begun(rule)
    schedule.add(0, next_cost=1)

    with pytest.raises(ValueError, match="problem 0 is not out"):
        schedule.tell(0, spent=1)
    assert schedule.ask() == 0
    assert schedule.tell(0, spent=1, ended=True) is False
    assert schedule.ask() is None


@pytest.mark.parametrize("rule", SCHEDULES)
@pytest.mark.parametrize("weight", [0, -1, math.inf, math.nan])
def test_a_weight_is_positive_and_finite(rule: str, weight: float) -> None:
    with pytest.raises(UsageError, match="the weight of a problem must be positive and finite"):
        begun(rule).add(0, weight=weight)


@pytest.mark.parametrize("expected", [-1, math.inf, math.nan])
def test_a_prediction_is_finite_and_not_negative(expected: float) -> None:
    with pytest.raises(UsageError, match="a predicted cost must be finite and not negative"):
        begun("cheapest-predicted").add(0, expected=expected)


def test_a_stream_caps_each_problem_at_an_equal_share_until_six_have_ended() -> None:
    schedule = begun("stream", problems=10, budget=1000)
    for problem in range(10):
        schedule.add(problem, next_cost=10)
    left = 1000.0
    for problem in range(6):
        cap = left / (10 - problem)
        spent = 0.0
        while True:
            assert schedule.ask() == problem
            spent += 10
            if not schedule.tell(problem, spent=spent, next_cost=10):
                break
        assert spent <= cap < spent + 10
        left -= spent


def test_a_stream_learns_that_most_problems_are_cheap() -> None:
    schedule = begun("stream", problems=20, budget=2000)
    for problem in range(20):
        schedule.add(problem, next_cost=10)
    for problem in range(10):  # cheap ones leave money for the others
        assert schedule.ask() == problem
        schedule.tell(problem, spent=10, ended=True)
    spent = 0.0
    while schedule.ask() == 10:
        spent += 10
        if not schedule.tell(10, spent=spent, next_cost=10):
            break

    assert spent == 1900  # every search so far cost 10, so this one may have all that is left


def test_a_stream_begins_another_problem_while_one_is_out_and_keeps_its_cap_reserved() -> None:
    schedule = begun("stream", problems=2, budget=100)
    schedule.add(0, next_cost=10)
    schedule.add(1, next_cost=10)

    assert [schedule.ask(), schedule.ask(), schedule.ask()] == [0, 1, None]
    assert schedule.tell(1, spent=40, next_cost=10) is True
    assert schedule.tell(0, spent=45, next_cost=10) is False
    assert schedule.ask() == 1
    assert schedule.tell(1, spent=50, next_cost=10) is False


def test_a_stream_needs_money_and_a_number() -> None:
    for budget, problems in [(math.inf, 5), (100.0, None)]:
        with pytest.raises(UsageError, match="stream needs a total budget and the number"):
            parse("stream").begin(budget=budget, problems=problems)


@given(
    spends=st.lists(st.tuples(st.floats(0.1, 100), st.booleans()), min_size=6, max_size=30),
    share=st.floats(0.01, 50),
)
def test_the_cap_of_a_curve_spends_the_share(
    spends: list[tuple[float, bool]], share: float
) -> None:
    curve = SpendingCurve()
    for spent, capped in spends:
        curve.add(spent, capped=capped)
    cap = curve.cap(share)

    # E min(T, cap) with the curve written out as a product over the observations.
    area = 0.0
    previous = 0.0
    for time in sorted({spent for spent, _ in spends if spent < cap} | {cap}):
        survival = math.prod(
            1 - sum(s == t and not c for s, c in spends) / (1 + sum(s >= t for s, _ in spends))
            for t in {s for s, c in spends if not c and s <= previous}
        )
        area += survival * (time - previous)
        previous = time
    assert area == pytest.approx(share)


def test_cheap_problems_do_not_give_an_impossible_one_all_the_money() -> None:
    curve = SpendingCurve()
    for _ in range(10):
        curve.add(10, capped=False)

    assert curve.cap(20) == pytest.approx(10 + 10 * 11)  # one in eleven never ends


@pytest.mark.parametrize("rule", [*SCHEDULES, "cheapest-predicted(k=3)"])
def test_a_specification_is_read_and_written(rule: str) -> None:
    assert written(parse(rule)) == rule


def test_a_mistake_in_a_specification_is_one_line() -> None:
    with pytest.raises(UsageError, match="unknown schedule 'least'; did you mean"):
        parse("least")
    with pytest.raises(UsageError, match="unknown parameter of cheapest-predicted 'j'"):
        parse("cheapest-predicted(j=1)")
    with pytest.raises(UsageError, match="k must be finite and not negative, not -1"):
        parse("cheapest-predicted(k=-1)")
    with pytest.raises(UsageError, match="a parameter has the wrong type"):
        parse("cheapest-predicted(k='x')")
    with pytest.raises(UsageError, match="not a schedule: '5'"):
        parse("5")


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_rule_is_a_value_with_a_sentence(name: str) -> None:
    rule: Rule = parse(name)

    assert rule == parse(name)
    assert hash(rule) == hash(parse(name))
    assert (SCHEDULES[name].__doc__ or "").partition("\n")[0].endswith(".")


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEDULES)
def test_an_open_search_takes_few_bytes(name: str) -> None:
    tracemalloc.start()
    schedule = begun(name, problems=100_000)
    for problem in range(100_000):
        schedule.add(problem, next_cost=11 + problem / 1000)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert size < 200 * 100_000
