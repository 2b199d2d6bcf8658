"""The sandbox: isolation in force, limits, and which process dies with which."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grv.backends.sandbox.limits import End, ExitStatus, Isolation, RunLimits
from grv.backends.sandbox.run import Run, SandboxDied
from grv.backends.sandbox.worker import Worker, sweep
from grv.core.errors import UsageError

pytestmark = pytest.mark.slow
LEVELS = [Isolation.STRICT, Isolation.JAIL]
SOURCE = str(Path(__file__).parents[3] / "src")


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as worker:
        yield worker


def outcome(
    worker: Worker, source: str, limits: RunLimits | None = None, stdin: bytes | None = None
) -> tuple[str, ExitStatus | None, End]:
    limits = limits or RunLimits(seconds=20)
    with worker.run("candidate", limits, stdin=stdin, capture=True) as run:
        run.send({"mode": "program", "source": textwrap.dedent(source), "seed": 0})
        end = run.drain(limits.seconds)
        return run.output.decode(), run.wait(5.0) if end is End.CLOSED else None, end


def test_a_program_runs_and_its_output_comes_back(worker: Worker) -> None:
    output, ended, _ = outcome(worker, "print(input()[::-1])", stdin=b"abc\n")
    assert output == "cba\n"
    assert ended is not None
    assert (ended.exit_code, ended.signal, ended.cause) == (0, 0, "")
    assert 0 < ended.cpu_seconds < 5
    assert ended.peak_mb > 1


def test_a_child_has_threads_of_its_own_and_seeded_random_numbers(worker: Worker) -> None:
    program = """
        import os, random, sys, threading, time
        main, before = threading.main_thread(), threading.active_count()
        def late():
            time.sleep(0.1)
            print(main.is_alive())
        threading.Thread(target=late).start()
        print(threading.current_thread() is main, before, threading.active_count(), random.random())
        print(sorted(name for name in os.environ if name.startswith(("LD_", "HOME", "TMP"))))
        print(os.environ["HOME"] == os.environ["TMPDIR"] == os.getcwd(), "candidate" in sys.modules)
    """
    first, second = (outcome(worker, program)[0].splitlines() for _ in range(2))
    assert first[0].startswith("True 1 2 0.")
    named = [name for name in os.environ if name == "LD_LIBRARY_PATH"]
    assert first[1:] == [str(["HOME", *named, "TMPDIR"]), "True False", "False"]
    assert first == second


@pytest.mark.parametrize("level", LEVELS)
def test_the_isolation_in_force_is_reported(level: Isolation) -> None:
    with Worker(level) as worker:
        force = worker.in_force
    assert force.level is level
    assert force.landlock >= 1
    assert force.seccomp == os.uname().machine
    assert str(force).startswith(f"{level.value}: landlock")
    assert not force.capabilities
    if level is Isolation.STRICT:
        assert {"user", "pid", "net", "ipc", "uts", "mount"} == set(force.namespaces)


def test_the_lack_of_a_jail_is_reported() -> None:
    with Worker(Isolation.UNSAFE) as worker:
        assert str(worker.in_force) == "unsafe: rlimits"
        assert outcome(worker, "print(1)")[0] == "1\n"


@pytest.mark.parametrize(
    ("source", "limits", "cause"),
    [
        ("while True: pass", RunLimits(seconds=20, cpu_seconds=0.5), "cpu"),
        ("import signal\nsignal.signal(24, signal.SIG_IGN)\nwhile True: pass",
         RunLimits(seconds=20, cpu_seconds=0.5), "cpu"),
        ("import threading, time\nthreading.stack_size(1 << 16)\n"
         "for i in range(500): threading.Thread(target=time.sleep, args=(9,)).start()",
         RunLimits(seconds=20, threads=20), "threads"),
        ("import time\nfor i in range(9):\n  open(str(i), 'w').write('x' * (1 << 20))\n"
         "time.sleep(9)", RunLimits(seconds=20, files_mb=4), "files"),
        ("import os, time\nfor i in range(1500): os.mkdir(str(i))\ntime.sleep(9)",
         RunLimits(seconds=60), "files"),
    ],
)  # fmt: skip
def test_limits_end_a_run(worker: Worker, source: str, limits: RunLimits, cause: str) -> None:
    _, ended, _ = outcome(worker, source, limits)
    assert ended is not None
    if cause == "cpu":
        assert ended.signal in (signal.SIGXCPU, signal.SIGKILL)
        assert ended.cpu_seconds < 6
    else:
        assert ended.cause == cause


def test_memory_is_limited_and_all_that_is_allowed_is_available(worker: Worker) -> None:
    source = "try:\n    x = bytearray(SIZE << 20)\n    print('had')\n"
    source += "except MemoryError:\n    print('refused')"
    limits = RunLimits(seconds=20, memory_mb=200)
    assert outcome(worker, source.replace("SIZE", "150"), limits)[0] == "had\n"
    assert outcome(worker, source.replace("SIZE", "250"), limits)[0] == "refused\n"


def test_the_size_of_one_file_is_limited(worker: Worker) -> None:
    source = (
        "try:\n    open('f', 'w').write('x' * (3 << 20))\nexcept OSError as exc: print(exc.errno)"
    )
    assert outcome(worker, source, RunLimits(seconds=20, files_mb=2))[0] == "27\n"
    refused = "try: open('f', 'w')\nexcept OSError: print('refused')"
    assert outcome(worker, refused, RunLimits(seconds=20, files_mb=0))[0] == "refused\n"


def test_output_is_limited(worker: Worker) -> None:
    _, _, end = outcome(worker, "print('x' * (3 << 20))", RunLimits(seconds=20, output_mb=1))
    assert end is End.TOO_LARGE


def test_the_scratch_directory_is_empty_for_each_run(worker: Worker) -> None:
    source = "import os\nprint(os.listdir('.'))\nos.makedirs('a/b')\nopen('a/b/c', 'w').write('x')"
    assert outcome(worker, source)[0] == "[]\n"
    assert outcome(worker, source)[0] == "[]\n"


def test_runs_are_reproducible_with_hashes_and_random_numbers() -> None:
    source = "import random\nprint(hash('x'), random.random())"
    with Worker() as one, Worker() as other:
        assert outcome(one, source)[0] == outcome(one, source)[0] == outcome(other, source)[0]


def test_a_candidate_sees_nothing_of_the_judge(worker: Worker, monkeypatch: Any) -> None:
    monkeypatch.setenv("GRV_CANARY", "canary")
    with Worker() as fresh:
        source = "import os, sys\nprint(sorted(os.environ), sys.argv, len(os.listdir('.')))"
        output = outcome(fresh, source)[0]
    assert "GRV_CANARY" not in output
    assert "HASHSEED" in output
    fds = "import os\nfor i in range(300):\n    try: os.fstat(i); print(i, end=' ')\n"
    fds += "    except OSError: pass"
    assert outcome(worker, fds)[0].split() == ["0", "1", "2", "3", "4"]


def _processes(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if bytes(folder) in command and state not in "ZX":
            found.append(int(entry.name))
    return found


def _gone(folder: Path, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not _processes(folder) and not folder.exists():
            return True
        time.sleep(0.02)
    return False


_FOREVER = """
import signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
print("started", flush=True)
while True: time.sleep(1)
"""


def _started(run: Run) -> None:
    run.send({"mode": "program", "source": _FOREVER, "seed": 0})
    while b"started" not in run.output:
        assert run.drain(0.05) is End.TIMEOUT


@pytest.mark.parametrize("level", LEVELS)
def test_a_child_dies_with_its_zygote(level: Isolation) -> None:
    with Worker(level) as worker:
        with contextlib.ExitStack() as stack:
            stack.enter_context(pytest.raises(SandboxDied))
            run = stack.enter_context(worker.run("candidate", RunLimits(), capture=True))
            _started(run)
            folder = worker.folder
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
            assert run.drain(10) is End.CLOSED
        assert folder is not None
        assert _gone(folder)
        assert outcome(worker, "print('again')")[0] == "again\n"


@pytest.mark.parametrize("level", LEVELS)
def test_all_die_with_the_judge(level: Isolation) -> None:
    source = f"""
import sys
from grv.backends.sandbox.limits import Isolation, RunLimits
from grv.backends.sandbox.worker import Worker
worker = Worker(Isolation({level.value!r}))
with worker.run("candidate", RunLimits(), capture=True) as run:
    run.send({{"mode": "program", "source": {_FOREVER!r}, "seed": 0}})
    while b"started" not in run.output:
        run.drain(0.05)
    print(worker.folder, flush=True)
    run.drain(100)
"""
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    judge = subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, env=environment, text=True
    )
    assert judge.stdout is not None
    folder = Path(judge.stdout.readline().strip())
    assert len(_processes(folder)) >= 2
    judge.kill()
    judge.wait()
    judge.stdout.close()
    assert _gone(folder)


def test_the_death_of_a_judge_is_noticed_although_a_fork_keeps_its_socket_open() -> None:
    # A process forked by the judge keeps its end of the socket open after its death.
    source = """
import os, sys, time
from grv.backends.sandbox.worker import Worker
worker = Worker()
print(worker.in_force and worker.folder, flush=True)
if os.fork() == 0:
    os.close(1)
    time.sleep(8)
    os._exit(0)
time.sleep(100)
"""
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    judge = subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, env=environment, text=True
    )
    assert judge.stdout is not None
    folder = Path(judge.stdout.readline().strip())
    judge.kill()
    judge.wait()
    judge.stdout.close()
    assert _gone(folder, 6)


def test_a_run_can_be_interrupted_from_another_thread(worker: Worker) -> None:
    with worker.run("candidate", RunLimits(), capture=True) as run:
        _started(run)
        threading.Timer(0.1, worker.interrupt).start()
        assert run.drain(20) is End.CLOSED
        ended = run.wait(5)
        assert ended is not None
        assert ended.cause == "stopped"
    _, ended, _ = outcome(worker, _FOREVER)  # the next run is interrupted too
    assert ended is not None
    assert ended.cause == "stopped"
    worker.interrupted = False
    assert outcome(worker, "print('again')")[0] == "again\n"


def test_the_directory_of_a_killed_worker_is_removed() -> None:
    stale = Path(tempfile.mkdtemp(prefix="grv-box-"))
    (stale / "box" / "deep").mkdir(parents=True)
    fresh = Path(tempfile.mkdtemp(prefix="grv-box-"))
    os.utime(stale, (0, 0))
    with Worker() as worker:
        _ = worker.in_force
        assert worker.folder is not None
        os.utime(worker.folder, (0, 0))
        sweep()
        assert not stale.exists()
        assert fresh.exists()
        assert worker.folder.exists()  # its judge lives
    fresh.rmdir()


def test_a_sandbox_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with Worker() as worker, pytest.raises(SandboxDied, match=r"could not start: .*nowhere"):
        _ = worker.in_force
    monkeypatch.undo()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with (
        Worker() as worker,
        pytest.raises(SandboxDied, match="could not start: it sent no message"),
    ):
        _ = worker.in_force
    monkeypatch.setattr(sys, "executable", "/bin/nothing")
    with Worker() as worker, pytest.raises(SandboxDied, match=r"could not start: .*/bin/nothing"):
        _ = worker.in_force


def test_limits_are_checked() -> None:
    for wrong in (
        {"seconds": 0}, {"seconds": float("nan")}, {"memory_mb": -1}, {"threads": 1.5},
        {"output_mb": "x"}, {"seconds": True}, {"minutes": 3},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=next(iter(wrong))):
            RunLimits().with_(wrong)  # type: ignore[arg-type]
    assert RunLimits().with_({"seconds": 3, "files_mb": 0}) == RunLimits(seconds=3, files_mb=0)


def test_a_level_that_does_not_work_here_is_a_usage_error() -> None:
    assert issubclass(UsageError, ValueError)
    assert not issubclass(SandboxDied, UsageError)
