"""Programs in the texts that models write: found, parsed, and given their key.

Parsing happens in the judge and executes nothing. A text too large or too deep to be parsed here is
left to the sandbox.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import re
import sys
import threading
from dataclasses import dataclass

_LARGEST = 1 << 20  # characters that are parsed here
_FENCE = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[^\n]*\n"
    r"(?P<body>.*?)(?:^[ \t]*(?P=fence)[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_LANGUAGES = {"", "python", "py", "python3", "py3", "python2"}
# Programs that use these may look at docstrings, at line numbers, or at any name by its text. The
# list is not complete, and no pass depends on it.
_INTROSPECTIVE = frozenset(
    {
        *("__doc__", "__dict__", "__code__", "__traceback__", "__import__"),
        *("getattr", "vars", "dir", "globals", "locals"),
        *("eval", "exec", "compile", "help", "inspect"),
        *("doctest", "linecache", "traceback", "tracemalloc", "warnings"),
        *("logging", "ast", "dis", "gc", "pydoc"),
        *("importlib", "builtins", "pickle", "marshal", "ctypes"),
        *("operator", "_getframe", "_current_frames", "settrace", "setprofile"),
        *("exc_info", "excepthook", "last_traceback", "modules", "with_traceback"),
        *("tb_lineno", "f_lineno", "co_firstlineno", "stack", "format_exc"),
        *("print_exc", "attrgetter", "methodcaller", "__getattribute__", "__getattr__"),
        *("cProfile", "profile", "unittest", "pdb", "bdb"),
        *("trace", "timeit"),
    }
)


# Before Python 3.12 two threads that parse at once share a count of depth, and may find it wrong
# (a SystemError).
_parser = threading.Lock()


@dataclass(frozen=True, slots=True)
class Program:
    """A program taken out of a text.

    Attributes:
        source: what is to be run.
        tree: its syntax tree; None where it was not parsed.
        error: why it is no program, "" where it is one or nobody knows.
    """

    source: str
    tree: ast.Module | None = None
    error: str = ""


def parse(source: str) -> Program:
    """The program of a source text."""
    if len(source) > _LARGEST:
        return Program(source)
    try:
        with _parser:
            return Program(source, ast.parse(source, "<candidate>"))
    except SyntaxError as exc:
        if exc.msg.startswith("invalid escape sequence") or "literal" in exc.msg:
            return Program(source)  # perhaps a warning that somebody has made an error of
        return Program(source, error=f"line {exc.lineno}: {exc.msg}"[:200])
    except ValueError as exc:  # null bytes
        return Program(source, error=str(exc)[:200])
    except (RecursionError, MemoryError, SystemError):  # too deep for the parser here
        return Program(source)


@functools.lru_cache(maxsize=32)  # a text is looked at for its key, and again to be run
def find(text: str, prompt: str = "", entry_point: str = "") -> Program:
    """The program in a model's text.

    With a prompt that is the beginning of a program, a text that continues it is taken whole.
    Otherwise the last fenced block of Python counts, the last that defines `entry_point` first; or
    the text itself, where nothing is fenced. A block that stands by itself still gets the prompt in
    front, for its imports and helpers.
    """
    continued = parse(prompt + text) if prompt else Program("", error="no prompt")
    if not continued.error:
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


def _block(text: str, entry_point: str) -> str | None:
    """The fenced block that counts; None where there is none."""
    blocks = [
        match["body"]
        for match in _FENCE.finditer(text)
        if match["language"].lower() in _LANGUAGES and match["body"].strip()
    ]
    if not blocks:
        return None
    if entry_point:
        name = re.escape(entry_point)
        definition = re.compile(rf"^[ \t]*(?:async[ \t]+)?def[ \t]+{name}\b", re.MULTILINE)
        defining = [block for block in blocks if definition.search(block)]
        blocks = defining or blocks
    return blocks[-1]


def checksum(text: str) -> str:
    """Equal for equal texts only."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def key(program: Program) -> str:
    """Equal for programs that differ in layout, comments and docstrings alone.

    Programs with equal keys almost always behave equally, so they share failures. They do not share
    passes: there is no complete list of the ways in which a program can read its own docstrings.
    A program that uses a well-known one has its whole text for a key.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    form = _form(program)
    kind = "tree" if form is not None else "text"
    content = program.source if form is None else form
    digest = checksum(f"{version}\n{content}")
    return f"{kind}:{digest[:40]}"


class _Introspective(Exception):
    """The program could look at what its form leaves out."""


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
    """The tree without places and docstrings: kinds of nodes and `repr`s, without newlines."""
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
        elif name != "kind":  # of a string: whether it was written with a u
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
