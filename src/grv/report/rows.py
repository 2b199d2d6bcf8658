"""Where the rows and notes of all tables are gathered while a report is made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .contents import BY_NAME, FIGURES
from .table import Cell, Table


class Sheets:
    """Rows and notes by the name of the table."""

    def __init__(self) -> None:
        self._rows: dict[str, list[tuple[Cell, ...]]] = {f.name: [] for f in FIGURES}
        self._notes: dict[str, list[str]] = {f.name: [] for f in FIGURES}
        self.warnings: list[str] = []

    def add(self, name: str, rows: Iterable[Sequence[Cell]]) -> None:
        """More rows of a table."""
        self._rows[name] += [tuple(row) for row in rows]

    def note(self, names: str | Iterable[str], text: str) -> None:
        """One more note under a table, or under several."""
        for name in (names,) if isinstance(names, str) else names:
            self._notes[name].append(text)

    def tables(self) -> tuple[Table, ...]:
        """All tables. One that is empty says so, if nothing else was said of it."""
        made = []
        for name, figure in BY_NAME.items():
            notes = self._notes[name]
            if not self._rows[name] and not notes:
                notes = ["There is nothing to show here."]
            made.append(figure.table(self._rows[name], notes))
        return tuple(made)
