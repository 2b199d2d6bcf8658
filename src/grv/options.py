"""Options as fields of dataclasses: one definition serves commands, job files and Python.

A *family* is a frozen dataclass that inherits from `Family`. `option` makes each field, with its
help text, its flags and its limits beside the type and the default. A family may contain families.

    >>> @dataclass(frozen=True)
    ... class Sampling(Family):
    ...     temperature: float = option(0.7, "Randomness of the tokens.", least=0)
    >>> Sampling(temperature=-1)
    Traceback (most recent call last):
    grv.core.errors.UsageError: --temperature -1: give a number of at least 0
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
import functools
import inspect
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .core.errors import UsageError

_LONGEST = 200  # characters of a value in a message
_LONGEST_NAME = 200  # characters of a name that may be a misspelling
MOST = 1_000_000  # a limit for counts: more would not end, or not fit into memory

_INFO = "option"
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


@dataclass(frozen=True)
class Info:
    """What a field says about its option.

    Attributes:
        help: what it is for, in a sentence.
        flags: its spellings on the command line; `--name-of-the-field` if empty.
        metavar: what stands for the value in the help; by the type if None.
        least: the smallest number allowed.
        most: the largest number allowed.
        parse: makes the value from text, or from a table of a job file. It raises a UsageError that
            says what is wrong, without the option's name.
        shown: how the help shows the default; as text if None.
        argument: whether it is given by position.
        job_only: whether only job files and Python can give it.
        tables: whether `parse` also takes tables of a job file.
        code: whether its value may name code of the user, as FILE.py:NAME.
        named: the option with tables by name, where a command has it: `--costs small=1,10` is then
            `costs` in the table `small`.
        essential: whether the help of a command shows it first.
    """

    help: str
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    parse: Callable[[Any], Any] | None = None
    shown: str | None = None
    argument: bool = False
    job_only: bool = False
    tables: bool = False
    code: bool = False
    named: str = ""
    essential: bool = False


def option(default: Any, help: str, *flags: str, **more: Any) -> Any:
    """A field of a family, or a parameter of a command; `more` as in `Info`.

    With `...` as its default, the option is required.
    """
    start = {} if default is ... else {"default": default}
    return field(**start, metadata={_INFO: Info(help, flags, **more)})


@dataclass(frozen=True)
class Option:
    """One option: its field, resolved; and the title of its family."""

    name: str
    hint: Any
    default: Any  # dataclasses.MISSING if it is required
    info: Info
    title: str = ""

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is dataclasses.MISSING

    @property
    def kind(self) -> Any:
        """The type, without `| None`."""
        return _without_none(self.hint)

    @property
    def flag(self) -> str:
        """How messages name it."""
        if self.info.argument:
            return self.metavar
        if self.info.job_only:
            return self.name
        flags = self.info.flags or (f"--{self.name.replace('_', '-')}",)
        return next((flag for flag in flags if flag.startswith("--")), flags[0]).partition("/")[0]

    @property
    def job_name(self) -> str:
        """Its name in job files: that of its flag."""
        return self.name if self.info.argument else self.flag.lstrip("-").replace("-", "_")

    @property
    def metavar(self) -> str:
        """What stands for its value in the help."""
        if self.info.metavar is not None:
            return self.info.metavar
        if isinstance(self.item, type) and issubclass(self.item, enum.Enum):
            return "|".join(str(each.value) for each in self.item)
        return {int: "N", float: "X"}.get(self.item, "TEXT")

    @property
    def repeatable(self) -> bool:
        """Whether it may be given several times."""
        return typing.get_origin(self.kind) is tuple and typing.get_args(self.kind)[1:] == (...,)

    @property
    def item(self) -> Any:
        """The type of one value."""
        return _without_none(typing.get_args(self.kind)[0]) if self.repeatable else self.kind

    def value(self, given: Any) -> Any:
        """The value that a flag, a job file or a caller gives; a UsageError if it does not fit."""
        if given is None and self.kind is not self.hint:
            return None
        if not self.repeatable:
            return self._one(given)
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise self.wrong(given, "give a list")
        return tuple(self._one(each) for each in given)

    def _one(self, given: Any) -> Any:
        kind = self.item
        if self.info.parse is not None:
            return self._parsed(given)
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return self._chosen(kind, given)
        if kind is float and isinstance(given, int) and not isinstance(given, bool):
            return float(given)
        if kind in (int, float) and isinstance(given, str):
            return self._number(given)
        if not isinstance(given, kind) or (isinstance(given, bool) and kind is not bool):
            raise self.wrong(given, f"give {_WORDS.get(kind, kind.__name__)}")
        return given

    def _number(self, text: str) -> Any:
        try:
            return self.item(text)
        except ValueError:
            raise self.wrong(text, self._numbers()) from None

    def _parsed(self, given: Any) -> Any:
        assert self.info.parse is not None
        try:
            if isinstance(given, str | int | float) and not isinstance(given, bool):
                return self.info.parse(str(given))
            if isinstance(given, dict) and self.info.tables:
                return self.info.parse(given)
        except UsageError as error:
            raise self.wrong(given, str(error)) from error
        except ValueError:  # a number with thousands of digits
            raise self.wrong(given, "too large") from None
        # What TOML has besides text and numbers; `datetime` is not imported, policies are pure.
        if isinstance(given, bool | list | dict) or type(given).__module__ == "datetime":
            raise self.wrong(given, f"give {'a table' if self.info.tables else 'text'}")
        return given  # made by a caller in Python

    def _chosen(self, kind: type[enum.Enum], given: Any) -> enum.Enum:
        try:
            return kind(given)
        except ValueError:
            names = ", ".join(str(each.value) for each in kind)
            raise self.wrong(given, f"give one of {names}") from None

    def check(self, value: Any) -> None:
        """Raise a UsageError if a number is out of bounds."""
        least = self.info.least
        most = self.info.most
        low = -math.inf if least is None else least
        high = math.inf if most is None else most
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, int | float) and not low <= each <= high:
                raise self.wrong(each, self._numbers())

    def _numbers(self) -> str:
        """Which numbers are allowed."""
        low = self.info.least
        high = self.info.most
        limits = (
            "" if low is None else f" of at least {low:g}" if high is None else f" from {low:g}"
        )
        if high is not None:
            limits += f" to {high:,g}" if high < MOST else f" to {int(high):,}"
        return f"give {_WORDS.get(self.item, 'a number')}{limits}"

    def wrong(self, given: Any, problem: str) -> UsageError:
        """What to say about a value that does not fit."""
        if isinstance(given, dict):
            return UsageError(f"{self.name}: {problem}")
        try:
            text = f"{given:g}" if isinstance(given, float) else str(given)
        except ValueError:  # a number with thousands of digits
            text = "..."
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        return UsageError(f"{self.flag} {shown}: {problem}")

    def missing(self) -> UsageError:
        """What to say if it is required and not given."""
        plain = self.info.argument or self.info.job_only
        called = self.flag if plain else f"{self.flag} {self.metavar}"
        text = self.info.help
        if text[:2].istitle() or text.startswith("A "):
            text = text[0].lower() + text[1:]
        return UsageError(f"{called} is required: {text}")


@dataclass(frozen=True)
class Family:
    """Options that belong together.

    Every value is checked when the family is made. Text becomes the option's type, so that Python
    callers may write `order_scheme="paper"` too. If a family has a title, the help of a command
    lists its options under it.
    """

    TITLE: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for each in dataclasses.fields(self):
            known = option_of(type(self), each.name)
            if known is not None:
                value = known.value(getattr(self, each.name))
                known.check(value)
                object.__setattr__(self, each.name, value)


_Family = typing.TypeVar("_Family", bound=Family)
_HINTS: dict[type[Any], dict[str, Any]] = {}


def _hints(family: type[Any]) -> dict[str, Any]:
    if family not in _HINTS:
        _HINTS[family] = typing.get_type_hints(family)
    return _HINTS[family]


def option_of(family: type[Any], name: str) -> Option | None:
    """The option of a field; None if the field is not an option."""
    return make_option(family.__dataclass_fields__[name], name, _hints(family)[name])


def make_option(made: Any, name: str, hint: Any) -> Option | None:
    """The option that `option` has made, with its name and type; None for anything else."""
    if not isinstance(made, dataclasses.Field) or _INFO not in made.metadata:
        return None
    return Option(name, hint, made.default, made.metadata[_INFO])


def is_family(hint: Any) -> bool:
    """Whether a type is a family."""
    return isinstance(hint, type) and issubclass(hint, Family)


def options_of(family: type[Any]) -> dict[str, Option]:
    """The options of a family and of the families in it, by name."""
    found: dict[str, Option] = {}
    for each in dataclasses.fields(family):
        hint = _hints(family)[each.name]
        own = options_of(hint) if is_family(hint) else {}
        if (known := option_of(family, each.name)) is not None:
            own = {each.name: dataclasses.replace(known, title=family.TITLE)}
        assert not own.keys() & found.keys(), "two options have one name"
        found |= own
    return found


def _without_none(hint: Any) -> Any:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        kinds = [each for each in typing.get_args(hint) if each is not type(None)]
        return kinds[0] if len(kinds) == 1 else kinds
    return hint


def fill(family: type[_Family], given: Mapping[str, Any]) -> _Family:
    """The family, and the families in it, with what is given and the defaults for the rest."""
    values: dict[str, Any] = {}
    # Its own options first: what is missing there is named first.
    own_first = sorted(dataclasses.fields(family), key=lambda f: is_family(_hints(family)[f.name]))
    for each in own_first:
        hint = _hints(family)[each.name]
        known = option_of(family, each.name)
        if is_family(hint):
            values[each.name] = fill(hint, given)
        elif known is not None and each.name in given:
            values[each.name] = known.value(given[each.name])
        elif known is not None and known.required:
            if not (known.info.named and given.get(known.info.named)):
                raise known.missing()
            values[each.name] = known.item()  # the tables by name have it
    return family(**values)


def from_table(family: type[_Family], table: Mapping[str, Any]) -> _Family:
    """The family that a table of a job file describes."""
    known = options_of(family)
    for name in table:
        if name not in known:
            raise UsageError(f"unknown option {name}{did_you_mean(name, list(known))}")
    return fill(family, table)


def from_arguments(
    family: type[_Family], given: _Family | None, options: Mapping[str, Any]
) -> _Family:
    """The family from the arguments of a function, which takes it as a whole or by options."""
    known = list(options_of(family))
    for name in options:
        if name not in known:
            raise TypeError(f"unexpected option {name}{did_you_mean(name, known)}")
    if given is None:
        return fill(family, options)
    if options:
        raise TypeError(f"give {family.__name__} or options such as {min(options)}, not both")
    return given


_Parameters = typing.ParamSpec("_Parameters")
_Returned = typing.TypeVar("_Returned")


def names_checked(
    function: Callable[_Parameters, _Returned],
    *,
    needed: Mapping[str, str] | None = None,
    elsewhere: Mapping[str, str] | None = None,
) -> Callable[_Parameters, _Returned]:
    """The function, with an error of one line for options that it does not have, or that it lacks.

    Args:
        function: the function; its signature stays as it is.
        needed: what each required option is, for the message if it is missing.
        elsewhere: what to write in place of names that are options of something else.
    """
    known = list(inspect.signature(function).parameters)
    name = function.__name__

    @functools.wraps(function)
    def checked(*given: _Parameters.args, **options: _Parameters.kwargs) -> _Returned:
        for option in options:
            if option not in known:
                wrong = f"{name} has no option {option}"
                if option in (elsewhere or {}):
                    raise UsageError(f"{wrong}; write {(elsewhere or {})[option]}")
                hint = did_you_mean(option, known) or f"; help(grv.{name}) lists its options"
                raise UsageError(f"{wrong}{hint}")
        for option, meaning in (needed or {}).items():
            if option not in options:
                raise UsageError(f"{name} needs {option}=: {meaning}")
        return function(*given, **options)

    return checked


_Choice = typing.TypeVar("_Choice", bound=enum.Enum)


def choose(kind: type[_Choice], given: _Choice | str, name: str) -> _Choice:
    """The member that a Python caller names, by itself or by its text."""
    try:
        return kind(given)
    except ValueError:
        names = ", ".join(str(each.value) for each in kind)
        raise UsageError(f"{name} must be one of {names}, not {given!r}") from None


def did_you_mean(name: str, known: Sequence[str] | Mapping[str, str]) -> str:
    """A hint for a name that does not exist; a mapping says how each known name is shown.

    >>> did_you_mean("chekc", ["check", "problem"])
    '; did you mean check?'
    >>> did_you_mean("opnai", {"openai": "openai:MODEL"})
    '; did you mean openai:MODEL?'
    """
    if len(name) > _LONGEST_NAME:
        return ""  # to compare a long name takes long, and no name of ours is like it
    shown = known if isinstance(known, Mapping) else {each: each for each in known}
    close = difflib.get_close_matches(name, shown, n=1)
    return f"; did you mean {shown[close[0]]}?" if close else ""


def misspelt(given: Iterable[str], required: Sequence[str], optional: Sequence[str] = ()) -> str:
    """The first given name that is a misspelling, and what it should be; empty if there is none.

    Other names are allowed. So a name counts as a misspelling only if it resembles a required name
    that is missing, or is almost equal to an optional name that is missing.

    >>> misspelt(["problem", "chekc", "level"], ["problem", "check"], ["code"])
    "unknown field 'chekc'; did you mean check?"
    >>> misspelt(["problem", "check", "mode"], ["problem", "check"], ["code"])
    ''
    """
    names = [str(each) for each in given]
    unknown = [name for name in names if name not in {*required, *optional}]
    for name in unknown:
        close = [
            each
            for each in (*required, *optional)
            if each not in names and (each in required or _almost_equal(name, each))
        ]
        if hint := did_you_mean(name, close):
            return f"unknown field {name!r}{hint}"
    return ""


def _almost_equal(name: str, other: str) -> bool:
    likeness = difflib.SequenceMatcher(None, name, other).ratio()
    return likeness >= 0.8 and abs(len(name) - len(other)) <= 1
