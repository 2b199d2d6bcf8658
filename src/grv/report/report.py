"""A report: the tables of some logs, the settings behind them, and the conclusions."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..files import write_whole
from .table import Table

if TYPE_CHECKING:
    from .figures import Picture

FORMAT = 2


@dataclass(frozen=True)
class LogFacts:
    """The log behind a report. The counts are of the whole log.

    Attributes:
        name: its name in tables.
        path: the file.
        kind: `log`, `ledger` of live runs, or a saved `comparison`.
        score: the score that ranks candidates.
        problems: the number of problems.
        solvable: the number of problems with at least one pass.
        candidates: the number of candidates.
        unlabelled: the number of candidates without a label.
        unscored: the number of candidates without a score.
        excluded: the names of the problems left out of the comparison.
        refuted: the number of candidates refuted without verification; no row verifies them.
        published: the number of candidates whose label is that of the paper's published code.
        judged: the number of candidates whose label is that of a check that errs.
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
    refuted: int = 0
    published: int = 0
    judged: int = 0


@dataclass(frozen=True)
class Conclusion:
    """A question, and the sentences that answer it."""

    question: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """The contents of a page.

    Attributes:
        settings: the options, enough to make the report again.
        logs: the logs behind it.
        conclusions: the answers to the main questions.
        warnings: sentences on what may mislead a reader.
        tables: in the order of the page.
    """

    settings: Mapping[str, Any]
    logs: tuple[LogFacts, ...]
    conclusions: tuple[Conclusion, ...]
    warnings: tuple[str, ...]
    tables: tuple[Table, ...]

    def __getitem__(self, name: str) -> Table:
        """The table of that name."""
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(name)

    @property
    def figures(self) -> dict[str, Picture]:
        """All figures, by name. A notebook shows them; see `Picture`."""
        from .figures import figures_of

        return figures_of(self)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "format": FORMAT,
            "settings": dict(self.settings),
            "logs": [{**asdict(log), "excluded": list(log.excluded)} for log in self.logs],
            "conclusions": [
                {"question": each.question, "sentences": list(each.sentences)}
                for each in self.conclusions
            ],
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
            tuple(Conclusion(c["question"], tuple(c["sentences"])) for c in record["conclusions"]),
            tuple(record["warnings"]),
            tuple(map(Table.from_json, record["tables"])),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything as JSON; the file is replaced as a whole."""
        write_whole(path, json.dumps(self.to_json(), separators=(",", ":")) + "\n")

    @property
    def csv_names(self) -> list[str]:
        """The names of the files that `save_csv` writes."""
        return [f"{table.name}.csv" for table in self.tables]

    def save_csv(self, folder: str | os.PathLike[str]) -> None:
        """Write each table as a CSV file into a folder, under its name."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name, table in zip(self.csv_names, self.tables, strict=True):
            write_whole(Path(folder) / name, table.to_csv())
