"""Plain functions as generators, scorers and verifiers, and the one way to call them.

A coroutine is awaited. Any other function runs in a daemon thread of its own. There is no pool: the
runtime limits how many calls are in flight, and a call that never returns must not keep the program
from exiting. When a call is cancelled or takes too long, its thread is abandoned: it goes on, and
nobody waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ..core.errors import BackendError, GeneratorError, ScorerError, UsageError
from ..core.values import Verdict
from ..files import error_line
from .protocols import Draft, Finding, Problem, Score, Usage, scored

Made = str | Draft | None
Given = float | Score | None
Answer = bool | Verdict | Finding

_Result = TypeVar("_Result")


async def in_thread(function: Callable[[], _Result]) -> _Result:
    """The result of a blocking function. When cancelled, the thread is abandoned."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Callable[[], _Result]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(outcome: Callable[[], _Result]) -> None:
        if not ended.done():  # cancelled meanwhile
            ended.set_result(outcome)

    def work() -> None:
        outcome = _outcome(functools.partial(context.run, function))
        with contextlib.suppress(RuntimeError):  # the loop is closed: the caller is gone
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=work, name="grv call", daemon=True).start()
    return (await ended)()


def _outcome(function: Callable[[], _Result]) -> Callable[[], _Result]:
    """What returns or raises what the function does; a future cannot carry every exception."""
    try:
        result = function()
    except BaseException as raised:
        error = raised

        def fail() -> _Result:
            raise error

        return fail
    return lambda: result


async def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a user's function returns, or the exception that it raises, as a value."""
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
    except BaseException as error:  # also a cancellation that nobody asked for
        return error


def _is_coroutine(function: Callable[..., Any]) -> bool:
    """Whether calling the function makes a coroutine."""
    inner = function.func if isinstance(function, functools.partial) else function
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(
        getattr(inner, "__call__", None)  # noqa: B004
    )


def _checked(function: Callable[..., Any], what: str) -> Callable[..., Any]:
    if not callable(function):
        raise UsageError(f"{what} must be callable, not {type(function).__name__}")
    return function


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))


class CallableGenerator:
    """Makes candidates with a function of the problem that gives one text, or one draft, a call.

    It may be a coroutine; a plain function runs in a thread. None means that there are no more.
    Whatever it raises is a `GeneratorError`; one it raises itself is left as it is.
    """

    batch = 1

    def __init__(self, function: Callable[[Problem], Made | Awaitable[Made]]) -> None:
        self._function = _checked(function, "a generator")

    def __repr__(self) -> str:
        return f"CallableGenerator({_name(self._function)})"

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """Up to `n` drafts, one after the other; where one fails, those before it."""
        made: list[Draft] = []
        while len(made) < n:
            try:
                draft = await self._one(problem)
            except GeneratorError:
                if made:
                    break  # what was made is kept; the failure will come again, or will not
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
                raise self._error(f"raised {error_line(said, named=True)}", problem) from said
            case Draft() | None:
                return said
            case str():
                return Draft(said, usage=Usage(seconds=time.monotonic() - started))
            case _:
                raise self._error(f"gave {type(said).__name__}, not a text", problem)

    def _error(self, message: str, problem: Problem) -> GeneratorError:
        name = _name(self._function)
        return GeneratorError(f"{name} {message}", backend=name, problem_id=problem.id)


class CallableScorer:
    """Scores with a function of the problem and a candidate's text.

    It gives a number, or None, or a `Score`; it may be a coroutine; a plain function runs in a
    thread. A draft that it raises at has no score. A failure to reach somebody (an `OSError`) and a
    `ScorerError` of its own are failures of the scorer, to be tried again.
    """

    def __init__(self, function: Callable[[Problem, str], Given | Awaitable[Given]]) -> None:
        self._function = _checked(function, "a scorer")

    def __repr__(self) -> str:
        return f"CallableScorer({_name(self._function)})"

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """One score a draft."""
        return [await self._one(problem, draft) for draft in drafts]

    async def _one(self, problem: Problem, draft: Draft) -> Score:
        started = time.monotonic()
        said = await call(self._function, problem, draft.text)
        usage = Usage(seconds=time.monotonic() - started)
        match said:
            case BackendError():
                raise said
            case OSError():
                name = _name(self._function)
                message = f"{name} raised {error_line(said, named=True)}"
                raise ScorerError(message, backend=name, problem_id=problem.id) from said
            case BaseException():
                return Score(None, usage, f"raised {error_line(said, named=True)}")
            case Score():
                return said
            case _:
                return scored(said, usage)


class CallableVerifier:
    """Gives the verdict of a function of a problem and a candidate's text.

    The function says True or False, a `Verdict` or a `Finding`; it may be a coroutine. A plain one
    runs in a thread, several at once. Whatever it raises, and whatever else it says, is a finding
    that is broken: it proves nothing about the candidate.
    """

    def __init__(self, function: Callable[[Problem, str], Answer | Awaitable[Answer]]) -> None:
        self._function = _checked(function, "a verifier")

    def __repr__(self) -> str:
        return f"CallableVerifier({_name(self._function)})"

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """The finding of the function."""
        started = time.monotonic()
        finding = _finding(await call(self._function, problem, draft.text))
        if finding.usage == Usage():
            finding = replace(finding, usage=Usage(seconds=time.monotonic() - started))
        return finding


def _finding(said: Any) -> Finding:
    """What the function said, as a finding."""
    if isinstance(said, Finding):
        return said
    if isinstance(said, BaseException):
        name = type(said).__name__
        evidence = {"exception": name, "detail": error_line(said)}
        return Finding(Verdict.BROKEN, f"raised {name}", evidence)
    if isinstance(said, Verdict):
        return Finding(said, f"the function said {said.value}")
    is_numpy = type(said).__module__ == "numpy" and type(said).__name__ in {"bool", "bool_"}
    if isinstance(said, bool) or is_numpy:
        return _finding(Verdict.PASSED if said else Verdict.FAILED)
    return Finding(Verdict.BROKEN, f"the function said neither: {type(said).__name__}")
