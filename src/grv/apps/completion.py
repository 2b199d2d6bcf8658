"""`grv completion`: scripts by which shells complete commands, options and their choices.

A script is made from the same parser as the help, once: no Python starts when a key is pressed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.errors import UsageError
from ..options import did_you_mean, option
from .console import say
from .options.command import command

_CHOICES = re.compile(r"[\w.-]+(\|[\w.-]+)+")
_HELP = ("-h", "--help")


@dataclass(frozen=True)
class Flag:
    """An option, as shells complete it.

    Attributes:
        names: its spellings.
        takes: whether a value follows.
        choices: its values, if they are listed.
        about: what it is for.
    """

    names: tuple[str, ...]
    takes: bool
    choices: tuple[str, ...]
    about: str


@dataclass(frozen=True)
class Node:
    """A command, or a group of commands.

    Attributes:
        path: its words, "grv runs list".
        commands: the names of those in the group, with what they are for.
        flags: its options.
        choices: what its first argument may be, if that is listed.
    """

    path: str
    commands: Mapping[str, str]
    flags: tuple[Flag, ...]
    choices: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """What may follow it."""
        return [
            *self.commands,
            *self.choices,
            *(name for flag in self.flags for name in flag.names),
        ]


def nodes() -> list[Node]:
    """Every command, from the parser of the command line."""
    import typer

    from .cli import application

    return list(_walk(typer.main.get_command(application()), "grv"))


def _walk(command: Any, path: str) -> Iterator[Node]:
    inner: Mapping[str, Any] = getattr(command, "commands", {})
    flags = [Flag(_HELP, False, (), "Show the help.")]
    choices: tuple[str, ...] = ()
    for each in command.params:
        listed = _listed(each.metavar)
        if each.param_type_name == "argument":
            choices = choices or listed
            continue
        names = (*each.opts, *each.secondary_opts)
        flags.append(Flag(names, not each.is_flag, listed, _first(each.help)))
    yield Node(
        path,
        {name: _first(c.short_help or c.help) for name, c in inner.items()},
        tuple(flags),
        choices,
    )
    for name, each in inner.items():
        yield from _walk(each, f"{path} {name}")


def _listed(metavar: str | None) -> tuple[str, ...]:
    return tuple(metavar.split("|")) if metavar and _CHOICES.fullmatch(metavar) else ()


def _first(text: str | None) -> str:
    """The first sentence of a help text."""
    return re.split(r"(?<=\.)\s|\n\n|  \[", " ".join((text or "").split("\n")))[0].rstrip(".")


def bash(every: list[Node]) -> str:
    """The script for bash."""
    lines = [
        "# Completion of grv for bash. Made by: grv completion bash",
        "_grv() {",
        '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}"',
        "  local at=grv word words=",
        # bash takes --name=value apart: three words
        '  if [ "$cur" = "=" ]; then cur=',
        '  elif [ "$prev" = "=" ]; then prev="${COMP_WORDS[COMP_CWORD-2]}"; fi',
        '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
        '    case "$at $word" in',
        f'      {_any(node.path for node in every[1:])}) at="$at $word" ;;',
        "    esac",
        "  done",
        '  case "$at $prev" in',
    ]
    for node in every:
        for flag in node.flags:
            if flag.takes:
                patterns = _any(f"{node.path} {name}" for name in flag.names)
                words = f'COMPREPLY=($(compgen -W "{" ".join(flag.choices)}" -- "$cur"))'
                lines.append(
                    f"    {patterns}) {words if flag.choices else 'COMPREPLY=()'}; return ;;"
                )
    lines += ["  esac", '  case "$at" in']
    lines += [f'    {_any([node.path])}) words="{" ".join(node.words)}" ;;' for node in every]
    lines += [
        "  esac",
        '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
        "}",
        "complete -o default -F _grv grv",
    ]
    return "\n".join(lines)


def zsh(every: list[Node]) -> str:
    """The script for zsh."""
    lines = [
        "#compdef grv",
        "# Completion of grv for zsh. Made by: grv completion zsh",
        "_grv() {",
        "  local at=grv word",
        "  local -a found flags",
        '  for word in "${(@)words[2,CURRENT-1]}"; do',
        '    case "$at $word" in',
        f'      {_any(node.path for node in every[1:])}) at="$at $word" ;;',
        "    esac",
        "  done",
        '  case "$at ${words[CURRENT-1]}" in',
    ]
    for node in every:
        for flag in node.flags:
            if flag.takes:
                patterns = _any(f"{node.path} {name}" for name in flag.names)
                values = f"compadd -- {' '.join(flag.choices)}" if flag.choices else "_files"
                lines.append(f"    {patterns}) {values}; return ;;")
    lines += ["  esac", '  case "$at" in']
    for node in every:
        rows = [f"{name}:{about}" for name, about in node.commands.items()]
        rows += list(node.choices)
        flags = [f"{name}:{flag.about}" for flag in node.flags for name in flag.names]
        found, flagged = (" ".join(map(_quoted, each)) for each in (rows, flags))
        lines.append(f"    {_any([node.path])}) found=({found}) flags=({flagged}) ;;")
    lines += [
        "  esac",
        "  if [[ ${words[CURRENT]} == -* ]]; then _describe -o option flags",
        "  elif (( $#found )); then _describe word found",
        "  else _files; fi",
        "}",
        'if [ "$funcstack[1]" = "_grv" ]; then _grv "$@"; else compdef _grv grv; fi',
    ]
    return "\n".join(lines)


def fish(every: list[Node]) -> str:
    """The script for fish."""
    groups = {node.path for node in every if node.commands}
    lines = [
        "# Completion of grv for fish. Made by: grv completion fish",
        "function __grv_at",
        "    set -l at grv",
        "    for word in (commandline -opc)[2..-1]",
        '        switch "$at $word"',
        f"            case {' '.join(_quoted(node.path) for node in every[1:])}",
        '                set at "$at $word"',
        "        end",
        "    end",
        '    test "$at" = "$argv"',
        "end",
    ]
    for node in every:
        when = f"complete -c grv -n {_quoted(f'__grv_at {node.path}')}"
        lines += [f"{when} -f"] if node.path in groups else []
        for name, about in node.commands.items():
            lines.append(f"{when} -a {name} -d {_quoted(about)}")
        lines += [f"{when} -a {_quoted(' '.join(node.choices))}"] if node.choices else []
        for flag in node.flags:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in flag.names
            )
            values = f" -x -a {_quoted(' '.join(flag.choices))}" if flag.choices else " -r"
            lines.append(f"{when} {names}{values if flag.takes else ''} -d {_quoted(flag.about)}")
    return "\n".join(lines)


def _any(patterns: Any) -> str:
    """Patterns of a case."""
    return "|".join(f'"{each}"' for each in patterns)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "'\\''") + "'"


SHELLS: Mapping[str, Callable[[list[Node]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}


@command
def completion(
    shell: str = option(
        ..., "The shell: bash, zsh or fish.", argument=True, metavar="|".join(SHELLS)
    ),
) -> None:
    """Print a script by which a shell completes the commands and options of grv.

    \b
    eval "$(grv completion bash)"                      # in ~/.bashrc
    grv completion zsh > ~/.zfunc/_grv                 # with fpath+=~/.zfunc before compinit
    grv completion fish > ~/.config/fish/completions/grv.fish
    """
    if shell not in SHELLS:
        raise UsageError(
            f"{shell}: give one of {', '.join(SHELLS)}{did_you_mean(shell, list(SHELLS))}"
        )
    say(*SHELLS[shell](nodes()).splitlines())
