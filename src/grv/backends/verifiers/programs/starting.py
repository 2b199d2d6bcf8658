"""The prompt of a problem as the beginning of a program."""

from __future__ import annotations

import ast
import builtins
import functools
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from . import refuting
from .syntax import Program, parse

_WORD = re.compile(r"[^\W\d]\w*")
_METHOD = re.compile(r"^[ \t]+(?:async +)?def\b", re.MULTILINE)
_METHOD_ALONE = re.compile(r"\s*(?:async +)?def +\w+\( *self\b")
_DEFINITION = re.compile(r"^(?:async +def|def|class)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Start:
    """A prompt that is a program, or the beginning of one.

    Attributes:
        source: a program: the prompt, with `pass` if it ends before a body.
        names: the names that it defines; None if it imports all names of a module.
        indent: the indentation of what continues it.
    """

    source: str
    names: frozenset[str] | None
    indent: str


@functools.lru_cache(maxsize=64)
def start_of(prompt: str) -> Start | None:
    """The beginning of a program that a prompt is; None if it is prose, or defines nothing."""
    indent = _indent(prompt)
    last = [definition.start() for definition in _DEFINITION.finditer(prompt)]
    ways = [prompt, f"{prompt.rstrip()}\n{indent}pass\n", *(prompt[:place] for place in last[-1:])]
    for source in ways:
        tree = parse(source).tree
        if tree is None:
            continue
        names = frozenset(_bound(tree))
        return Start(source, None if "*" in names else names, indent) if names else None
    return None


def _indent(prompt: str) -> str:
    """The indentation of the line after the prompt."""
    last = prompt.rstrip().rpartition("\n")[2]
    margin = last[: len(last) - len(last.lstrip())]
    if last.endswith(":"):
        return margin + ("\t" if "\t" in margin else "    ")
    return margin


def with_prompt(program: Program, prompt: str) -> Program:
    """A complete program with the prompt in front, if it uses a name that only the prompt defines.

    A prompt that is not needed could do harm: it may read the input.
    """
    start = start_of(prompt) if prompt else None
    if start is None or program.error or program.source.startswith(prompt):
        return program
    if program.tree is None:
        joined = parse(_joined(start.source, program.source), f"the prompt and {program.read}")
        return program if joined.error else joined
    unbound = _used(program.tree).difference(_bound(program.tree))
    is_needed = any(
        not hasattr(builtins, name) if start.names is None else name in start.names
        for name in unbound
    )
    if not is_needed:
        return program
    futures, rest = _without_futures(program)
    joined = parse(futures + _joined(start.source, rest), f"the prompt and {program.read}")
    wrong = joined.error or refuting.not_compilable(joined)
    return program if wrong else joined


def _joined(start: str, source: str) -> str:
    return f"{start.rstrip()}\n\n\n{source}"


def _without_futures(program: Program) -> tuple[str, str]:
    """The imports from `__future__`, which must stand before the prompt, and the rest."""
    lines = program.source.split("\n")
    features: list[str] = []
    for node in program.tree.body if program.tree is not None else ():
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            features += [alias.name for alias in node.names]
            last = node.end_lineno or node.lineno
            lines[node.lineno - 1 : last] = [""] * (last - node.lineno + 1)
    futures = f"from __future__ import {', '.join(features)}\n" if features else ""
    return futures, "\n".join(lines)


def continuations(prompt: str, text: str) -> Iterator[str]:
    """Programs that begin with the prompt and go on with the text.

    Endpoints of chats cut off the white space around a text: the line break after the prompt, or
    the indentation of the first line. Some models write a body without any indentation, or a method
    again without its class.
    """
    if not prompt:
        return
    if _METHOD_ALONE.match(text):
        methods = [method.start() for method in _METHOD.finditer(prompt)]
        for place in methods[-1:]:
            method = textwrap.indent(textwrap.dedent(text), "    ")
            yield f"{prompt[:place].rstrip()}\n{method}"
    yield prompt + text
    start = start_of(prompt)
    if start is None:
        return
    line = "" if prompt.endswith("\n") else "\n"
    if line:
        yield f"{prompt}{line}{text}"
    if start.indent and text[:1].strip():
        yield f"{prompt}{line}{start.indent}{text}"
        yield f"{prompt}{line}{textwrap.indent(text, start.indent)}"


def _bound(tree: ast.Module) -> Iterator[str]:
    """The names that a program binds, at any level."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.alias(name=name, asname=renamed):
                yield renamed or name.partition(".")[0]


def _used(tree: ast.Module) -> set[str]:
    """The names that a program uses, and the words in its strings: they may be annotations."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                names.add(name)
            case ast.Constant(value=str(text)):
                names.update(_WORD.findall(text))
    return names
