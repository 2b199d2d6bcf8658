"""Backends by name, as on the command line: `openai:MODEL`, `logprob`, `my.py:score`.

`my.py:score` is the user's own code: a function, an object with the method `generate`, `score` or
`verify`, or a class of such objects, which is then called without arguments. A name that is not in
the tables may be that of a plugin. It is the same kind of code; a class gets what follows the
colon.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container
from typing import Any

from .. import plugins
from ..core.errors import UsageError
from ..own_code import FORM, Code, check_command, is_code, is_command, load, raised
from ..text import checksum
from .callables import CallableGenerator, CallableScorer, CallableVerifier, check_signature
from .generators import GENERATORS, INSTEAD_OF, GeneratorOptions
from .generators.sampling import NEWER, Sampling
from .http.web import without_secrets
from .protocols import Draft, Generator, Problem, Scorer, Verifier
from .scorers import SCORERS, ScorerOptions
from .scorers.reward_options import Reward
from .table import find


def generator(
    spec: str,
    *,
    base_url: str | None = None,
    sampling: Sampling | None = None,
    logprobs: bool = True,
    batch: int | None = None,
) -> Generator:
    """The generator that a specification names.

    Raises:
        UsageError: there is none of that name, or this machine cannot run it.
    """
    if code_of("generators", spec) is not None:
        if sampling is not None and (unused := sampling.changed(NEWER)):
            flag = unused[0].replace("_", "-")
            raise UsageError(f"--{flag} needs openai:MODEL; {spec} does not read it")
        return own_generator(spec)
    name = spec.partition(":")[0].strip().casefold()
    if name in INSTEAD_OF:
        raise UsageError(f"for {name}, write --generator {INSTEAD_OF[name]}")
    entry, argument = find(spec, GENERATORS, "generator")
    if is_command(spec):
        check_command(spec)
    return entry.make(argument, GeneratorOptions(base_url, sampling, logprobs, batch))


def reads_messages(spec: str) -> bool:
    """Whether a generator reads chats; an unknown one is refused when it is made."""
    entry = GENERATORS.get(spec.partition(":")[0])
    if entry is None:
        return code_of("generators", spec) is not None
    return not entry.for_chats


def scorer(
    spec: str,
    *,
    base_url: str | None = None,
    model: str | None = None,
    step: str = "",
    reward: Reward = Reward(),  # noqa: B008 (a frozen value)
) -> Scorer:
    """The scorer that a specification names; the options are those of `ScorerOptions`.

    Raises:
        UsageError: there is none of that name, or this machine cannot run it.
    """
    if code_of("scorers", spec) is not None:
        return own_scorer(spec)
    entry, argument = find(spec, SCORERS, "score")
    return entry.make(argument, ScorerOptions(base_url, model, step, reward))


def named(spec: str) -> str:
    """A specification as ledgers store it: addresses without secrets, code without folders."""
    if is_code(spec):
        return load(spec).name
    name, colon, argument = spec.strip().partition(":")
    entry = SCORERS.get(name)
    if entry is None or entry.recorded is None:
        return without_secrets(spec)
    recorded = entry.recorded(argument)
    return f"{name}{colon}{recorded}" if recorded else name


_TABLES: dict[plugins.Group, Container[str]] = {
    "generators": GENERATORS,
    "scorers": SCORERS,
    "verifiers": (),  # checks are named in problems, verifiers on the command line
}


def code_of(group: plugins.Group, spec: str) -> Code | None:
    """The user's own code or the plugin that a specification names; None if it names neither.

    Raises:
        UsageError: it names one that cannot be used.
    """
    if is_code(spec):
        return load(spec)
    name = spec.strip().partition(":")[0]
    return None if name in _TABLES[group] else plugins.load(group, name)


def own_generator(spec: str) -> Generator:
    """The generator that a specification names."""
    made: Generator = _made("generators", spec, "generate", ("problem",), CallableGenerator)
    return made


def own_scorer(spec: str) -> Scorer:
    """The scorer that a specification names."""
    made: Scorer = _made("scorers", spec, "score", ("problem", "text"), CallableScorer)
    return made


def own_verifier(spec: str) -> Verifier:
    """The verifier that a specification names. A function's verdict on a text holds for equals."""
    if code_of("verifiers", spec) is None:
        raise UsageError(
            f"--verifier {spec}: write {FORM}, as in my.py:is_right, or the name of a plugin"
        )
    made: Verifier = _made("verifiers", spec, "verify", ("problem", "text"), _KeyedVerifier)
    return made


class _KeyedVerifier(CallableVerifier):
    """A function as a verifier: if a text fails, equal texts fail too."""

    def key(self, problem: Problem, draft: Draft) -> str | None:
        """The class of a draft: those with the same text."""
        return f"text:{checksum(draft.text)}"


def _made(
    group: plugins.Group,
    spec: str,
    method: str,
    arguments: tuple[str, ...],
    wrap: Callable[..., Any],
) -> Any:  # a generator, a scorer or a verifier
    code = code_of(group, spec)
    assert code is not None, f"{spec} is in a table"
    _, colon, argument = ("", "", "") if is_code(spec) else spec.strip().partition(":")
    value = code.value
    if isinstance(value, type):
        try:
            value = value(argument) if colon else value()
        except Exception as error:
            raise UsageError(f"{code.name}: {raised(error)}") from error
    elif colon:
        raise UsageError(f"{code.name} takes nothing after it: write {code.name}, not {spec}")
    if hasattr(value, method):
        if not inspect.iscoroutinefunction(getattr(value, method)):
            raise UsageError(f"{code.name}: its method {method} must be async def")
        return value
    if not callable(value):
        what = type(value).__name__
        raise UsageError(f"{code.name} is of type {what}; expected a function, or {method}()")
    check_signature(value, arguments, code.name)
    return wrap(value, name=code.name, strict=True)
