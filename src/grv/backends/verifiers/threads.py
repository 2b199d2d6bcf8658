"""Threads whose number may grow while they work."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any


class Threads(Executor):
    """Runs functions in threads, in the order in which they come.

    Args:
        most: returns the number of threads that are useful now.
        name: the beginning of the threads' names.
    """

    def __init__(self, most: Callable[[], int], name: str) -> None:
        self._most = most
        self._name = name
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._closed = False

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue a call; the future has its result."""
        future: Future[Any] = Future()
        with self._changed:
            if self._closed:
                raise RuntimeError("the threads are closed")
            self._waiting.append((future, partial(function, *args, **kwargs)))
            try:
                self._grow()
            except (RuntimeError, MemoryError):
                if not self._threads:
                    self._waiting.pop()
                    raise
            self._changed.notify()
        return future

    def _grow(self) -> None:
        """Start one more thread, if a call waits for one.

        The system may refuse it. Then the threads that there are do the work.
        """
        if len(self._waiting) > self._idle and len(self._threads) < self._most():
            name = f"{self._name}_{len(self._threads)}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    if self._closed:
                        return
                    self._idle += 1
                    self._changed.wait()
                    self._idle -= 1
                future, call = self._waiting.popleft()
                # There may be use for more threads than when the call was queued.
                with contextlib.suppress(RuntimeError, MemoryError):
                    self._grow()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = call()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)
            del future, call

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls. The threads end when the queued calls are done or cancelled."""
        with self._changed:
            self._closed = True
            if cancel_futures:
                while self._waiting:
                    self._waiting.popleft()[0].cancel()
            self._changed.notify_all()
        for thread in self._threads if wait else ():
            thread.join()
