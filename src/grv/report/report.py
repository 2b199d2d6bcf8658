"""A report: all tables of some logs, what they were made with, and what is to be said first."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..replay.writing import write_whole
from .table import Table

FORMAT = 1


@dataclass(frozen=True)
class LogFacts:
    """What a report was made on. Counts are of the log, not of what was compared.

    Attributes:
        name: as tables call it.
        path: the file.
        kind: `log`, `ledger` of live runs, or a saved `comparison`.
        score: what ranks.
        problems: in the log.
        solvable: with at least one pass.
        candidates: in the log.
        unlabelled: candidates without a label.
        unscored: candidates without a score.
        excluded: the names of the problems left out of the comparison.
    """

    name: str
    path: str
    kind: str
    score: str
    problems: int
    solvable: int
    candidates: int
    unlabelled: int
    unscored: int
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """The numbers of a page.

    Attributes:
        settings: how it was made; enough to make it again.
        logs: what it was made on.
        findings: what to say first: the conclusions, in sentences.
        warnings: what to be careful about, in sentences.
        tables: in the order of the page.
    """

    settings: Mapping[str, Any]
    logs: tuple[LogFacts, ...]
    findings: tuple[str, ...]
    warnings: tuple[str, ...]
    tables: tuple[Table, ...]

    def __getitem__(self, name: str) -> Table:
        """The table of that name."""
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "format": FORMAT,
            "settings": dict(self.settings),
            "logs": [{**asdict(log), "excluded": list(log.excluded)} for log in self.logs],
            "findings": list(self.findings),
            "warnings": list(self.warnings),
            "tables": [table.to_json() for table in self.tables],
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Report:
        """From what `to_json` gives."""
        logs = [{**log, "excluded": tuple(log["excluded"])} for log in record["logs"]]
        return cls(
            record["settings"],
            tuple(LogFacts(**log) for log in logs),
            tuple(record["findings"]),
            tuple(record["warnings"]),
            tuple(map(Table.from_json, record["tables"])),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the numbers as JSON, replacing the file whole."""
        write_whole(path, json.dumps(self.to_json(), separators=(",", ":")) + "\n")

    @property
    def csv_names(self) -> list[str]:
        """The names of the files that `save_csv` writes."""
        return [f"{table.name}.csv" for table in self.tables]

    def save_csv(self, folder: str | os.PathLike[str]) -> None:
        """Write each table as a CSV file of its name into a folder."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name, table in zip(self.csv_names, self.tables, strict=True):
            write_whole(Path(folder) / name, table.to_csv())
