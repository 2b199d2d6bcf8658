"""Measures the time that a process needs for a test, whatever else the machine does.

Two limits apply to a test. One is on processor time, of all threads together, which the kernel
counts exactly. The other is on own time: wall-clock time without the time that the process waited
for a processor (`schedstat`). Own time counts only up to the last moment at which the judge *saw*
that there was no answer, or up to the time of answering that the process reports. So neither other
processes nor a slow judge change a verdict. The judge looks when the time could be over, and a few
times before that.

A process that sends much, or lies about the time of its answers, gains little: the judge also adds
up how long it waited for the process. This sum includes delays of the judge itself, such as waiting
for Python's lock, so it may exceed the own time by half of the limit, and counts beyond that.
All times add up over a test. After a very long wall-clock time, a test ends in any case.

Not measured: time that a hypervisor takes from the whole machine ("steal"), and programs that run
slower beside others (shared caches, hyper-threads).
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import threading
import time
from typing import Any, NamedTuple

from . import tree
from .limits import End, RunLimits

STARVED = 20.0  # after this many times the limit, and 10 s, of wall-clock time: no verdict
_STARVED_SECONDS = 10.0
_LOOKS = 50  # looks per time limit
# shortest time between looks, in seconds; near the limit
_LEAST = 0.01
_SOON = 0.002
_NANOSECONDS = 1e-9
_NOTHING = 1e-5  # seconds of processor time that count as none
_LITTLE = 0.01  # share of the limit below which nothing is measured
_ENDED = {b"Z", b"X"}
_PROCESS_CLOCK = 2  # the kernel's CPUCLOCK_SCHED, for a whole process
_SLACK = 0.002  # seconds that the judge may need to notice a message, beside other threads
_DOUBTED = 0.5  # share of the limit that waiting may exceed own time: delays of the judge


@functools.cache
def _processors() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def _is_proc_ours() -> bool:
    """Whether /proc shows the process numbers that this process sees."""
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
    """Reads the kernel's counters of another process. They stay 0 if the kernel has none."""

    def __init__(self, number: int) -> None:
        number = number if _is_proc_ours() else 0
        self._folder = f"/proc/{number}"
        self._number = number
        self._processor_clock = (~number << 3) | _PROCESS_CLOCK
        self._others: dict[str, float] = {}  # waiting time of other threads, also ended ones
        self._file = -1
        if number > 0:
            with contextlib.suppress(OSError):
                self._file = os.open(f"{self._folder}/schedstat", os.O_RDONLY | os.O_CLOEXEC)

    @property
    def works(self) -> bool:
        """Whether this kernel shows how long a process waited for a processor."""
        return self._file >= 0

    def processor_time(self) -> float | None:
        """Processor time of all threads; None if the process is gone or the kernel refuses."""
        try:
            return time.clock_gettime(self._processor_clock) if self._number > 0 else None
        except OSError:
            return None

    def counts(self) -> tuple[float, float]:
        """Running time of the main thread; waiting time of all threads seen so far."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            if self._file >= 0:
                ran, waited, _ = os.pread(self._file, 100, 0).split()
                others = sum(self._others.values())
                return int(ran) * _NANOSECONDS, int(waited) * _NANOSECONDS + others
        return 0.0, 0.0

    def look_at_threads(self) -> bool:
        """Read the counters of every thread; whether any thread is runnable.

        The kernel adds the waiting time of a runnable thread only when it runs again. A process
        that has ended counts as runnable too, since the time of its end is unknown.
        """
        if not self.works:
            return False
        states = set()
        main = str(self._number)
        with contextlib.suppress(OSError):
            for name in os.listdir(f"{self._folder}/task"):
                with contextlib.suppress(OSError, IndexError, ValueError):  # the thread just ended
                    states.add(_state(f"{self._folder}/task/{name}/stat"))
                    if name != main:
                        seconds = _waited(_first(f"{self._folder}/task/{name}/schedstat"))
                        self._others[name] = max(seconds, self._others.get(name, 0.0))
        return b"R" in states or states <= _ENDED

    def longest(self) -> float:
        """The longest waiting time of one thread."""
        return max([self.counts()[1] - sum(self._others.values()), *self._others.values()])

    def close(self) -> None:
        """Close the file that the counters are read from."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class TreeStopwatch(Stopwatch):
    """Reads the counters of a process and of all that it has started.

    Processor time is known to a hundredth of a second. A process that ended is counted by the one
    that waited for it, or as it was last seen.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._above = tree.parent(self._number) if self._number > 0 else 0
        self._last: dict[int, float] = {}  # processor time of each process, when last seen

    def _processes(self) -> list[int]:
        return tree.descendants(self._above) if self._above > 0 else []

    def processor_time(self) -> float | None:
        """Processor time of all processes; None if they are gone or the kernel refuses."""
        processes = self._processes()
        if not processes:
            return None
        for process in processes:
            self._last[process] = tree.processor_seconds([process], with_children=False)
        return max(tree.processor_seconds(processes), sum(self._last.values()))

    def look_at_threads(self) -> bool:
        """Read the counters of every thread of every process; whether any thread is runnable."""
        if not self.works:
            return False
        states = set()
        main = f"{self._number}/{self._number}"
        for process in self._processes():
            with contextlib.suppress(OSError):
                for name in os.listdir(f"/proc/{process}/task"):
                    thread = f"/proc/{process}/task/{name}"
                    with contextlib.suppress(OSError, IndexError, ValueError):  # it just ended
                        states.add(_state(f"{thread}/stat"))
                        if (place := f"{process}/{name}") != main:
                            seconds = _waited(_first(f"{thread}/schedstat"))
                            self._others[place] = max(seconds, self._others.get(place, 0.0))
        return b"R" in states or states <= _ENDED


class _OwnDelay(threading.local):
    """How long the current thread has waited for a processor, in seconds."""

    def __init__(self) -> None:
        self._file = -1
        with contextlib.suppress(OSError):
            self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)

    def seconds(self) -> float:
        """The time so far; 0 if the kernel does not say."""
        if self._file >= 0:
            try:
                return _waited(os.pread(self._file, 100, 0))
            except (OSError, IndexError, ValueError):
                pass
        return 0.0

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)


_delay = _OwnDelay()


class Sight(NamedTuple):
    """One look at a process: its time in this turn, its processor time in this test."""

    elapsed: float
    own: float
    cpu: float
    is_runnable: bool


class RunClock:
    """Measures one test after the other, for one process.

    A test consists of turns. In each turn the process has work and the judge waits for it.
    """

    def __init__(self, limits: RunLimits, watch: Stopwatch | None = None) -> None:
        self._seconds = limits.seconds
        self._cpu_seconds = limits.cpu_seconds or limits.seconds
        self._watch = watch or Stopwatch(0)
        self._step = max(_LEAST, self._seconds / _LOOKS)
        self._little = _LITTLE * self._seconds
        self._processors = _processors()
        self._past = 0.0  # own time of earlier turns of this test
        self._doubt = 0.0  # by how much waiting exceeded own time in earlier turns of this test
        self._wall = 0.0  # wall-clock time of earlier turns of this test
        self._polled = 0.0  # time in this turn during which the judge waited for the process
        self._delayed = 0.0  # the judge's own delay, at the start of the turn
        self._seen = self._cpu_seen = 0.0  # own time of this turn and processor time, last seen
        self._cpu_before = self._waiting_before = self._others_before = 0.0
        self._unread = math.inf  # time of turns since the counters were read
        self.given()

    def begin(self) -> None:
        """Start a test, before the process has any work."""
        self._past = self._seen = self._wall = self._doubt = 0.0
        self._cpu_before = self._watch.processor_time() or 0.0
        self._cpu_seen = 0.0
        self.turn()

    def begin_from(self, cpu: float, waiting: float, at: float) -> None:
        """Start the first test, at the moment when the process reported that it was ready."""
        self._past = self._seen = self._cpu_seen = self._wall = self._doubt = 0.0
        self._polled = 0.0
        self._delayed = _delay.seconds()
        self._cpu_before = cpu
        self._waiting_before = waiting
        self._since = at
        self._others_before = self._unread = 0.0
        self.due = at + self._step

    def turn(self) -> None:
        """Start a turn: the process gets work next, or continues after waiting for the judge."""
        self._past += self._seen
        self._seen = 0.0
        if self._unread > self._little:
            ran, self._waiting_before = self._watch.counts()
            self._cpu_seen = self.cpu_used()
            self._others_before = self._cpu_before + self._cpu_seen - ran
            self._unread = 0.0
        self.given()

    def given(self) -> None:
        """Note that the process has been given work."""
        self._past += self._seen
        self._seen = 0.0
        self._since = time.monotonic()
        self._polled = 0.0
        self._delayed = _delay.seconds()
        self.due = self._since + self._until_next(self._cpu_seen)

    def polled(self, seconds: float) -> None:
        """Note that the judge has waited for the process, and for nothing else."""
        self._polled += seconds

    def moved(self) -> bool:
        """Note that the process took or gave a full pipe; whether it took too much time.

        It may have waited for the judge. But it did not while the judge waited for it.
        """
        _, waiting = self._watch.counts()
        self._doubt += self._excess(waiting)
        self._wall += time.monotonic() - self._since
        self._waiting_before = waiting
        self._cpu_seen = self.cpu_used()
        due = self.due
        self.given()
        self.due = min(due, self.due)
        return self._is_over()

    def _excess(self, waiting: float) -> float:
        """By how much the judge's waiting in this turn, without known delays, exceeds own time."""
        delayed = _delay.seconds() - self._delayed
        waited = self._polled - delayed - (waiting - self._waiting_before) - _SLACK
        return max(0.0, waited - self._seen)

    def _is_over(self, excess: float = 0.0) -> bool:
        doubt = max(0.0, self._doubt + excess - _DOUBTED * self._seconds)
        return self._past + self._seen + doubt > self._seconds

    def used(self) -> dict[str, float]:
        """Own time and processor time in this test, as far as seen, in seconds."""
        own = self._past + self._seen
        cpu = self.cpu_used()
        return {"own_seconds": round(own, 3), "cpu_seconds": round(cpu, 3)}

    def _until_next(self, cpu: float) -> float:
        """Seconds until the next look: the earliest moment at which the time can be over."""
        left = self._seconds - self._past - self._seen
        left = min(left, (self._cpu_seconds - cpu) / self._processors)
        return min(self._step, max(left, _SOON))

    def look(self) -> Sight:
        """What can be seen now. The caller checks for an answer afterwards, then calls `judge`."""
        elapsed = time.monotonic() - self._since
        is_runnable = self._watch.look_at_threads()
        cpu = self.cpu_used()
        own = elapsed - max(0.0, self._watch.counts()[1] - self._waiting_before)
        if is_runnable:  # it may be waiting now, so count only its processor time
            own = min(own, self._seen + cpu - self._cpu_seen)
        return Sight(elapsed, own, cpu, is_runnable)

    def judge(self, sight: Sight) -> End | None:
        """Decide what it means that there was no answer at the time of a look."""
        if sight.own > self._seen:
            self._seen = sight.own
            self._cpu_seen = sight.cpu
        return self._decide(sight, is_over=self._is_over())

    def look_again(self, sight: Sight) -> End | None:
        """Decide at a look at which the process was sending or receiving."""
        excess = 0.0 if sight.is_runnable else self._excess(self._watch.counts()[1])
        return self._decide(sight, is_over=self._is_over(excess))

    def _decide(self, sight: Sight, *, is_over: bool) -> End | None:
        self.due = time.monotonic() + self._until_next(sight.cpu)
        if is_over or sight.cpu > self._cpu_seconds:
            return End.TIMEOUT
        elapsed = self._wall + sight.elapsed
        if elapsed <= STARVED * self._seconds + _STARVED_SECONDS:
            return None
        # Subtracting the waiting of parallel threads can make the own time too short.
        own = elapsed - self._watch.longest()
        return End.STARVED if sight.is_runnable or own <= self._seconds else End.TIMEOUT

    def answered(self, at: Any) -> bool:
        """Whether the process, which has answered, took too much time.

        The process reports the time of its answer; it cannot make its time shorter than the judge
        saw. The waiting time of ended threads is unknown: if threads other than the main one ran,
        only the time seen counts. After very short turns no counter is read.
        """
        elapsed = time.monotonic() - self._since
        self._unread += elapsed
        self._wall += elapsed
        if self._unread <= self._little and not self._past + self._seen:
            return False
        self._unread = math.inf
        cpu = self.cpu_used()
        ran, waiting = self._watch.counts()
        others = self._cpu_before + cpu - ran - self._others_before
        if isinstance(at, float) and others < _NOTHING:
            own = min(at, time.monotonic()) - self._since - (waiting - self._waiting_before)
            self._seen = max(self._seen, own)
            self._doubt += self._excess(waiting)
        return self._is_over() or cpu > self._cpu_seconds

    def cpu_used(self) -> float:
        """Processor time of this test so far."""
        cpu = self._watch.processor_time()
        return 0.0 if cpu is None else cpu - self._cpu_before

    def is_over_at(self, cpu: float) -> bool:
        """Whether a process that ended with `cpu` seconds in total took too much."""
        return cpu - self._cpu_before > self._cpu_seconds
