"""The test's side of a run: the user's test code, in a process of its own, against a proxy.

The proxy sends each call to the judge, which passes it to the candidate's process and the answer
back. Only built-in types come back, so no comparison in the test can be hijacked. Arguments are
copies: what the candidate does to them is not seen here, unless the check says `in_place`.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
import json
import linecache
import random
from collections.abc import Callable
from typing import Any

from . import plain, wire
from .runner import INCOMING, OUTGOING

# Raised inside `map` or a generator these would end a loop over the test's cases early and quietly;
# the last three would leave the test as if it had ended.
_NOT_PASSED_ON = {"StopIteration", "StopAsyncIteration", "GeneratorExit", "SystemExit"}
_NOT_PASSED_ON |= {"KeyboardInterrupt"}


_OPAQUE = f"{plain.Opaque.__module__}.{plain.Opaque.__qualname__}"


class TestFault(BaseException):
    """The test asks for what cannot be done; not an Exception, so that no test catches it."""


class AnswerFault(BaseException):
    """The candidate's answer is no value; not an Exception, so that no test catches it."""


class Proxy:
    """Stands for the candidate's function. Calling it asks the judge."""

    def __init__(self, name: str, in_place: bool) -> None:
        self.__name__ = self.__qualname__ = name
        self._in_place = in_place
        self.answers = 0
        self.raised: list[BaseException] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the candidate's function returns or raises, as built-in types."""
        wire.write(OUTGOING, {"call": self._question(args, kwargs)})
        answer = wire.read(INCOMING)
        if answer is None:
            raise TestFault("the judge hung up")
        self.answers += 1
        try:
            if "raised" in answer:
                self.raised.append(_exception(answer["raised"], answer["message"]))
            elif self._in_place:
                _change(args, plain.decode(answer["args"]))
            if "raised" not in answer:
                return plain.decode(answer["value"])
        except (plain.PlainError, KeyError, TypeError, ValueError, RecursionError) as exc:
            raise AnswerFault(f"the answer is no value: {exc}") from None
        raise self.raised[-1]

    def _question(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        try:
            question = {"args": plain.encode(list(args)), "kwargs": plain.encode(kwargs)}
        except plain.PlainError as exc:
            # After an answer, it may have been made of that.
            fault = AnswerFault if self.answers else TestFault
            raise fault(f"an argument of {self.__name__} is {exc}") from None
        text = json.dumps(question, separators=(",", ":"))
        if f'["o","{_OPAQUE}"]' in text:
            raise AnswerFault(f"an argument of {self.__name__} is what could not be sent")
        if '["o",' in text:
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
        wire.write(
            OUTGOING, {"end": _judge(functools.partial(_run, order, proxy), proxy, order["test"])}
        )
    return 0


def _run(order: dict[str, Any], proxy: Proxy) -> None:
    namespace: dict[str, Any] = {"__name__": "test", "__builtins__": builtins}
    _helpers(order["prompt"], namespace)
    namespace[order["entry_point"]] = proxy
    before = namespace.get("check")  # the candidate, or a helper of the prompt's
    source = order["test"]
    _seed(order["seed"], order["prompt"] + source)
    linecache.cache["<test>"] = (len(source), None, source.splitlines(True), "<test>")
    exec(compile(source, "<test>", "exec"), namespace)
    check = namespace.get("check")
    if check is not before and callable(check):
        check(proxy)


def _seed(seed: int, source: str) -> None:
    """Fix what the test draws at random."""
    random.seed(seed)
    if "numpy" in source:
        with contextlib.suppress(ImportError):
            importlib.import_module("numpy").random.seed(seed)


def _is_own_fault(exc: BaseException, source: str) -> bool:
    """Whether the test is at fault, whatever the candidate answered.

    It is where its own code uses a name that it binds nowhere, or imports what there is not. A name
    may also come from an answer, as in `eval(f(x))`; and one that is bound in a loop over an answer
    alone is unbound after an empty answer.
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
    """Whether the test's own code raised it, not code that it calls or makes."""
    trace, place = exc.__traceback__, ""
    while trace is not None:
        place = trace.tb_frame.f_code.co_filename
        trace = trace.tb_next
    return place == "<test>"


def _bound(source: str) -> set[str]:
    import ast  # few tests need it

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


def _judge(run: Callable[[], None], proxy: Proxy, source: str) -> dict[str, Any]:
    try:
        run()
    except TestFault as exc:
        return {"verdict": "broken", "reason": "test at fault", "message": str(exc)}
    except AnswerFault as exc:
        return {"verdict": "failed", "reason": "malformed answer", "message": str(exc)}
    except BaseException as exc:
        found = {"message": _text(exc), "line": _line(exc)}
        if any(exc is each for each in proxy.raised):
            return {"verdict": "failed", "reason": "exception"} | found
        if not proxy.answers or _is_own_fault(exc, source):
            return {"verdict": "broken", "reason": "test at fault"} | found
        reason = "test exhausted" if isinstance(exc, MemoryError) else "wrong answer"
        return {"verdict": "failed", "reason": reason} | found
    if not proxy.answers:
        message = "the test never called the candidate"
        return {"verdict": "broken", "reason": "test at fault", "message": message}
    return {"verdict": "passed", "reason": ""}
