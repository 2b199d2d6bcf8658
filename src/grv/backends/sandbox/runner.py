"""Runs the candidate's program. Everything here happens in the jailed child.

The judge trusts nothing that this module sends, because the candidate can change any of it. Frames
come in on the descriptor `INCOMING` and go out on `OUTGOING`. The standard streams are the
zygote's objects, which it never used, on descriptors that were replaced.
"""

from __future__ import annotations

import atexit
import contextlib
import random
import sys
import threading
import types
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

from . import plain, wire

INCOMING, OUTGOING = 3, 4
_MESSAGE = 1000  # characters of an exception's text that are sent


def frames(exc: BaseException) -> Iterator[tuple[types.CodeType, int]]:
    """The code and line number of each frame that an exception passed, outermost first."""
    trace = exc.__traceback__
    while trace is not None:
        yield trace.tb_frame.f_code, trace.tb_lineno
        trace = trace.tb_next


def describe(exc: BaseException) -> dict[str, Any]:
    """An exception as data: the names of its classes, its text, the line in the program."""
    try:
        text = str(exc)[:_MESSAGE]
    except BaseException:  # the candidate's own __str__
        text = ""
    line = None
    for code, number in frames(exc):
        line = number if code.co_filename == "<candidate>" else line
    if isinstance(exc, SyntaxError) and exc.filename == "<candidate>":
        line = exc.lineno
    names = [kind.__name__ for kind in type(exc).__mro__]
    return {"raised": names, "message": text, "line": line, "compiled": True}


def _module(name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__dict__["__file__"] = f"{name}.py"
    module.__dict__["__builtins__"] = __builtins__
    sys.modules[name] = module
    sys.argv = [f"{name}.py"]
    return module


def serve() -> int:
    """Do what the judge requests until it closes the pipe; the process's exit code."""
    order = wire.read(INCOMING)
    if order is None:
        return 0
    random.seed(order["seed"])
    if order["mode"] == "program":
        return _program(order["source"])
    return _functions(order["source"], order["entry_point"], order["room"])


def compiled(source: str) -> types.CodeType | None:
    """The program; None if it cannot be compiled, which the judge is told."""
    try:
        return compile(source, "<candidate>", "exec")
    except BaseException as exc:
        wire.write(OUTGOING, describe(exc) | {"compiled": False})
        return None


def _program(source: str) -> int:
    program = compiled(source)
    if program is None:
        return 1
    code = 0
    try:
        exec(program, _module("__main__").__dict__)
        threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001
    except SystemExit as exc:
        code = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
    except BaseException as exc:
        code = 1
        wire.write(OUTGOING, describe(exc))
    atexit._run_exitfuncs()  # noqa: SLF001
    with contextlib.suppress(BaseException):  # a full pipe or a closed stream
        sys.stdout.flush()
    return code & 0xFF


def _named(module: types.ModuleType, name: str) -> Callable[..., Any] | None:
    found = getattr(module, name, None)
    if callable(found):
        return found  # type: ignore[no-any-return]
    solution = getattr(module, "Solution", None)
    if not callable(getattr(solution, name, None)):
        return None
    # A new object per call, so that no call affects the next.
    return lambda *args, **kwargs: getattr(solution(), name)(*args, **kwargs)  # type: ignore[misc]


def _functions(source: str, entry_point: str, room: int) -> int:
    program = compiled(source)
    if program is None:
        return 1
    module = _module("candidate")
    try:
        exec(program, module.__dict__)
        function = _named(module, entry_point)
    except BaseException as exc:
        wire.write(OUTGOING, describe(exc))
        return 1
    wire.write(OUTGOING, {"loaded": function is not None})
    while function is not None and (call := wire.read(INCOMING)) is not None:
        answer = _answer(function, call, room)
        wire.write(OUTGOING, {"id": call["id"], "at": monotonic()} | answer)
    return 0


def _answer(function: Callable[..., Any], call: dict[str, Any], room: int) -> dict[str, Any]:
    args, kwargs = plain.decode(call["args"]), plain.decode(call["kwargs"])
    try:
        result = function(*args, **kwargs)
        answer = {"value": plain.encode(result, room)}
        if call["in_place"]:
            answer["args"] = plain.encode(args, room)
        return answer
    except plain.PlainError as exc:
        return {"refused": str(exc)}
    except BaseException as exc:
        return describe(exc)
