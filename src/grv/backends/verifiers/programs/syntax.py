"""Parses programs in the judge. Nothing is executed or compiled.

Time and memory are proportional to the text; a larger or deeper one is left to the sandbox.
"""

from __future__ import annotations

import ast
import re
import threading
from dataclasses import dataclass

LARGEST = 1 << 16  # characters of the longest text that is parsed here
_WARNING = re.compile(r"invalid (octal )?escape sequence|(?!unterminated).*literal")

# Before Python 3.12 threads that parse at once share a depth counter: a SystemError is possible.
parser_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Program:
    """A program found in a text.

    Attributes:
        source: the text to run.
        tree: its syntax tree; None if it was not parsed.
        error: the syntax error; "" if there is none, or it was not parsed.
        error_line: its line, from 1; 0 if it is not known.
        compiles: whether it is known that no error is found without compiling it.
        read: the part of the candidate's text it was read from, such as "block 2 of 3".
    """

    source: str
    tree: ast.Module | None = None
    error: str = ""
    error_line: int = 0
    compiles: bool = False
    read: str = ""


def parse(source: str, read: str = "") -> Program:
    """The program of a source text. As in a file, a byte order mark at its start is left out."""
    source = source.removeprefix("\ufeff")
    if len(source) > LARGEST:
        return Program(source, read=read)
    try:
        with parser_lock:
            return Program(source, ast.parse(source, "<candidate>"), read=read)
    except SyntaxError as exc:
        if _WARNING.match(exc.msg):
            return Program(source, read=read)  # perhaps a warning that was turned into an error
        error = f"line {exc.lineno}: {exc.msg}"[:200]
        return Program(source, error=error, error_line=exc.lineno or 0, read=read)
    except ValueError as exc:  # null bytes
        return Program(source, error=str(exc)[:200], read=read)
    except (RecursionError, MemoryError, SystemError):  # too deep for the parser here
        return Program(source, read=read)
