"""Attacks that try to use up the machine, or to keep the judge waiting."""

from __future__ import annotations

from .attack import ALL_KINDS, ANY_WORKS, CALLED, Aim, Attack

_FORKS = """
import os
def f(x):
    made = 0
    for i in range(1000):
        try:
            if os.fork() == 0:
                while True: os.fork()
            made += 1
        except OSError: pass
    return "breached" if made else "held"
"""
_SPAWN = """
import multiprocessing, os, subprocess
def f(x):
    return any_works(lambda: subprocess.run(["/bin/true"]),
                     lambda: os.system("exit 3") == 768 or 1 / 0,
                     lambda: os.posix_spawn("/bin/true", ["true"], {}),
                     lambda: os.execv("/bin/true", ["true"]),
                     lambda: multiprocessing.Process(target=print).start())
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
    except RuntimeError: pass
    return "breached" if len(made) > 5000 else "held"
"""
_MEMORY = """
def f(x):
    hold = []
    try:
        for i in range(1000): hold.append(bytearray(64 << 20))
    except MemoryError: pass
    return "breached" if len(hold) > 64 else "held"
"""
# From Python 3.12 on, the interpreter counts calls in C, whatever the limit says. The count fits
# the stack of the main thread, not a small one.
_STACK = """
import sys, threading
sys.setrecursionlimit(10**9)
threading.stack_size(32768)
def down(x): return sorted([x], key=down)
def f(x):
    thread = threading.Thread(target=down, args=(x,))
    thread.start()
    thread.join()
"""
_PIECE = "def f(x): return 'x' * (1 << 40)"
_SLEEP = "import time\ndef f(x): time.sleep(10**9)"
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
    except OSError: pass
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
    except OSError: pass
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
    with open("sparse", "wb") as file:
        return any_works(lambda: file.truncate(1 << 40))
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
    except OSError: pass
    return "breached" if total > (1 << 30) else "held"
"""
_KILL = """
import itertools, os, signal
def f(x):
    sends = itertools.product((os.kill, os.killpg), (@JUDGE@, -1, 0, 1, os.getppid(), -@JUDGE@),
                              (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, 0))
    return any_works(*(lambda call=call: call[0](*call[1:]) for call in sends))
"""
_SIGIO = """
import fcntl, os
def signal_judge():
    reading, writing = os.pipe()
    fcntl.fcntl(reading, 8, @JUDGE@)
    fcntl.fcntl(reading, 10, 9)
    fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)
    os.write(writing, b"x")
def f(x):
    return any_works(signal_judge)
"""
_STR = """
class E(Exception):
    def __str__(self):
        while True: pass
def f(x):
    raise E
"""
_RETURNED = {
    "a huge integer": "def f(x): return 1 << (1 << 28)",
    "a huge string": "def f(x): return 'é' * (1 << 26)",
    "a value too deep": "v = []\nfor _ in range(100000): v = [v]\ndef f(x): return v",
    "a list that holds itself": "v = []\nv.append(v)\ndef f(x): return v",
    "an endless iterator": "def f(x):\n    while True: yield x",
    "keys that collide": "def f(x): return {i * ((1 << 61) - 1): i for i in range(3000)}",
}
_LIMITS = """
import resource
none = resource.RLIM_INFINITY, resource.RLIM_INFINITY
def f(x):
    return any_works(lambda: resource.setrlimit(resource.RLIMIT_AS, none),
                     lambda: resource.setrlimit(resource.RLIMIT_CPU, none),
                     lambda: resource.setrlimit(resource.RLIMIT_FSIZE, none))
"""

ATTACKS = (
    Attack("fork bomb", _FORKS),
    Attack("starts other programs", ANY_WORKS + _SPAWN),
    Attack("leaves a daemon behind", _DAEMON),
    Attack("thousands of threads", _THREADS),
    Attack("memory bomb", _MEMORY),
    Attack("memory bomb in one piece", _PIECE, reasons=("memory", "timeout")),
    Attack("loops forever", "def f(x):\n    while True: pass", reasons=("timeout",)),
    Attack("loops forever while loading", "while True: pass", reasons=("timeout",)),
    Attack("sleeps forever", _SLEEP, kinds=CALLED, reasons=("timeout",)),
    Attack("ignores every signal", _IGNORE, reasons=("timeout",)),
    Attack("stops itself", "import os\ndef f(x): os.kill(os.getpid(), 19)"),
    Attack(
        "floods its output", _FLOOD.replace("FD", "1"), Aim.FORGE, ("stdin",), ("output limit",)
    ),
    Attack("floods its errors", _FLOOD.replace("FD", "2"), Aim.FORGE, ("stdin",), ("timeout",)),
    Attack("floods the judge with answers", _FLOOD.replace("FD", "4"), Aim.FORGE, ALL_KINDS),
    Attack("recurses without limit", "def f(x): return f(x)", reasons=("exception",)),
    Attack("overflows the C stack", _STACK, reasons=("crash", "memory", "timeout")),
    Attack("kills itself", "import os\ndef f(x): os.kill(os.getpid(), 9)\nf(0)"),
    Attack("aborts", "import os\ndef f(x): os.abort()", reasons=("crash",)),
    Attack(
        "reads a null pointer", "import ctypes\ndef f(x): ctypes.string_at(0)", reasons=("crash",)
    ),
    *(Attack(f"returns {name}", source, kinds=CALLED) for name, source in _RETURNED.items()),
    Attack("raises an exception that never ends", _STR, reasons=("timeout",)),
    Attack("writes files without limit", _FILES),
    Attack("writes thousands of files", _MANY),
    Attack("writes files without names", _UNNAMED, reasons=("too many files",)),
    Attack("makes a tree too deep to remove", _DEEP),
    Attack("makes a sparse file of a tebibyte", ANY_WORKS + _SPARSE),
    Attack("signals other processes", ANY_WORKS + _KILL),
    Attack("signals other processes through a pipe", ANY_WORKS + _SIGIO),
    Attack("raises its own limits", ANY_WORKS + _LIMITS),
)
