"""Runs `inside.py` on a copy of a repository, in a container: podman, docker, or gVisor.

The image is the project's environment. A container has no network, no capabilities, no way to new
privileges, a file system that cannot be written to except for `/tmp`, and limits. The program is
the one of the user's machine; no daemon's API is used, and nothing is downloaded.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import secrets as random_names
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....core.errors import UsageError
from ...sandbox.limits import Isolation, RunLimits
from ..command import process_folder
from .jailed import PROGRAM, Ran, program
from .runners import RESULTS

ROOT = "/testbed"  # where the copy is in a container, as in the images of SWE-bench
_OWN = "/grv-inside"  # where `inside.py` is
_NOT_STARTED = (125, 126, 127)  # exit codes of podman and docker for a container that did not start
GRACE = 30.0  # seconds for the start and the end of a container
_REMOVING_SECONDS = 60.0
_OPEN_FILES = 1024
_TICK = 0.05
_QUESTION_SECONDS = 20.0
RUNTIMES: dict[Isolation, tuple[tuple[str, ...], ...]] = {
    Isolation.PODMAN: ((), ("--runtime=runc",), ("--runtime=crun",)),
    Isolation.DOCKER: ((),),
    Isolation.GVISOR: (
        ("--runtime=runsc", "--runtime-flag=network=none", "--runtime-flag=ignore-cgroups"),
    ),
}


def engine_of(isolation: Isolation) -> str:
    """The program that starts containers: gVisor's are started by podman, or else by docker."""
    if isolation is Isolation.GVISOR:
        return "podman" if shutil.which("podman") else "docker"
    return str(isolation.value)


def ending_option(isolation: Isolation, limits: RunLimits) -> str:
    """The option that ends a container which outlives grv.

    Podman ends the container after some seconds. Docker cannot: there, a process ends when it has
    computed for that long.
    """
    seconds = math.ceil(limits.seconds + 2 * GRACE)
    if engine_of(isolation) == "docker":
        return f"--ulimit=cpu={seconds}:{seconds}"
    return f"--timeout={seconds}"


def why_not(isolation: Isolation) -> str:
    """Why no container of this kind can be started here; "" if it may be possible."""
    if isolation is Isolation.GVISOR and shutil.which("runsc") is None:
        return "runsc is not installed"
    name = engine_of(isolation)
    if shutil.which(name) is None:
        return f"{name} is not installed"
    return server_problem(name)


@functools.cache
def server_problem(name: str) -> str:
    """Why a program for containers does not work; docker needs a server."""
    try:
        done = subprocess.run(
            [name, "version", "--format", "json"],
            capture_output=True,
            text=True,
            timeout=_QUESTION_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return f"{name} does not answer"
    if done.returncode == 0:
        return ""
    said = done.stderr.strip().splitlines()
    return f"{name} does not work: {said[-1] if said else 'it fails'}"


@dataclass(frozen=True)
class ContainerRun:
    """One run in a container.

    Attributes:
        isolation: podman, docker or gvisor.
        image: the name of the image.
        folder: the copy of the repository.
        own: the folder with `inside.py`.
        name: the name of the container.
        writable: whether the copy can be written to.
        limits: what the container may use.
        argv: what it starts.
    """

    isolation: Isolation
    image: str
    folder: Path
    own: Path
    name: str
    writable: bool
    limits: RunLimits
    argv: tuple[str, ...]

    def command_line(self, runtime: tuple[str, ...] = ()) -> list[str]:
        """The command that starts the container."""
        memory = int(self.limits.memory_mb)
        threads = int(self.limits.threads)
        options = [
            "--rm",
            "--interactive",
            f"--name={self.name}",
            "--pull=never",
            "--network=none",
            "--read-only",
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
            f"--memory={memory}m",
            f"--memory-swap={memory}m",
            f"--pids-limit={threads}",
            f"--ulimit=nofile={_OPEN_FILES}:{_OPEN_FILES}",
            f"--ulimit=nproc={threads}:{threads}",
            "--ulimit=core=0:0",
            ending_option(self.isolation, self.limits),
            "--ipc=none" if engine_of(self.isolation) == "docker" else "--ipc=private",
            "--hostname=grv",
            f"--tmpfs=/tmp:rw,nosuid,nodev,size={max(1, int(self.limits.files_mb))}m,mode=1777",
            "--env=HOME=/tmp",
            "--env=TMPDIR=/tmp",
            "--env=LC_ALL=C.UTF-8",
            "--env=TZ=UTC",
            f"--volume={self.folder}:{ROOT}:{'rw' if self.writable else 'ro'}",
            f"--volume={self.own}:{_OWN}:ro",
            f"--workdir={ROOT}",
            "--entrypoint=",
        ]
        return [engine_of(self.isolation), "run", *runtime, *options, self.image, *self.argv]


def check_image(image: str) -> None:
    """Refuse what is no name of an image, such as an option."""
    if not image or image.startswith("-") or any(ord(letter) <= 32 for letter in image):
        raise UsageError(f"image must be the name of an image, not {image!r}")


class Container:
    """Runs tests in containers of one image. Another thread may interrupt it."""

    _working: dict[tuple[Isolation, str], tuple[str, ...]] = {}  # noqa: RUF012  of this process

    def __init__(self, isolation: Isolation, image: str) -> None:
        check_image(image)
        self._isolation = isolation
        self._image = image
        if problem := why_not(isolation):
            raise UsageError(f"--isolation {isolation.value}: {problem}")

    def __str__(self) -> str:
        return (
            f"{self._isolation.value}: no network, read-only, no capabilities, no new privileges,"
            " limits on memory and processes"
        )

    def run(
        self,
        python: str,
        job: dict[str, Any],
        folder: Path,
        *,
        secret: bytes,
        writable: bool,
        limits: RunLimits,
        reads_results: bool,
        is_called_off: threading.Event | None = None,
    ) -> Ran:
        """Run `inside.py` on a copy of a repository."""
        results = f"/tmp/{RESULTS}" if reads_results else ""
        argv = [part.replace("{results}", results) for part in job.get("argv", [])]
        more = {"root": ROOT, "source": "", "secret": secret.hex(), "results": results}
        stdin = json.dumps({**job, **more, "argv": argv}).encode()
        with tempfile.TemporaryDirectory(prefix="inside-", dir=process_folder()) as own:
            Path(own).chmod(0o755)
            (Path(own) / PROGRAM).write_text(program(), encoding="utf-8")
            container = ContainerRun(
                self._isolation,
                self._image,
                folder,
                Path(own),
                f"grv-{random_names.token_hex(8)}",
                writable,
                limits,
                (python, "-I", "-B", f"{_OWN}/{PROGRAM}"),
            )
            return self._first_that_starts(container, stdin, is_called_off)

    def _first_that_starts(
        self, container: ContainerRun, stdin: bytes, is_called_off: threading.Event | None
    ) -> Ran:
        """Run it with the first runtime that works here. One that does not has run nothing."""
        name = (self._isolation, self._image)
        known = self._working.get(name)
        ran = Ran(b"", b"", "no runtime", is_machines_fault=True)
        for runtime in RUNTIMES[self._isolation] if known is None else (known,):
            ran, code = _run(container, runtime, stdin, is_called_off)
            if code not in _NOT_STARTED:
                self._working[name] = runtime
                return ran
        said = ran.said.splitlines()
        problem = said[-1] if said else "it does not start"
        return Ran(ran.output, ran.errors, f"container: {problem}", is_machines_fault=True)


def _run(
    container: ContainerRun,
    runtime: tuple[str, ...],
    stdin: bytes,
    is_called_off: threading.Event | None,
) -> tuple[Ran, int]:
    limits = container.limits
    deadline = time.monotonic() + limits.seconds + GRACE
    problem = ""
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        given.write(stdin)
        given.seek(0)
        with _ended(
            container,
            subprocess.Popen(
                container.command_line(runtime),
                stdin=given,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            ),
        ) as process:
            while process.poll() is None and not problem:
                if time.monotonic() > deadline:
                    problem = "timeout"
                elif is_called_off is not None and is_called_off.is_set():
                    problem = "called off"
                elif max(map(_size, (output, errors))) > limits.output_bytes:
                    problem = "output limit"
                else:
                    time.sleep(_TICK)
        parts = []
        for file in (output, errors):
            file.seek(0)
            parts.append(file.read(limits.output_bytes))
    code = process.returncode
    if code == 137 and not problem:  # killed by its limit of memory
        problem = "memory"
    ran = Ran(parts[0], parts[1], problem, is_machines_fault=problem == "called off")
    return ran, 0 if problem else code


def _size(file: Any) -> int:
    return os.fstat(file.fileno()).st_size


@contextlib.contextmanager
def _ended(
    container: ContainerRun, process: subprocess.Popen[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    """The client of a container, which is removed at the end of the block if it still runs."""
    try:
        yield process
    finally:
        if process.poll() is None:
            removing = [engine_of(container.isolation), "rm", "--force", container.name]
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    removing,
                    capture_output=True,
                    timeout=_REMOVING_SECONDS,
                    stdin=subprocess.DEVNULL,
                    check=False,
                )
            process.kill()
        process.wait()
