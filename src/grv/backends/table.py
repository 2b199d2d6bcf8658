"""Tables of backends that a specification names: `judge:MODEL`, `length`, `embedded`.

A table is the only list of its kind. The command line, its help, the guide and the tests read it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from ..core.errors import UsageError
from ..options import did_you_mean
from .http.web import without_secrets

OWN_CODE = "FILE.py:NAME"  # the form of the user's own functions, which are in no table

_Options = TypeVar("_Options")
_Backend = TypeVar("_Backend")


@dataclass(frozen=True)
class Entry(Generic[_Options, _Backend]):
    """One backend of a table.

    Attributes:
        form: how a specification is written, as in `length` or `judge:MODEL`. What follows the
            colon is the argument.
        summary: what it is, in a few words, for the guide.
        make: makes the backend from the argument and the options of the command line.
    """

    form: str
    summary: str
    make: Callable[[str, _Options], _Backend]

    @property
    def name(self) -> str:
        """The part of the form before the colon."""
        return self.form.partition(":")[0]

    @property
    def placeholder(self) -> str:
        """What stands for the argument in the form; empty if there is no argument."""
        return self.form.partition(":")[2]


_Entry = TypeVar("_Entry", bound=Entry[Any, Any])


def table(package: str, entries: Iterable[_Entry]) -> Mapping[str, _Entry]:
    """The entries by name, in their order; `package` is named if two have one name."""
    by_name: dict[str, _Entry] = {}
    for entry in entries:
        assert entry.name not in by_name, f"{package}: two entries have the name {entry.name}"
        by_name[entry.name] = entry
    return MappingProxyType(by_name)


def forms(entries: Mapping[str, _Entry]) -> tuple[str, ...]:
    """Every form of a table, and that of the user's own code."""
    return (*(entry.form for entry in entries.values()), OWN_CODE)


def class_in(package: str, module: str, name: str, *arguments: Any) -> Callable[[str, Any], Any]:
    """A `make` for a class that needs no options. Its module is imported on use.

    The class is called with `arguments`, and then with the argument of the specification if there
    is one.
    """

    def make(argument: str, options: Any) -> Any:
        kind = getattr(importlib.import_module(module, package), name)
        given = (*arguments, argument) if argument else arguments
        return kind(*given)

    return make


def find(spec: str, entries: Mapping[str, _Entry], what: str) -> tuple[_Entry, str]:
    """The entry that a specification names, and its argument.

    Raises:
        UsageError: there is none of that name, or the argument is missing or too much.
    """
    name, colon, argument = spec.strip().partition(":")
    entry = entries.get(name)
    if entry is None:
        hint = did_you_mean(name, {each.name: each.form for each in entries.values()})
        raise UsageError(
            f"unknown {what} {without_secrets(spec)!r}{hint}"
            f" (there are: {', '.join(forms(entries))})"
        )
    if entry.placeholder and not argument:
        raise UsageError(f"{name} needs {entry.placeholder}: write {entry.form}")
    if colon and not entry.placeholder:
        raise UsageError(
            f"{name} takes nothing after it: write {entry.form}, not {without_secrets(spec)}"
        )
    return entry, argument
