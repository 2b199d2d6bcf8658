"""Divides work among processes of this machine. The results do not depend on their number.

Work is divided into parts by its size alone, and no part depends on the process that does it. The
results come in the order of the parts. So numbers are equal for any number of processes.

Processes are forked: they share the data that the caller has read. Where forking is not safe, which
is everywhere but on Linux, all work is done in this process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from .core.errors import GrvError
from .options import Family, option

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

SMALL = 200_000  # units of work up to which starting processes takes longer than it saves
_AHEAD = 4  # parts per process that may be finished before an earlier one

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Parallel(Family):
    """How many processes share the work."""

    jobs: int | None = option(
        None,
        "Number of processes that share the work; 1 works in this process. The numbers are the same"
        " for all. Default: one per core.",
        metavar="N",
        least=1,
        most=1024,
    )


class ProcessDied(GrvError):
    """A process that shared the work ended without a result."""


def in_parts(
    work: Callable[[int], Result], parts: int, jobs: int | None, units: int
) -> Iterator[Result]:
    """Yield the results of `work(0)`, `work(1)`, ... in this order.

    Args:
        work: does one part of the work. It must not depend on which parts were done before.
        parts: the number of parts.
        jobs: the number of processes; None for one per core.
        units: the size of the work, in candidates times orders. Small work stays in this process.
    """
    jobs = min(_cores() if jobs is None else jobs, parts)
    if jobs < 2 or units <= SMALL or not _can_fork():
        yield from map(work, range(parts))
        return
    pool = _Pool(work, jobs)
    try:
        yield from pool.results(parts)
    finally:
        pool.stop()


def divided(sizes: Sequence[int], most: int) -> list[tuple[int, int]]:
    """Divide items into runs of neighbours: from, and up to but not including.

    A run with its items padded to the longest has at most `most` units, or only one item.

    >>> divided([3, 3, 3, 9, 1], most=6)
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    runs = []
    start = 0
    longest = 0
    for at, size in enumerate(sizes):
        longest = max(longest, size)
        if at > start and (at + 1 - start) * longest > most:
            runs.append((start, at))
            start = at
            longest = size
    return [*runs, (start, len(sizes))] if len(sizes) else []


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


def _can_fork() -> bool:
    import multiprocessing

    return sys.platform == "linux" and not multiprocessing.current_process().daemon


class _Reply(NamedTuple, Generic[Result]):
    """What a worker sends about one part; nothing in `result` if an exception was raised."""

    result: tuple[Result] | tuple[()]
    warnings: list[tuple[Warning, str, int]]


class _Pool(Generic[Result]):
    """Forked workers, each with a pipe: numbers of parts go in, replies come out."""

    def __init__(self, work: Callable[[int], Result], jobs: int) -> None:
        import multiprocessing

        self._work = work
        self._workers: dict[Connection, BaseProcess] = {}
        context = multiprocessing.get_context("fork")
        # Workers inherit that Ctrl-C is blocked; the caller ends them.
        unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for _ in range(jobs):
                here, there = multiprocessing.Pipe()
                inherited = [*self._workers, here]
                process = context.Process(target=_serve, args=(work, there, inherited), daemon=True)
                _fork(process)
                there.close()
                self._workers[here] = process
        except OSError as error:
            self.stop()
            raise ProcessDied(
                f"{jobs} processes cannot be started: {error.strerror}; use fewer --jobs"
            ) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)

    def results(self, parts: int) -> Iterator[Result]:
        """Yield the result of every part, in order."""
        from multiprocessing.connection import wait

        found: dict[int, _Reply[Result]] = {}
        busy: dict[Connection, int] = {}
        idle = list(self._workers)
        sent = 0
        for number in range(parts):
            while True:
                while idle and sent < min(parts, number + _AHEAD * len(self._workers)):
                    pipe = idle.pop()
                    self._send(pipe, sent)
                    busy[pipe] = sent
                    sent += 1
                if number in found:
                    break
                ready = wait(list(busy))
                for pipe in [each for each in busy if each in ready]:
                    found[busy.pop(pipe)] = self._receive(pipe)
                    idle.append(pipe)
            reply = found.pop(number)
            for message, file, line in reply.warnings:
                warnings.warn_explicit(message, type(message), file, line, registry=_SEEN)
            # An exception is raised again here, where its traceback and its cause are at hand.
            yield reply.result[0] if reply.result else self._work(number)

    def _send(self, pipe: Connection, number: int) -> None:
        try:
            pipe.send(number)
        except OSError as error:
            raise self._died(pipe) from error

    def _receive(self, pipe: Connection) -> _Reply[Result]:
        try:
            reply: _Reply[Result] = pipe.recv()
        except (EOFError, OSError) as error:
            raise self._died(pipe) from error
        return reply

    def _died(self, pipe: Connection) -> ProcessDied:
        process = self._workers[pipe]
        process.join(timeout=5)
        code = process.exitcode or 0
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return ProcessDied(
            f"a worker process {how}; if memory was short, use fewer processes: --jobs 1"
        )

    def stop(self) -> None:
        """End the workers."""
        for pipe, process in self._workers.items():
            pipe.close()
            process.kill()
        for process in self._workers.values():
            process.join()


def _fork(process: BaseProcess) -> None:
    """Start a process, without the warning of Python 3.12 that this process has threads.

    A lock that a thread holds stays locked in the child. What workers do waits for no such lock:
    they compute with NumPy, whose libraries prepare themselves for a fork.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
        process.start()


_SEEN: dict[Any, int] = {}  # warnings that were shown, as in a module's registry


def _serve(
    work: Callable[[int], Result], pipe: Connection, inherited: Sequence[Connection]
) -> None:
    """Do the parts that the pipe asks for, until the caller closes it or is gone."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in inherited:
        other.close()
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(_reply(work, pipe.recv()))
    os._exit(0)  # without what the caller wants to do at its end


def _reply(work: Callable[[int], Result], number: int) -> _Reply[Result]:
    result: tuple[Result] | tuple[()] = ()
    with warnings.catch_warnings(record=True) as seen:
        try:
            result = (work(number),)
        except Exception:  # the caller does this part again, to raise it there
            result = ()
    told = [(w.message, w.filename, w.lineno) for w in seen if isinstance(w.message, Warning)]
    return _Reply(result, told)
