"""Text for people: foreign text made visible, cells of a spreadsheet, tables."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterable, Sequence
from types import SimpleNamespace

# A spreadsheet takes a cell that begins so for a formula. Apostrophes before it are ours.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_QUOTED = re.compile(r"'+[=+\-@\t\r\n]")


def visible(text: str) -> str:
    r"""The text in one line, with every character that a terminal would obey as an escape.

    Those are control characters, which begin escape sequences, marks that change the direction of
    writing, line separators, and halves of characters.

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
    """A table as CSV; nothing where a value is None.

    An apostrophe stands before texts that a spreadsheet would take for a formula; `unquoted` takes
    it away. Numbers stay numbers.
    """
    lines: list[str] = []
    # A cell is quoted if it has a character of the line's end in it, hence both.
    writer = csv.writer(SimpleNamespace(write=lines.append), lineterminator="\r\n")
    writer.writerow([_cell(name) for name in names])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return "".join(f"{line[:-2]}\n" for line in lines)


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def unquoted(cell: str) -> str:
    """What a cell that `csv_text` wrote says."""
    return cell[1:] if _QUOTED.match(cell) else cell


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Columns side by side: the first `left` to the left, the others to the right.

    A cell is one line, whatever it says.
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
