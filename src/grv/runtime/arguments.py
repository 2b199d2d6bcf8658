"""What Python callers give to `solve` and its counterparts, checked before anything is paid for.

Natural forms are accepted: `(1, 10)` or `"1,10"` for costs, `"100"` for a number, a number for a
cascade. Anything else is a UsageError of one line that says what to give.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..backends.callables import key_of_text
from ..backends.protocols import Problem
from ..backends.scorers.auto import AUTO, AutoScorer
from ..core.errors import UsageError
from ..core.limits import Limits
from ..core.pace import Pace
from ..core.values import Cascade
from ..files import shown
from ..parsing import given_costs, given_count, given_number
from ..policies import Fixed
from ..schedules import parse
from .calls import Caller
from .config import SearchConfig
from .options import Calls
from .prices import Meter

_LONGEST_NAME = 60

# What is needed, in the message if it is missing.
NEEDED = {
    "generator": "a function of the problem that returns one text, or grv.generators.OpenAI(...)",
    "verifier": "a function of the problem and a text that returns True or False, or"
    " grv.verifiers.Checks()",
}

# Options of something else, and what to write in their place.
ELSEWHERE = {
    **{each.name: f"calls=grv.runtime.Calls({each.name}=...)" for each in fields(Calls)},
    **{each.name: f"pace=grv.core.Pace({each.name}=...)" for each in fields(Pace)},
    "prices": "meter=grv.prices.Meter(grv.prices.Prices.load(...), model) and"
    " costs=grv.core.Measured(...)",
    "model": "generator=grv.generators.OpenAI(model)",
}


def checked(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a caller has set, each in the form that a search takes."""
    options = {name: given[name] for name in given if given[name] is not defaults.get(name)}
    return {name: _CHECKS[name](value, name) for name, value in options.items()}


def one_problem(given: object) -> Problem:
    """The problem; the id of a prompt is its first line, shortened if it is long."""
    if isinstance(given, Problem):
        check: object = given.check
        if not isinstance(check, Mapping):
            example = "{'kind': 'math', 'answer': '4'}"
            raise UsageError(f"problem {given.id}: check must be a mapping, as in {example}")
        return given
    if not isinstance(given, str):
        raise UsageError(f"give a prompt or a grv.Problem, not {shown(given)}")
    line = given.strip().partition("\n")[0]
    if not line:
        raise UsageError("the prompt is empty: give a text or a grv.Problem")
    title = line if len(line) <= _LONGEST_NAME else f"{line[: _LONGEST_NAME - 3]}..."
    return Problem(title, given)


def many_problems(given: object) -> list[Problem]:
    """The problems of a list, or of anything else that yields them."""
    if isinstance(given, str | Problem):
        raise UsageError("give a list of problems, as in [problem]; grv.solve_now takes one")
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise UsageError(f"give a list of prompts or of grv.Problem, not {shown(given)}")
    return [one_problem(each) for each in given]


def warn_without_limit(config: SearchConfig, total_budget: float, stacklevel: int) -> None:
    """Warn if nothing ends a search that finds no answer."""
    limits = config.limits
    ends = (limits.budget, limits.value, limits.pace.deadline, total_budget)
    policies = [each.policy for each in config.generators.values()]
    if all(map(math.isinf, ends)) and not all(isinstance(each, Fixed) for each in policies):
        warnings.warn(
            "a search without a limit pays until it finds an answer: give budget=, total_budget= or"
            " value=, in the unit of the costs, or pace=grv.core.Pace(deadline=...) in seconds",
            stacklevel=stacklevel + 1,
        )


def _as_given(given: Any, name: str) -> Any:
    return given


def _number(given: Any, name: str) -> float:
    number = given_number(given, name)
    if number < 0:
        raise UsageError(f"{name}={shown(given)}: give a number that is not negative")
    return number


def _width(given: Any, name: str) -> int | None:
    if given is None or given == "all":
        return None
    try:
        return given_count(given, name)
    except UsageError as error:
        raise UsageError(f"{error}, or None for a whole step of the plan") from error


def _by_generator(check: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """The check, for one value or for one by the name of each generator."""

    def each(given: Any, name: str) -> Any:
        if isinstance(given, Mapping):
            return {generator: check(value, name) for generator, value in given.items()}
        return None if given is None else check(given, name)

    return each


def _of_type(kinds: Any, accepted: str) -> Callable[[Any, str], Any]:
    """A check that only these types pass; None stands for the default."""

    def check(given: Any, name: str) -> Any:
        if given is not None and not isinstance(given, kinds):
            called = " (a class: call it)" if isinstance(given, type) else ""
            raise UsageError(f"{name}={shown(given)}{called}: give {accepted}")
        return given

    return check


def _cascade(given: Any, name: str) -> Cascade | None:
    if given is None or isinstance(given, Cascade):
        return given
    try:
        return Cascade(given_count(given, name))
    except UsageError:
        example = "grv.core.Cascade(top=4, cost=0.5)"
        raise UsageError(f"{name}={shown(given)}: give {example}, or the number top") from None


def _generator(given: Any, name: str) -> Any:
    if isinstance(given, list | tuple | set):
        raise UsageError("give several generators by name, as in {'small': ..., 'large': ...}")
    return given


def _scorer(given: Any, name: str) -> Any:
    if isinstance(given, str) and given != AUTO:
        raise UsageError(
            f"{name}={shown(given)}: give 'auto', grv.scorers.Logprob(), or a function of the"
            " problem and a text that returns a number"
        )
    return AutoScorer() if isinstance(given, str) else given


def _ledger(given: Any, name: str) -> Any:
    if given is None or isinstance(given, str | Path) or hasattr(given, "append"):
        return given
    raise UsageError(f"{name}={shown(given)}: give a path, or grv.ledger.open_ledger(...)")


def _key(given: Any, name: str) -> Any:
    return None if given is None else key_of_text(given)


def _names(given: Any, name: str) -> Any:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise UsageError(f"{name}={shown(given)}: give a list of the ids of problems")
    return given if hasattr(given, "__contains__") else frozenset(given)


def _function(given: Any, name: str) -> Any:
    if given is not None and not callable(given):
        raise UsageError(f"{name}={shown(given)}: give a function")
    return given


def _schedule(given: Any, name: str) -> Any:
    if given is None or (hasattr(given, "begin") and not isinstance(given, type)):
        return given
    if not isinstance(given, str):
        called = " (a class: call it)" if isinstance(given, type) else ""
        raise UsageError(
            f"{name}={shown(given)}{called}: give 'least-spent', or grv.schedules.LeastSpent()"
        )
    return parse(given)


_MAPPING = _of_type(Mapping, "a mapping, as in {'temperature': 0.8}")

_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "generator": _generator,
    "scorer": _by_generator(_scorer),
    "verifier": _as_given,
    "policy": _as_given,
    "costs": _by_generator(given_costs),
    "budget": _number,
    "total_budget": _number,
    "value": _number,
    "width": _width,
    "pace": _of_type(Pace, "grv.core.Pace(deadline=60)"),
    "limits": _of_type(Limits, "grv.Limits(budget=500)"),
    "ledger": _ledger,
    "key": _key,
    "keys": _of_type(bool, "True or False; a function is key="),
    "about": _MAPPING,
    "identity": _MAPPING,
    "calls": _of_type(Calls | Caller, "grv.runtime.Calls(concurrency=8)"),
    "second_scorer": _as_given,
    "cascade": _cascade,
    "most": _by_generator(given_costs),
    "meter": _by_generator(_of_type(Meter, "grv.prices.Meter(prices, model)")),
    "answers": given_count,
    "past": _as_given,
    "at_once": given_count,
    "skip": _names,
    "progress": _function,
    "schedule": _schedule,
    "run_deadline": _number,
}
