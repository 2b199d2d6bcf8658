"""Collects the rows and notes of all tables while a report is made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from .schema import TableSchema
from .table import Cell, Table


class RowCollector:
    """Rows and notes per table, and the warnings of the report."""

    def __init__(self) -> None:
        self._rows: dict[str, list[tuple[Cell, ...]]] = defaultdict(list)
        self._notes: dict[str, list[str]] = defaultdict(list)
        self.warnings: list[str] = []

    def add(self, table: TableSchema, *row: Cell) -> None:
        """Add one row to a table."""
        self._rows[table.name].append(row)

    def note(self, tables: TableSchema | Iterable[TableSchema], text: str) -> None:
        """Add a note under one table or several."""
        for table in (tables,) if isinstance(tables, TableSchema) else tables:
            self._notes[table.name].append(text)

    def note_no_interval(self, tables: TableSchema | Iterable[TableSchema], log: str) -> None:
        """Explain missing intervals: they resample problems, and the log has one."""
        self.note(tables, f"{log}: there are no intervals, because there is only one problem.")

    def tables(self, schemas: Iterable[TableSchema]) -> tuple[Table, ...]:
        """The tables with these schemas. An empty table has at least one note."""
        made = []
        for schema in schemas:
            found = self._rows[schema.name]
            notes = self._notes[schema.name]
            if not found and not notes:
                notes = ["There is nothing to show here."]
            made.append(schema.table(found, notes))
        return tuple(made)
