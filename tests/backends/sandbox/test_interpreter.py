"""A program runs as in a freshly started interpreter: the same output, the same end."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from grv.backends.sandbox.limits import RunLimits
from grv.backends.sandbox.worker import Worker
from support.commands import as_from_a_terminal

pytestmark = pytest.mark.slow
PATIENCE = 20.0  # seconds for a program outside; a slower one is not compared
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0"}
DATA = Path(os.environ.get("GRV_DATA", "data")) / "humaneval_programs.jsonl.gz"
PROGRAMS = [
    "def f(x: List[int]): pass\nprint(1)",
    "def f(x: 1/0): pass",
    "from __future__ import annotations\ndef f(x: List[int]): pass\nprint(f.__annotations__)",
    "import collections\nprint(isinstance([], collections.abc.Iterable))",
    "import collections, typing\nprint(isinstance([], collections.abc.Iterable))",
    "import collections.abc\nprint(collections.abc.Sized)",
    "import importlib\nprint(importlib.util)",
    "import importlib.util\nprint(importlib.util.find_spec('json').name)",
    "import json\nprint(json.decoder, json.tool)",
    "import xml\nprint(xml.etree)",
    "import sys\nprint(sys.getrecursionlimit(), len(sys.argv), sys.flags.optimize)",
    "def d(n): return 0 if n == 0 else 1 + d(n - 1)\nprint(d(990))",
    "def d(n): return 0 if n == 0 else 1 + d(n - 1)\nprint(d(1000))",
    "print(__name__, __builtins__.__name__, __annotations__, __doc__, __spec__, sorted(globals()))",
    "'doc'\nx: int = 3\nprint(__doc__, __annotations__, __cached__, type(__loader__).__name__)",
    "print(len(open(__file__).read()))",
    "import inspect\ndef f(): return 1\nprint(inspect.getsource(f))",
    "import sys, __main__\nx = 1\nprint(__main__.x, sys.modules['__main__'].__dict__ is globals())",
    "# -*- coding: latin-1 -*-\nprint(len('\u00e9'))",
    "# -*- coding: no-such-codec -*-\nprint(1)",
    "assert False",
    "if __debug__: print('debug')",
    "import sys; sys.exit('x')",
    "import sys; sys.exit(256)",
    "import sys; sys.exit(10**30)",
    "import sys, threading, time\ndef g():\n    time.sleep(0.1); print('late')\n"
    "threading.Thread(target=g).start()\nsys.exit()",
    "class A:\n    def __del__(self): print('bye')\na = A()",
    "def g():\n    try: yield 1\n    finally: print('closed')\nx = g(); next(x)",
    "import atexit\natexit.register(print, 1)\n@atexit.register\ndef f(): raise ValueError",
    "import os, signal\nos.kill(os.getpid(), signal.SIGTERM); print(1)",
    "import os, signal\nos.kill(os.getpid(), signal.SIGHUP); print(1)",
    "import os, signal\nos.kill(os.getpid(), signal.SIGQUIT); print(1)",
    "import os, signal\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\n"
    "except KeyboardInterrupt: print('interrupted')",
    "import os, signal\nprint([signal.getsignal(n) for n in (signal.SIGPIPE, signal.SIGCHLD)],"
    " signal.pthread_sigmask(0, []), os.umask(0))",
    "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))), A.__module__)",
    "from dataclasses import dataclass, fields\n@dataclass\nclass A:\n    x: int\n"
    "print(fields(A)[0].type)",
    "from functools import singledispatch\n@singledispatch\ndef f(x): return 'o'\n@f.register\n"
    "def _(x: int): return 'i'\nprint(f(1), f(''))",
    "import os\nprint('x')\nos.close(1)",
    "print('\\ud800')",
    "import os\nprint(os.listdir('.'))",
    "from __future__ import braces",
    "import sys\nprint(sys.stdin.encoding, sys.stdout.encoding, sys.stdout.line_buffering)",
    "import sys\nsys.setrecursionlimit(60)\ndef d(n): return 0 if n == 0 else 1 + d(n - 1)\n"
    "print(d(40))",
    "import asyncio\nasync def m(): return 3\nprint(asyncio.run(m()))",
    "x = 1\n1/0",
]
HEADS = [
    "",
    "import {module}\n",
    "from {module} import *\n",
    "from __future__ import annotations\n",
]
BODIES = [
    "def f(x: {name}) -> {name}: return x\nprint(f({value}))",
    "class A:\n    y: {name} = {value}\nprint(A.__annotations__, A.y)",
    "def f(n): return 0 if n <= 0 else 1 + f(n - 1)\nprint(f({depth}))",
    "print(sorted(dir({module}))[:3])",
    "print({module}.abc)",
    "try:\n    raise {error}({value})\nexcept {error} as exc: print(exc.args)",
    "raise {error}({value})",
    "import sys\nsys.exit({value})",
    "print({name}, {value}, __name__)",
    "exec('print({name})')\nprint(eval('{value}'))",
    "import atexit\natexit.register(print, {value})\n1 if {value} else 1/0",
]
WORDS = {
    "module": ["collections", "typing", "importlib", "json", "os", "math", "concurrent", "xml"],
    "name": ["int", "List", "'Later'", "undefined", "list[int]", "1/0", "dict"],
    "value": ["0", "3", "'a'", "None", "[1]", "256", "-1"],
    "depth": ["10", "900", "990", "1100"],
    "error": ["ValueError", "SystemExit", "KeyError", "Missing"],
}  # fmt: skip


def generated(count: int) -> Iterator[str]:
    chance = random.Random(7)
    for _ in range(count):
        words = {name: chance.choice(values) for name, values in WORDS.items()}
        text = chance.choice(HEADS) + chance.choice(BODIES)
        for name, value in words.items():
            text = text.replace(f"{{{name}}}", value)
        yield text


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as worker:
        yield worker


def jailed(worker: Worker, source: str) -> tuple[str, int | None]:
    order = {"mode": "program", "source": source, "seed": 0}
    with worker.run(
        "candidate", RunLimits(seconds=60), stdin=b"", capture=True, first=order
    ) as run:
        run.drain(60)
        ended = run.wait(60)
        assert ended is not None
        code = -ended.signal if ended.signal else ended.exit_code
        return run.output.decode("utf-8", "replace"), code


def plain(folder: Path, source: str) -> tuple[str, int]:
    (folder / "work").mkdir(exist_ok=True)
    file = folder / "main.py"
    file.write_bytes(source.encode("utf-8", "surrogatepass"))
    ended = subprocess.run(
        [sys.executable, "-s", "-B", str(file)],
        cwd=folder / "work",
        env=ENVIRONMENT | {"HOME": str(folder), "TMPDIR": str(folder)},
        input=b"",
        capture_output=True,
        preexec_fn=as_from_a_terminal,
        check=False,
        timeout=PATIENCE,
    )
    return ended.stdout.decode("utf-8", "replace"), ended.returncode


@pytest.mark.parametrize("source", PROGRAMS)
def test_a_program_ends_as_it_does_outside(worker: Worker, source: str, tmp_path: Path) -> None:
    assert jailed(worker, source) == plain(tmp_path, source)


def test_forty_generated_programs_end_as_they_do_outside(worker: Worker, tmp_path: Path) -> None:
    for source in generated(40):
        assert jailed(worker, source) == plain(tmp_path, source), source


def real() -> Iterator[str]:
    """Programs of a language model, each with its test; none that touches the machine."""
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            for completion in record["completions"][:15]:
                parts = (record["prompt"] + completion, record["test"])
                call = f"check({record['entry_point']})"
                if not any(word in completion for word in ("open(", "os.", "input(", "while")):
                    yield "\n".join([*parts, call])


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_two_thousand_programs_end_as_they_do_outside(worker: Worker, tmp_path: Path) -> None:
    if not DATA.exists():
        pytest.skip(f"there is no {DATA.name}; GRV_DATA names its folder")
    programs = [*itertools.islice(real(), 1000)]
    programs += generated(2000 - len(programs))
    compared, differing = 0, []
    for text in programs:
        with contextlib.suppress(subprocess.TimeoutExpired):
            expected = plain(tmp_path, text)
            differing += [text] if jailed(worker, text) != expected else []
            compared += 1
    assert differing == []
    assert compared > 1900
