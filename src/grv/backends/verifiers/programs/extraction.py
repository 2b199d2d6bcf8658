"""Finds programs in the texts of models, parses them and computes their keys.

Parsing runs in the judge and executes nothing. Its time and memory are proportional to the text, at
most a quarter of a second: larger or deeper texts are left to the sandbox.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from ....text import checksum

_LARGEST = 1 << 16  # characters of the longest text that is parsed here
_KEPT = 1 << 13  # characters of the longest text whose tree is cached; a tree is 500 times larger
_WARNING = re.compile(r"invalid (octal )?escape sequence|(?!unterminated).*literal")
_LANGUAGE = re.compile(r"[\w+#.-]*")
_LANGUAGES = {"", "python", "py", "python3", "py3", "python2"}
# Programs that use these may read docstrings, line numbers, or any name by its text. The list is
# not complete; no pass depends on it.
_INTROSPECTIVE_NAMES = """
    __doc__ __dict__ __code__ __traceback__ __import__ getattr vars dir globals locals eval exec
    compile help inspect doctest linecache traceback tracemalloc warnings logging ast dis gc pydoc
    importlib builtins pickle marshal ctypes operator _getframe _current_frames settrace setprofile
    exc_info excepthook last_traceback modules with_traceback tb_lineno f_lineno co_firstlineno
    stack format_exc print_exc attrgetter methodcaller __getattribute__ __getattr__ cProfile profile
    unittest pdb bdb trace timeit
"""
_INTROSPECTIVE = frozenset(_INTROSPECTIVE_NAMES.split())

# Before Python 3.12 threads that parse at once share a depth counter: a SystemError is possible.
parser_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Program:
    """A program found in a text.

    Attributes:
        source: the text to run.
        tree: its syntax tree; None if it was not parsed.
        error: the syntax error; "" if there is none, or it was not parsed.
    """

    source: str
    tree: ast.Module | None = None
    error: str = ""


def parse(source: str) -> Program:
    """The program of a source text."""
    if len(source) > _LARGEST:
        return Program(source)
    try:
        with parser_lock:
            return Program(source, ast.parse(source, "<candidate>"))
    except SyntaxError as exc:
        if _WARNING.match(exc.msg):
            return Program(source)  # perhaps a warning that was turned into an error
        return Program(source, error=f"line {exc.lineno}: {exc.msg}"[:200])
    except ValueError as exc:  # null bytes
        return Program(source, error=str(exc)[:200])
    except (RecursionError, MemoryError, SystemError):  # too deep for the parser here
        return Program(source)


def find(text: str, prompt: str = "", entry_point: str = "") -> Program:
    """The program in a model's text.

    If the prompt is the beginning of a program and the text continues it, the whole text counts.
    Otherwise the last fenced block of Python counts, preferably one that defines `entry_point`; or
    the text itself, if nothing is fenced. A complete block still gets the prompt in front, for its
    imports and helpers.
    """
    small = len(prompt) + len(text) <= _KEPT
    return (_find_once if small else _find)(text, prompt, entry_point)


def _find(text: str, prompt: str, entry_point: str) -> Program:
    continued = parse(prompt + text) if prompt else Program("", error="no prompt")
    is_large = len(continued.source) > _LARGEST
    if not continued.error and not is_large:
        return continued
    answer = text.rpartition("</think>")[2]
    block = _block(answer, entry_point)
    if block is None:
        return continued if prompt else parse(answer)
    if prompt and "__future__" not in block:
        for joined in (prompt + block, f"{prompt.rstrip()}\n\n\n{block}"):
            program = parse(joined)
            if not program.error:
                return program
    return parse(block)


_find_once = functools.lru_cache(maxsize=32)(_find)  # used for the key, and again for the run


def fenced(text: str) -> Iterator[tuple[str, str]]:
    """The fenced blocks of a text with their languages, in one pass over the lines.

    A block ends with the first line that consists of its fence, or with the text.
    """
    fence, language, body = "", "", list[str]()
    lines = text.split("\n")
    for line in lines[:-1]:
        content = line.strip(" \t\r")
        if not fence:
            if content.startswith(("```", "~~~")):
                info = content.lstrip(content[0])
                fence = content[: len(content) - len(info)]
                found = _LANGUAGE.match(info.lstrip(" \t"))
                language, body = found[0] if found else "", []
        elif content == fence:
            yield language, "".join(body)
            fence = ""
        else:
            body.append(f"{line}\n")
    if fence:
        rest = "" if lines[-1].strip(" \t\r") == fence else lines[-1]
        yield language, "".join(body) + rest


def _block(text: str, entry_point: str) -> str | None:
    """The fenced block that counts; None if there is none."""
    blocks = [
        body for language, body in fenced(text) if language.lower() in _LANGUAGES and body.strip()
    ]
    if not blocks:
        return None
    if entry_point:
        name = re.escape(entry_point)
        definition = re.compile(rf"^[ \t]*(?:async[ \t]+)?def[ \t]+{name}\b", re.MULTILINE)
        defining = [block for block in blocks if definition.search(block)]
        blocks = defining or blocks
    return blocks[-1]


def key(program: Program) -> str:
    """Equal for programs that differ only in layout, comments and docstrings.

    Programs with equal keys almost always behave alike, so they share failures. They do not share
    passes: no list of the ways in which a program can read its own docstrings is complete. For a
    program that uses a well-known way, the key is a checksum of the whole text.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    form = _form(program)
    kind = "tree" if form is not None else "text"
    content = program.source if form is None else form
    digest = checksum(f"{version}\n{content}")
    return f"{kind}:{digest[:40]}"


class _Introspective(Exception):
    """The program may inspect the parts that its form leaves out."""


def _form(program: Program) -> str | None:
    if program.tree is None:
        return None
    parts: list[str] = []
    try:
        _write(program.tree, parts)
    except (_Introspective, RecursionError, MemoryError, ValueError):  # of huge integers
        return None
    return "\n".join(parts)


def _write(node: ast.AST, parts: list[str]) -> None:
    """The tree without positions and docstrings: types of nodes and `repr`s."""
    kind = node.__class__
    parts.append(kind.__name__)
    if kind in _NAMING and not _INTROSPECTIVE.isdisjoint(_names(node)):
        raise _Introspective
    for name in kind._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            _write(value, parts)
        elif isinstance(value, list):
            if name == "body" and kind in _DOCUMENTED:
                value = _undocumented(value)
            parts.append("[")
            for item in value:
                if isinstance(item, ast.AST):
                    _write(item, parts)
                else:
                    parts.append(repr(item))
            parts.append("]")
        elif name != "kind":  # the prefix u of a string
            parts.append(repr(value))


_NAMING = (ast.Name, ast.Attribute, ast.Import, ast.ImportFrom)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _names(node: ast.AST) -> tuple[str, ...]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return (name,)
        case ast.Import(names=names):
            return tuple(part for alias in names for part in alias.name.split("."))
        case ast.ImportFrom(module=module, names=names):
            return (*(module or "").split("."), *(alias.name for alias in names))
        case _:
            return ()


def _undocumented(body: list[ast.stmt]) -> list[ast.stmt]:
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest or [ast.Pass()]
        case _:
            return body
