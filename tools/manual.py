"""Man pages of all commands, from the same parser as their help: python tools/manual.py FOLDER."""

from __future__ import annotations

import os
import re
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from grv import __version__
from grv.apps.cli import application
from grv.apps.options.command import sections_of

_CODES = (
    ("0", "The command has done its work."),
    ("1", "The job ran, and the answer is no."),
    ("2", "The usage or the input is wrong, or the run cannot go on."),
    ("130", "The command was interrupted."),
)


def main(folder: Path) -> None:
    """Write all pages."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = list(commands())
    for words, command in pages:
        (folder / f"{'-'.join(words)}.1").write_text(page(words, command), encoding="utf-8")
    print(f"{len(pages)} man pages are in {folder}")


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its words."""

    def walk(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
        yield words, command
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*words, name))

    return walk(typer.main.get_command(application()), ("grv",))


def page(words: Sequence[str], command: Any) -> str:
    """The page of a command."""
    context = typer.Context(command, info_name=" ".join(words), help_option_names=["-h", "--help"])
    name = "-".join(words)
    summary = _sentence(command.get_short_help_str(200))
    lines = [
        f'.TH {name.upper()} 1 "{_day()}" "grv {__version__}" "Commands of grv"',
        ".SH NAME",
        f"{_kept(name)} \\- {_kept(summary)}",
        ".SH SYNOPSIS",
        f".B {_kept(' '.join(words))}",
        _text(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
        *_paragraphs(command.help or ""),
    ]
    for title, rows in sections_of(command, context).items():
        lines += [f".SH {title.upper()}"]
        for left, right in rows:
            lines += [".TP", f".B {_kept(left)}", _text(" ".join(right.split()))]
    inner = getattr(command, "commands", {})
    if inner:
        lines.append(".SH COMMANDS")
        for each, found in inner.items():
            about = _sentence(found.get_short_help_str(200))
            lines += [".TP", f".BR {_kept('-'.join((*words, each)))} (1)", _text(about)]
    lines.append(".SH EXIT STATUS")
    for code, meaning in _CODES:
        lines += [".TP", f".B {code}", meaning]
    if words != ("grv",):
        lines += [".SH SEE ALSO", ".BR grv (1)"]
    return "\n".join(lines) + "\n"


def _day() -> str:
    """Today, or the day of a build that can be repeated."""
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def _sentence(text: str) -> str:
    return text.strip().rstrip(".")


def _paragraphs(help: str) -> Iterator[str]:
    r"""The paragraphs of a help text; those after a \\b keep their lines."""
    for place, block in enumerate(re.split(r"\n\s*\n", help.strip())):
        if block.lstrip().startswith("\b"):
            lines = block.lstrip().removeprefix("\b").strip("\n").splitlines()
            yield from (".PP", ".nf", *map(_kept, lines), ".fi")
        else:
            yield from ([".PP"] if place else [])
            yield _text(" ".join(block.split()))


def _text(text: str) -> str:
    """A text in short lines, in which nothing is a request of roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    lines = textwrap.wrap(escaped, 78, break_long_words=False, break_on_hyphens=False)
    return "\n".join(map(_line, lines))


def _kept(line: str) -> str:
    return _line(line.replace("\\", "\\e").replace("-", "\\-"))


def _line(line: str) -> str:
    return f"\\&{line}" if line.startswith((".", "'")) else line


if __name__ == "__main__":
    main(Path(sys.argv[1]))
