"""Tables in plain text."""

from __future__ import annotations

from collections.abc import Sequence

from ..text import visible


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
