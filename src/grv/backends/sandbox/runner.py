"""Runs the candidate's program. Everything here happens in the jailed child.

The judge trusts nothing that this module sends, because the candidate can change any of it. Frames
come in on the descriptor `INCOMING` and go out on `OUTGOING`. The standard streams are the
zygote's objects, which it never used, on descriptors that were replaced.
"""

from __future__ import annotations

import atexit
import gc
import random
import sys
import threading
import types
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

from . import interpreter, kinds, objects, plain, wire

INCOMING = 3
OUTGOING = 4
_MESSAGE = 1000  # characters of an exception's text that are sent
_MOST_KEPT = 100_000  # functions and generators that a test may have at once


def frames(exc: BaseException) -> Iterator[tuple[types.CodeType, int]]:
    """The code and line number of each frame that an exception passed, outermost first."""
    trace = exc.__traceback__
    while trace is not None:
        yield trace.tb_frame.f_code, trace.tb_lineno
        trace = trace.tb_next


def describe(exc: BaseException, path: str) -> dict[str, Any]:
    """An exception as data: the names of its classes, its text, the line in the program."""
    try:
        text = str(exc)[:_MESSAGE]
    except BaseException:  # the candidate's own __str__
        text = ""
    line = None
    for code, number in frames(exc):
        line = number if code.co_filename == path else line
    if isinstance(exc, SyntaxError) and exc.filename == path:
        line = exc.lineno
    names = [kind.__name__ for kind in type(exc).__mro__]
    return {"raised": names, "message": text, "line": line, "compiled": True}


def task() -> interpreter.Task | None:
    """What the judge requests; None if the program cannot be compiled, which the judge is told."""
    order = wire.read(INCOMING)
    if order is None:
        return None
    random.seed(order["seed"])
    is_program = order["mode"] == "program"
    name = "__main__" if is_program else "candidate"
    script = interpreter.Script(name, order["source"])
    try:
        program = script.compile()
    except BaseException as exc:
        wire.write(OUTGOING, describe(exc, script.path) | {"compiled": False})
        return None
    if is_program:
        return _Program(script, program)
    return _Functions(script, program, order["entry_point"], order["room"])


class _Program(interpreter.Task):
    """A whole program, from its start to its end."""

    def __init__(self, script: interpreter.Script, program: types.CodeType) -> None:
        self._script = script
        self.program = program

    @property
    def namespace(self) -> dict[str, Any]:  # type: ignore[override]
        """The global names of the program."""
        return self._script.namespace

    def finish(self, error: BaseException | None) -> int:
        """End as an interpreter does: wait for threads, call exit handlers, drop all objects."""
        code = 0
        if isinstance(error, SystemExit):
            code = interpreter.exit_code(error)
        elif error is not None:
            code = 1
            wire.write(OUTGOING, describe(error, self._script.path))
        streams = (sys.stdout, sys.__stdout__)
        try:
            threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001
            atexit._run_exitfuncs()  # noqa: SLF001
        except BaseException:
            pass  # an interpreter reports it, and goes on
        failure = interpreter.flush(streams)
        del error, self.program
        self._script.forget()
        gc.collect()
        return code or interpreter.flush(streams) or failure


def _named(module: types.ModuleType, name: str) -> Callable[..., Any] | None:
    found = getattr(module, name, None)
    if callable(found):
        return found  # type: ignore[no-any-return]
    solution = getattr(module, "Solution", None)
    if not callable(getattr(solution, name, None)):
        return None
    # A new object per call, so that no call affects the next.
    return lambda *args, **kwargs: getattr(solution(), name)(*args, **kwargs)  # type: ignore[misc]


class _Functions(interpreter.Task):
    """A program that is imported, and calls of one of its functions."""

    def __init__(
        self, script: interpreter.Script, program: types.CodeType, entry_point: str, room: int
    ) -> None:
        self._script = script
        self.program = program
        self.namespace = script.namespace
        self._entry_point = entry_point
        self._room = room
        self._kept: dict[int, Any] = {}  # functions and so on that the test has, by number
        self._numbers: dict[int, int] = {}
        self._loop: Any = None

    def finish(self, error: BaseException | None) -> int:
        """Answer calls until the judge closes the pipe."""
        function = None
        try:
            if error is not None:
                raise error
            assert self._script.module is not None
            function = _named(self._script.module, self._entry_point)
        except BaseException as exc:
            wire.write(OUTGOING, describe(exc, self._script.path))
            return 1
        self._kept[objects.ENTRY] = function
        wire.write(OUTGOING, {"loaded": function is not None})
        decoder = kinds.Decoder(self.namespace, self._returned)
        while function is not None and (call := wire.read(INCOMING)) is not None:
            self._is_rich = call.get("rich", False)
            self._shared = call.get("objects")
            self._is_own = None if self._shared is None else self._stays_here
            args = decoder.value(call["args"])
            kwargs = decoder.value(call["kwargs"])
            # The function is called from here, and not deeper: recursion has a limit.
            try:
                match call.get("do", "call"):
                    case "call":
                        called = function if "object" not in call else self._kept[call["object"]]
                        result = called(*args, **kwargs)
                    case "get" | "set" | "del" | "copy" | "special" as request:
                        kept = function if "object" not in call else self._kept[call["object"]]
                        result = objects.requested(request, kept, call["name"], tuple(args))
                    case request:
                        result = self._continued(request, self._kept[call["object"]], *args)
                answer = {"value": self._encoded(result)}
            except objects.IteratorEnded as stop:
                answer = {"stopped": self._encoded(stop.value)}
            except plain.PlainError as exc:
                answer = {"refused": str(exc)}
            except BaseException as exc:
                answer = self._described(exc)
            if call["in_place"] and call.get("do", "call") == "call":
                try:
                    answer["args"] = self._encoded([*args, *kwargs.values()])
                except plain.PlainError as exc:
                    answer = {"refused": str(exc)}
                except BaseException as exc:  # what the program put into an argument
                    answer = self._described(exc)
            wire.write(OUTGOING, {"id": call["id"], "at": monotonic()} | answer)
        return 0

    def _encoded(self, value: Any) -> Any:
        if not self._is_rich:
            return plain.encode(value, self._room)
        return kinds.Encoder(self._room, self._stay, self._is_own).value(value)

    def _stays_here(self, kind: type) -> bool:
        return objects.is_own(kind, self._entry_point, self._shared)

    def _described(self, exc: BaseException) -> dict[str, Any]:
        answer = describe(exc, self._script.path)
        if self._is_rich:
            try:
                answer["exception"] = self._encoded(exc)
            except BaseException:  # its arguments are too large, or hostile
                bare = Exception(answer["message"])
                answer["exception"] = self._encoded(bare)
        return answer

    def _stay(self, tag: str, value: Any) -> list[Any]:
        """Keep an object for later requests; its node."""
        if self._is_own is not None and isinstance(value, type):
            if value is self._kept[objects.ENTRY]:
                return ["C", objects.ENTRY, value.__name__]
            tag = "C"
        same: Any = id(value)
        if isinstance(value, types.MethodType):  # a new object whenever it is looked up
            same = (id(value.__self__), id(value.__func__))
        number = self._numbers.setdefault(same, len(self._numbers))
        self._kept[number] = value
        if len(self._kept) > _MOST_KEPT:
            raise plain.PlainError("too large")
        if tag == "O":
            return [tag, number, type(value).__name__, objects.special_methods(type(value))]
        return [tag, number, str(getattr(value, "__name__", type(value).__name__))[:100]]

    def _returned(self, tag: str, number: int, name: str, methods: tuple[str, ...]) -> Any:
        """The object that a test gives back."""
        return self._kept[number]

    def _continued(self, request: str, kept: Any, *values: Any) -> Any:
        """What an object gives next."""
        match request:
            case "next":
                try:
                    return kept.send(*values) if values else next(kept)
                except StopIteration as stop:
                    raise objects.IteratorEnded(stop.value) from None
            case "throw":
                try:
                    return kept.throw(*values)
                except StopIteration as stop:
                    raise objects.IteratorEnded(stop.value) from None
            case "all":
                return list(kept)
            case "await":
                return self._awaited(kept)
            case "anext":
                try:
                    return self._awaited(kept.__anext__())
                except StopAsyncIteration:
                    raise objects.IteratorEnded(None) from None
        raise ValueError(request)

    def _awaited(self, awaitable: Any) -> Any:
        import asyncio

        async def waiting() -> Any:
            return await awaitable

        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(waiting())
