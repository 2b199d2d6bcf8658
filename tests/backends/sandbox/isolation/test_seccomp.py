"""The filter, interpreted: what the kernel would do with it, on both architectures."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest

from grv.backends.sandbox.isolation import seccomp, syscalls
from grv.backends.sandbox.isolation.seccomp import Instruction

PID = 4321
EPERM = seccomp.ERRNO | errno.EPERM
ENOSYS = seccomp.ERRNO | errno.ENOSYS
architectures = pytest.mark.parametrize("architecture", syscalls.ARCHITECTURES)


def assembled(architecture: str) -> list[Instruction]:
    filled = seccomp.Assembled(architecture)
    filled.fill_in(PID)
    code = filled.code.raw
    steps = [code[i : i + 8] for i in range(0, len(code), 8)]
    return [
        Instruction(int.from_bytes(s[:2], "little"), s[2], s[3], int.from_bytes(s[4:], "little"))
        for s in steps
    ]


def interpret(program: list[Instruction], data: bytes) -> int:
    """Run a classic BPF program of the operations that filters use."""
    accumulator, at = 0, 0
    for _ in range(len(program)):
        code, true, false, operand = program[at]
        at += 1
        match code:
            case seccomp.LOAD:
                accumulator = int.from_bytes(data[operand : operand + 4], "little")
            case seccomp.AND:
                accumulator &= operand
            case seccomp.JUMP:
                at += operand
            case seccomp.EQUAL:
                at += true if accumulator == operand else false
            case seccomp.AT_LEAST:
                at += true if accumulator >= operand else false
            case seccomp.ANY_BIT:
                at += true if accumulator & operand else false
            case seccomp.RETURN:
                return operand
            case _:
                raise AssertionError(f"unknown operation {code:#x}")
    raise AssertionError("the program does not end")


class Kernel:
    """Asks the filter of an architecture about calls by name."""

    def __init__(self, architecture: str) -> None:
        self.architecture = architecture
        self.program = assembled(architecture)
        self.numbers = {
            name: number
            for table in (syscalls.ALLOWED, syscalls.CONDITIONAL, syscalls.DENIED)
            for name, number in syscalls.numbers(table, architecture).items()
        }

    def call(self, name: str | int, *args: int, arch: int | None = None) -> int:
        number = self.numbers[name] if isinstance(name, str) else name
        arch = seccomp.AUDIT_ARCH[self.architecture] if arch is None else arch
        words = [*args, *[0] * (6 - len(args))]
        data = number.to_bytes(4, "little") + arch.to_bytes(4, "little") + bytes(8)
        return interpret(self.program, data + b"".join(w.to_bytes(8, "little") for w in words))


@architectures
def test_every_call_of_the_tables_is_treated_as_its_table_says(architecture: str) -> None:
    kernel = Kernel(architecture)
    for name in syscalls.numbers(syscalls.ALLOWED, architecture):
        assert kernel.call(name) == seccomp.ALLOW, name
    for name in syscalls.numbers(syscalls.DENIED, architecture):
        assert kernel.call(name) == EPERM, name
    known = set(kernel.numbers.values())
    for number in {*range(1000), 0x3FFFFFFF} - known:
        assert kernel.call(number) == ENOSYS, number


@architectures
def test_another_architecture_is_the_end_of_the_process(architecture: str) -> None:
    kernel = Kernel(architecture)
    for arch in (0x40000003, 0x40000028, 0, *seccomp.AUDIT_ARCH.values()):
        expected = seccomp.AUDIT_ARCH[architecture] == arch
        assert (kernel.call("read", arch=arch) == seccomp.ALLOW) is expected
        assert expected or kernel.call("read", arch=arch) == seccomp.KILL_PROCESS


def test_x32_calls_are_the_end_of_the_process() -> None:
    kernel = Kernel("x86_64")
    assert {kernel.call(0x40000000 | number) for number in range(600)} == {seccomp.KILL_PROCESS}


@architectures
def test_only_threads_may_be_started(architecture: str) -> None:
    kernel = Kernel(architecture)
    thread = 0x3D0F00  # what glibc asks for
    assert kernel.call("clone", thread) == seccomp.ALLOW
    assert kernel.call("clone", thread | (0xDEAD << 32)) == seccomp.ALLOW  # the kernel ignores it
    for flags in (17, 0, 0x100, 0x4000 | 0x100 | 17, 0x01200011):
        assert kernel.call("clone", flags) == EPERM
    for namespace in (17, 25, 26, 27, 28, 29, 30):
        assert kernel.call("clone", thread | 1 << namespace) == EPERM, namespace
    assert kernel.call(435) == ENOSYS  # clone3, so that glibc falls back to clone


@architectures
def test_signals_reach_the_process_itself_alone_and_never_kill_it(architecture: str) -> None:
    kernel = Kernel(architecture)
    assert kernel.call("kill", PID, 15) == seccomp.ALLOW
    assert kernel.call("tgkill", PID, PID + 1, 6) == seccomp.ALLOW
    minus_one = 0xFFFFFFFF
    for target in (0, 1, PID + 1, minus_one, (1 << 64) - PID):
        assert kernel.call("kill", target, 15) == EPERM
        assert kernel.call("tgkill", target, target, 15) == EPERM
    assert kernel.call("kill", PID, 9) == EPERM
    assert kernel.call("tgkill", PID, PID, 9) == EPERM
    assert kernel.call("kill", PID, 9 | 1 << 32) == EPERM  # the kernel reads 9


@architectures
def test_sockets_come_in_connected_pairs_only(architecture: str) -> None:
    kernel = Kernel(architecture)
    stream, cloexec = 1, 0o2000000
    assert kernel.call("socketpair", 1, stream | cloexec) == seccomp.ALLOW
    for family, kind in ((1, 2), (1, 5), (2, 1), (10, 1), (16, 3), (0, 1)):
        assert kernel.call("socketpair", family, kind) == EPERM
    assert kernel.call("sendto", 3, 0, 0, 0, 0) == seccomp.ALLOW
    for address in (1, 0x7FFF00000000, 1 << 63):
        assert kernel.call("sendto", 3, 0, 0, 0, address) == EPERM
    assert kernel.call("socket", 1, 1) == EPERM


@architectures
def test_settings_that_would_weaken_the_jail_are_refused(architecture: str) -> None:
    kernel = Kernel(architecture)
    assert kernel.call("prctl", 15) == seccomp.ALLOW  # a thread's name
    for option in (1, 4, 8, 22, 24, 36, 38, 47, 0x59616D61):
        assert kernel.call("prctl", option) == EPERM, option
    for command in (8, 10, 15, 1024, 1026):
        assert kernel.call("fcntl", 0, command) == EPERM
    assert kernel.call("fcntl", 0, 1) == kernel.call("fcntl", 0, 1031) == seccomp.ALLOW
    assert kernel.call("prlimit64", 0) == kernel.call("prlimit64", PID) == seccomp.ALLOW
    assert kernel.call("prlimit64", PID + 1) == EPERM
    address, stack, cpu, realtime = 0x7FFF00000000, 3, 0, 15
    for number in (0, PID):
        assert kernel.call("prlimit64", number, cpu, 0) == seccomp.ALLOW  # read
        for where in (address, 0x1000, (1 << 64) - 8):
            assert kernel.call("prlimit64", number, stack, where) == seccomp.ALLOW
            for kind in (cpu, realtime, cpu | 1 << 32):
                assert kernel.call("prlimit64", number, kind, where) == EPERM
    assert kernel.call("prlimit64", PID + 1, stack, address) == EPERM
    assert kernel.call("setrlimit", stack) == seccomp.ALLOW
    assert kernel.call("setrlimit", cpu) == kernel.call("setrlimit", realtime) == EPERM
    assert kernel.call("ioctl", 0, 0x5401) == seccomp.ALLOW
    assert kernel.call("ioctl", 0, 0x5412) == seccomp.ERRNO | errno.ENOTTY  # TIOCSTI


@architectures
def test_a_file_is_not_truncated_by_reading_it(architecture: str) -> None:
    kernel = Kernel(architecture)
    for name, before in (("open", (0,)), ("openat", (0, 0))):
        if name not in kernel.numbers:
            continue
        assert kernel.call(name, *before, 0o1000) == EPERM
        for flags in (0, 0o1001, 0o1002, 0o1101, 0o2000000):
            assert kernel.call(name, *before, flags) == seccomp.ALLOW


@architectures
def test_a_file_has_a_name(architecture: str) -> None:
    kernel = Kernel(architecture)
    for name, before in (("open", (0,)), ("openat", (0, 0))):
        for flags in (0o20000000, 0o20200002, 0o20040002, 0o20000000 | 1 << 40):
            if name in kernel.numbers:
                assert kernel.call(name, *before, flags) == seccomp.ERRNO | errno.EOPNOTSUPP


@architectures
def test_the_filter_fits_the_kernels_limits(architecture: str) -> None:
    program = assembled(architecture)
    assert len(program) <= 4096
    for at, step in enumerate(program):
        if step.code in (seccomp.EQUAL, seccomp.AT_LEAST, seccomp.ANY_BIT):
            assert at + 1 + max(step.true, step.false) < len(program)
    assert program[-1].code == seccomp.RETURN


def test_there_is_no_filter_for_other_architectures() -> None:
    with pytest.raises(OSError, match="no system call filter for riscv64"):
        seccomp.build("riscv64")


def test_the_numbers_are_those_of_the_kernels_headers() -> None:
    header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    if not header.exists():
        pytest.skip("no kernel headers here")
    known = {
        name: int(number)
        for name, number in re.findall(r"#define __NR_(\w+) (\d+)", header.read_text())
    }
    for table in (syscalls.ALLOWED, syscalls.CONDITIONAL, syscalls.DENIED):
        for name, number in syscalls.numbers(table, "x86_64").items():
            assert known[name] == number, name


def test_the_generic_numbers_are_those_of_the_kernels_headers() -> None:
    header = Path("/usr/include/asm-generic/unistd.h")
    if not header.exists():
        pytest.skip("no kernel headers here")
    text = header.read_text()
    known = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text))
    for table in (syscalls.ALLOWED, syscalls.CONDITIONAL, syscalls.DENIED):
        for name, number in syscalls.numbers(table, "aarch64").items():
            other = {"newfstatat": "fstatat"}.get(name, name)
            assert int(known.get(name) or known[other]) == number, name
