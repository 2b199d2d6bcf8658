"""The Linux system calls that Python lacks, through ctypes. No policy here."""

from __future__ import annotations

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

# Since Linux 5.0 new calls have one number on every architecture.
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_ADD_RULE = 445
_LANDLOCK_RESTRICT_SELF = 446
_CLOSE_RANGE = 436
_CAPSET = {"x86_64": 126, "aarch64": 91}
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 0x4000, 0x40000
_MNT_DETACH = 2
_LANDLOCK_CREATE_RULESET_VERSION = 1
_LANDLOCK_RULE_PATH_BENEATH = 1
_CAPABILITY_VERSION_3 = 0x20080522

is_linux = sys.platform == "linux"
_libc = ctypes.CDLL(None, use_errno=True)


def machine() -> str:
    """The processor architecture, in the kernel's words: "x86_64", "aarch64"."""
    return os.uname().machine


def _call(name: str, result: int) -> int:
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{name}: {os.strerror(errno)}")
    return result


def _syscall(name: str, number: int, *args: object) -> int:
    return _call(name, _libc.syscall(ctypes.c_long(number), *args))


def prctl(name: str, option: int, *args: object) -> None:
    """Change a setting of this process; `name` is for the error message."""
    _call(name, _libc.prctl(option, *args, *(ctypes.c_ulong(0) for _ in range(4 - len(args)))))


def no_new_privileges() -> None:
    """From now on, no program that is started gains rights."""
    prctl("no_new_privs", PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1))


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when `parent` is gone."""
    prctl("pdeathsig", PR_SET_PDEATHSIG, ctypes.c_ulong(9))
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)


def unshare(flags: int) -> None:
    """Leave the namespaces of `flags` for new ones."""
    _call("unshare", _libc.unshare(ctypes.c_int(flags)))


def mount_private() -> None:
    """Keep what is mounted here from showing elsewhere."""
    flags = ctypes.c_ulong(_MS_REC | _MS_PRIVATE)
    _call("mount", _libc.mount(None, b"/", None, flags, None))


def mount_memory(path: str, options: str) -> None:
    """Put an empty file system in memory at `path`."""
    flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    place, text = os.fsencode(path), options.encode()
    _call("mount tmpfs", _libc.mount(b"tmpfs", place, b"tmpfs", flags, text))


def unmount(path: str) -> None:
    """Take away what was mounted at `path`."""
    _call("umount", _libc.umount2(os.fsencode(path), ctypes.c_int(_MNT_DETACH)))


def drop_capabilities() -> None:
    """Give up every capability, for good once `no_new_privileges` was called."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _syscall("capset", _CAPSET[machine()], ctypes.byref(header), ctypes.byref(nothing))


def close_from(first: int) -> None:
    """Close every descriptor from `first` on."""
    if is_linux:
        try:
            last = ctypes.c_uint(0xFFFFFFFF)
            _syscall("close_range", _CLOSE_RANGE, ctypes.c_uint(first), last, ctypes.c_uint(0))
            return
        except OSError:  # before Linux 5.9
            pass
    os.closerange(first, os.sysconf("SC_OPEN_MAX"))


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def install_filter(code: bytes) -> None:
    """Put a seccomp filter on this thread and what it starts."""
    program = _Filter(len(code) // 8, code)
    prctl("seccomp", PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), ctypes.byref(program))


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def landlock_version() -> int:
    """The kernel's Landlock ABI; an OSError where there is none."""
    flag = ctypes.c_uint32(_LANDLOCK_CREATE_RULESET_VERSION)
    nothing, size = ctypes.c_void_p(None), ctypes.c_size_t(0)
    return _syscall("landlock", _LANDLOCK_CREATE_RULESET, nothing, size, flag)


def landlock_ruleset(files: int, network: int, scoped: int, size: int) -> int:
    """A descriptor of a new ruleset; `size` is how much of the attributes this kernel knows."""
    attributes = _Ruleset(files, network, scoped)
    length, flags = ctypes.c_size_t(size), ctypes.c_uint32(0)
    number = _LANDLOCK_CREATE_RULESET
    return _syscall("landlock ruleset", number, ctypes.byref(attributes), length, flags)


def landlock_allow(ruleset: int, directory: int, access: int) -> None:
    """Allow `access` on and beneath an open directory or file."""
    rule = ctypes.byref(_PathBeneath(access, directory))
    kind, flags = ctypes.c_int(_LANDLOCK_RULE_PATH_BENEATH), ctypes.c_uint32(0)
    _syscall("landlock rule", _LANDLOCK_ADD_RULE, ctypes.c_int(ruleset), kind, rule, flags)


def landlock_restrict(ruleset: int) -> None:
    """Bind this thread, and what it starts, to a ruleset."""
    flags = ctypes.c_uint32(0)
    _syscall("landlock restrict", _LANDLOCK_RESTRICT_SELF, ctypes.c_int(ruleset), flags)


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
