"""The judge's side of the sandbox: one zygote, and its runs one after the other.

A worker is used by one thread at a time; only `interrupt` may be called from another.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from ...core.errors import UsageError
from . import scratch
from .clock import Stopwatch
from .limits import NEEDED, InForce, Isolation, Limits
from .link import Link
from .run import READY_SECONDS, Run, WorkerDied

_CLOSE_SECONDS = 20.0
_STALE_SECONDS = 60.0
_PREFIX = "grv-box-"
# A package made of this folder alone: the zygote needs nothing else of grv, and gets nothing.
_BOOT = """
import importlib.util, sys
folder, control, judge, level, scratch = sys.argv[1:6]
spec = importlib.util.spec_from_file_location(
    "grv_sandbox", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules["grv_sandbox"] = importlib.util.module_from_spec(spec)
from grv_sandbox.zygote import main
main(int(control), int(judge), level, scratch)
"""
# Hash seeds are fixed so that the same program gives the same output twice. With these variables
# and no others, -s and -P isolate as -I does, which would ignore the seed.
_ENVIRONMENT = {
    **{"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0"},
    **{f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")},
    "MALLOC_ARENA_MAX": "2",  # each takes 64 MiB of address space, one per thread otherwise
}


def sweep() -> None:
    """Remove what workers left behind that were killed together with their judge."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            state = folder.lstat()
            if state.st_uid != os.getuid() or time.time() - state.st_mtime < _STALE_SECONDS:
                continue
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # its judge is gone
                scratch.empty(str(folder))
                folder.rmdir()
            finally:
                os.close(descriptor)


class Worker:
    """One zygote, started when first needed and again when it died."""

    def __init__(self, isolation: Isolation = Isolation.JAIL) -> None:
        self.isolation = isolation
        self._zygote: subprocess.Popen[bytes] | None = None
        self._link: Link | None = None
        self.folder: Path | None = None  # where its scratch directory is
        self._lock_descriptor = -1
        self._in_force: InForce | None = None
        self._runs = 0
        self.current: int | None = None  # the run that is going on
        self.interrupted = False  # whether the next run is to be ended as well

    @property
    def in_force(self) -> InForce:
        """What keeps its candidates in; starts the zygote where need be."""
        if self._in_force is None or self._zygote is None:
            self._start()
        assert self._in_force is not None
        return self._in_force

    @property
    def pid(self) -> int | None:
        """The zygote's process number, None when there is none."""
        return None if self._zygote is None else self._zygote.pid

    def _start(self) -> None:
        self.close()
        try:
            hello = self._launch()
        except OSError as exc:
            self.close()
            raise WorkerDied(f"the sandbox could not start: {exc}", backend="sandbox") from exc
        watch = Stopwatch(self.pid or 0)
        if not watch.works:
            hello["missing"]["schedstat"] = "a program's time includes its waiting for a processor"
        watch.close()
        self._in_force = InForce(
            self.isolation,
            hello["landlock"],
            hello["seccomp"],
            tuple(hello["namespaces"]),
            hello["capabilities"],
            hello["missing"],
        )
        self._refuse_less()

    def _launch(self) -> dict[str, Any]:
        """Start the zygote; what it says of itself."""
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock_descriptor = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(self._lock_descriptor, fcntl.LOCK_EX)
        ours, theirs = socket.socketpair()
        self._link = Link(ours)
        here = str(Path(__file__).parent)
        environment = dict(_ENVIRONMENT)
        if "LD_LIBRARY_PATH" in os.environ:  # some interpreters need it to start at all
            environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        arguments = [here, str(theirs.fileno()), str(os.getpid()), self.isolation.value]
        with theirs, open(self.folder / "errors", "wb") as errors:
            self._zygote = subprocess.Popen(
                [sys.executable, "-s", "-P", "-B", "-c", _BOOT, *arguments, str(self.folder)],
                pass_fds=[theirs.fileno()],
                env=environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        hello = self._link.hear(time.monotonic() + READY_SECONDS)
        if hello is None or "failed" in hello:
            text = "" if hello is None else str(hello["failed"])
            with contextlib.suppress(OSError):  # it removes its folder when it ends
                text = text or (self.folder / "errors").read_text(errors="replace").strip()
            self.close()
            last = text.splitlines()[-1] if text else "no word from it"
            raise WorkerDied(f"the sandbox could not start: {last}", backend="sandbox")
        return hello

    def _refuse_less(self) -> None:
        """A UsageError where the level that was asked for cannot be had."""
        force = self._in_force
        assert force is not None
        if self.isolation is Isolation.UNSAFE:
            return
        lacking = [name for name in NEEDED if name in force.missing]
        less = Isolation.UNSAFE
        if not lacking and self.isolation is Isolation.STRICT:
            less = Isolation.JAIL
            lacking = [name for name in ("namespaces",) if name in force.missing]
        if lacking:
            why = "; ".join(f"{name} ({force.missing[name]})" for name in lacking)
            self.close()
            raise UsageError(
                f"isolation {self.isolation.value!r} cannot be had here: no {why}; "
                f"--isolation {less.value} accepts less"
            )

    @contextlib.contextmanager
    def run(
        self,
        mode: str,
        limits: Limits,
        *,
        tests: int = 1,
        stdin: bytes | None = None,
        capture: bool = False,
        first: Any = None,
    ) -> Iterator[Run]:
        """A run, ended when the block is left, however that happens.

        Args:
            mode: "candidate" or "test".
            limits: what it may use.
            tests: how many tests it will be given.
            stdin: what it finds there.
            capture: whether its standard output is wanted.
            first: a message to be sent as soon as it is ready.
        """
        run = self._begin(mode, limits, tests, stdin, capture, first)
        try:
            try:
                yield run
            finally:
                run.end()
        except WorkerDied:
            self.close()
            raise
        finally:
            self.current = None
            run.abandon()

    def _begin(
        self,
        mode: str,
        limits: Limits,
        tests: int,
        stdin: bytes | None,
        capture: bool,
        first: Any,
    ) -> Run:
        """A run whose jail is on; with a new zygote where the old one has died meanwhile."""
        for attempt in (1, 2):
            _ = self.in_force
            assert self._link is not None
            self._runs += 1
            try:
                run = Run(
                    self._link,
                    self._runs,
                    mode,
                    limits,
                    tests=tests,
                    stdin=stdin,
                    capture=capture,
                    confined=self.isolation is not Isolation.UNSAFE,
                    first=first,
                )
            except OSError as exc:  # no descriptors left, say
                problem = f"no run could be started: {exc}"
                raise WorkerDied(problem, backend="sandbox") from exc
            self.current = self._runs
            try:
                run.wait_until_ready()
                if self.interrupted:
                    self.interrupt()
                break
            except BaseException as exc:
                self.current = None
                run.abandon()
                self.close()
                if attempt == 2 or not isinstance(exc, WorkerDied):
                    raise
        return run

    def interrupt(self) -> None:
        """End the current run, or the next, from another thread; until told otherwise."""
        self.interrupted = True
        link, current = self._link, self.current
        if link is not None and current is not None:
            link.send({"stop": current})

    def close(self) -> None:
        """End the zygote, and with it any run."""
        if self._link is not None:
            self._link.close()
        if self._zygote is not None:
            try:
                self._zygote.wait(_CLOSE_SECONDS)
            except subprocess.TimeoutExpired:
                self._zygote.send_signal(signal.SIGKILL)
                self._zygote.wait()
        if self.folder is not None:
            with contextlib.suppress(OSError):
                scratch.empty(str(self.folder))
            shutil.rmtree(self.folder, ignore_errors=True)
            os.close(self._lock_descriptor)
        self._zygote = self.folder = self._in_force = self._link = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
