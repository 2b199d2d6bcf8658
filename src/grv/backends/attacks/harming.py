"""Attacks that would use up the machine, or the judge's patience."""

from __future__ import annotations

from .attack import Aim, Attack

_CALLS = ("function", "asserts")

_FORKS = """
import os
def f(x):
    made = 0
    for i in range(1000):
        try:
            if os.fork() == 0:
                while True: os.fork()
            made += 1
        except OSError:
            pass
    return "breached" if made else "held"
"""
_SPAWN = """
import multiprocessing, os, subprocess
def f(x):
    for start in (lambda: subprocess.run(["/bin/true"]),
                  lambda: os.system("exit 3") == 768 or 1 / 0,
                  lambda: os.posix_spawn("/bin/true", ["true"], {}),
                  lambda: os.execv("/bin/true", ["true"]),
                  lambda: multiprocessing.Process(target=print).start()):
        try:
            start()
            return "breached"
        except Exception:
            pass
    return "held"
"""
_DAEMON = """
import os, time
def f(x):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True: time.sleep(1)
        os._exit(0)
    return "breached"
"""
_THREADS = """
import threading, time
def f(x):
    threading.stack_size(32768)
    made = []
    try:
        for i in range(100000):
            made.append(threading.Thread(target=time.sleep, args=(100,), daemon=True))
            made[-1].start()
    except RuntimeError:
        pass
    return "breached" if len(made) > 5000 else "held"
"""
_MEMORY = """
def f(x):
    hold = []
    try:
        for i in range(1000):
            hold.append(bytearray(64 << 20))
    except MemoryError:
        pass
    return "breached" if len(hold) > 64 else "held"
"""
_FLOOD = """
import os, sys
def f(x):
    while True:
        try: os.write(FD, b"x" * 65536)
        except OSError: pass
f(0)
"""
_IGNORE = """
import signal, time
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
def f(x):
    while True: pass
"""
_FILES = """
import os
def f(x):
    total = 0
    try:
        for i in range(100000):
            with open(f"big{i}", "wb") as file:
                for j in range(1000):
                    total += file.write(b"x" * (1 << 20))
    except OSError:
        pass
    return "breached" if total > (1 << 30) else "held"
"""
_MANY = """
import os
def f(x):
    made = 0
    try:
        for i in range(200000):
            os.close(os.open(f"n{i}", os.O_CREAT | os.O_WRONLY, 0))
            made += 1
    except OSError:
        pass
    return "breached" if made > 100000 else "held"
"""
_DEEP = """
import os, time
for i in range(3000):
    os.mkdir("d", 0o300)
    os.chdir("d")
def f(x):
    time.sleep(60)
"""
_SPARSE = """
def f(x):
    try:
        with open("sparse", "wb") as file:
            file.truncate(1 << 40)
        return "breached"
    except OSError:
        return "held"
"""
_UNNAMED = """
import os, tempfile
def f(x):
    held, total = [], 0
    try:
        while True:
            try: held.append(os.open(".", os.O_TMPFILE | os.O_RDWR))
            except OSError: held.append(os.open("f", os.O_CREAT | os.O_RDWR))
            for _ in range(15): total += os.write(held[-1], bytes(1 << 20))
            if os.path.exists("f"): os.unlink("f")
    except OSError:
        pass
    return "breached" if total > (1 << 30) else "held"
"""
_KILL = """
import os, signal
def f(x):
    for pid in (@JUDGE@, -1, 0, 1, os.getppid(), -@JUDGE@):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, 0):
            for send in (os.kill, os.killpg):
                try:
                    send(pid, number)
                    return "breached"
                except OSError:
                    pass
    return "held"
"""
_SIGIO = """
import fcntl, os
def f(x):
    reading, writing = os.pipe()
    try:
        fcntl.fcntl(reading, 8, @JUDGE@)
        fcntl.fcntl(reading, 10, 9)
        fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)
        os.write(writing, b"x")
        return "breached"
    except OSError:
        return "held"
"""
_STR = """
class E(Exception):
    def __str__(self):
        while True: pass
def f(x):
    raise E
"""
_COLLIDE = """
def f(x):
    return {i * ((1 << 61) - 1): i for i in range(3000)}
"""
_LIMITS = """
import resource
def f(x):
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE):
        try:
            resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            return "breached"
        except (OSError, ValueError):
            pass
    return "held"
"""

ATTACKS = (
    Attack("fork bomb", _FORKS),
    Attack("starts other programs", _SPAWN),
    Attack("leaves a daemon behind", _DAEMON),
    Attack("threads by the thousand", _THREADS),
    Attack("memory bomb", _MEMORY),
    Attack(
        "memory bomb in one piece",
        "def f(x): return 'x' * (1 << 40)",
        reasons=("memory", "timeout"),
    ),
    Attack("loops for ever", "def f(x):\n    while True: pass", reasons=("timeout",)),
    Attack("loops for ever while loading", "while True: pass", reasons=("timeout",)),
    Attack(
        "sleeps for ever",
        "import time\ndef f(x): time.sleep(10**9)",
        kinds=_CALLS,
        reasons=("timeout",),
    ),
    Attack("ignores every signal", _IGNORE, reasons=("timeout",)),
    Attack("stops itself", "import os\ndef f(x): os.kill(os.getpid(), 19)"),
    Attack(
        "floods its output", _FLOOD.replace("FD", "1"), Aim.FORGE, ("stdin",), ("output limit",)
    ),
    Attack("floods its errors", _FLOOD.replace("FD", "2"), Aim.FORGE, ("stdin",), ("timeout",)),
    Attack(
        "floods the judge with answers", _FLOOD.replace("FD", "4"), Aim.FORGE, ("stdin", *_CALLS)
    ),
    Attack("recurses without end", "def f(x): return f(x)", reasons=("exception",)),
    Attack(
        "overflows the C stack",
        "import sys\nsys.setrecursionlimit(10**9)\ndef f(x): return sorted([x], key=f)",
        reasons=("crash", "memory", "timeout"),
    ),
    Attack("kills itself", "import os\ndef f(x): os.kill(os.getpid(), 9)\nf(0)"),
    Attack("aborts", "import os\ndef f(x): os.abort()", reasons=("crash",)),
    Attack(
        "reads a null pointer", "import ctypes\ndef f(x): ctypes.string_at(0)", reasons=("crash",)
    ),
    Attack("returns a huge integer", "def f(x): return 1 << (1 << 28)", kinds=_CALLS),
    Attack("returns a huge string", "def f(x): return 'é' * (1 << 26)", kinds=_CALLS),
    Attack(
        "returns a value too deep",
        "def f(x):\n    v = []\n    for _ in range(100000): v = [v]\n    return v",
        kinds=_CALLS,
    ),
    Attack(
        "returns a list that holds itself", "def f(x):\n    v = []\n    v.append(v)\n    return v"
    ),
    Attack("returns an endless iterator", "def f(x):\n    while True: yield x", kinds=_CALLS),
    Attack("returns keys that collide", _COLLIDE, kinds=_CALLS),
    Attack("raises an exception that never ends", _STR, reasons=("timeout",)),
    Attack("writes files without end", _FILES),
    Attack("writes files by the thousand", _MANY),
    Attack("writes files without names", _UNNAMED, reasons=("too many files",)),
    Attack("makes a tree too deep to remove", _DEEP),
    Attack("makes a sparse file of a tebibyte", _SPARSE),
    Attack("signals other processes", _KILL),
    Attack("signals other processes through a pipe", _SIGIO),
    Attack("raises its own limits", _LIMITS),
)
