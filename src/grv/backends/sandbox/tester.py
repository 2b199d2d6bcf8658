"""Runs the user's test code, in a jailed process of its own, against a proxy of the candidate.

The proxy sends each call to the judge. The judge passes it to the candidate's process and returns
the answer. An answer has built-in types only, so the candidate cannot hijack a comparison in the
test. Arguments are copies: the test does not see how the candidate changes them, unless the check
says `in_place`. Otherwise a candidate could pass `assert candidate(v) == sum(v)` by emptying `v`.

A test at fault is broken, not failed: it uses a name that it binds nowhere, never calls the
candidate, or passes an argument that is not plain data. If a test crashes, raises, or runs out of
time or memory, it is at fault before the candidate's first answer; after it, the candidate failed.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import json
import linecache
import random
from typing import Any

from . import plain, wire
from .runner import INCOMING, OUTGOING, frames

# Inside `map` or a generator, the first two would silently end a loop over the test's cases. The
# others would leave the test as if it had ended.
_NOT_PASSED_ON = {"StopIteration", "StopAsyncIteration"}
_NOT_PASSED_ON |= {"GeneratorExit", "SystemExit", "KeyboardInterrupt"}
_OPAQUE = f"{plain.Opaque.__module__}.{plain.Opaque.__qualname__}"


class TestFault(BaseException):
    """The test is at fault. Not an Exception, so that no test catches it."""


class AnswerFault(BaseException):
    """The candidate's answer is not a value. Not an Exception, so that no test catches it."""


class Proxy:
    """Stands for the candidate's function. A call sends a message to the judge."""

    def __init__(self, name: str, in_place: bool) -> None:
        self.__name__ = self.__qualname__ = name
        self._in_place = in_place
        self.answers = 0
        self.raised: list[BaseException] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return or raise what the candidate's function does, as built-in types."""
        wire.write(OUTGOING, {"call": self._question(args, kwargs)})
        answer = wire.read(INCOMING)
        if answer is None:
            raise TestFault("the judge closed the pipe")
        self.answers += 1
        try:
            if "raised" in answer:
                self.raised.append(_exception(answer["raised"], answer["message"]))
            elif self._in_place:
                _change(args, plain.decode(answer["args"]))
            if "raised" not in answer:
                return plain.decode(answer["value"])
        except (plain.PlainError, KeyError, TypeError, ValueError, RecursionError) as exc:
            raise AnswerFault(f"the answer is not a value: {exc}") from None
        raise self.raised[-1]

    def _question(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        try:
            question = {"args": plain.encode(list(args)), "kwargs": plain.encode(kwargs)}
        except plain.PlainError as exc:
            # After an answer, the test may have made the argument from it.
            fault = AnswerFault if self.answers else TestFault
            raise fault(f"an argument of {self.__name__} is {exc}") from None
        text = json.dumps(question, separators=(",", ":"))
        if f'["o","{_OPAQUE}"]' in text:
            raise AnswerFault(f"an argument of {self.__name__} is a value that could not be sent")
        if '["o",' in text:
            raise TestFault(f"an argument of {self.__name__} is not plain data")
        return question | {"in_place": self._in_place}


def _exception(names: list[str], message: str) -> BaseException:
    """The nearest built-in exception, so that `try` and `except` work in the test."""
    text = str(message)
    if _NOT_PASSED_ON.intersection(names):
        return RuntimeError(f"the candidate raised {names[0]}: {text}")
    for name in names:
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            with contextlib.suppress(TypeError):  # some exceptions need more arguments
                return kind(text)
    return Exception(text)


def _change(args: tuple[Any, ...], after: list[Any]) -> None:
    for old, new in zip(args, after, strict=True):
        if isinstance(old, (list, bytearray)) and type(old) is type(new):
            old[:] = new
        elif isinstance(old, (dict, set)) and type(old) is type(new):
            old.clear()
            old.update(new)


def _helpers(prompt: str, namespace: dict[str, Any]) -> None:
    """Define the prompt's helpers, if the prompt is a program or the start of one."""
    for source in (prompt, f"{prompt.rstrip()}\n    pass\n"):
        try:
            code = compile(source, "<prompt>", "exec")
        except (SyntaxError, ValueError):
            continue
        exec(code, namespace)
        return


def _line(exc: BaseException) -> str:
    """The text of the test's line that raised an exception."""
    line = 0
    for code, number in frames(exc):
        line = number if code.co_filename == "<test>" else line
    return linecache.getline("<test>", line).strip()[:500]


def serve() -> int:
    """Run tests and report, until the judge closes the pipe; the process's exit code."""
    while (order := wire.read(INCOMING)) is not None:
        proxy = Proxy(order["entry_point"], order["in_place"])
        wire.write(OUTGOING, {"end": _judge(order, proxy)})
    return 0


def _run(order: dict[str, Any], proxy: Proxy) -> None:
    namespace: dict[str, Any] = {"__name__": "test", "__builtins__": builtins}
    _helpers(order["prompt"], namespace)
    namespace[order["entry_point"]] = proxy
    before = namespace.get("check")  # the candidate, or one of the prompt's helpers
    source = order["test"]
    _seed(order["seed"], order["prompt"] + source)
    linecache.cache["<test>"] = (len(source), None, source.splitlines(True), "<test>")
    exec(compile(source, "<test>", "exec"), namespace)
    check = namespace.get("check")
    if check is not before and callable(check):
        check(proxy)


def _seed(seed: int, source: str) -> None:
    """Make the test's random numbers reproducible."""
    random.seed(seed)
    if "numpy" in source:
        with contextlib.suppress(ImportError):
            importlib.import_module("numpy").random.seed(seed)


def _is_own_fault(exc: BaseException, source: str) -> bool:
    """Whether the test is at fault, whatever the candidate answered.

    It is if its own code uses a name that it binds nowhere, or imports a missing module. But a name
    can also come from an answer, as in `eval(f(x))`. And a name that only a loop over an answer
    binds is unbound if the answer is empty.
    """
    match exc:
        case SyntaxError():
            return exc.filename == "<test>"
        case UnboundLocalError():
            return False
        case NameError(name=str(name)):
            return _is_raised_here(exc) and name not in _bound(source)
        case ImportError():
            return exc.name is not None and exc.name.split(".")[0] in _imported(source)
    return False


def _is_raised_here(exc: BaseException) -> bool:
    """Whether the test's own code raised it, not code that it calls or generates."""
    place = ""
    for code, _ in frames(exc):
        place = code.co_filename
    return place == "<test>"


def _bound(source: str) -> set[str]:
    import ast  # here, because few tests need it

    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]
    return {node.id for node in nodes if not isinstance(node.ctx, ast.Load)}


def _imported(source: str) -> set[str]:
    import ast

    found = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found |= {alias.name.split(".")[0] for alias in names}
            case ast.ImportFrom(module=str(module)):
                found.add(module.split(".")[0])
    return found


def _judge(order: dict[str, Any], proxy: Proxy) -> dict[str, Any]:
    """Run the test of an order; its verdict and reason."""
    try:
        _run(order, proxy)
    except TestFault as exc:
        return {"verdict": "broken", "reason": "test at fault", "message": str(exc)}
    except AnswerFault as exc:
        return {"verdict": "failed", "reason": "malformed answer", "message": str(exc)}
    except BaseException as exc:
        found = {"message": f"{type(exc).__name__}: {exc}"[:500], "line": _line(exc)}
        if any(exc is each for each in proxy.raised):
            return {"verdict": "failed", "reason": "exception"} | found
        if not proxy.answers or _is_own_fault(exc, order["test"]):
            return {"verdict": "broken", "reason": "test at fault"} | found
        reason = "test exhausted" if isinstance(exc, MemoryError) else "wrong answer"
        return {"verdict": "failed", "reason": reason} | found
    if not proxy.answers:
        message = "the test never called the candidate"
        return {"verdict": "broken", "reason": "test at fault", "message": message}
    return {"verdict": "passed", "reason": ""}
