"""Functions and objects of users as generators, scorers and verifiers; the one way to call them.

A coroutine is awaited. Any other function runs in its own daemon thread. There is no thread pool:
the runtime limits the number of calls, and a call that never returns must not keep the program from
exiting. When a call is cancelled or times out, its thread is abandoned: it continues, unobserved.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ..core.errors import BackendError, GeneratorError, ScorerError, UsageError, VerifierError
from ..core.values import Verdict
from ..files import error_line, shown
from ..own_code import blamed, last_line
from .protocols import Draft, Finding, ParkedCall, Problem, Score, Usage, scored

Made = str | Draft | None
Given = float | Score | None
Answer = bool | Verdict | Finding

_Result = TypeVar("_Result")

# Mistakes in a function, whatever it is given.
_MISTAKES = (NameError, ImportError)
# For a generator also these: it is given the same problem each time. For a scorer, too, until it
# has returned a score.
_LIKELY_MISTAKES = (*_MISTAKES, TypeError, AttributeError)


def processors() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


async def in_thread(function: Callable[[], _Result]) -> _Result:
    """The result of a blocking function. A cancellation abandons the thread."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Callable[[], _Result]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(outcome: Callable[[], _Result]) -> None:
        if not ended.done():  # it may have been cancelled
            ended.set_result(outcome)

    def work() -> None:
        outcome = _outcome(functools.partial(context.run, function))
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=work, name="grv call", daemon=True).start()
    return (await ended)()


def _outcome(function: Callable[[], _Result]) -> Callable[[], _Result]:
    """A function that repeats the result or the exception; futures cannot carry all exceptions."""
    try:
        result = function()
    except BaseException as raised:
        error = raised

        def fail() -> _Result:
            raise error

        return fail
    return lambda: result


async def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """The value that a user's function returns, or the exception that it raises, as a value."""
    bound = functools.partial(_returned, function, *arguments)
    said = bound() if _is_coroutine(function) else await in_thread(bound)
    if not inspect.isawaitable(said):
        return said
    try:
        return await said
    except (Exception, SystemExit) as error:
        return error


def _returned(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also a cancellation that the function itself raises
        return error


def _is_coroutine(function: Callable[..., Any]) -> bool:
    """Whether the function is a coroutine function, or an object with such a method."""
    inner = function.func if isinstance(function, functools.partial) else function
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(
        getattr(inner, "__call__", None)  # noqa: B004
    )


class _Backend:
    """A backend made of a user's function.

    Args:
        function: the function, plain or asynchronous.
        name: its name in messages; that of the function if None.
        strict: whether a result of the wrong type stops the run. Otherwise it concerns one
            candidate.
    """

    _what = ""
    _error: type[BackendError] = BackendError

    def __init__(
        self, function: Callable[..., Any], *, name: str | None = None, strict: bool = False
    ) -> None:
        if not callable(function):
            raise UsageError(f"{self._what} must be callable, not {type(function).__name__}")
        self._function = function
        self._strict = strict
        self._name = name or str(getattr(function, "__qualname__", type(function).__name__))

    def _failed(self, message: str, problem: Problem, *, stops: bool = False) -> BackendError:
        """The error of one call; or of the run, if no call of the function can succeed."""
        return self._error(
            f"{self._name} {message}",
            backend=self._name,
            problem_id=problem.id,
            fault="stop" if stops else "call",
        )

    def _stop_if_mistaken(
        self, said: Any, problem: Problem, mistakes: tuple[type[BaseException], ...] = _MISTAKES
    ) -> None:
        """Stop the run if the function itself is wrong: no candidate can help."""
        if self._strict and isinstance(said, mistakes) and not isinstance(said, UnboundLocalError):
            raise self._failed(raised_text(said), problem, stops=True) from said

    def _check_type(self, is_right: bool, said: Any, expected: str, problem: Problem) -> None:
        """Stop the run if a strict backend's function returned the wrong type."""
        if is_right or not self._strict:
            return
        message = f"returned {shown(said)} of type {type(said).__name__}; expected {expected}"
        raise self._failed(message, problem, stops=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name})"


class CallableGenerator(_Backend):
    """Generates with a function of the problem that returns one text or one `Draft` per call.

    None means that there are no more candidates. Exceptions become a `GeneratorError`.
    """

    batch = 1

    _what = "a generator"
    _error = GeneratorError

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """Up to `n` drafts in sequence; after a failure, the drafts made before it."""
        made: list[Draft] = []
        while len(made) < n:
            try:
                draft = await self._one(problem)
            except GeneratorError as error:
                if made and error.fault != "stop":
                    break  # keep what was made; the next call shows whether the failure lasts
                raise
            if draft is None:
                break
            made.append(draft)
        return made

    async def _one(self, problem: Problem) -> Draft | None:
        started = time.monotonic()
        said = await call(self._function, problem)
        match said:
            case BackendError():
                raise said
            case BaseException():
                stops = isinstance(said, _LIKELY_MISTAKES)
                raise self._failed(raised_text(said), problem, stops=stops) from said
            case Draft() | None:
                return said
            case str():
                return Draft(said, usage=Usage(seconds=time.monotonic() - started))
            case _:
                self._check_type(False, said, "a text, a grv.Draft or None", problem)
                raise self._failed(f"returned {type(said).__name__}, not a text", problem)


class CallableScorer(_Backend):
    """Scores with a function of the problem and a candidate's text.

    The function returns a number, None or a `Score`. If it raises, the draft has no score; but an
    `OSError`, such as a refused connection, or a `ScorerError` is a failure that is retried.
    """

    reads_logprobs = False  # it gets the text only
    _what = "a scorer"
    _error = ScorerError
    _works = False  # whether the function has returned a score

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """One score per draft."""
        return [await self._one(problem, draft) for draft in drafts]

    async def _one(self, problem: Problem, draft: Draft) -> Score:
        started = time.monotonic()
        said = await call(self._function, problem, draft.text)
        self._stop_if_mistaken(said, problem, _MISTAKES if self._works else _LIKELY_MISTAKES)
        self._works = self._works or not isinstance(said, BaseException)
        usage = Usage(seconds=time.monotonic() - started)
        match said:
            case BackendError():
                raise said
            case OSError():
                raise self._failed(raised_text(said), problem) from said
            case BaseException():
                return Score(None, usage, raised_text(said))
            case Score():
                return said
            case _:
                is_number = said is None or hasattr(said, "__float__")
                self._check_type(is_number, said, "a number, None or a grv.scorers.Score", problem)
                return scored(said, usage)


class CallableVerifier(_Backend):
    """Verifies with a function of the problem and a candidate's text.

    The function returns a bool, a `Verdict` or a `Finding`. Anything else, and any exception, is a
    broken finding: it says nothing about the candidate. Several calls may run at once.
    """

    _what = "a verifier"
    _error = VerifierError

    @staticmethod
    def _argument(draft: Draft) -> Any:
        return draft.text

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """The finding of the function."""
        started = time.monotonic()
        said = await call(self._function, problem, self._argument(draft))
        if isinstance(said, ParkedCall) or (isinstance(said, BackendError) and self._strict):
            raise said
        self._stop_if_mistaken(said, problem)
        finding = finding_of(said)
        known = finding is said or isinstance(said, BaseException | Verdict) or _is_bool(said)
        self._check_type(
            known, said, "True, False, a grv.Verdict or a grv.verifiers.Finding", problem
        )
        if finding.usage == Usage():
            finding = replace(finding, usage=Usage(seconds=time.monotonic() - started))
        return finding


def raised_text(error: BaseException) -> str:
    """The exception of a user's function, with the last line of the user's code if it is known."""
    place = blamed(error) or last_line(error)
    return f"raised {error_line(error, named=True)}" + (f" ({place})" if place else "")


def _is_bool(said: Any) -> bool:
    is_numpy = type(said).__module__ == "numpy" and type(said).__name__ in {"bool", "bool_"}
    return isinstance(said, bool) or is_numpy


def finding_of(said: Any) -> Finding:
    """The result of a verifier as a finding."""
    if isinstance(said, Finding):
        return said
    if isinstance(said, BaseException):
        name = type(said).__name__
        evidence = {"exception": name, "detail": error_line(said)}
        return Finding(Verdict.BROKEN, raised_text(said), evidence)
    if isinstance(said, Verdict):
        return Finding(said, f"the function returned {said.value}")
    if _is_bool(said):
        return finding_of(Verdict.PASSED if said else Verdict.FAILED)
    return Finding(Verdict.BROKEN, f"the function returned {type(said).__name__}, not a verdict")


class _PlainGenerator:
    """An object of the user's whose method `generate` is not asynchronous."""

    def __init__(self, target: Any) -> None:
        self.target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self.target, name)

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Any:
        """What the method returns."""
        said = await call(functools.partial(self.target.generate, problem, n, first=first))
        if isinstance(said, BaseException) and not isinstance(said, BackendError):
            stops = isinstance(said, _LIKELY_MISTAKES)
            message = f"{type(self.target).__name__}.generate {raised_text(said)}"
            raise GeneratorError(message, fault="stop" if stops else "call") from said
        return _result(said)


class _PlainScorer:
    """An object of the user's whose method `score` is not asynchronous."""

    def __init__(self, target: Any) -> None:
        self.target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self.target, name)

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Any:
        """What the method returns."""
        said = await call(self.target.score, problem, drafts)
        if isinstance(said, BaseException) and not isinstance(said, BackendError):
            stops = isinstance(said, _MISTAKES)
            message = f"{type(self.target).__name__}.score {raised_text(said)}"
            raise ScorerError(message, fault="stop" if stops else "call", final=True) from said
        return _result(said)


class _PlainVerifier(CallableVerifier):
    """An object of the user's whose method `verify` is not asynchronous."""

    def __init__(self, target: Any) -> None:
        super().__init__(target.verify, strict=True)
        self.target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self.target, name)

    @staticmethod
    def _argument(draft: Draft) -> Any:
        return draft


def _result(said: Any) -> Any:
    """What a function returned, if it did not raise."""
    if isinstance(said, BaseException):
        raise said
    return said


@dataclass(frozen=True)
class _Accepted:
    """What users may give as a generator, scorer or verifier.

    Attributes:
        method: the method of an object that is one.
        takes: the parameters of a function that is one.
        method_takes: the parameters of the method.
        function: wraps a function.
        plain: wraps an object whose method is not asynchronous.
    """

    method: str
    takes: tuple[str, ...]
    method_takes: tuple[str, ...]
    function: Callable[..., Any]
    plain: Callable[[Any], Any]


_ACCEPTED = {
    "generator": _Accepted(
        "generate", ("problem",), ("problem", "n", "*first"), CallableGenerator, _PlainGenerator
    ),
    "scorer": _Accepted(
        "score", ("problem", "text"), ("problem", "drafts"), CallableScorer, _PlainScorer
    ),
    "verifier": _Accepted(
        "verify", ("problem", "text"), ("problem", "draft"), CallableVerifier, _PlainVerifier
    ),
}


def backend_of(given: Any, what: str, *, option: str = "") -> Any:
    """What a Python caller gives as a generator, scorer or verifier, ready for a search.

    It is a function, or an object with the method of the protocol, asynchronous or not. A class
    that needs no arguments is called. A UsageError in one line says what is wrong, before any call.
    """
    kind = _ACCEPTED[what]
    option = option or what
    if isinstance(given, type):
        try:
            inspect.signature(given).bind()
            given = given()
        except (TypeError, ValueError):
            raise UsageError(
                f"{option}={given.__name__} is a class: give an object of it, as in"
                f" {given.__name__}(...)"
            ) from None
    if hasattr(given, kind.method):
        method = getattr(given, kind.method)
        check_signature(method, kind.method_takes, f"{type(given).__name__}.{kind.method}")
        return given if inspect.iscoroutinefunction(method) else kind.plain(given)
    if callable(given):
        name = getattr(given, "__qualname__", type(given).__name__)
        check_signature(given, kind.takes, f"{option}: {name}")
    return kind.function(given, strict=True)


def check_signature(function: Callable[..., Any], takes: Sequence[str], name: str) -> None:
    """Raise a UsageError if a function cannot be called in this way; * marks a keyword."""
    positional = [each for each in takes if not each.startswith("*")]
    named = {each[1:]: each for each in takes if each.startswith("*")}
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin whose signature is unknown
        return
    try:
        signature.bind(*positional, **named)
    except TypeError as error:
        wanted = [*positional, *(f"*, {each}" for each in named)]
        raise UsageError(f"{name} takes {signature}; it must take ({', '.join(wanted)})") from error


def key_of_text(function: Callable[[Problem, str], str | None]) -> Callable[..., str | None]:
    """The user's function of the problem and a text as a function of the problem and a draft.

    A mistake in it stops the run: searches rely on keys.
    """
    if not callable(function):
        raise UsageError(f"key={shown(function)}: give a function of the problem and a text")
    check_signature(function, ("problem", "text"), "key: it")

    def key(problem: Problem, draft: Draft) -> str | None:
        try:
            said = function(problem, draft.text)
        except Exception as error:
            raise UsageError(f"key {raised_text(error)}; it gets the problem and a text") from error
        if said is not None and not isinstance(said, str):
            raise UsageError(
                f"key returned {shown(said)} of type {type(said).__name__}; expected a text or None"
            )
        return said

    return key


def _class_name(backend: object) -> str:
    """The name of the user's class."""
    if isinstance(backend, _PlainGenerator | _PlainScorer | _PlainVerifier):
        backend = backend.target
    return type(backend).__name__


def _is_sequence(said: object) -> bool:
    """Whether a method returned several things in order; a text is one thing."""
    return isinstance(said, Sequence) and not isinstance(said, str | bytes)


def drafts_of(said: Any, generator: object) -> list[Draft]:
    """The drafts that a generator's method returned; texts are drafts too."""
    if isinstance(said, list) or _is_sequence(said):
        drafts = [Draft(each) if isinstance(each, str) else each for each in said]
        if all([isinstance(each, Draft) for each in drafts]):
            return drafts
    raise GeneratorError(
        f"{_class_name(generator)}.generate returned {shown(said)}; expected a list of grv.Draft"
        " or of texts",
        fault="stop",
    )


def scores_of(said: Any, scorer: object) -> list[Score]:
    """The scores that a scorer's method returned; numbers and None are scores too."""
    if isinstance(said, list) or _is_sequence(said):
        plain = [each for each in said if not isinstance(each, Score)]
        if all(each is None or hasattr(each, "__float__") for each in plain):
            return [each if isinstance(each, Score) else scored(each) for each in said]
    raise ScorerError(
        f"{_class_name(scorer)}.score returned {shown(said)}; expected a list with a number or a"
        " grv.scorers.Score for each draft",
        fault="stop",
    )


def checked_finding(said: Any, verifier: object) -> Finding:
    """The finding that a verifier's method returned; a bool or a verdict is one too."""
    if isinstance(said, Finding):
        return said
    if isinstance(said, Verdict) or _is_bool(said):
        return finding_of(said)
    raise VerifierError(
        f"{_class_name(verifier)}.verify returned {shown(said)} of type {type(said).__name__};"
        " expected True, False, a grv.Verdict or a grv.verifiers.Finding",
        fault="stop",
    )
