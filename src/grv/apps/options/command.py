"""Commands from option families: the flags, their help, and the job file, from the fields.

A command is a function. Its parameters whose type is a family stand for all options of that family;
the others are ordinary parameters of typer.
"""

from __future__ import annotations

import enum
import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import typer

from ...core.errors import UsageError
from ...options import Family, Option, did_you_mean, fill, options_of
from .job import read_job


def command(function: Callable[..., None], *, job: bool = True) -> Callable[..., None]:
    """The function as typer takes it: with one parameter per option, and `--job` unless told."""
    signature = inspect.signature(function, eval_str=True)
    parameters: list[inspect.Parameter] = []
    families: dict[str, type[Family]] = {}
    for each in signature.parameters.values():
        if isinstance(each.annotation, type) and issubclass(each.annotation, Family):
            families[each.name] = each.annotation
            parameters += map(_parameter, options_of(each.annotation).values())
        else:
            parameters.append(each)
    if job:
        parameters.append(_JOB)

    @functools.wraps(function)
    def run(**given: Any) -> None:
        from_job = given.pop("job", None) if job else None
        table = read_job(from_job, function.__name__) if from_job is not None else {}
        values = _merged(families.values(), given, table, from_job, signature.parameters)
        own = {name: values[name] for name in signature.parameters if name in values}
        function(**own, **{name: fill(kind, values) for name, kind in families.items()})

    ordered = sorted(parameters, key=lambda each: not isinstance(each.default, _Argument))
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in ordered]
    )
    run.__annotations__ = {each.name: each.annotation for each in ordered}
    return run


_Argument = type(typer.Argument(None))
_JOB = inspect.Parameter(
    "job",
    inspect.Parameter.KEYWORD_ONLY,
    default=typer.Option(None, metavar="FILE", help="These options in TOML; flags win."),
    annotation=str,
)


def _merged(
    families: Iterable[type[Family]],
    given: Mapping[str, Any],
    table: Mapping[str, Any],
    job: str | None,
    own: Mapping[str, inspect.Parameter],
) -> dict[str, Any]:
    """Flags over the job file."""
    known: dict[str, Option] = {}
    for family in families:
        known |= options_of(family)
    for name, value in table.items():
        if name not in known:
            hint = did_you_mean(name, known)
            raise UsageError(f"{job}: unknown option {name}{hint}")
        try:
            known[name].value(value)
        except UsageError as error:
            raise UsageError(f"{job}: {error}") from error
    flags = {n: v for n, v in given.items() if n in own or v not in (None, [], ())}
    return {**table, **flags}


def _parameter(option: Option) -> inspect.Parameter:
    """The parameter that typer makes a flag, or an argument, of."""
    info = option.info
    kind: Any = option.item
    if info.parse is not None:
        kind = str
    options: dict[str, Any] = {"help": info.help + _default(option), "show_default": False}
    if info.metavar is not None:
        options["metavar"] = info.metavar
    if option.repeatable:
        kind = list[kind]
    made = (
        typer.Argument(None, **options)
        if info.argument
        else typer.Option(None, *_flags(option), **options)
    )
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=made, annotation=kind | None
    )


def _flags(option: Option) -> tuple[str, ...]:
    if option.info.flags:
        return option.info.flags
    name = option.name.replace("_", "-")
    return (f"--{name}/--no-{name}" if option.kind is bool else f"--{name}",)


def _default(option: Option) -> str:
    """What the help says about the default, where there is anything to say."""
    value = option.default
    if option.info.shown is not None:
        shown = option.info.shown
    elif value is None or value == () or value == "" or value is False:
        return ""
    elif isinstance(value, enum.Enum):
        shown = str(value.value)
    elif isinstance(value, float) and math.isinf(value):
        return ""
    elif option.kind is bool:
        shown = _flags(option)[-1].partition("/")[0].lstrip("-")
    else:
        shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f"  [default: {shown}]" if shown else ""
