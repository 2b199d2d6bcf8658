"""Small pieces of HTML for notebooks. Everything that comes from outside is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from .text import visible

LONGEST = 4000  # characters of a text that are shown


def escaped(text: object) -> str:
    r"""Text for HTML, in one line; control characters are shown as escapes.

    >>> escaped("<b>\x1b")
    '&lt;b&gt;\\x1b'
    """
    return html.escape(visible(str(text)))


def table(head: Sequence[object], rows: Iterable[Sequence[object]], left: int = 1) -> str:
    """A table. The first `left` columns are aligned to the left, the others to the right."""

    def cells(kind: str, values: Sequence[object]) -> str:
        sides = ["left" if at < left else "right" for at in range(len(values))]
        return "".join(
            f'<{kind} style="text-align:{side}">{escaped(value)}</{kind}>'
            for side, value in zip(sides, values, strict=True)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{cells('th', head)}</tr></thead><tbody>{body}</tbody></table>"


def paragraph(text: object) -> str:
    """A paragraph."""
    return f"<p>{escaped(text)}</p>"


def title(text: object) -> str:
    """A line in bold."""
    return f"<p><b>{escaped(text)}</b></p>"


def preformatted(text: str) -> str:
    """A text with its lines, cut if it is long."""
    cut = text[:LONGEST]
    lines = "\n".join(escaped(line) for line in cut.split("\n"))
    more = f"\n... ({len(text) - LONGEST:,} more characters)" if len(text) > LONGEST else ""
    return f'<pre style="white-space:pre-wrap">{lines}{more}</pre>'


def whole(*parts: str) -> str:
    """The parts as one block."""
    return f"<div>{''.join(parts)}</div>"
