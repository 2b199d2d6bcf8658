from __future__ import annotations

import threading
import time

import pytest

from grv.backends.verifiers.threads import Threads


def test_the_number_of_threads_grows_while_calls_wait() -> None:
    most, gate = [1], threading.Event()
    threads = Threads(lambda: most[0], "test")
    first = threads.submit(lambda: None)
    first.result(20)
    running = threading.Semaphore(0)

    def work() -> str:
        running.release()
        gate.wait(20)
        return threading.current_thread().name

    futures = [threads.submit(work) for _ in range(4)]
    assert running.acquire(timeout=20)
    assert not running.acquire(timeout=0.2)  # one at a time
    most[0] = 4
    futures.append(threads.submit(work))
    assert running.acquire(timeout=20)
    gate.set()
    names = {future.result(20) for future in futures}
    assert 2 <= len(names) <= 4
    threads.shutdown()


def test_errors_are_in_the_future_and_closed_threads_take_nothing() -> None:
    threads = Threads(lambda: 1, "test")
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 // 0).result(20)
    assert threads.submit(lambda: 7).result(20) == 7
    threads.shutdown()
    with pytest.raises(RuntimeError):
        threads.submit(lambda: None)


def test_closing_cancels_what_has_not_started() -> None:
    threads = Threads(lambda: 1, "test")
    running = threads.submit(time.sleep, 0.2)
    waiting = [threads.submit(lambda: None) for _ in range(3)]
    threads.shutdown(cancel_futures=True)
    assert running.done()
    assert all(each.cancelled() for each in waiting)


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of threads that the system does not start."""
    names: set[str] = set()
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name in names:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    return names


def test_without_any_thread_a_call_is_refused_and_closing_works(refused: set[str]) -> None:
    refused.add("test_0")
    threads = Threads(lambda: 2, "test")
    with pytest.raises(RuntimeError, match="can't start new thread"):
        threads.submit(lambda: 7)
    refused.clear()
    assert threads.submit(lambda: 8).result(20) == 8
    threads.shutdown()


def test_without_another_thread_those_that_there_are_do_all_calls(refused: set[str]) -> None:
    refused.add("test_1")
    threads = Threads(lambda: 2, "test")
    futures = [threads.submit(time.sleep, 0.01) for _ in range(5)]
    assert [future.result(20) for future in futures] == [None] * 5
    threads.shutdown()
