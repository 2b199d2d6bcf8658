"""Linux system calls that Python does not offer, called through ctypes. No policy here.

A forked child copies every page of memory that it touches, and ctypes touches many to make the
arguments of a call. So the calls that each child makes are prepared before: `Prepared` has their
arguments.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_PR_SET_SECCOMP = 22
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2

# Since Linux 5.0 a new system call has the same number on every architecture.
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_ADD_RULE = 445
_LANDLOCK_RESTRICT_SELF = 446
_CLOSE_RANGE = 436
_CAPSET = {"x86_64": 126, "aarch64": 91}
_MS_NOSUID = 2
_MS_NODEV = 4
_MS_NOEXEC = 8
_MS_REC = 0x4000
_MS_PRIVATE = 0x40000
_MNT_DETACH = 2
_LANDLOCK_CREATE_RULESET_VERSION = 1
_LANDLOCK_RULE_PATH_BENEATH = 1
_CAPABILITY_VERSION_3 = 0x20080522

is_linux = sys.platform == "linux"
_libc = ctypes.CDLL(None, use_errno=True)


def machine() -> str:
    """The processor architecture, as the kernel names it: "x86_64", "aarch64"."""
    return os.uname().machine


def _call(name: str, result: int) -> int:
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{name}: {os.strerror(errno)}")
    return result


Prepared = Callable[[], int]  # a system call with its arguments; raises OSError if it fails


def _prepared(name: str, function: str, *arguments: object) -> Prepared:
    called = getattr(_libc, function, None)  # `prctl` exists on Linux only
    return lambda: _call(name, called(*arguments))  # type: ignore[misc]


def _syscall(name: str, number: int, *args: object) -> int:
    return _prepared(name, "syscall", ctypes.c_long(number), *args)()


def _prctl(name: str, option: int, first: int, second: object = None) -> Prepared:
    zero = ctypes.c_ulong(0)
    arguments = (ctypes.c_int(option), ctypes.c_ulong(first), second or zero, zero, zero)
    return _prepared(name, "prctl", *arguments)


_no_new_privileges = _prctl("no_new_privs", _PR_SET_NO_NEW_PRIVS, 1)
_die_with_parent = _prctl("pdeathsig", _PR_SET_PDEATHSIG, 9)


def no_new_privileges() -> None:
    """Never gain privileges by starting a program, such as a setuid one."""
    _no_new_privileges()


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when `parent` dies."""
    _die_with_parent()
    if os.getppid() != parent:  # it died before the call above
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _prctl("subreaper", _PR_SET_CHILD_SUBREAPER, 1)()


def unshare(flags: int) -> None:
    """Move this process to new namespaces, of the kinds in `flags`."""
    _call("unshare", _libc.unshare(ctypes.c_int(flags)))


def mount_private() -> None:
    """Hide mounts made in this namespace from all others."""
    flags = ctypes.c_ulong(_MS_REC | _MS_PRIVATE)
    _call("mount", _libc.mount(None, b"/", None, flags, None))


def mount_memory(path: str, options: str, *, runs_files: bool = False) -> None:
    """Mount an empty in-memory file system (tmpfs) at `path`; its files may run as programs."""
    flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV | (0 if runs_files else _MS_NOEXEC))
    place = os.fsencode(path)
    text = options.encode()
    _call("mount tmpfs", _libc.mount(b"tmpfs", place, b"tmpfs", flags, text))


def unmount(path: str) -> None:
    """Unmount the file system at `path`."""
    _call("umount", _libc.umount2(os.fsencode(path), ctypes.c_int(_MNT_DETACH)))


def drop_capabilities() -> None:
    """Give up every capability; permanently, once `no_new_privileges` was called."""
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    _syscall("capset", _CAPSET[machine()], header, bytes(24))


def closing_from(first: int) -> Callable[[], None]:
    """A call that closes every file descriptor from `first` up."""
    numbers = [ctypes.c_uint(each) for each in (first, 0xFFFFFFFF, 0)]
    close = _prepared("close_range", "syscall", ctypes.c_long(_CLOSE_RANGE), *numbers)

    def closed() -> None:
        if is_linux:
            try:
                close()
                return
            except OSError:  # before Linux 5.9
                pass
        os.closerange(first, os.sysconf("SC_OPEN_MAX"))

    return closed


def filtering(code: ctypes.Array[ctypes.c_char]) -> Prepared:
    """A call that applies a seccomp filter to this thread and to all that it starts.

    The filter is what the buffer contains when the call is made. The caller keeps the buffer.
    """
    program = struct.pack("HP", len(code) // 8, ctypes.addressof(code))
    return _prctl("seccomp", _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program)


def install_filter(code: bytes) -> None:
    """Apply a seccomp filter to this thread and to all that it starts."""
    buffer = ctypes.create_string_buffer(code, len(code))
    filtering(buffer)()


def landlock_version() -> int:
    """The kernel's Landlock version. Raises OSError if the kernel has none."""
    flag = ctypes.c_uint32(_LANDLOCK_CREATE_RULESET_VERSION)
    return _syscall("landlock", _LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), flag)


def landlock_ruleset(files: int, network: int, scoped: int, size: int) -> int:
    """A file descriptor of a new ruleset; this kernel knows `size` bytes of the attributes."""
    attributes = struct.pack("QQQ", files, network, scoped)
    number = _LANDLOCK_CREATE_RULESET
    flags = ctypes.c_uint32(0)
    return _syscall("landlock ruleset", number, attributes, ctypes.c_size_t(size), flags)


def landlock_allow(ruleset: int, place: int, access: int) -> None:
    """Allow `access` to the open file or directory `place`, and to all below it."""
    rule = struct.pack("=Qi", access, place)
    kind = ctypes.c_int(_LANDLOCK_RULE_PATH_BENEATH)
    flags = ctypes.c_uint32(0)
    _syscall("landlock rule", _LANDLOCK_ADD_RULE, ctypes.c_int(ruleset), kind, rule, flags)


def landlock_restricting(ruleset: int) -> Prepared:
    """A call that applies a ruleset to this thread and to all that it starts."""
    number = ctypes.c_long(_LANDLOCK_RESTRICT_SELF)
    flags = ctypes.c_uint32(0)
    return _prepared("landlock restrict", "syscall", number, ctypes.c_int(ruleset), flags)


def default_thread_stack(size: int) -> None:
    """Give threads a stack of `size` bytes instead of the main thread's limit (glibc only)."""
    try:
        initialise, stack, default = (
            getattr(_libc, f"pthread_{name}")
            for name in ("attr_init", "attr_setstacksize", "setattr_default_np")
        )
    except AttributeError:
        return
    attributes = ctypes.create_string_buffer(256)  # pthread_attr_t has 56 bytes, or 64
    if initialise(attributes) == 0 and stack(attributes, ctypes.c_size_t(size)) == 0:
        default(attributes)


def problem_in_child(attempt: Callable[[], str | None]) -> str:
    """Call `attempt` in a forked child; the problem that it returns or raises, "" for none."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            problem = attempt() or ""
        except OSError as exc:
            problem = str(exc)
        os.write(writing, problem.encode()[:500])
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        problem = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    return problem or (f"the child that tried it ended with {status}" if status else "")
