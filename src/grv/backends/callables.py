"""Any function as a verifier."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from ..core.errors import UsageError
from ..core.values import Verdict
from .protocols import Draft, Finding, Problem, Usage

Answer = bool | Verdict | Finding
_SHOWN = 500  # characters of an exception's message


class CallableVerifier:
    """Gives the verdict of a function of a problem and a candidate's text.

    The function says True or False, a `Verdict` or a `Finding`; it may be a coroutine. A plain one
    runs in a thread, several at once. Whatever it raises, and whatever else it says, is a finding
    that is broken: it proves nothing about the candidate.
    """

    def __init__(self, function: Callable[[Problem, str], Answer | Awaitable[Answer]]) -> None:
        if not callable(function):
            raise UsageError(f"a verifier must be callable, not {type(function).__name__}")
        self._function = function
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004
        )

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """The finding of the function."""
        started = time.monotonic()
        if self._is_async:
            said = self._call(problem, draft.text)
        else:
            said = await asyncio.to_thread(self._call, problem, draft.text)
        if inspect.isawaitable(said):
            said = await _outcome(said)
        finding = _finding(said)
        if finding.usage == Usage():
            finding = replace(finding, usage=Usage(seconds=time.monotonic() - started))
        return finding

    def _call(self, problem: Problem, text: str) -> Any:
        # A user's function may raise anything; that says nothing about the candidate.
        try:
            return self._function(problem, text)
        except Exception as exc:
            return _broken(exc)


async def _outcome(said: Awaitable[Any]) -> Any:
    try:
        return await said
    except Exception as exc:
        return _broken(exc)


def _broken(exc: Exception) -> Finding:
    name = type(exc).__name__
    return Finding(Verdict.BROKEN, f"raised {name}", {"exception": name, "detail": _text(exc)})


def _text(exc: Exception) -> str:
    try:
        return str(exc)[:_SHOWN]
    except Exception:  # its __str__ is the user's too
        return ""


def _finding(said: Any) -> Finding:
    """What the function said, as a finding."""
    if isinstance(said, Finding):
        return said
    if isinstance(said, Verdict):
        return Finding(said, f"the function said {said.value}")
    is_numpy = type(said).__module__ == "numpy" and type(said).__name__ in {"bool", "bool_"}
    if isinstance(said, bool) or is_numpy:
        return _finding(Verdict.PASSED if said else Verdict.FAILED)
    return Finding(Verdict.BROKEN, f"the function said neither: {type(said).__name__}")
