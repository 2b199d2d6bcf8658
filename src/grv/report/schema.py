"""The schema of a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from .drawing import Drawing
from .table import Cell, Column, Table


@dataclass(frozen=True)
class TableSchema:
    """What a table holds, for any log.

    Tables are long: one row per log (`log`) and price list (`costs`), wherever these matter. The
    page filters and colours by these columns.

    Attributes:
        name: for programs.
        title: for people.
        caption: how to read the table.
        alt: what its drawing shows.
        columns: in order.
        drawings: how the table is drawn; none if it is only read.
        compares: `log` or `costs` if the table needs several of them to say anything new.
        spread: the columns that are repeated side by side for each value of `compares`.
    """

    name: str
    title: str
    caption: str
    alt: str
    columns: tuple[Column, ...]
    drawings: tuple[Drawing, ...] = ()
    compares: Literal["", "log", "costs"] = ""
    spread: tuple[str, ...] = ()

    def table(self, rows: Iterable[tuple[Cell, ...]], notes: Iterable[str]) -> Table:
        """The table with these rows and notes; each note once."""
        made = Table(
            self.name,
            self.title,
            self.caption,
            self.alt,
            self.columns,
            tuple(rows),
            tuple(dict.fromkeys(notes)),
        )
        return made.across(self.compares, self.spread) if self.spread else made
