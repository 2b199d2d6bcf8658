"""The limit of calls at once that adapts, in virtual time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.runtime.adaptive import FIRST, MOST, AdaptiveLimit, Ticket
from support.virtual_calls import Fixed, run


def changing(answered: int) -> int:
    return 60 if answered < 800 else 15 if answered < 1600 else 40


@pytest.mark.slow
@pytest.mark.parametrize(
    ("takes", "calls", "numbers"),
    [
        (lambda answered: 7, 600, (6, 7, 8)),
        (lambda answered: 60, 1500, (50, 60, 70)),
        (changing, 2400, (15, 20, 40, 60)),
        (lambda answered: 15 if answered < 500 else 60, 2000, (15, 60)),
        (lambda answered: 60 if answered < 1000 else 45, 2000, (45, 60)),
    ],
    ids=["7", "60", "60, 15, 40", "15, 60", "60, 45"],
)
def test_a_hidden_limit_is_found_soon_and_with_few_refusals(
    takes: Callable[[int], int], calls: int, numbers: tuple[int, ...]
) -> None:
    course = run(AdaptiveLimit(), calls, takes=takes)
    best = min(run(Fixed(n), calls, takes=takes).seconds for n in numbers)
    assert course.seconds <= 1.2 * best
    assert course.share < 0.02


def test_refusals_that_arrive_late_cost_few_calls() -> None:
    course = run(AdaptiveLimit(), 1500, takes=lambda answered: 60, refusing=0.3)
    assert course.share < 0.02


@pytest.mark.parametrize("works", [4, 12, 60])
def test_a_server_that_only_queues_is_not_flooded(works: int) -> None:
    limit = AdaptiveLimit()
    course = run(limit, 50 * works, takes=lambda answered: 10**9, works=works)
    best = run(Fixed(works), 50 * works, takes=lambda answered: 10**9, works=works)
    assert limit.bound == "slower"
    assert course.highest <= 8 * works
    assert course.seconds <= 1.2 * best.seconds


def test_without_any_limit_it_ends_at_the_most() -> None:
    limit = AdaptiveLimit()
    run(limit, 4000, takes=lambda answered: 10**9)
    assert (limit.limit, limit.bound) == (MOST, "most")


def test_it_does_not_climb_without_work() -> None:
    limit = AdaptiveLimit()
    for now in range(1000):
        limit.succeed(limit.begin(now), now + 0.5)
    assert limit.limit == FIRST


def test_one_burst_of_refusals_shows_what_the_server_took() -> None:
    limit = AdaptiveLimit()
    tickets = [limit.begin(0.0) for _ in range(FIRST)]
    for ticket in tickets[:5]:
        limit.refuse(ticket)
    assert (limit.limit, limit.refused_at, limit.bound) == (3, 4, "refused")


def test_one_call_more_is_tried_at_a_time() -> None:
    limit = AdaptiveLimit(first=4)
    in_flight = [limit.begin(0.0) for _ in range(4)]
    limit.refuse(in_flight.pop())
    now = 0.0
    while limit.limit == 3:
        while limit.in_flight < limit.limit:
            in_flight.append(limit.begin(now))
        now += 1.0
        limit.succeed(in_flight.pop(0), now)
    while limit.in_flight < limit.limit:
        in_flight.append(limit.begin(now))
    assert (limit.in_flight, limit.limit) == (4, 3)  # the fourth is being tried
    limit.refuse(in_flight[-1])
    assert limit.limit == 3


Event = st.sampled_from(["begin", "succeed", "refuse", "end"])


@given(st.lists(st.tuples(Event, st.integers(0, 300), st.floats(0, 10)), max_size=400))
def test_no_course_of_events_leads_out_of_bounds(events: list[tuple[str, int, float]]) -> None:
    limit = AdaptiveLimit()
    tickets: list[Ticket] = []
    now = 0.0
    for what, which, seconds in events:
        now += seconds
        if what == "begin":
            if limit.in_flight < limit.limit:
                tickets.append(limit.begin(now))
        elif tickets:
            ticket = tickets.pop(which % len(tickets))
            if what == "succeed":
                limit.succeed(ticket, now)
            elif what == "refuse":
                before = limit.limit
                limit.refuse(ticket)
                assert limit.limit <= before
            else:
                limit.end(ticket)
        assert 1 <= limit.limit <= MOST
        assert limit.in_flight == len(tickets)


@given(st.integers(1, 100), st.integers(0, 5))
def test_every_call_gets_its_result_whatever_the_server_takes(takes: int, seed: int) -> None:
    course = run(AdaptiveLimit(), 300, takes=lambda answered: takes, seed=seed)
    assert course.calls == 300
    assert course.busiest <= max(FIRST, 3 * takes)
