"""Runs the user's test code, in a jailed process of its own, against a proxy of the candidate.

The proxy sends each call to the judge. The judge passes it to the candidate's process and returns
the answer. An answer is made of plain data, in types that are not the candidate's (kinds.py), so
the candidate cannot hijack a comparison in the test. Functions, generators and coroutines stay with
the candidate: to call or continue them is another call. Arguments are copies: the test does not see
how the candidate changes them, unless the check says `in_place`. Otherwise a candidate could pass
`assert candidate(v) == sum(v)` by emptying `v`.

Each candidate has a process of its own for its test. What a test leaves behind affects no other.

A test at fault is broken, not failed: it uses a name that it binds nowhere, never calls the
candidate, or passes an argument that is not plain data. If a test crashes, raises, or runs out of
time or memory, it is at fault before the candidate's first answer; after it, the candidate failed.
"""

from __future__ import annotations

import contextlib
import importlib
import random
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

from . import evaluating, interpreter, kinds, objects, plain, wire
from .runner import INCOMING, OUTGOING, frames

# Inside `map` or a generator, the first two would silently end a loop over the test's cases. The
# others would leave the test as if it had ended.
_NOT_PASSED_ON = (StopIteration, StopAsyncIteration, GeneratorExit, SystemExit, KeyboardInterrupt)
_OPAQUE = f'["o","{plain.Opaque.__module__}.{plain.Opaque.__qualname__}"]'.encode()
_ROOM = 1 << 30


class TestFault(BaseException):
    """The test is at fault. Not an Exception, so that no test catches it."""


class AnswerFault(BaseException):
    """The candidate's answer is not a value. Not an Exception, so that no test catches it."""


class Candidate:
    """The candidate as the test's process sees it: what it is asked, and what it answers.

    Attributes:
        shared: the global names that the prompt defines, for the candidate as well.
        answers: the number of answers.
        raised: the exceptions among them.
        missing: the types of answers that could not be sent.
        fault: the last fault of the test or of an answer.
    """

    def __init__(
        self,
        name: str,
        in_place: bool,
        has_objects: bool,
        namespace: dict[str, Any],
        guard: evaluating.EvaluationGuard,
    ) -> None:
        self._name = name
        self._in_place = in_place
        self._has_objects = has_objects
        self._objects: dict[int, objects.RemoteObject | RemoteClass] = {}
        self._namespace = namespace
        self.shared: dict[str, Any] = {}
        self._guard = guard
        self._lock = threading.Lock()
        self.answers = 0
        self.raised: list[BaseException] = []
        self.missing: list[str] = []
        self.fault: BaseException | None = None

    def at_fault(self, fault: BaseException) -> BaseException:
        """Note a fault, which decides the verdict also if something has caught it."""
        self.fault = fault
        return fault

    def ask(self, args: tuple[Any, ...], kwargs: dict[str, Any], **request: Any) -> Any:
        """Return or raise what the candidate does. Raises `IteratorEnded` at an iterator's end."""
        question = self._question(args, kwargs) | request
        with self._lock:  # a test may have threads
            wire.write(OUTGOING, {"call": question})
            answer = wire.read(INCOMING)
        if answer is None:
            raise TestFault("the judge closed the pipe")
        self.answers += 1
        try:
            if "stopped" in answer:
                raise objects.IteratorEnded(self._decoded(answer["stopped"]))
            if self._in_place and request.get("do", "call") == "call" and "args" in answer:
                _change([*args, *kwargs.values()], self._decoded(answer["args"]))
            if "raised" not in answer:
                return self._decoded(answer["value"])
            exception = _to_raise(self._decoded(answer["exception"]))
        except (plain.PlainError, KeyError, TypeError, ValueError, RecursionError) as exc:
            fault = AnswerFault(f"the answer is not a value: {exc}")
            raise self.at_fault(fault) from None
        self.raised.append(exception)
        raise exception

    def _decoded(self, node: Any) -> Any:
        """The value of a node of an answer, whose texts the test may not evaluate."""
        # Its own decoder: to put an object into a set asks the candidate for its hash meanwhile.
        decoder = kinds.Decoder(self._namespace, self._stays, self.shared)
        decoder.missing = self.missing
        value = decoder.value(node)
        self._guard.answered(value)
        for text in decoder.texts:
            self._guard.answered(text)
        return value

    def _question(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        try:
            question = {"args": _sent(list(args)), "kwargs": _sent(kwargs)}
        except plain.PlainError as exc:
            # After an answer, the test may have made the argument from it.
            fault = AnswerFault if self.answers else TestFault
            raise self.at_fault(fault(f"an argument of {self._name} is {exc}")) from None
        text = wire.text(question)
        if _OPAQUE in text:
            what = "a value that could not be sent"
            raise self.at_fault(AnswerFault(f"an argument of {self._name} is {what}"))
        if b'["o",' in text:
            raise self.at_fault(TestFault(f"an argument of {self._name} is not plain data"))
        kept = {"objects": self._classes()} if self._has_objects else {}
        return question | {"in_place": self._in_place, "rich": True} | kept

    def _classes(self) -> list[str]:
        """The names of the classes that the test knows."""
        return [name for name, value in list(self._namespace.items()) if isinstance(value, type)]

    def _stays(self, tag: str, number: int, name: str, methods: tuple[str, ...]) -> Any:
        """What stands for an object that stays with the candidate."""
        match tag:
            case "g":
                return _generator(self, number)
            case "j":
                return RemoteIterator(self, number)
            case "w":
                return _coroutine(self, number)
            case "A":
                return _asynchronous(self, number)
            case "O" if not self._has_objects:
                return plain.Opaque(f"candidate.{name}")
            case "O":
                if number not in self._objects:
                    kind = objects.stand_in(name, methods)
                    self._objects[number] = kind(self.ask, number)
                return self._objects[number]
            case "C" if self._has_objects:
                return self.stand_in_of_class(number, name)
        return RemoteFunction(self, number, name)

    def stand_in_of_class(self, number: int, name: str) -> Any:
        """What stands for a class of the candidate's, always the same."""
        if number not in self._objects:
            self._objects[number] = RemoteClass(self, number, name)
        return self._objects[number]


class RemoteFunction:
    """Stands for a function of the candidate's; without a number, for its entry point."""

    __name__: str

    def __init__(self, candidate: Candidate, number: int | None, name: str) -> None:
        vars(self)["__name__"] = vars(self)["__qualname__"] = name
        vars(self)["_grv_candidate"] = candidate
        vars(self)["_grv_number"] = number

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return or raise what the function does."""
        number = number_of(self)
        request = {} if number is None else {"do": "call", "object": number}
        return vars(self)["_grv_candidate"].ask(args, kwargs, **request)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same function."""
        return isinstance(other, RemoteFunction) and number_of(self) == number_of(other)

    def __hash__(self) -> int:
        return hash(number_of(self))


def number_of(function: RemoteFunction) -> int | None:
    """The number by which the candidate knows a function."""
    number: int | None = vars(function)["_grv_number"]
    return number


class RemoteClass(RemoteFunction):
    """Stands for a class of the candidate's: its attributes and methods, and `isinstance`."""

    def _grv_ask(self, request: str, name: str, *values: Any) -> Any:
        candidate: Candidate = vars(self)["_grv_candidate"]
        return candidate.ask(values, {}, do=request, name=name, object=number_of(self))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._grv_ask("get", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._grv_ask("set", name, value)

    def __delattr__(self, name: str) -> None:
        self._grv_ask("del", name)

    def __instancecheck__(self, value: Any) -> bool:
        if not isinstance(value, (objects.RemoteObject, BaseException)):
            return False
        return bool(self._grv_ask("special", "__instancecheck__", value))

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        """A class cannot be derived: its code is the candidate's."""
        fault = TestFault(f"it derives a class from {self.__name__}, which stays elsewhere")
        raise vars(self)["_grv_candidate"].at_fault(fault)


class RemoteIterator:
    """Stands for an iterator of the candidate's."""

    def __init__(self, candidate: Candidate, number: int) -> None:
        self._candidate = candidate
        self._number = number
        self._items: Iterator[Any] | None = None
        self._error: TypeError | None = None

    def __iter__(self) -> RemoteIterator:
        return self

    def __next__(self) -> Any:
        if self._error is not None:
            error = self._error
            self._error = None
            raise error
        if self._items is not None:
            return next(self._items)
        return _next(self._candidate, self._number)

    def node(self) -> list[Any] | None:
        """The node for the candidate, which knows the iterator; None if it has given all items."""
        return ["j", self._number, ""] if self._items is None else None

    def __length_hint__(self) -> int:
        """The number of items. Only who wants all of them, such as `list`, asks for it.

        Python ignores a TypeError here, so the next item raises it.
        """
        if self._items is not None or self._error is not None:
            return 0
        try:
            items = self._candidate.ask((), {}, do="all", object=self._number)
        except TypeError as exc:
            self._error = exc
            return 0
        if not isinstance(items, list):
            raise AnswerFault("the items of an iterator are not a list")
        self._items = iter(items)
        return len(items)


def _next(candidate: Candidate, number: int) -> Any:
    try:
        return candidate.ask((), {}, do="next", object=number)
    except objects.IteratorEnded:
        raise StopIteration from None


def _generator(candidate: Candidate, number: int) -> Any:
    request = "next"
    sent: tuple[Any, ...] = ()
    while True:
        try:
            item = candidate.ask(sent, {}, do=request, object=number)
        except objects.IteratorEnded as stop:
            return stop.value
        request = "next"
        sent = ()
        try:
            value = yield item
        except Exception as exc:
            request = "throw"
            sent = (exc,)
        else:
            sent = () if value is None else (value,)


async def _coroutine(candidate: Candidate, number: int) -> Any:
    return candidate.ask((), {}, do="await", object=number)


async def _asynchronous(candidate: Candidate, number: int) -> AsyncIterator[Any]:
    while True:
        try:
            item = candidate.ask((), {}, do="anext", object=number)
        except objects.IteratorEnded:
            return
        yield item


def _sent(value: Any) -> Any:
    return kinds.Encoder(_ROOM, _given_back, _is_stand_in).value(value)


def _is_stand_in(kind: type) -> bool:
    return issubclass(kind, objects.RemoteObject)


def _given_back(tag: str, value: Any) -> list[Any] | None:
    """The node of a function or an object that the candidate has returned before."""
    if isinstance(value, objects.RemoteObject):
        return ["O", objects.number_of(value), "object", []]
    if isinstance(value, RemoteFunction) and number_of(value) is not None:
        return ["k", number_of(value), value.__name__]
    return value.node() if isinstance(value, RemoteIterator) else None


def _to_raise(exception: Any) -> BaseException:
    """What the test gets for an exception, so that `try` and `except` work in the test."""
    if not isinstance(exception, BaseException):
        raise plain.PlainError("not an exception")
    if isinstance(exception, _NOT_PASSED_ON) or not isinstance(exception, Exception):
        return RuntimeError(f"the candidate raised {type(exception).__name__}: {exception}")
    return exception


def _change(args: list[Any], after: list[Any]) -> None:
    for old, new in zip(args, after, strict=True):
        if type(old) is not type(new) or isinstance(old, objects.RemoteObject):
            continue
        if isinstance(old, (list, bytearray)) or type(old).__module__ == "array":
            old[:] = new
        elif isinstance(old, (dict, set)):
            old.clear()
            old.update(new)
        elif type(old).__name__ == "deque":
            old.clear()
            old.extend(new)
        elif type(old).__name__ == "SimpleNamespace" or hasattr(old, "__dataclass_fields__"):
            for name in getattr(new, "__dataclass_fields__", None) or vars(new):
                if hasattr(new, name):
                    object.__setattr__(old, name, getattr(new, name))


def define_helpers(prompt: str, namespace: dict[str, Any]) -> None:
    """Define the prompt's helpers, if the prompt is a program or the start of one."""
    for source in (prompt, f"{prompt.rstrip()}\n    pass\n"):
        try:
            code = compile(source, "<prompt>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            continue
        exec(code, namespace)
        return


def task() -> interpreter.Task | None:
    """What the judge requests."""
    order = wire.read(INCOMING)
    return None if order is None else _Test(order)


class _Test(interpreter.Task):
    """A test, run as a program, and its function `check`."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._source: str = order["test"]
        self._script = interpreter.Script("__main__", self._source)
        self.namespace = self._script.namespace
        entry_point = order["entry_point"]
        prompt = order["prompt"]
        self._guard = evaluating.EvaluationGuard(self._source)
        has_objects = order["objects"]
        self._candidate = Candidate(
            entry_point, order["in_place"], has_objects, self.namespace, self._guard
        )
        if has_objects:
            self._proxy = self._candidate.stand_in_of_class(objects.ENTRY, entry_point)
        else:
            self._proxy = RemoteFunction(self._candidate, None, entry_point)
        if order.get("guarded", True):  # not in a rehearsal, which would change the zygote
            self._guard.install()
        error: BaseException | None = None
        try:
            self._define_helpers(prompt)
            self._candidate.shared.update(self.namespace)
            self.namespace[entry_point] = self._proxy
            self._before = self.namespace.get("check")  # the candidate, or one of the helpers
            _seed(order["seed"], prompt + self._source)
            self.program = self._script.compile()
        except BaseException as exc:
            error = exc
        if error is not None:
            wire.write(OUTGOING, {"end": self._verdict(error)})
            raise SystemExit(0)

    def _define_helpers(self, prompt: str) -> None:
        """Define the prompt's helpers, as in the candidate's module."""
        sys.modules["candidate"] = sys.modules["__main__"]
        self.namespace["__name__"] = "candidate"
        define_helpers(prompt, self.namespace)
        self.namespace["__name__"] = "__main__"

    def finish(self, error: BaseException | None) -> int:
        """Call `check`, and report the verdict."""
        if error is None:
            check = self.namespace.get("check")
            try:
                if check is not self._before and callable(check):
                    check(self._proxy)
            except BaseException as exc:
                error = exc
        wire.write(OUTGOING, {"end": self._verdict(error)})
        return 0

    def _verdict(self, error: BaseException | None) -> dict[str, Any]:
        """The verdict and its reason, if the test ended with an error or without one."""
        candidate = self._candidate
        missing = {"not_carried_over": candidate.missing[:10]} if candidate.missing else {}
        error = self._guard.refused or candidate.fault or error
        if isinstance(error, SystemExit) and interpreter.exit_code(error) == 0:
            error = None
        match error:
            case TestFault() | evaluating.EvaluatedAnswer():
                return {"verdict": "broken", "reason": "test at fault", "message": str(error)}
            case AnswerFault():
                message = {"message": str(error)}
                return {"verdict": "failed", "reason": "malformed answer"} | message | missing
            case None if not candidate.answers:
                message = {"message": "the test never called the candidate"}
                return {"verdict": "broken", "reason": "test at fault"} | message
            case None:
                return {"verdict": "passed", "reason": ""}
        found = {"message": _message(error), "line": self._line(error)} | missing
        if any(error is each for each in candidate.raised):
            return {"verdict": "failed", "reason": "exception"} | found
        if not candidate.answers or self._is_own_fault(error):
            return {"verdict": "broken", "reason": "test at fault"} | found
        reason = "test exhausted" if isinstance(error, MemoryError) else "wrong answer"
        return {"verdict": "failed", "reason": reason} | found

    def _line(self, exc: BaseException) -> str:
        """The text of the test's line that raised an exception."""
        line = 0
        for code, number in frames(exc):
            line = number if code.co_filename == self._script.path else line
        lines = self._source.splitlines()
        return lines[line - 1].strip()[:500] if 0 < line <= len(lines) else ""

    def _is_own_fault(self, exc: BaseException) -> bool:
        """Whether the test is at fault, whatever the candidate answered.

        It is if its own code uses a name that it binds nowhere, or imports a missing module. But a
        name can also come from an answer, as in `eval(f(x))`. And a name that only a loop over an
        answer binds is unbound if the answer is empty.
        """
        match exc:
            case SyntaxError():
                return exc.filename == self._script.path
            case UnboundLocalError():
                return False
            case NameError(name=str(name)):
                return self._is_raised_here(exc) and name not in _bound(self._source)
            case ImportError():
                return exc.name is not None and exc.name.split(".")[0] in _imported(self._source)
        return False

    def _is_raised_here(self, exc: BaseException) -> bool:
        """Whether the test's own code raised it, not code that it calls or generates."""
        place = ""
        for code, _ in frames(exc):
            place = code.co_filename
        return place == self._script.path


def _message(exc: BaseException) -> str:
    try:
        return f"{type(exc).__name__}: {exc}"[:500]
    except BaseException:  # too deep, or a class of the test's
        return type(exc).__name__


def _seed(seed: int, source: str) -> None:
    """Make the test's random numbers reproducible."""
    random.seed(seed)
    if "numpy" in source:
        with contextlib.suppress(ImportError):
            importlib.import_module("numpy").random.seed(seed)


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
