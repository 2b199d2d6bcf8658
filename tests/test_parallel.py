"""Work in several processes: the same results in the same order, and nothing left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.core.errors import UsageError
from grv.parallel import SMALL, Parallel, ProcessDied, divided, in_parts

MUCH = SMALL + 1  # units of work


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2, 3, None])
def test_results_come_in_the_order_of_the_parts(jobs: int | None) -> None:
    found = list(in_parts(lambda number: np.full(number, number), 40, jobs, MUCH))

    assert [each.tolist() for each in found] == [[number] * number for number in range(40)]


@pytest.mark.slow
def test_several_processes_do_the_work_and_one_does_not_fork() -> None:
    assert set(in_parts(lambda _: os.getpid(), 30, 1, MUCH)) == {os.getpid()}
    assert os.getpid() not in set(in_parts(lambda _: os.getpid(), 30, 2, MUCH))


def test_small_work_stays_in_this_process() -> None:
    assert set(in_parts(lambda _: os.getpid(), 30, 2, SMALL)) == {os.getpid()}


@pytest.mark.slow
def test_an_exception_is_raised_as_if_there_were_no_processes() -> None:
    def work(number: int) -> int:
        if number == 3:
            raise UsageError(f"part {number} is wrong")
        return number

    found = in_parts(work, 8, 2, MUCH)

    assert [next(found) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(UsageError, match="part 3 is wrong"):
        next(found)


@pytest.mark.slow
def test_a_worker_that_dies_is_one_line_that_says_what_to_do() -> None:
    def work(number: int) -> int:
        if number == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    with pytest.raises(ProcessDied, match=r"killed by signal 9; .* --jobs 1$"):
        list(in_parts(work, 8, 2, MUCH))


@pytest.mark.slow
def test_warnings_of_workers_are_told_once() -> None:
    def work(number: int) -> int:
        warnings.warn("be careful", UserWarning, stacklevel=1)
        return number

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        list(in_parts(work, 9, 2, MUCH))

    assert [str(each.message) for each in told] == ["be careful"]


@pytest.mark.slow
def test_threads_of_the_caller_are_no_reason_to_warn() -> None:
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert list(in_parts(lambda number: number, 9, 2, MUCH)) == list(range(9))
    finally:
        ended.set()
        thread.join()

    assert told == []


@pytest.mark.slow
def test_a_caller_that_stops_early_ends_the_workers() -> None:
    found = in_parts(lambda number: number, 100, 2, MUCH)
    assert next(found) == 0

    assert len(multiprocessing.active_children()) == 2
    found.close()  # type: ignore[attr-defined]


@given(sizes=st.lists(st.integers(1, 50), max_size=30), most=st.integers(1, 120))
def test_parts_cover_all_items_in_order_and_are_small(sizes: list[int], most: int) -> None:
    parts = divided(sizes, most)

    assert [at for start, stop in parts for at in range(start, stop)] == list(range(len(sizes)))
    for start, stop in parts:
        longest = max(sizes[start:stop])
        assert stop - start == 1 or (stop - start) * longest <= most


def test_the_number_of_processes_is_at_least_one() -> None:
    with pytest.raises(UsageError, match="--jobs 0: give a whole number from 1"):
        Parallel(jobs=0)
