"""The time that a process takes for a test: its own, whatever else the machine does.

A test's time is limited twice. Its processor time, of all threads together, is counted exactly by
the kernel. Its wall-clock time counts without what the process waited for a processor
(`schedstat`), and only as far as the judge *saw* the process without an answer, or the process
says when it answered: the judge's own delays never count. The judge looks when the time could be
over, and a few times before that.

The kernel does not tell of time that a hypervisor took away from the whole machine ("steal").
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import time
from typing import Any, NamedTuple

from .limits import End, Limits

STARVED = 20.0  # times the limit, as wall-clock time, is too long for any verdict
_STARVED_SECONDS = 10.0
_LOOKS = 50  # in the time of one limit
_LEAST, _SOON = 0.01, 0.002  # seconds between looks; the last ones
_NANOSECONDS = 1e-9
_NOTHING = 1e-5  # seconds of a processor
_LITTLE = 0.01  # of the limit
_ENDED = {b"Z", b"X"}
_PROCESS_CLOCK = 2  # the kernel's CPUCLOCK_SCHED, of a whole process


@functools.cache
def _processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def _is_proc_ours() -> bool:
    """Whether /proc numbers processes as this process does."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False


def _first(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read(1000)


def _waited(line: bytes) -> float:
    return int(line.split()[1]) * _NANOSECONDS


def _state(path: str) -> bytes:
    return _first(path).rpartition(b")")[2].split()[0]


class Stopwatch:
    """Reads the kernel's counts of another process; they stand still where it has none."""

    def __init__(self, number: int) -> None:
        number = number if _is_proc_ours() else 0
        self._folder = f"/proc/{number}"
        self._number = number
        self._processor_clock = (~number << 3) | _PROCESS_CLOCK
        self._others: dict[str, float] = {}  # what other threads waited, kept after their end
        self._file = -1
        if number > 0:
            with contextlib.suppress(OSError):
                self._file = os.open(f"{self._folder}/schedstat", os.O_RDONLY | os.O_CLOEXEC)

    @property
    def works(self) -> bool:
        """Whether waiting for a processor can be seen here."""
        return self._file >= 0

    def processor_time(self) -> float | None:
        """Processor time of all threads; None where it is gone, or the kernel does not say."""
        try:
            return time.clock_gettime(self._processor_clock) if self._number > 0 else None
        except OSError:
            return None

    def counts(self) -> tuple[float, float]:
        """What its main thread ran, and what its threads waited as far as they were looked at."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            if self._file >= 0:
                ran, waited, _ = os.pread(self._file, 100, 0).split()
                others = sum(self._others.values())
                return int(ran) * _NANOSECONDS, int(waited) * _NANOSECONDS + others
        return 0.0, 0.0

    def look_at_threads(self) -> bool:
        """Look at every thread; whether one of them runs, or would run if it had a processor.

        What such a thread has waited is not known before it runs again. Neither is when a process
        ended that has not been reported yet.
        """
        if not self.works:
            return False
        states, main = set(), str(self._number)
        with contextlib.suppress(OSError):
            for name in os.listdir(f"{self._folder}/task"):
                with contextlib.suppress(OSError, IndexError, ValueError):  # it ends just now
                    states.add(_state(f"{self._folder}/task/{name}/stat"))
                    if name != main:
                        seconds = _waited(_first(f"{self._folder}/task/{name}/schedstat"))
                        self._others[name] = max(seconds, self._others.get(name, 0.0))
        return b"R" in states or states <= _ENDED

    def longest(self) -> float:
        """The longest that one thread waited."""
        return max([self.counts()[1] - sum(self._others.values()), *self._others.values()])

    def close(self) -> None:
        """Look no more."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class Sight(NamedTuple):
    """What was seen of a process: its time in this turn, its processor time in this test."""

    elapsed: float
    own: float
    cpu: float
    is_runnable: bool


class Clock:
    """The time of one test after the other, of one process.

    A test consists of turns: in each, the process has something to do and the judge waits for it.
    """

    def __init__(self, limits: Limits, watch: Stopwatch | None = None) -> None:
        self._seconds = limits.seconds
        self._cpu_seconds = limits.cpu_seconds or limits.seconds
        self._watch = watch or Stopwatch(0)
        self._step = max(_LEAST, self._seconds / _LOOKS)
        self._little = _LITTLE * self._seconds
        self._processors = _processors()
        self._past = 0.0  # own time of earlier turns of this test
        self._seen = self._cpu_seen = 0.0  # own time of this turn at a look, and processor time
        self._cpu_before = self._waiting_before = self._others_before = 0.0
        self._unread = math.inf  # time of turns since the counts were read
        self.given()

    def begin(self) -> None:
        """A test begins; the process has nothing to do yet."""
        self._past = self._seen = 0.0
        self._cpu_before = self._watch.processor_time() or 0.0
        self._cpu_seen = 0.0
        self.turn()

    def begin_from(self, cpu: float, waiting: float, at: float) -> None:
        """The first test began when the process, by its own word, was ready."""
        self._past = self._seen = self._cpu_seen = 0.0
        self._cpu_before, self._waiting_before, self._since = cpu, waiting, at
        self._others_before = self._unread = 0.0
        self.due = at + self._step

    def turn(self) -> None:
        """The process will be given something to do, or goes on after waiting for the judge."""
        self._past += self._seen
        self._seen = 0.0
        if self._unread > self._little:
            ran, self._waiting_before = self._watch.counts()
            self._cpu_seen = self.cpu_used()
            self._others_before = self._cpu_before + self._cpu_seen - ran
            self._unread = 0.0
        self.given()

    def given(self) -> None:
        """The process has been given something to do."""
        self._past += self._seen
        self._seen = 0.0
        self._since = time.monotonic()
        self.due = self._since + self._until_next(self._cpu_seen)

    def used(self) -> dict[str, float]:
        """Seconds of its own and of a processor in this test, as far as they were seen."""
        own, cpu = self._past + self._seen, self.cpu_used()
        return {"own_seconds": round(own, 3), "cpu_seconds": round(cpu, 3)}

    def _until_next(self, cpu: float) -> float:
        """Seconds until the next look: it may be over then, and not before."""
        left = self._seconds - self._past - self._seen
        left = min(left, (self._cpu_seconds - cpu) / self._processors)
        return min(self._step, max(left, _SOON))

    def look(self) -> Sight:
        """What can be seen now. Whether an answer has come is to be looked at afterwards."""
        elapsed = time.monotonic() - self._since
        is_runnable = self._watch.look_at_threads()
        cpu = self.cpu_used()
        own = elapsed - max(0.0, self._watch.counts()[1] - self._waiting_before)
        if is_runnable:  # perhaps it waits now; what it has done since the last look is known
            own = min(own, self._seen + cpu - self._cpu_seen)
        return Sight(elapsed, own, cpu, is_runnable)

    def judge(self, sight: Sight) -> End | None:
        """What it means that there was no answer yet."""
        if sight.own > self._seen:
            self._seen, self._cpu_seen = sight.own, sight.cpu
        self.due = time.monotonic() + self._until_next(sight.cpu)
        if self._past + self._seen > self._seconds or sight.cpu > self._cpu_seconds:
            return End.TIMEOUT
        if sight.elapsed <= STARVED * self._seconds + _STARVED_SECONDS:
            return None
        # Threads that wait side by side make one another's time seem short.
        own = sight.elapsed - self._watch.longest()
        return End.STARVED if sight.is_runnable or own <= self._seconds else End.TIMEOUT

    def answered(self, at: Any) -> bool:
        """Whether the process, which has answered, took too much time.

        When it did so is its own word: it can make its time no shorter than what was seen of it.
        What threads waited that have ended by now is not known; where others than the main thread
        ran, the time seen is all that counts. Nothing is read while a test, or several, were short.
        """
        self._unread += time.monotonic() - self._since
        if self._unread <= self._little and not self._past + self._seen:
            return False
        self._unread = math.inf
        cpu = self.cpu_used()
        ran, waiting = self._watch.counts()
        others = self._cpu_before + cpu - ran - self._others_before
        if isinstance(at, float) and others < _NOTHING:
            own = min(at, time.monotonic()) - self._since - (waiting - self._waiting_before)
            self._seen = max(self._seen, own)
        return self._past + self._seen > self._seconds or cpu > self._cpu_seconds

    def cpu_used(self) -> float:
        """Processor time of this test so far."""
        cpu = self._watch.processor_time()
        return 0.0 if cpu is None else cpu - self._cpu_before

    def is_over_at(self, cpu: float) -> bool:
        """Whether a process that has ended took too much processor time in all."""
        return cpu - self._cpu_before > self._cpu_seconds
