"""Any Python function as a generator or as a scorer, and the plainest score there is: length."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ..core.errors import BackendError, GeneratorError, ScorerError, UsageError
from .protocols import Draft, Problem, Score, Usage, scored
from .threads import in_thread

Made = str | Draft | None
Given = float | Score | None


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
        said = await _said(functools.partial(self._function, problem))
        match said:
            case BackendError():
                raise said
            case BaseException():
                raise self._error(f"raised {_told(said)}", problem) from said
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
        said = await _said(functools.partial(self._function, problem, draft.text))
        usage = Usage(seconds=time.monotonic() - started)
        match said:
            case BackendError():
                raise said
            case OSError():
                name = _name(self._function)
                message = f"{name} raised {_told(said)}"
                raise ScorerError(message, backend=name, problem_id=problem.id) from said
            case BaseException():
                return Score(None, usage, f"raised {_told(said)}")
            case Score():
                return said
            case _:
                return scored(said, usage)


class LengthScorer:
    """Shorter texts first, or longer ones. Counts characters; an empty text has no score."""

    def __init__(self, *, longer: bool = False) -> None:
        self.longer = longer

    def __repr__(self) -> str:
        return f"LengthScorer(longer={self.longer})"

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """One score a draft."""
        return [self._score(draft.text) for draft in drafts]

    def _score(self, text: str) -> Score:
        if not text.strip():
            return Score(None, reason="the text is empty")
        return Score(float(len(text) if self.longer else -len(text)))


async def _said(call: Callable[[], Any]) -> Any:
    """What a user's function returns, or the exception that it raises.

    A user's function may raise anything; here it becomes a value, so that it can be translated.
    """
    made = functools.partial(_returned, call)
    said = made() if _is_coroutine(call) else await in_thread(made)
    if not inspect.isawaitable(said):
        return said
    try:
        return await said
    except (Exception, SystemExit) as error:
        return error


def _returned(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (Exception, SystemExit) as error:
        return error


def _is_coroutine(call: Callable[[], Any]) -> bool:
    function = call.func if isinstance(call, functools.partial) else call
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 (whether calling it makes a coroutine)
    )


def _checked(function: Callable[..., Any], what: str) -> Callable[..., Any]:
    if not callable(function):
        raise UsageError(f"{what} must be callable, not {type(function).__name__}")
    return function


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))


def _told(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:300]
    except Exception:  # its __str__ is the user's too
        return type(error).__name__
