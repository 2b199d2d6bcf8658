"""Commands from options: the flags, their help and the job file come from one definition.

A command is a function. A parameter whose default is an `option` is one option. A parameter whose
type is a family stands for all options of that family. A parameter of type `list[Family]` stands
for the runs of a job file: one run per table `[runs.NAME]`, or a single run without a name. The
family may give these tables another name, in its attribute `TABLES`.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import math
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import typer
import typer.core

from ... import plugins
from ...core.errors import UsageError
from ...options import Family, Option, did_you_mean, fill, is_family, make_option, options_of
from ...own_code import allow, is_command, named_in
from .all_commands import COMMANDS
from .job import ALLOW, RUNS, Table, read_job, runs_of

_NAMED = re.compile(r"([\w.-]+)=(.*)", re.DOTALL)  # the value of an option for one of several


def command(function: Callable[..., None]) -> Callable[..., None]:
    """The function as typer takes it, with one parameter per option."""
    shape = Shape.of(function)
    parameters = [
        _parameter(each, many=each.info.named in shape.known)
        for each in shape.known.values()
        if not each.info.job_only
    ]

    @functools.wraps(function)
    def run(**given: Any) -> None:
        function(**shape.arguments(given))

    required = {each.name for each in shape.known.values() if each.required}

    def place(each: inspect.Parameter) -> tuple[bool, bool]:
        return not isinstance(each.default, _Argument), each.name not in required

    ordered = sorted(parameters, key=place)
    run.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in ordered}
    return run


_Argument = type(typer.Argument(None))
_ESSENTIAL = "Essential"
_OTHERS = "Options"
_FIRST = ("Arguments", _ESSENTIAL, _OTHERS)  # sections; the others follow in any order


class AsGiven:
    """A command whose parameters take the words as they are: `Option.value` reads and checks them.

    Otherwise typer would load pydantic, to turn texts into texts.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with that of the help."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if not parameter.required:
                parameter.process_value = functools.partial(_as_given, parameter)
        return parameters


def _as_given(parameter: Any, context: Any, value: Any) -> Any:
    """The value of a parameter, which may act on it, as that of the help does."""
    if parameter.callback is not None:
        value = parameter.callback(context, parameter, value)
    return value


class Sections(AsGiven, typer.core.TyperCommand):
    """A command whose help lists the options in sections."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write each section."""
        for name, rows in sections_of(self, ctx).items():
            with formatter.section(name):
                formatter.write_dl(rows)


class Group(AsGiven, typer.core.TyperGroup):
    """Commands of a command; what each is for is not cut."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the first sentence of each."""
        rows = [(name, each.get_short_help_str(1000)) for name, each in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def sections_of(command: Any, context: Any) -> dict[str, list[tuple[str, str]]]:
    """What the help lists: arguments, essential options, those of no family, and each family."""
    sections: dict[str, list[tuple[str, str]]] = {name: [] for name in _FIRST}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            # Newer versions of typer write the type of an argument behind it: all are texts.
            record = (re.sub(r" <(str|list\[str\])>$", "", record[0]), record[1])
            section = getattr(parameter, "rich_help_panel", None) or _OTHERS
            sections.setdefault(section, []).append(record)
    return {name: rows for name, rows in sections.items() if rows}


def arguments_of(function: Callable[..., None], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that a command calls its function with, for these flags."""
    return shape_of(function).arguments(given)


def shape_of(function: Callable[..., None]) -> Shape:
    """The parameters of a command."""
    return Shape.of(inspect.unwrap(function))


@dataclass(frozen=True)
class Shape:
    """The parameters of a command: single options, families, and the family of runs."""

    name: str
    known: Mapping[str, Option]
    single: Mapping[str, Option]
    families: Mapping[str, type[Family]]
    runs: Mapping[str, type[Family]]

    @classmethod
    def of(cls, function: Callable[..., None]) -> Shape:
        """Read them from the signature."""
        options: dict[str, Option] = {}
        single: dict[str, Option] = {}
        families: dict[str, type[Family]] = {}
        runs: dict[str, type[Family]] = {}
        for parameter in inspect.signature(function, eval_str=True).parameters.values():
            hint = parameter.annotation
            if is_family(hint):
                families[parameter.name] = hint
                options |= options_of(hint)
            elif typing.get_origin(hint) is list and is_family(typing.get_args(hint)[0]):
                runs[parameter.name] = typing.get_args(hint)[0]
                options |= options_of(runs[parameter.name])
            else:
                option = make_option(parameter.default, parameter.name, hint)
                assert option is not None, f"{parameter.name} is no option"
                single[parameter.name] = options[parameter.name] = option
        return cls(function.__name__.rstrip("_"), options, single, families, runs)

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of the function: flags over the job file over the defaults."""
        flags = {
            name: self.known[name].value(value)
            for name, value in self._by_name(given).items()
            if value is not None and value != []
        }
        self._allow_code(flags)
        job = flags.get("job") if "job" in self.known else None
        table = (
            {}
            if job is None
            else read_job(job, self.name, self._by_job_name, COMMANDS.keys() - {RUNS})
        )
        tables = {"": table}
        for family in self.runs.values():
            tables = runs_of(job, table, getattr(family, "TABLES", RUNS))
        checked = {name: self._checked(each, job) for name, each in tables.items()}
        for values_of_run in checked.values():
            self._allow_code({n: v for n, v in values_of_run.items() if n not in flags}, job, flags)
        values = {name: each | flags for name, each in checked.items()}
        first = next(iter(values.values()))
        result = {name: _single(option, first) for name, option in self.single.items()}
        result |= {name: fill(family, first) for name, family in self.families.items()}
        for name, family in self.runs.items():
            result[name] = [
                dataclasses.replace(fill(family, each), name=run)  # type: ignore[call-arg]
                for run, each in values.items()
            ]
        return result

    def _by_name(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The flags, with those given as NAME=VALUE in the tables of their names."""
        values = dict(given)
        for name, option in self.known.items():
            if option.info.named not in self.known or not isinstance(given.get(name), list):
                continue
            tables = values.get(option.info.named) or {}
            matches = [(text, _NAMED.fullmatch(text)) for text in given[name]]
            for _, match in matches:
                own = tables.setdefault(match[1], {}) if match else {}
                if match and option.job_name in own:
                    raise UsageError(f"{option.flag} {match[1]}: given twice")
                own |= {option.job_name: match[2]} if match else {}
            plain = [text for text, match in matches if match is None]
            values[name] = plain[-1] if plain else None
            if tables:
                values[option.info.named] = tables
        return values

    def _allow_code(
        self, values: Table, job: str | None = None, flags: Mapping[str, Any] | None = None
    ) -> None:
        """Let the user's own code be loaded. A job file may name code only if a flag allows it."""
        for name, value in values.items():
            texts = getattr(value, "specs", value if isinstance(value, tuple) else (value,))
            for text in texts if self.known[name].info.code else ():
                runs = "a program" if is_command(text) else "code" if named_in(text) else ""
                if job is not None and runs and not (flags or {}).get(ALLOW):
                    raise UsageError(
                        f"{job}: {self.known[name].job_name} names {runs}, {text}, which runs with"
                        " your rights; if you trust it, give --allow-commands on the command line"
                    )
                allow(text)
                plugins.allow(text)

    @property
    def _by_job_name(self) -> dict[str, Option]:
        return {option.job_name: option for option in self.known.values() if option.name != "job"}

    def _checked(self, table: Table, job: str | None) -> Table:
        """The options of a job file, by name, if they exist and fit."""
        options = self._by_job_name
        values = {}
        for name, value in table.items():
            if name not in options:
                hint = did_you_mean(name, list(options))
                raise UsageError(f"{job}: unknown option {name}{hint}")
            try:
                values[options[name].name] = options[name].value(value)
            except UsageError as error:
                raise UsageError(f"{job}: {error}") from error
        return values


def _single(option: Option, given: Mapping[str, Any]) -> Any:
    if option.name not in given:
        if option.required:
            raise option.missing()
        return option.default
    value = option.value(given[option.name])
    option.check(value)
    return value


def _parameter(option: Option, *, many: bool = False) -> inspect.Parameter:
    """The parameter from which typer makes a flag or an argument."""
    info = option.info
    more: dict[str, Any] = {"help": info.help + _default(option), "show_default": False}
    more["rich_help_panel"] = _section(option)
    kind: Any = bool if option.kind is bool else str
    if kind is str:
        more["metavar"] = option.metavar
    if option.repeatable or many:
        kind = list[str]
    made = (
        typer.Argument(None, **more)
        if info.argument
        else typer.Option(None, *_flags(option), **more)
    )
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=made, annotation=kind | None
    )


def _section(option: Option) -> str:
    """Where the help of a command lists an option."""
    if option.info.argument:
        return "Arguments"
    is_first = option.info.essential or option.required
    return _ESSENTIAL if is_first else option.title or _OTHERS


def _flags(option: Option) -> tuple[str, ...]:
    if option.info.flags:
        return option.info.flags
    name = option.name.replace("_", "-")
    return (f"--{name}/--no-{name}" if option.kind is bool else f"--{name}",)


def _default(option: Option) -> str:
    """What the help says about the default, if there is anything to say."""
    value = option.default
    shown = option.info.shown
    if shown is None:
        if option.required:
            return "" if option.info.argument else "  [required]"
        if value is None or value is False or value in ((), "", math.inf):
            return ""
        if isinstance(value, enum.Enum):
            shown = str(value.value)
        elif option.kind is bool:
            shown = _flags(option)[-1].partition("/")[0].lstrip("-")
        else:
            shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f"  [default: {shown}]" if shown else ""
