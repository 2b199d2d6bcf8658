"""Text: safe to show on a terminal or in a spreadsheet, aligned tables, names, checksums."""

from __future__ import annotations

import csv
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from types import SimpleNamespace

# A spreadsheet reads such a cell as a formula. `csv_text` puts an apostrophe before it.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_QUOTED = re.compile(r"'+[=+\-@\t\r\n]")
TEXT_HASH = 8  # bytes of a hash of a text


def visible(text: str) -> str:
    r"""The text in one line, with escapes for characters that could control a terminal.

    These are control characters, marks that change the direction of writing, line separators, and
    lone surrogates.

    >>> visible("a\x1b[2Jb\n")
    'a\\x1b[2Jb\\n'
    """
    if text.isprintable():
        return text
    return "".join(
        each
        if each.isprintable() or unicodedata.category(each) == "Zs"
        else each.encode("unicode_escape").decode("ascii")
        for each in text
    )


def csv_text(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    r"""A table as CSV; None is an empty cell.

    Texts that a spreadsheet would take for a formula get an apostrophe; `unquoted` removes it.

    >>> csv_text(["a", "b"], [["=1+1", -2], [None, "x"]])
    "a,b\n'=1+1,-2\n,x\n"
    """
    lines: list[str] = []
    # The csv module quotes cells that contain a character of the line terminator, hence both.
    writer = csv.writer(SimpleNamespace(write=lines.append), lineterminator="\r\n")
    writer.writerow([_cell(name) for name in names])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return "".join(f"{line[:-2]}\n" for line in lines)


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def unquoted(cell: str) -> str:
    """The text of a cell that `csv_text` wrote."""
    return cell[1:] if _QUOTED.match(cell) else cell


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Aligned columns: the first `left` of them to the left, the others to the right.

    >>> print(aligned(["name", "cost"], [["a", "7"], ["long name", "12"]]))
    name       cost
    a             7
    long name    12
    """
    lines = [[visible(cell) for cell in line] for line in (head, *rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


_LONE_SURROGATE = re.compile("[\\ud800-\\udfff]")  # valid in JSON, but no file can hold it


def counted(number: float, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "problem"), counted(0, "problem"), counted(3, "search")
    ('1 problem', '0 problems', '3 searches')
    """
    if number == 1:
        return f"1 {noun}"
    return f"{number:.15g} {noun}" + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def shortened(text: str, most: int) -> str:
    """The text, with dots at its end if it is cut.

    >>> shortened("no connection", 13), shortened("no connection", 10)
    ('no connection', 'no conn...')
    """
    return text if len(text) <= most else f"{text[: most - 3]}..."


def is_name(value: object) -> bool:
    r"""Whether a value can name a problem: text that UTF-8 can encode, or a whole number.

    >>> is_name("p1"), is_name(7), is_name(""), is_name("\ud800"), is_name(True)
    (True, True, False, False, False)
    """
    if isinstance(value, str):
        return value != "" and not _LONE_SURROGATE.search(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


def text_hash(text: str) -> bytes:
    """A hash of a candidate's text, by which files that do not contain the text refer to it."""
    content = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=TEXT_HASH).digest()


def checksum(text: str) -> str:
    """The SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
