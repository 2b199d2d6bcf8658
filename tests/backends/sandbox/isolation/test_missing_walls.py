"""A wall counts only if it was tried; a level that lacks one is refused, and the wall is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = str(Path(__file__).parents[4] / "src")
# A filter on the judge imitates a kernel or container that lacks a wall: one system call fails, for
# every first argument or for a given one.
_LACKING = """
import struct, sys
from grv.backends.sandbox.isolation import kernel, seccomp
from grv.backends.sandbox.limits import Isolation, RunLimits
from grv.backends.sandbox.run import SandboxDied
from grv.backends.sandbox.isolation.seccomp import Instruction as I
from grv.backends.sandbox.worker import Worker
from grv.core.errors import UsageError
number, first, code, level, source = *map(int, sys.argv[1:4]), *sys.argv[4:]
argument = [I(seccomp.LOAD, 0, 0, 16), I(seccomp.EQUAL, 0, 1, first)] if first >= 0 else []
program = [I(seccomp.LOAD, 0, 0, 0), I(seccomp.EQUAL, 0, len(argument) + 1, number), *argument,
           I(seccomp.RETURN, 0, 0, seccomp.ERRNO | code), I(seccomp.RETURN, 0, 0, seccomp.ALLOW)]
kernel.no_new_privileges()
kernel.install_filter(b"".join(struct.pack("<HBBI", *step) for step in program))
try:
    with Worker(Isolation(level)) as worker:
        print(worker.in_force)
        print(dict(worker.in_force.missing))
        with worker.run("candidate", RunLimits(files_mb=8), capture=True) as run:
            run.send({"mode": "program", "source": source, "seed": 0})
            run.drain(10)
            print(run.output.decode(), run.wait(5).cause)
except (UsageError, SandboxDied) as exc:
    print("refused:", exc)
"""
MACHINE = os.uname().machine
UNSHARE, MOUNT, PRCTL, CAPSET = {
    "x86_64": (272, 165, 157, 126),
    "aarch64": (97, 40, 167, 91),
}.get(MACHINE, (0, 0, 0, 0))
LANDLOCK, LANDLOCK_RESTRICT = 444, 446
SET_SECCOMP, EPERM, EINVAL, ENOSYS = 22, 1, 22, 38
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not UNSHARE, reason="no system call numbers for this machine"),
]


def lacking(
    number: int, code: int, level: str, *, first: int = -1, source: str = "print('ran')"
) -> str:
    arguments = [str(value) for value in (number, first, code, level, source)]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    call = [sys.executable, "-c", _LACKING, *arguments]
    done = subprocess.run(call, capture_output=True, text=True, env=environment, check=True)
    return done.stdout


def test_the_jail_works_without_namespaces_and_reports_it() -> None:
    told = lacking(UNSHARE, EPERM, "jail")
    assert "namespaces" not in told.splitlines()[0]
    assert "unshare: Operation not permitted" in told
    assert "ran" in told


def test_the_jail_works_without_a_mount_namespace_and_names_it() -> None:
    told = lacking(MOUNT, EPERM, "jail")
    assert "namespaces user+pid+net+ipc+uts," in told.splitlines()[0]
    assert "{'namespaces': 'mount: [Errno 1] mount: Operation not permitted'}" in told
    assert "ran" in told


@pytest.mark.parametrize("number", [UNSHARE, MOUNT])
def test_strict_isolation_without_all_namespaces_is_refused_by_name(number: int) -> None:
    told = lacking(number, EPERM, "strict")
    assert told.startswith(
        "refused: isolation 'strict' does not work on this machine: no namespaces ("
    )
    assert told.rstrip().endswith("--isolation jail accepts less")


@pytest.mark.parametrize("level", ["jail", "strict"])
@pytest.mark.parametrize(
    ("number", "code", "first", "piece"),
    [
        (LANDLOCK, ENOSYS, -1, "landlock"),
        (LANDLOCK_RESTRICT, EPERM, -1, "landlock"),
        (LANDLOCK_RESTRICT, 0, -1, "landlock"),  # succeeds, but does nothing
        (PRCTL, EINVAL, SET_SECCOMP, "seccomp"),
        (PRCTL, EPERM, SET_SECCOMP, "seccomp"),
        (PRCTL, 0, SET_SECCOMP, "seccomp"),
        (CAPSET, EPERM, -1, "capabilities dropped"),
    ],
)
def test_a_jail_without_a_piece_is_refused_by_name(
    level: str, number: int, code: int, first: int, piece: str
) -> None:
    told = lacking(number, code, level, first=first)
    assert told.startswith(
        f"refused: isolation '{level}' does not work on this machine: no {piece} ("
    ), told
    assert told.rstrip().endswith("--isolation unsafe accepts less")


@pytest.mark.parametrize(
    ("number", "first"), [(PRCTL, 38), (PRCTL, 1)], ids=["no_new_privs", "pdeathsig"]
)
def test_a_zygote_that_cannot_start_says_why(number: int, first: int) -> None:
    told = lacking(number, EPERM, "jail", first=first)
    assert told.startswith("refused: ")
    assert "Operation not permitted" in told


# Each program writes 64 MiB where 8 are allowed, and reports it if it is not killed.
_WRITE = "data = bytes(1 << 20)\nimport mmap, os, tempfile, time\n"
HIDING = {
    "named": "for i in range(64): open(str(i), 'wb').write(data)",
    "removed": "held = []\nfor i in range(64):\n    held.append(open('f', 'wb', 0))\n"
    "    held[-1].write(data)\n    os.unlink('f')",
    "temporary": "held = [tempfile.TemporaryFile(buffering=0) for _ in range(64)]\n"
    "for file in held: file.write(data)",
    "unnamed": "try:\n    held = [os.open('.', os.O_TMPFILE | os.O_RDWR) for _ in range(64)]\n"
    "except OSError:\n    held = [os.open(f'f{i}', os.O_CREAT | os.O_RDWR) for i in range(64)]\n"
    "for file in held: os.write(file, data)",
    "mapped": "held = []\nfor i in range(64):\n    file = open('f', 'wb+', 0)\n"
    "    file.write(data)\n    held.append(mmap.mmap(file.fileno(), 1 << 20))\n"
    "    file.close()\n    os.unlink('f')",
}


@pytest.mark.parametrize("how", HIDING)
@pytest.mark.parametrize("number", [UNSHARE, 9999], ids=["without namespaces", "with all"])
def test_files_count_whether_they_have_a_name_or_not(how: str, number: int) -> None:
    source = f"{_WRITE}{HIDING[how]}\ntime.sleep(1)\nprint('unnoticed')"
    told = lacking(number, EPERM, "jail", source=source)
    assert "unnoticed" not in told, told
    assert told.rstrip().endswith("files"), told
