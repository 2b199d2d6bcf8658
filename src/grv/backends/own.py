"""Generators, scorers and verifiers of the user's own, by name: `my.py:score`.

The name is that of a function, of an object with the method `generate`, `score` or `verify`, or of
a class of such objects, which is then called without arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..core.errors import UsageError
from ..own_code import Code, load, raised
from ..text import checksum
from .callables import CallableGenerator, CallableScorer, CallableVerifier
from .protocols import Draft, Generator, Problem, Scorer, Verifier


def own_generator(spec: str) -> Generator:
    """The generator that a specification names."""
    code = load(spec)
    made: Generator = _made(code, "generate", ("problem",), CallableGenerator)
    return made


def own_scorer(spec: str) -> Scorer:
    """The scorer that a specification names."""
    code = load(spec)
    made: Scorer = _made(code, "score", ("problem", "text"), CallableScorer)
    return made


def own_verifier(spec: str) -> Verifier:
    """The verifier that a specification names. A function's verdict on a text holds for equals."""
    code = load(spec)
    made: Verifier = _made(code, "verify", ("problem", "text"), _KeyedVerifier)
    return made


class _KeyedVerifier(CallableVerifier):
    """A function as a verifier: if a text fails, equal texts fail too."""

    def key(self, problem: Problem, draft: Draft) -> str | None:
        """The class of a draft: those with the same text."""
        return f"text:{checksum(draft.text)}"


def _made(
    code: Code, method: str, arguments: tuple[str, ...], wrap: Callable[..., Any]
) -> Any:  # a generator, a scorer or a verifier
    value = code.value
    if isinstance(value, type):
        try:
            value = value()
        except Exception as error:
            raise UsageError(f"{code.name}: {raised(error)}") from error
    if hasattr(value, method):
        if not inspect.iscoroutinefunction(getattr(value, method)):
            raise UsageError(f"{code.name}: its method {method} must be async def")
        return value
    if not callable(value):
        what = type(value).__name__
        raise UsageError(f"{code.name} is of type {what}; expected a function, or {method}()")
    try:
        inspect.signature(value).bind(*arguments)
    except TypeError as error:
        wanted = f"({', '.join(arguments)})"
        raise UsageError(
            f"{code.name} takes {inspect.signature(value)}; it must take {wanted}"
        ) from error
    except ValueError:  # a builtin whose signature is unknown
        pass
    return wrap(value, name=code.name, strict=True)
