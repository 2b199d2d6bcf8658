"""Runs a program and ends everything that it started: `python guard.py DESCRIPTOR PROGRAM ...`.

The program runs until it ends by itself, or until the other end of the descriptor is closed: by
grv, or because grv was killed. Then all its descendants are killed, also those that have left its
process group. The exit status is that of the program; 128 plus the signal if one ended it.

This file is a script of its own, without anything else of grv.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys

_DEATH_SIGNAL = 1  # the options of prctl
_SUBREAPER = 36
_NOT_STARTED = 127
_LONGEST_TICK = 0.05


def main(descriptor: int, command: list[str]) -> int:
    """Run the command; return its exit status."""
    for number in signal.valid_signals():
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _set(_SUBREAPER, 1)  # descendants whose parents end become children of this process
    program = os.fork()
    if not program:
        _start(descriptor, command)
    status = _wait(program, descriptor)
    _end_all(program)
    return status


def _start(descriptor: int, command: list[str]) -> None:
    os.close(descriptor)
    _set(_DEATH_SIGNAL, signal.SIGKILL)
    os.setpgid(0, 0)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(_NOT_STARTED)


def _wait(program: int, descriptor: int) -> int:
    """The exit status of the program; that of a killed one if the other side is gone."""
    while True:
        ended, status = os.waitpid(program, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if select.select([descriptor], [], [], _LONGEST_TICK)[0]:
            return 128 + signal.SIGKILL


def _end_all(program: int) -> None:
    """Kill the group of the program, then every descendant, until there is none."""
    with contextlib.suppress(OSError):
        os.killpg(program, signal.SIGKILL)
    while True:
        children = _children()
        for child in children:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0 if children else os.WNOHANG)
        except ChildProcessError:
            return
        if not children:
            return


def _children() -> list[int]:
    """The children of this process, as far as the system says."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as listed:
            return [int(number) for number in listed.read().split()]
    except OSError:
        return []


def _set(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
