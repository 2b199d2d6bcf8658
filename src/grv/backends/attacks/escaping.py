"""Attacks that try to get out: to the network, other users, namespaces and files."""

from __future__ import annotations

from .attack import ANY_WORKS, Attack

_SOCKETS = """
import itertools, socket
kinds = socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET
def f(x):
    sockets = itertools.product(range(64), kinds, (0, 1, 6, 17))
    return any_works(*(lambda made=made: socket.socket(*made) for made in sockets))
"""
_CONNECT = """
import socket, urllib.request
def f(x):
    return any_works(lambda: socket.create_connection(("127.0.0.1", @PORT@), 1),
                     lambda: urllib.request.urlopen("http://127.0.0.1:@PORT@/", timeout=1),
                     lambda: socket.create_server(("127.0.0.1", 0)))
"""
_DATAGRAMS = """
import socket
one, other = socket.socketpair()
def f(x):
    return any_works(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM),
                     lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET),
                     lambda: one.sendto(b"x", "/dev/log"))
"""
_CALLS = """
import ctypes, errno, os, platform
libc = ctypes.CDLL(None, use_errno=True)
x86 = {"socket": 41, "clone": 56, "fork": 57, "vfork": 58, "execve": 59, "ptrace": 101,
       "setuid": 105, "setgid": 106, "chroot": 161, "mount": 165, "umount2": 166,
       "reboot": 169, "init_module": 175, "settimeofday": 164, "unshare": 272, "setns": 308,
       "process_vm_writev": 311, "bpf": 321, "memfd_create": 319, "userfaultfd": 323,
       "perf_event_open": 298, "keyctl": 250, "add_key": 248, "io_uring_setup": 425,
       "pidfd_open": 434, "clone3": 435, "openat2": 437, "pidfd_getfd": 438, "seccomp": 317,
       "landlock_create_ruleset": 444, "mknod": 133, "chmod": 90, "chown": 92, "truncate": 76,
       "setxattr": 188, "symlink": 88, "link": 86, "open_by_handle_at": 304, "shmget": 29,
       "msgget": 68, "semget": 64, "mq_open": 240, "inotify_init": 253, "swapon": 167,
       "sched_setaffinity": 203, "setpriority": 141, "tkill": 200, "setsid": 112,
       "capset": 126, "personality": 135, "pivot_root": 155, "iopl": 172, "kexec_load": 246,
       "quotactl": 179}
path = ctypes.c_char_p(b"@FILE@")
def f(x):
    if platform.machine() != "x86_64":
        return "held"
    for name, number in x86.items():
        for arguments in ((0,) * 5, (17, 0, 0, 0, 0), (path, path, 0, 0, 0), (1, 1, 0, 0, 0)):
            ctypes.set_errno(0)
            if libc.syscall(ctypes.c_long(number), *arguments) >= 0:
                return "breached"
            if ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS, errno.EACCES):
                return "breached"
    return "held"
"""
_FOREIGN = """
import ctypes, mmap
def f(x):
    code = bytes.fromhex("CODE")
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    run = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    return "breached" if run() > 0 else "held"
"""
_USERS = """
import os
def f(x):
    return any_works(lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]),
                     lambda: os.setresuid(0, 0, 0), lambda: os.chroot("/"), lambda: os.nice(-5),
                     lambda: os.setpriority(os.PRIO_PROCESS, 0, -5), lambda: os.setsid(),
                     lambda: os.sched_setaffinity(0, {0}))
"""
_WRITES = """
import os, shutil
folder, _, _ = "@FILE@".rpartition("/")
def f(x):
    open("own", "w").close()
    return any_works(lambda: open("@FILE@", "w"), lambda: open("@FILE@", "a"),
                     lambda: os.remove("@FILE@"), lambda: os.truncate("@FILE@", 0),
                     lambda: os.chmod("@FILE@", 0o777), lambda: os.utime("@FILE@"),
                     lambda: os.rename("@FILE@", "@FILE@x"),
                     lambda: os.open("@FILE@", os.O_RDONLY | os.O_TRUNC),
                     lambda: os.setxattr("@FILE@", "user.a", b"x"),
                     lambda: os.chown("@FILE@", os.getuid(), os.getgid()),
                     lambda: os.mkdir(folder + "/new"), lambda: os.rmdir(folder),
                     lambda: open(folder + "/new", "w"), lambda: open("/tmp/new", "w"),
                     lambda: open("../new", "w"), lambda: open("/dev/shm/new", "w"),
                     lambda: os.mkfifo("pipe"), lambda: os.rename("own", folder + "/own"),
                     lambda: os.mknod("device", 0o20666, 0x103),
                     lambda: os.replace("own", "/tmp/own"), lambda: open("/dev/tty", "w"),
                     lambda: open("/dev/mem", "rb"), lambda: open("/proc/self/oom_score_adj", "w"))
"""
_SYMLINK = """
import os
def follow():
    os.symlink("/etc/passwd", "link")
    open("link").read()
def f(x):
    os.makedirs("inner", exist_ok=True)
    here = os.open(".", os.O_RDONLY)
    paths = "../..", "inner/../../..", "../box-none"
    lists = (lambda path=path: os.listdir(os.open(path, os.O_RDONLY, dir_fd=here))
             for path in paths)
    return any_works(follow, *lists)
"""
_SHARED = """
from multiprocessing import shared_memory
def f(x):
    return any_works(
        lambda: shared_memory.SharedMemory(name="left-behind", create=True, size=1 << 20))
"""

ATTACKS = (
    Attack("opens sockets of every family", ANY_WORKS + _SOCKETS),
    Attack("connects to the judge, and listens", ANY_WORKS + _CONNECT),
    Attack("sends datagrams through a socket pair", ANY_WORKS + _DATAGRAMS),
    Attack("makes raw system calls", _CALLS),
    # mov eax, 20 (getpid there); int 0x80; cdqe; ret
    Attack(
        "makes 32-bit system calls",
        _FOREIGN.replace("CODE", "b814000000cd804898c3"),
    ),
    # mov eax, 0x40000027 (getpid there); syscall; cdqe; ret
    Attack("makes x32 system calls", _FOREIGN.replace("CODE", "b8270000400f054898c3")),
    Attack("changes users and priorities", ANY_WORKS + _USERS),
    Attack("writes outside its directory", ANY_WORKS + _WRITES),
    Attack("follows links out of its directory", ANY_WORKS + _SYMLINK),
    Attack("leaves shared memory behind", ANY_WORKS + _SHARED),
)
