"""Kinds that other packages add, as entry points: a score in the group `grv.scorers`, and so on.

A plugin runs with the user's rights, so an installed package alone does nothing: the operator must
name it. `allow` takes what the command line says, `allow_checks` the kinds of check that files of
problems may use. A name in a ledger, in a file of problems or in a request loads nothing else.
Names of grv come first: callers look here only for a name that is not in their own tables. Nothing
is looked up before that, so packages cost nothing when grv starts.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .core.errors import UsageError
from .own_code import Code, raised, register

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Group = Literal["generators", "scorers", "verifiers", "policies", "importers"]

# What messages call one kind of each group.
GROUPS: dict[Group, str] = {
    "generators": "generator",
    "scorers": "score",
    "verifiers": "check",
    "policies": "policy",
    "importers": "importer",
}
_NAME = re.compile(r"(?<![^\s,(=])[A-Za-z][\w-]*")  # where a specification may begin

_allowed: set[str] = set()
_allowed_checks: set[str] = set()


@dataclass(frozen=True)
class Plugin:
    """One kind that an installed package adds.

    Attributes:
        group: what it is.
        name: how the operator names it.
        package: the name of its distribution.
        version: its version.
    """

    group: Group
    name: str
    package: str
    version: str

    @property
    def source(self) -> str:
        """The package and its version."""
        return f"{self.package} {self.version}"


def allow(text: str) -> None:
    """Let the plugins be loaded that a specification names: the operator gave it."""
    _allowed.update(_NAME.findall(text))


def allow_checks(names: Iterable[str]) -> None:
    """Let problems use these kinds of check: the operator named them."""
    _allowed_checks.update(names)


def is_allowed_check(name: str) -> bool:
    """Whether problems may use this kind of check of a plugin."""
    return name in _allowed_checks


def installed(group: Group | None = None) -> list[Plugin]:
    """The plugins of all packages here, or those of one group, by name. None of them is loaded."""
    groups = GROUPS if group is None else (group,)
    return [plugin for each in groups for plugin, _ in _entries(each)]


def names(group: Group) -> list[str]:
    """The names of the plugins of a group, for messages."""
    return sorted({plugin.name for plugin in installed(group)})


def load(group: Group, name: str) -> Code | None:
    """The code of the plugin with this name; None if no package has one.

    Raises:
        UsageError: the operator did not name it, two packages have it, or it cannot be imported.
    """
    plugin = _found(group, name)
    if plugin is None:
        return None
    if name not in _allowed:
        raise UsageError(
            f"{name} is a plugin of {plugin.package}: it can only be named on the command line"
        )
    return _loaded(plugin)


def load_check(name: str) -> Code | None:
    """The code of a kind of check that a problem names; None if no package has one.

    Raises:
        UsageError: as in `load`.
    """
    plugin = _found("verifiers", name)
    if plugin is None:
        return None
    if name not in _allowed_checks:
        raise UsageError(
            f"{name} is a plugin of {plugin.package}, which runs with your rights; if you trust it,"
            f" give --allow-check {name}"
        )
    return _loaded(plugin)


def _found(group: Group, name: str) -> Plugin | None:
    """The one plugin of this name; a UsageError if two packages have one."""
    same = [plugin for plugin in _plugins(group) if plugin.name == name]
    if len(same) > 1:
        packages = " and ".join(plugin.source for plugin in same)
        raise UsageError(
            f"{GROUPS[group]} {name} is in {packages}: uninstall the one that you do not want"
        )
    return same[0] if same else None


@functools.cache
def _plugins(group: Group) -> Sequence[Plugin]:
    """As `installed`, remembered: a check may be parsed thousands of times."""
    return installed(group)


def _entries(group: Group) -> list[tuple[Plugin, EntryPoint]]:
    from importlib.metadata import entry_points  # it takes longer to import than this module

    found = []
    for entry in entry_points(group=f"grv.{group}"):
        if entry.dist is not None and _NAME.fullmatch(entry.name):
            plugin = Plugin(group, entry.name, entry.dist.name, entry.dist.version)
            found.append((plugin, entry))
    return sorted(found, key=lambda pair: (pair[0].name, pair[0].package))


@functools.cache
def _loaded(plugin: Plugin) -> Code:
    (entry,) = (entry for each, entry in _entries(plugin.group) if each == plugin)
    try:
        value = entry.load()
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"{GROUPS[plugin.group]} {plugin.name}: {plugin.source} cannot be imported:"
            f" {raised(error)}"
        ) from error
    register(entry.module, plugin.source)
    return Code(plugin.name, value, plugin.source)
