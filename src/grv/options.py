"""Options as fields of dataclasses: one definition serves commands, job files and Python.

A *family* is a frozen dataclass that inherits from `Family`. Each of its fields is made with
`option`, which keeps the help text, the spelling on the command line and the check beside the type
and the default. So an option is written once, and used by its name.

    >>> @dataclass(frozen=True)
    ... class Sampling(Family):
    ...     temperature: float = option(0.7, "How freely tokens are chosen.", least=0)
    >>> Sampling(temperature=-1)
    Traceback (most recent call last):
    grv.core.errors.UsageError: --temperature -1: give a number from 0 on
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .core.errors import UsageError

_INFO = "option"


@dataclass(frozen=True)
class Info:
    """What a field says about its option.

    Attributes:
        help: what it is for, in a sentence.
        flags: how it is spelled on the command line; `--name-of-the-field` where there are none.
        metavar: what stands for its value in the help.
        least: the least number allowed.
        most: the greatest number allowed.
        parse: makes the value from text, where the type is not one of Python's own. It raises a
            UsageError that says what is wrong, without the option's name.
        shown: how the default is shown; as text where None.
        argument: whether it is given by position.
    """

    help: str
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    parse: Callable[[str], Any] | None = None
    shown: str | None = None
    argument: bool = False


def option(default: Any, help: str, *flags: str, **more: Any) -> Any:
    """A field of a family; `more` as in `Info`."""
    return field(default=default, metadata={_INFO: Info(help, flags, **more)})


@dataclass(frozen=True)
class Option:
    """One option of a family: its field, resolved."""

    name: str
    kind: Any  # a type, without `| None`
    default: Any
    info: Info

    @property
    def flag(self) -> str:
        """How messages name it."""
        if self.info.argument:
            return self.info.metavar or self.name.upper()
        dashed = next((flag for flag in self.info.flags if flag.startswith("--")), None)
        return (dashed or f"--{self.name.replace('_', '-')}").partition("/")[0]

    @property
    def repeatable(self) -> bool:
        """Whether it may be given several times."""
        return typing.get_origin(self.kind) is tuple and typing.get_args(self.kind)[1:] == (...,)

    @property
    def item(self) -> Any:
        """The type of one value."""
        return typing.get_args(self.kind)[0] if self.repeatable else self.kind

    def value(self, given: Any) -> Any:
        """The value that a command line or a job file gives; a UsageError where it does not fit."""
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
        if not isinstance(given, kind) or (isinstance(given, bool) and kind is not bool):
            words = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
            raise self.wrong(given, f"give {words.get(kind, kind.__name__)}")
        return given

    def _parsed(self, given: Any) -> Any:
        assert self.info.parse is not None
        if not isinstance(given, str | int | float) or isinstance(given, bool):
            return given  # made by a caller in Python
        try:
            return self.info.parse(str(given))
        except UsageError as error:
            raise self.wrong(given, str(error)) from error

    def _chosen(self, kind: type[enum.Enum], given: Any) -> enum.Enum:
        try:
            return kind(given)
        except ValueError:
            names = ", ".join(str(each.value) for each in kind)
            raise self.wrong(given, f"give one of {names}") from None

    def check(self, value: Any) -> None:
        """A UsageError where a number is out of bounds."""
        least, most = self.info.least, self.info.most
        if value is None or (least is None and most is None):
            return
        low = -float("inf") if least is None else least
        high = float("inf") if most is None else most
        if not low <= value <= high:
            noun = "a whole number" if self.kind is int else "a number"
            limits = f"from {low:g} on" if most is None else f"from {low:g} to {high:g}"
            raise self.wrong(value, f"give {noun} {limits}")

    def wrong(self, given: Any, problem: str) -> UsageError:
        """What to say about a value that does not fit."""
        text = f"{given:g}" if isinstance(given, float) else given
        return UsageError(f"{self.flag} {text}: {problem}")


@dataclass(frozen=True)
class Family:
    """Options that belong together. Numbers out of bounds are refused, whoever gives them."""

    def __post_init__(self) -> None:
        for each in options_of(type(self)).values():
            each.check(getattr(self, each.name))


_Family = typing.TypeVar("_Family", bound=Family)


_RESOLVED: dict[type[Any], Mapping[str, Option]] = {}


def options_of(family: type[Any]) -> Mapping[str, Option]:
    """The options of a family, by name."""
    if family not in _RESOLVED:
        _RESOLVED[family] = _resolved(family)
    return _RESOLVED[family]


def _resolved(family: type[Any]) -> Mapping[str, Option]:
    hints = typing.get_type_hints(family)
    return {
        each.name: Option(each.name, _kind(hints[each.name]), each.default, each.metadata[_INFO])
        for each in dataclasses.fields(family)
        if _INFO in each.metadata
    }


def _kind(hint: Any) -> Any:
    """A type without `| None`."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        kinds = [each for each in typing.get_args(hint) if each is not type(None)]
        return kinds[0] if len(kinds) == 1 else kinds
    return hint


def fill(family: type[_Family], given: Mapping[str, Any]) -> _Family:
    """The family with what is given; the defaults where nothing, or None, is given."""
    known = options_of(family)
    return family(
        **{
            name: known[name].value(value)
            for name, value in given.items()
            if name in known and value is not None
        }
    )


def did_you_mean(name: str, known: Iterable[str] | Mapping[str, str]) -> str:
    """A hint for a name that does not exist; a mapping says how each known name is shown.

    >>> did_you_mean("chekc", ["check", "problem"])
    '; did you mean check?'
    >>> did_you_mean("opnai", {"openai": "openai:MODEL"})
    '; did you mean openai:MODEL?'
    """
    shown = known if isinstance(known, Mapping) else {each: each for each in known}
    close = difflib.get_close_matches(name, shown, n=1)
    return f"; did you mean {shown[close[0]]}?" if close else ""
