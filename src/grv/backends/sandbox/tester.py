"""The test's side of a run: the user's test code, in a process of its own, against a proxy.

The proxy sends each call to the judge, which passes it to the candidate's process and the answer
back. Only built-in types come back, so no comparison in the test can be hijacked. Arguments are
copies: what the candidate does to them is not seen here, unless the check says `in_place`.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import json
import linecache
from collections.abc import Callable
from typing import Any

from . import plain, wire
from .runner import INCOMING, OUTGOING

# Raised inside `map` or a generator these would end a loop over the test's cases early and quietly;
# the last three would leave the test as if it had ended.
_NOT_PASSED_ON = {"StopIteration", "StopAsyncIteration", "GeneratorExit", "SystemExit"}
_NOT_PASSED_ON |= {"KeyboardInterrupt"}
# From the test itself these say that the test is at fault, not the candidate.
_FAULTS = (NameError, ImportError, SyntaxError, MemoryError)


class TestFault(BaseException):
    """The test asks for what cannot be done; not an Exception, so that no test catches it."""


class AnswerFault(BaseException):
    """The candidate's answer is no value; not an Exception, so that no test catches it."""


class Proxy:
    """Stands for the candidate's function. Calling it asks the judge."""

    def __init__(self, name: str, in_place: bool) -> None:
        self.__name__ = self.__qualname__ = name
        self._in_place = in_place
        self.calls = 0
        self.raised: BaseException | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the candidate's function returns or raises, as built-in types."""
        self.calls += 1
        wire.write(OUTGOING, {"call": self._question(args, kwargs)})
        answer = wire.read(INCOMING)
        if answer is None:
            raise TestFault("the judge hung up")
        try:
            if "raised" in answer:
                self.raised = _exception(answer["raised"], answer["message"])
            elif self._in_place:
                _change(args, plain.decode(answer["args"]))
            if "raised" not in answer:
                return plain.decode(answer["value"])
        except (plain.PlainError, KeyError, TypeError, ValueError, RecursionError) as exc:
            raise AnswerFault(f"the answer is no value: {exc}") from None
        assert self.raised is not None
        raise self.raised

    def _question(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        try:
            question = {"args": plain.encode(list(args)), "kwargs": plain.encode(kwargs)}
        except plain.PlainError as exc:
            raise TestFault(f"an argument of {self.__name__} is {exc}") from None
        if '["o",' in json.dumps(question, separators=(",", ":")):
            raise TestFault(f"an argument of {self.__name__} is not plain data")
        return question | {"in_place": self._in_place}


def _exception(names: list[str], message: str) -> BaseException:
    text = str(message)
    if _NOT_PASSED_ON.intersection(names):
        return RuntimeError(f"the candidate raised {names[0]}: {text}")
    for name in names:
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            with contextlib.suppress(TypeError):  # some want more than a text
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
    """The prompt's own helpers, where the prompt is a program or the beginning of one."""
    for source in (prompt, f"{prompt.rstrip()}\n    pass\n"):
        try:
            code = compile(source, "<prompt>", "exec")
        except (SyntaxError, ValueError):
            continue
        exec(code, namespace)
        return


def _line(exc: BaseException) -> str:
    line, trace = "", exc.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<test>":
            line = linecache.getline("<test>", trace.tb_lineno).strip()
        trace = trace.tb_next
    return line[:500]


def _text(exc: BaseException) -> str:
    return f"{type(exc).__name__}: {exc}"[:500]


def serve() -> int:
    """Run tests and report, until the judge hangs up; the process's exit code."""
    while (order := wire.read(INCOMING)) is not None:
        proxy = Proxy(order["entry_point"], order["in_place"])
        wire.write(OUTGOING, {"end": _judge(functools.partial(_run, order, proxy), proxy)})
    return 0


def _run(order: dict[str, Any], proxy: Proxy) -> None:
    namespace: dict[str, Any] = {"__name__": "test", "__builtins__": builtins}
    _helpers(order["prompt"], namespace)
    namespace[order["entry_point"]] = proxy
    source = order["test"]
    linecache.cache["<test>"] = (len(source), None, source.splitlines(True), "<test>")
    exec(compile(source, "<test>", "exec"), namespace)
    check = namespace.get("check")
    if callable(check):
        check(proxy)


def _judge(run: Callable[[], None], proxy: Proxy) -> dict[str, Any]:
    try:
        run()
    except TestFault as exc:
        return {"verdict": "broken", "reason": "test at fault", "message": str(exc)}
    except AnswerFault as exc:
        return {"verdict": "failed", "reason": "malformed answer", "message": str(exc)}
    except BaseException as exc:
        found = {"message": _text(exc), "line": _line(exc)}
        if exc is proxy.raised:
            return {"verdict": "failed", "reason": "exception"} | found
        if isinstance(exc, _FAULTS) or not proxy.calls:
            return {"verdict": "broken", "reason": "test at fault"} | found
        return {"verdict": "failed", "reason": "wrong answer"} | found
    if not proxy.calls:
        message = "the test never called the candidate"
        return {"verdict": "broken", "reason": "test at fault", "message": message}
    return {"verdict": "passed", "reason": ""}
