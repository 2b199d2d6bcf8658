"""Attacks that try to avoid a verdict: they die as if the judge killed them, or stall the judge.

A search verifies a candidate up to three times if its verdict is broken. So each of these programs
must fail, not break.
"""

from __future__ import annotations

from .attack import ALL_KINDS, CALLED, Aim, Attack

_SIGNALS = """
import os, signal
def f(x):
    for number in range(35, 64):
        os.kill(os.getpid(), number)
f(0)
"""
_TIMER = """
import ctypes, platform, struct
libc = ctypes.CDLL(None, use_errno=True)
def f(x):
    create, settime = {"x86_64": (222, 223)}.get(platform.machine(), (107, 110))
    event = ctypes.create_string_buffer(struct.pack("QiiI", 0, 9, 0, 0).ljust(64, b"\\0"))
    timer = ctypes.c_int()
    for clock in (0, 1, 2, 3, 7):
        if libc.syscall(create, clock, event, ctypes.byref(timer)) == 0:
            libc.syscall(settime, timer, 0, struct.pack("qqqq", 0, 0, 0, 1000), None)
    while True: pass
f(0)
"""
_LIMIT = """
import os, resource
def f(x):
    for kind in (resource.RLIMIT_CPU, getattr(resource, "RLIMIT_RTTIME", 15)):
        for limit in (lambda: resource.setrlimit(kind, (0, 0)),
                      lambda: resource.setrlimit(kind, (1, 1)),
                      lambda: resource.prlimit(os.getpid(), kind, (0, 0)),
                      lambda: resource.prlimit(0, kind, (1, 1))):
            try: limit()
            except (OSError, ValueError): pass
    while True: pass
f(0)
"""
_KILLS = """
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
x86 = {62: (os.getpid(), 9), 200: (os.getpid(), 9), 234: (os.getpid(), os.getpid(), 9),
       157: (1, 9), 317: (0, 0, 0), 101: (0, 0, 0, 0), 129: (os.getpid(), 9, 0),
       297: (os.getpid(), os.getpid(), 9, 0), 244: (0, 0)}
def f(x):
    for number, arguments in x86.items() if platform.machine() == "x86_64" else ():
        libc.syscall(ctypes.c_long(number), *arguments)
    os.kill(os.getpid(), 9)
    os._exit(9)
f(0)
"""
_SEND = """
import os, sys
def send(body):
    data = len(body).to_bytes(4, "big") + body
    while data: data = data[os.write(4, data):]
for name, module in list(sys.modules.items()):
    if name.endswith(".runner"):
        wire = module.wire
        class Wire:
            read = staticmethod(wire.read)
            @staticmethod
            def write(descriptor, message):
                if "id" in message: send(answer(b"%d" % message["id"]))
                else: wire.write(descriptor, message)
        module.wire = Wire
def f(x): pass
"""


def _sends(expression: str) -> str:
    """A program that answers with the call's number and then these bytes."""
    return f"{_SEND}def answer(number):\n    return b'{{\"id\": ' + number + {expression}\n"


_ANSWERS = {
    "a fraction of huge numbers": (
        """b',"value":["F",["n","%s"],["n","%s1"]]}' % (2 * (b"fe" * 200000,))"""
    ),
    "a decimal of a million digits": """b',"value":["D","%s"]}' % (b"7" * 900000)""",
    "a decimal with a huge exponent": """b',"value":["D","1E+999999999999999999"]}'""",
    "millions of brackets": """b',"value":[%s0]}' % (b"{}," * 600000)""",
    "brackets too deep": """b',"value":%s1%s}' % (b"[" * 900, b"]" * 900)""",
    "arrays in arrays": """b',"value":%s1%s}' % (b'["a",' * 400, b"]" * 400)""",
    "lone surrogates": """b',"raised":["\\\\ud800"],"message":"\\\\udfff"}'""",
    "bytes that are not text": """b',"value":"\\xff\\xfe"}'""",
    "an integer of many digits": """b',"value":%s}' % (b"9" * 100000)""",
    "its number twice": """b',"id":true,"value":[]}'""",
    "no number at all": """b',"value":NaN}'""",
    "a message of the test's process": """b',"end":{"verdict":"passed","reason":""}}'""",
    "an enum that redefines equality": (
        """b',"value":["e","Enum","E",[["__eq__",1],["_missing_",2]],"__eq__"]}'"""
    ),
    "a named tuple whose fields are code": ("""b',"value":["N","P",["x=exit(0)","_cls"],1,2]}'"""),
    "a type of its own choice": """b',"value":["T","subprocess.Popen","true"]}'""",
    "the type of a process": """b',"value":["y","builtins.eval"]}'""",
    "an exception that ends the test": (
        """b',"raised":[],"exception":["X","E",["builtins.SystemExit"],["t",0],"",["d"]]}'"""
    ),
    "an exception with borrowed methods": (
        """b',"raised":[],"exception":["X","E",["builtins.Exception"],["t"],"",["d","__class__",1]]}'"""
    ),
    "the end of an iterator": """b',"stopped":null}'""",
    "a dataclass with a constructor": (
        """b',"value":["S","P",["__init__"],[true,true,true],1]}'"""
    ),
}
_FLOOD = """
import os, time
def flood():
    for _ in range(400):
        os.write(1, b" " * 65536)
        time.sleep(0.02)
flood()
print("breached")
"""
_LATE = """
import sys, time
for name, module in list(sys.modules.items()):
    if name.endswith(".runner"): module.monotonic = lambda: 0.0
def f(x):
    end = time.monotonic() + 99
    while time.monotonic() < end: time.sleep(0.03)
    return "breached"
"""
_EVALUATED = """
def f(x):
    return "__import__('os')._exit(0)"
"""

ATTACKS = (
    Attack("sends itself real-time signals", _SIGNALS, kinds=ALL_KINDS, reasons=("crash",)),
    Attack("lets a timer kill it", _TIMER, kinds=ALL_KINDS, reasons=("timeout",)),
    Attack("lets its own limit kill it", _LIMIT, kinds=ALL_KINDS, reasons=("timeout",)),
    Attack("kills itself by every possible call", _KILLS, kinds=ALL_KINDS),
    *(
        Attack(f"answers with {name}", _sends(expression), Aim.NUMBER, CALLED)
        for name, expression in _ANSWERS.items()
    ),
    Attack(
        "makes the test build an endless list", "def f(x): return range(10**12)", kinds=("listed",)
    ),
    Attack("makes the test build a huge list", "def f(x): return 10**15", kinds=("repeated",)),
    Attack("makes the test compute a huge number", "def f(x): return 10**12", kinds=("raised",)),
    Attack(
        "makes the test evaluate an unknown name",
        "def f(x): return 'no_such_name'",
        kinds=("evaluated",),
    ),
    Attack(
        "makes the test run code",
        _EVALUATED,
        kinds=("evaluated",),
        reasons=("test at fault",),
    ),
    Attack(
        "sleeps between full pipes", _FLOOD, kinds=("stdin",), reasons=("timeout", "output limit")
    ),
    Attack("lies about the time of its answer", _LATE, kinds=CALLED, reasons=("timeout",)),
    Attack("makes the test pass the candidate to itself", "def f(x): return f", kinds=("nested",)),
    Attack(
        "waits in a thread",
        "import threading, time\ndef f(x):\n"
        "    thread = threading.Thread(target=time.sleep, args=(99,))\n"
        "    thread.start()\n    thread.join()",
        kinds=CALLED,
        reasons=("timeout",),
    ),
)
