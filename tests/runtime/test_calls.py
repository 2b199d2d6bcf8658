"""Calls: tried again, given up, and never too many at once."""

from __future__ import annotations

from dataclasses import dataclass

import anyio
import anyio.lowlevel
import pytest

from grv.backends.protocols import Problem
from grv.core.errors import BackendError, RunStopped, UsageError
from grv.policies import VerifyAll
from grv.runtime.calls import Caller
from grv.runtime.executor import Backends
from grv.runtime.options import Calls
from grv.testing.fakes import ScriptedGenerator, TableScorer, TableVerifier
from grv.testing.worlds import needle
from support.live import one_generator, search_many

pytestmark = pytest.mark.anyio


class Clock:
    """Time that passes when somebody waits for it."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self.now = 0.0

    def time(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        await anyio.lowlevel.checkpoint()


class Flaky:
    """Fails a number of times, and then works."""

    def __init__(self, *errors: BackendError) -> None:
        self.errors, self.calls = list(errors), 0

    async def __call__(self) -> str:
        self.calls += 1
        await anyio.lowlevel.checkpoint()
        if self.errors:
            raise self.errors.pop(0)
        return "done"


async def test_pauses_double_up_to_the_longest_and_spread_out() -> None:
    clock = Clock()
    calls = Caller(Calls(attempts=9, first_pause=1.0, longest_pause=20.0), sleep=clock.sleep)
    assert await calls.make(Flaky(*[BackendError("no")] * 8)) == "done"
    expected = [1, 2, 4, 8, 16, 20, 20, 20]
    assert len(clock.pauses) == 8
    for pause, middle in zip(clock.pauses, expected, strict=True):
        assert 0.5 * middle <= pause <= 1.5 * middle
    assert len({pause / middle for pause, middle in zip(clock.pauses, expected, strict=True)}) == 8
    assert (calls.retried, calls.in_flight) == (8, 0)


async def test_a_server_that_says_when_to_come_back_is_believed() -> None:
    clock = Clock()
    waits = [3.5, 0.0, 100.0, 1e9, -1.0]
    errors = [BackendError("wait", retry_after=wait) for wait in waits]
    await Caller(Calls(longest_pause=60), sleep=clock.sleep).make(Flaky(*errors))
    assert clock.pauses == [3.5, 0, 100, 60, 0]  # but not for ever


async def test_a_server_that_is_busy_for_a_day_is_tried_again_while_patience_lasts() -> None:
    clock = Clock()
    busy = BackendError("busy", fault="wait", retry_after=86_400.0)
    caller = Caller(Calls(patience=300), sleep=clock.sleep, clock=clock.time)
    assert await caller.make(Flaky(*[busy] * 5)) == "done"
    assert max(clock.pauses) <= 25
    with pytest.raises(RunStopped, match="it asks to come back in 86,400 s"):
        await caller.make(Flaky(*[busy] * 999))
    assert clock.now < 2 * 300


async def test_a_server_that_is_busy_for_a_minute_is_believed() -> None:
    clock = Clock()
    busy = BackendError("busy", fault="wait", retry_after=100.0)
    caller = Caller(Calls(patience=300), sleep=clock.sleep, clock=clock.time)
    assert await caller.make(Flaky(busy)) == "done"
    assert clock.pauses == [100]


async def test_a_call_is_tried_six_times_and_its_last_error_counts() -> None:
    clock, flaky = Clock(), Flaky(*(BackendError(f"error {i}") for i in range(1, 10)))
    with pytest.raises(BackendError, match="error 6"):
        await Caller(sleep=clock.sleep).make(flaky)
    assert (flaky.calls, len(clock.pauses)) == (6, 5)


async def test_what_cannot_succeed_is_not_tried_again() -> None:
    clock, flaky = Clock(), Flaky(BackendError("no such model", final=True))
    with pytest.raises(BackendError, match="no such model"):
        await Caller(sleep=clock.sleep).make(flaky)
    assert (flaky.calls, clock.pauses) == (1, [])


async def test_other_errors_pass_through_at_once() -> None:
    async def wrong() -> None:
        raise KeyError("a bug")

    calls = Caller()
    with pytest.raises(KeyError):
        await calls.make(wrong)
    assert calls.in_flight == 0


async def test_an_attempt_that_takes_too_long_is_a_failure_like_others() -> None:
    clock, attempts = Clock(), 0

    async def slow() -> str:
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            await anyio.sleep_forever()
        return "done"

    calls = Caller(Calls(call_timeout=0.02), sleep=clock.sleep)
    assert await calls.make(slow) == "done"
    assert len(clock.pauses) == 2
    with pytest.raises(BackendError, match=r"no response within 0\.02 s"):
        await Caller(Calls(call_timeout=0.02, attempts=1)).make(anyio.sleep_forever)


async def test_a_slot_is_not_held_while_a_call_waits_to_be_tried_again() -> None:
    calls = Caller(Calls(concurrency=1, first_pause=0.05))
    order = []

    async def run(name: str, flaky: Flaky) -> None:
        await calls.make(flaky)
        order.append(name)

    async with anyio.create_task_group() as group:
        group.start_soon(run, "fails first", Flaky(BackendError("no")))
        await anyio.lowlevel.checkpoint()
        group.start_soon(run, "works", Flaky())
    assert order == ["works", "fails first"]


async def test_every_attempt_is_told_before_it_is_made_and_only_when_it_has_its_slot() -> None:
    calls = Caller(Calls(concurrency=1), sleep=Clock().sleep)
    intended: list[str] = []
    begun = anyio.Event()

    @dataclass
    class Told:
        name: str

        async def begin(self) -> None:
            intended.append(self.name)
            begun.set()

        async def missed(self, error: BackendError) -> None:
            intended.append(f"{self.name}: {error}")

    async with anyio.create_task_group() as group:
        group.start_soon(calls.make, anyio.sleep_forever, Told("first"))
        await begun.wait()
        group.start_soon(calls.make, Flaky(), Told("second"))
        await anyio.wait_all_tasks_blocked()
        assert intended == ["first"]
        group.cancel_scope.cancel()
    await calls.make(Flaky(BackendError("no"), BackendError("no")), Told("third"))
    assert intended == ["first", *["third", "third: no"] * 2, "third"]


class Noted:
    """Notes what it is told of the attempts of a call."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    async def begin(self) -> None:
        self.notes.append("begin")

    async def missed(self, error: BackendError) -> None:
        self.notes.append(f"missed: {error}")


async def test_every_attempt_is_announced_and_every_miss_reported() -> None:
    clock, noted = Clock(), Noted()
    errors = [BackendError("503", fault="wait", unpaid=True), BackendError("cut off")]
    await Caller(sleep=clock.sleep, clock=clock.time).make(Flaky(*errors), noted)
    assert noted.notes == ["begin", "missed: 503", "begin", "missed: cut off", "begin"]


async def test_a_call_whose_attempt_may_not_begin_is_not_made() -> None:
    class OverBudget(Exception):
        pass

    class Refusing(Noted):
        async def begin(self) -> None:
            raise OverBudget

    calls, flaky = Caller(), Flaky()
    with pytest.raises(OverBudget):
        await calls.make(flaky, Refusing())
    assert (flaky.calls, calls.in_flight) == (0, 0)


async def test_an_outage_is_waited_out_with_pauses_that_double_up_to_a_limit() -> None:
    clock = Clock()
    calls = Caller(Calls(attempts=1), sleep=clock.sleep, clock=clock.time)
    lines: list[str] = []
    calls.outages.tell = lines.append
    down = [BackendError("status 503", fault="wait", place="host:1")] * 9
    assert await calls.make(Flaky(*down)) == "done"
    for pause, middle in zip(clock.pauses, [0.5, 1, 2, 4, 8, 15, 15, 15, 15], strict=True):
        assert 0.5 * middle <= pause <= 1.5 * middle
    assert lines == [
        f"waiting for host:1: status 503, since {lines[0].split('since ')[1]}",
        f"host:1 answers again, after {clock.now:.0f} s",
    ]
    assert (calls.retried, calls.waiting) == (0, "")


async def test_a_long_reason_of_an_outage_is_cut_with_dots() -> None:
    clock = Clock()
    calls = Caller(Calls(), sleep=clock.sleep, clock=clock.time)
    lines: list[str] = []
    calls.outages.tell = lines.append
    down = [BackendError("no name, " * 20, fault="wait", place="host:1")] * 3
    await calls.make(Flaky(*down))
    assert lines[0].startswith("waiting for host:1: no name, no name, ")
    assert "since" in lines[0].partition("...")[2]


async def test_a_server_that_says_0_seconds_is_not_asked_without_a_pause() -> None:
    clock, flaky = Clock(), Flaky(*[BackendError("busy", fault="wait", retry_after=0.0)] * 999)
    with pytest.raises(RunStopped):
        await Caller(Calls(first_pause=0), sleep=clock.sleep, clock=clock.time).make(flaky)
    assert flaky.calls < 300


async def test_patience_ends_the_run_if_nothing_succeeds_in_the_meantime() -> None:
    clock = Clock()
    calls = Caller(Calls(patience=100), sleep=clock.sleep, clock=clock.time)
    with pytest.raises(RunStopped, match=r"a backend: busy, for 100 s.*--patience"):
        await calls.make(Flaky(*[BackendError("busy", fault="wait")] * 99))
    assert clock.now == pytest.approx(100)
    with pytest.raises(RunStopped):  # this caller makes no more calls
        await calls.make(Flaky())


async def test_patience_ends_only_the_call_if_others_succeed() -> None:
    clock = Clock()
    calls = Caller(Calls(patience=100), sleep=clock.sleep, clock=clock.time)

    async def alone() -> None:
        await calls.make(Flaky())
        raise BackendError("this prompt breaks the server", fault="wait")

    with pytest.raises(BackendError, match="this prompt"):
        await calls.make(alone)
    assert await calls.make(Flaky()) == "done"


async def test_without_patience_outages_count_as_attempts() -> None:
    clock, flaky = Clock(), Flaky(*[BackendError("busy", fault="wait")] * 99)
    with pytest.raises(BackendError, match="busy"):
        await Caller(Calls(patience=0), sleep=clock.sleep, clock=clock.time).make(flaky)
    assert flaky.calls == 6


async def test_a_slot_is_not_held_while_a_call_waits_for_a_server() -> None:
    calls = Caller(Calls(concurrency=1, first_pause=0.1))
    order = []

    async def run(name: str, flaky: Flaky) -> None:
        await calls.make(flaky)
        order.append(name)

    async with anyio.create_task_group() as group:
        group.start_soon(run, "waits", Flaky(BackendError("busy", fault="wait")))
        await anyio.wait_all_tasks_blocked()
        group.start_soon(run, "works", Flaky())
    assert order == ["works", "waits"]


async def test_a_fault_of_the_whole_run_lets_calls_in_flight_end_and_starts_no_more() -> None:
    calls, order = Caller(), list[str]()
    late = Flaky()

    async def slow() -> None:
        await anyio.sleep(0.1)
        order.append("ended")

    async def stopped(flaky: Flaky) -> None:
        with pytest.raises(RunStopped, match="m: wrong key; check it, then run the same command"):
            await calls.make(flaky)
        order.append("stopped")

    error = BackendError("wrong key", backend="m", fault="stop", hint="check it")
    async with anyio.create_task_group() as group:
        group.start_soon(calls.make, slow)
        group.start_soon(stopped, Flaky(error))
        await anyio.wait_all_tasks_blocked()
        group.start_soon(stopped, late)
    assert order == ["ended", "stopped", "stopped"]
    assert late.calls == 0


async def test_settling_waits_for_what_is_in_flight_and_begins_nothing() -> None:
    calls, go, late = Caller(), anyio.Event(), Flaky()

    async def call() -> None:
        await go.wait()

    async with anyio.create_task_group() as group:
        group.start_soon(calls.make, call)
        await anyio.wait_all_tasks_blocked()
        await calls.settle(0.01)
        assert calls.in_flight == 1  # it took too long
        group.start_soon(calls.make, late)
        group.start_soon(calls.settle, 60)
        await anyio.wait_all_tasks_blocked()
        go.set()
        await anyio.wait_all_tasks_blocked()
        assert (calls.in_flight, late.calls) == (0, 0)
        group.cancel_scope.cancel()


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempts": 0},
        {"concurrency": 0},
        {"call_timeout": 0},
        {"call_timeout": float("nan")},
        {"first_pause": -1},
        {"patience": -1},
        {"first_pause": float("nan")},
    ],
    ids=str,
)
async def test_what_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Calls(**wrong)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 3, 10])
async def test_many_searches_together_never_pass_the_bound(concurrency: int) -> None:
    world, busiest, now = needle(30, at=17), 0, 0

    class Watching(TableVerifier):
        async def _fault(self) -> None:
            nonlocal busiest, now
            now += 1
            busiest = max(busiest, now)
            try:
                await anyio.sleep(0.001)
            finally:
                now -= 1

    backends = Backends(ScriptedGenerator(world), TableScorer(world), Watching(world))
    config = one_generator(backends, policy=VerifyAll(), width=4)
    problems = [Problem(f"p{i}") for i in range(6)]
    calls = Caller(Calls(concurrency=concurrency))
    found = [each async for each in search_many(problems, config, calls=calls, at_once=6)]
    assert len(found) == 6
    assert min(concurrency, 2) <= busiest <= concurrency
