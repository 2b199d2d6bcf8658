"""The files of a publication: figures as PDF and PNG, tables as LaTeX, Markdown, text and CSV."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import UsageError, installing
from ...files import replacing, write_whole
from ..drawing import Drawing
from ..parts import TABLES
from ..report import Report
from ..table import Table
from .job import FigureItem

_TEXTS: dict[str, Callable[[Table], str]] = {
    "tex": Table.to_latex,
    "md": Table.to_markdown,
    "txt": Table.to_text,
    "csv": Table.to_csv,
}
_PICTURES = ("pdf", "png")


@dataclass(frozen=True)
class Sheet:
    """A table to write as files: as a figure if it has a drawing, else as text.

    `is_brief` leaves out the column `log`, except in data files.
    """

    name: str
    table: Table
    drawing: Drawing | None = None
    is_brief: bool = False


def sheets_of(report: Report, items: Sequence[FigureItem] = ()) -> list[Sheet]:
    """The items; without any, all figures at each price list, and all tables."""
    found = [Sheet(item.id, item.of(report), item.drawing) for item in items]
    for table in report.tables if not items else ():
        found += [*_drawn(table), Sheet(table.name, table, is_brief=len(report.logs) == 1)]
    return [sheet for sheet in found if sheet.table.rows]


def _drawn(table: Table) -> list[Sheet]:
    """The drawings of a table, with names for each view and price list."""
    has_prices = "costs" in [column.name for column in table.columns]
    prices = list(dict.fromkeys(table.column("costs"))) if has_prices else [None]
    found = []
    for price in prices:
        own = table.only(costs=price) if has_prices else table
        for at, drawing in enumerate(TABLES[table.name].drawings):
            parts = [table.name, str(price) if len(prices) > 1 else "", drawing.view if at else ""]
            name = re.sub(r"[^\w.]+", "-", " ".join(part for part in parts if part)).strip("-")
            if _has_values(own, drawing):
                found.append(Sheet(name, own, drawing))
    return found


def _has_values(table: Table, drawing: Drawing) -> bool:
    """Whether both axes have values."""
    return all(
        any(value is not None for value in table.column(axis.column))
        for axis in (drawing.x, drawing.y)
    )


def check_plotting() -> None:
    """Fail early if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UsageError(f"--figures needs matplotlib: {installing('figures')}") from error


def write_sheets(
    report: Report,
    folder: str,
    items: Sequence[FigureItem] = (),
    progress: Callable[[int, int], None] | None = None,
) -> list[str]:
    """Write all sheets into a folder, and return the names of the files."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be made: {error.strerror}") from error
    sheets = sheets_of(report, items)
    files = []
    for done, sheet in enumerate(sheets):
        files += _write(report, Path(folder), sheet)
        if progress is not None:
            progress(done + 1, len(sheets))
    return files


def sheet_names(report: Report, items: Sequence[FigureItem] = ()) -> list[str]:
    """The names of the files that `write_sheets` writes."""
    return [
        f"{sheet.name}.{ending}"
        for sheet in sheets_of(report, items)
        for ending in (_TEXTS if sheet.drawing is None else _PICTURES)
    ]


def _write(report: Report, folder: Path, sheet: Sheet) -> list[str]:
    files = []
    if sheet.drawing is None:
        brief = sheet.table.without("log") if sheet.is_brief else sheet.table
        for ending, written in _TEXTS.items():
            table = sheet.table if ending == "csv" else brief
            write_whole(folder / f"{sheet.name}.{ending}", written(table) + "\n")
            files.append(f"{sheet.name}.{ending}")
        return files
    from ..page.page import styles_of
    from .plots import plot, save

    others = {name: report[name] for name in {one.table for one in sheet.drawing.layers} - {""}}
    figure = plot(sheet.table, sheet.drawing, others, styles_of(report))
    for ending in _PICTURES:
        with replacing(folder / f"{sheet.name}.{ending}") as path:
            save(figure, path, ending)
        files.append(f"{sheet.name}.{ending}")
    return files
