"""Tables as text: CSV, aligned, Markdown, LaTeX. Cells are already formatted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from ...text import aligned, csv_text

Head = Sequence[tuple[str, str, bool]]  # a column's group, its label, whether it is text
Cells = Sequence[Sequence[str]]


def comma_separated(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """CSV; a missing value is empty."""
    return csv_text(names, rows)


def aligned_text(head: Head, cells: Cells) -> str:
    """Aligned columns; leading columns of text are left-aligned."""
    labels = [f"{label} {group}".strip() for group, label, _ in head]
    leading = next((at for at, (_, _, is_text) in enumerate(head) if not is_text), len(head))
    return aligned(labels, cells, left=leading)


def markdown(head: Head, cells: Cells, notes: Sequence[str]) -> str:
    """A Markdown table, then the notes as paragraphs."""
    labels = [_piped(f"{label} {group}".strip()) for group, label, _ in head]
    rules = ["---" if is_text else "---:" for _, _, is_text in head]
    lines = [labels, rules, *([_piped(cell) for cell in row] for row in cells)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return "\n\n".join([table, *notes]) + "\n"


def _piped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def booktabs(head: Head, cells: Cells, name: str, caption: str, notes: Sequence[str]) -> str:
    """A LaTeX table that needs the package booktabs."""
    layout = "".join("l" if is_text else "r" for _, _, is_text in head)
    lines = [f"% {note}" for note in notes]
    lines += [
        r"\begin{table}[t]",
        r"  \centering\small",
        rf"  \caption{{{escaped(caption)}}}",
        rf"  \label{{tab:{name}}}",
        rf"  \begin{{tabular}}{{{layout}}}",
        r"    \toprule",
        *_grouped(head),
        _line([escaped(label) for _, label, _ in head]),
        r"    \midrule",
        *(_line([escaped(cell) for cell in row]) for row in cells),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _grouped(head: Head) -> list[str]:
    """The line of group headings, if any column has a group."""
    runs = [(group, len(list(run))) for group, run in groupby(head, key=lambda column: column[0])]
    if not any(group for group, _ in runs):
        return []
    cells = []
    rules = []
    at = 1
    for group, width in runs:
        cells.append(rf"\multicolumn{{{width}}}{{c}}{{{escaped(group)}}}" if group else "")
        cells += [""] * (0 if group else width - 1)
        if group:
            rules.append(rf"\cmidrule(lr){{{at}-{at + width - 1}}}")
        at += width
    return [_line(cells), "    " + "".join(rules)]


def _line(cells: Sequence[str]) -> str:
    return f"    {' & '.join(cells)} \\\\"


def escaped(text: str) -> str:
    """Text with the special characters of LaTeX escaped."""
    return "".join(_SPECIAL.get(character, character) for character in text).replace("\n", " ")


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "×": r"$\times$",
    "ρ": r"$\rho$",
}
