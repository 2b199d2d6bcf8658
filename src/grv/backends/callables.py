"""Plain functions as generators, scorers and verifiers, and the one way to call them.

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
from dataclasses import replace
from typing import Any, TypeVar

from ..core.errors import BackendError, GeneratorError, ScorerError, UsageError, VerifierError
from ..core.values import Verdict
from ..files import error_line, shown
from ..own_code import blamed
from .protocols import Draft, Finding, Problem, Score, Usage, scored

Made = str | Draft | None
Given = float | Score | None
Answer = bool | Verdict | Finding

_Result = TypeVar("_Result")


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
        self._function, self._strict = function, strict
        self._name = name or str(getattr(function, "__qualname__", type(function).__name__))

    def _failed(self, message: str, problem: Problem) -> BackendError:
        return self._error(f"{self._name} {message}", backend=self._name, problem_id=problem.id)

    def _check_type(self, is_right: bool, said: Any, expected: str, problem: Problem) -> None:
        """Stop the run if a strict backend's function returned the wrong type."""
        if is_right or not self._strict:
            return
        raise self._error(
            f"{self._name} returned {shown(said)} of type {type(said).__name__}; expected"
            f" {expected}",
            problem_id=problem.id,
            fault="stop",
        )

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
            except GeneratorError:
                if made:
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
                raise self._failed(_raised(said), problem) from said
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

    _what = "a scorer"
    _error = ScorerError

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """One score per draft."""
        return [await self._one(problem, draft) for draft in drafts]

    async def _one(self, problem: Problem, draft: Draft) -> Score:
        started = time.monotonic()
        said = await call(self._function, problem, draft.text)
        usage = Usage(seconds=time.monotonic() - started)
        match said:
            case BackendError():
                raise said
            case OSError():
                raise self._failed(_raised(said), problem) from said
            case BaseException():
                return Score(None, usage, _raised(said))
            case Score():
                return said
            case _:
                is_number = said is None or hasattr(said, "__float__")
                self._check_type(is_number, said, "a number, None or a grv.Score", problem)
                return scored(said, usage)


class CallableVerifier(_Backend):
    """Verifies with a function of the problem and a candidate's text.

    The function returns a bool, a `Verdict` or a `Finding`. Anything else, and any exception, is a
    broken finding: it says nothing about the candidate. Several calls may run at once.
    """

    _what = "a verifier"
    _error = VerifierError

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """The finding of the function."""
        started = time.monotonic()
        said = await call(self._function, problem, draft.text)
        if isinstance(said, BackendError) and self._strict:
            raise said
        finding = _finding(said)
        known = finding is said or isinstance(said, BaseException | Verdict) or _is_bool(said)
        self._check_type(known, said, "True, False, a grv.Verdict or a grv.Finding", problem)
        if finding.usage == Usage():
            finding = replace(finding, usage=Usage(seconds=time.monotonic() - started))
        return finding


def _raised(error: BaseException) -> str:
    """The exception of a user's function, with the line of the user's file if that is known."""
    place = blamed(error)
    return f"raised {error_line(error, named=True)}" + (f" ({place})" if place else "")


def _is_bool(said: Any) -> bool:
    is_numpy = type(said).__module__ == "numpy" and type(said).__name__ in {"bool", "bool_"}
    return isinstance(said, bool) or is_numpy


def _finding(said: Any) -> Finding:
    """The function's result as a finding."""
    if isinstance(said, Finding):
        return said
    if isinstance(said, BaseException):
        name = type(said).__name__
        evidence = {"exception": name, "detail": error_line(said)}
        reason = _raised(said) if blamed(said) else f"raised {name}"
        return Finding(Verdict.BROKEN, reason, evidence)
    if isinstance(said, Verdict):
        return Finding(said, f"the function returned {said.value}")
    if _is_bool(said):
        return _finding(Verdict.PASSED if said else Verdict.FAILED)
    return Finding(Verdict.BROKEN, f"the function returned {type(said).__name__}, not a verdict")
