"""Builds the system call filter of a candidate, for both architectures, as data.

A filter is a classic BPF program that reads a `struct seccomp_data`: call number, architecture,
instruction pointer, six arguments of 64 bits. Where the kernel reads an argument as 32 bits, the
filter compares only its low word. It compares both words of a pointer.

No call lets a candidate cause its own SIGKILL: signals, timers, time limits and notifications that
could are refused. So a child that died of SIGKILL was killed from outside, and its verdict is
broken rather than failed.

There are three filters. That of an `interpreter` starts no program. That of a `program` may replace
itself by one, once it is confined, and starts no process. That of `tools` also starts processes,
which stay in one process group: a signal to the group ends all of them at once.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from typing import NamedTuple

from . import syscalls

NOT_YET_RUN = ("aarch64",)  # the tests interpret this filter, but no such machine has run it
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
KILL_PROCESS = 0x80000000
ALLOW = 0x7FFF0000
ERRNO = 0x00050000
X32_BIT = 0x40000000  # set in the numbers of an x86_64 kernel's x32 calls

LOAD = 0x20
EQUAL = 0x15
AT_LEAST = 0x35
ANY_BIT = 0x45
AND = 0x54
JUMP = 0x05
RETURN = 0x06

_FARTHEST = 255  # instructions that a conditional jump can skip

_SIGKILL = 9
_OPEN_TRUNCATE = 0o1000
_OPEN_MODE = 0o3
_OPEN_UNNAMED = 0o20000000  # O_TMPFILE without O_DIRECTORY: a file without a name
# RLIMIT_CPU and RLIMIT_RTTIME: at a hard time limit the kernel sends SIGKILL.
_TIME_LIMITS = (0, 15)
_CLONE_THREAD = 0x00010000
_CLONE_NAMESPACES = 0x7E020000
_UNIX_FAMILY = 1
_STREAM = 1
_PACKETS = 5
# PR_GET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME
_PRCTL_ALLOWED = (2, 3, 15, 16)
# F_SETOWN, F_SETSIG and F_SETOWN_EX can signal other processes; F_SETLEASE and F_NOTIFY watch files
_FCNTL_DENIED = (8, 10, 15, 1024, 1026)
# TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX
_IOCTL_ALLOWED = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)


class Instruction(NamedTuple):
    """One BPF instruction. `true` and `false` are how far a conditional jump goes."""

    code: int
    true: int
    false: int
    operand: int


_PID = -1  # placeholder operand for the number of the filtered process

Block = list[Instruction]


def _argument(index: int, *, high: bool = False) -> Instruction:
    return Instruction(LOAD, 0, 0, 16 + 8 * index + (4 if high else 0))


def _return(value: int) -> Instruction:
    return Instruction(RETURN, 0, 0, value)


def _refuse(number: int = errno.EPERM) -> Instruction:
    return _return(ERRNO | number)


def _if_equal(operand: int, then: Instruction) -> Block:
    return [Instruction(EQUAL, 0, 1, operand), then]


def _if_any_bit(mask: int, then: Instruction) -> Block:
    return [Instruction(ANY_BIT, 0, 1, mask), then]


def _mask(mask: int) -> Instruction:
    return Instruction(AND, 0, 0, mask)


_yes = _return(ALLOW)
_no = _refuse()


def _opening(index: int) -> Block:
    # Before Landlock 3, a program could truncate a file that it may only read.
    truncating = [_mask(_OPEN_TRUNCATE | _OPEN_MODE), *_if_equal(_OPEN_TRUNCATE, _no)]
    unnamed = _if_any_bit(_OPEN_UNNAMED, _refuse(errno.EOPNOTSUPP))
    return [_argument(index), *unnamed, *truncating, _yes]


def _not_of_time(index: int) -> Block:
    return [_argument(index), *(s for kind in _TIME_LIMITS for s in _if_equal(kind, _no)), _yes]


def _limiting() -> Block:
    # Only the process's own limits. Reading them (a null pointer for the new limit) is allowed.
    own = [_argument(0), Instruction(EQUAL, 2, 0, 0), Instruction(EQUAL, 1, 0, _PID), _no]
    reading = [_argument(2), Instruction(EQUAL, 0, 3, 0)]
    reading += [_argument(2, high=True), *_if_equal(0, _yes)]
    return [*own, *reading, *_not_of_time(1)]


def _signal_to_self(index: int) -> Block:
    own = [_argument(0), Instruction(EQUAL, 1, 0, _PID), _no]
    return [*own, _argument(index), *_if_equal(_SIGKILL, _no), _yes]


def _one_of(index: int, allowed: tuple[int, ...], otherwise: Instruction) -> Block:
    tests = [step for value in allowed for step in _if_equal(value, _yes)]
    return [_argument(index), *tests, otherwise]


def _connected_pair(*kinds: int) -> Block:
    own = [_argument(0), Instruction(EQUAL, 1, 0, _UNIX_FAMILY), _no]
    allowed = [step for kind in kinds for step in _if_equal(kind, _yes)]
    return [*own, _argument(1), _mask(0xF), *allowed, _no]


_CONDITIONS: dict[str, Block] = {
    "open": _opening(1),
    "openat": _opening(2),
    "prctl": _one_of(0, _PRCTL_ALLOWED, _no),
    "fcntl": [_argument(1), *(s for c in _FCNTL_DENIED for s in _if_equal(c, _no)), _yes],
    "ioctl": _one_of(1, _IOCTL_ALLOWED, _refuse(errno.ENOTTY)),
    "prlimit64": _limiting(),
    "setrlimit": _not_of_time(0),
    "kill": _signal_to_self(1),
    "tgkill": _signal_to_self(2),
    "clone": [
        _argument(0),
        *_if_any_bit(_CLONE_NAMESPACES, _no),
        *_if_any_bit(_CLONE_THREAD, _yes),
        _no,
    ],
    # Event loops need a connected stream pair. A datagram socket could send to any address.
    "socketpair": _connected_pair(_STREAM),
    "sendto": [
        _argument(4),
        Instruction(EQUAL, 1, 0, 0),
        _no,
        _argument(4, high=True),
        *_if_equal(0, _yes),
        _no,
    ],
}


def _limiting_tools() -> Block:
    # Only the process's own limits, under the number 0.
    own = [_argument(0), Instruction(EQUAL, 1, 0, 0), _no]
    return [*own, *_not_of_time(1)]


def _signal_but_kill(index: int) -> Block:
    return [_argument(index), *_if_equal(_SIGKILL, _no), _yes]


# What replaces the actions of an interpreter. Signals of tools are confined by the process
# namespace or by Landlock; `tools.py` requires one of them.
_PROGRAM: dict[str, Block] = {"execve": [_yes], "wait4": [_yes], "waitid": [_yes]}
_TOOLS: dict[str, Block] = _PROGRAM | {
    "fork": [_yes],
    "vfork": [_yes],
    "clone": [_argument(0), *_if_any_bit(_CLONE_NAMESPACES, _no), _yes],
    "prlimit64": _limiting_tools(),
    "kill": _signal_but_kill(1),
    "tkill": _signal_but_kill(1),
    "tgkill": _signal_but_kill(2),
    "fallocate": [_yes],
    "socketpair": _connected_pair(_STREAM, _PACKETS),  # rustc starts its linker through one
}
_MORE: dict[str, dict[str, Block]] = {"interpreter": {}, "program": _PROGRAM, "tools": _TOOLS}


def build(architecture: str, profile: str = "interpreter") -> tuple[Instruction, ...]:
    """The filter of a profile, with the placeholder `_PID` for the process's number.

    The filter is a binary search over ranges of numbers with the same action. On installation the
    kernel evaluates it once for every possible number; a linear filter would make that the most
    expensive part of starting a run.
    """
    if architecture not in syscalls.ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no system call filter for {architecture}")
    actions: dict[int, Block] = {}
    for number in syscalls.numbers(syscalls.ALLOWED, architecture).values():
        actions[number] = [_yes]
    for number in syscalls.numbers(syscalls.DENIED, architecture).values():
        actions[number] = [_no]
    for name, number in syscalls.numbers(syscalls.CONDITIONAL, architecture).items():
        actions[number] = _CONDITIONS[name]
    every = f"{syscalls.ALLOWED} {syscalls.CONDITIONAL} {syscalls.DENIED} {syscalls.OF_TOOLS}"
    everywhere = syscalls.numbers(every, architecture)
    for name, action in _MORE[profile].items():
        if name in everywhere:
            actions[everywhere[name]] = action
    unknown = [_refuse(errno.ENOSYS)]
    ranges: list[tuple[int, Block]] = []  # first number of the range, action
    for number in range(max(actions) + 2):
        action = actions.get(number, unknown)
        if not ranges or ranges[-1][1] != action:
            ranges.append((number, action))
    start: Block = [
        Instruction(LOAD, 0, 0, 4),
        Instruction(EQUAL, 1, 0, AUDIT_ARCH[architecture]),
        _return(KILL_PROCESS),
        Instruction(LOAD, 0, 0, 0),
    ]
    if architecture == "x86_64":
        start += _if_any_bit(X32_BIT, _return(KILL_PROCESS))
    return (*start, *_search(ranges))


def _search(ranges: list[tuple[int, Block]]) -> Block:
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    left = _search(ranges[:middle])
    right = _search(ranges[middle:])
    if len(left) <= _FARTHEST:
        return [Instruction(AT_LEAST, len(left), 0, ranges[middle][0]), *left, *right]
    there = Instruction(JUMP, 0, 0, len(left))  # an unconditional jump has no such limit
    return [Instruction(AT_LEAST, 0, 1, ranges[middle][0]), there, *left, *right]


class Assembled:
    """A filter in the kernel's format, complete except for the process's number.

    Attributes:
        code: the buffer that has it.
    """

    def __init__(self, architecture: str, profile: str = "interpreter") -> None:
        program = build(architecture, profile)
        self._places = [8 * i + 4 for i, step in enumerate(program) if step.operand == _PID]
        code = b"".join(
            struct.pack("<HBBI", step.code, step.true, step.false, step.operand & 0xFFFFFFFF)
            for step in program
        )
        self.code = ctypes.create_string_buffer(code, len(code))

    def fill_in(self, pid: int) -> None:
        """Make it the filter for the process with this number."""
        for place in self._places:
            struct.pack_into("<I", self.code, place, pid)
