"""The input of a report: a log with its candidates, or a saved comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ...core.errors import LogError, UsageError
from ...core.values import Cascade, Costs, Measured
from ...experiments.comparison import FORMAT, Comparison, LogSummary, Row
from ...experiments.significance import PairTest
from ...files import parse_json, read_bytes, typed
from ...logs.log import Log
from ..report import LogFacts


@dataclass(frozen=True, eq=False)
class Source:
    """A log or a comparison, exactly one of them.

    Attributes:
        name: its name in tables.
        kind: where it comes from.
        log: a log with candidates.
        comparison: a comparison without candidates.
        warnings: sentences on what may mislead a reader.
        cascade: how policies use the second scores of the log, if they do.
    """

    name: str
    kind: Literal["log", "ledger", "comparison"] = "log"
    log: Log | None = None
    comparison: Comparison | None = None
    warnings: tuple[str, ...] = ()
    cascade: Cascade | None = None

    def __post_init__(self) -> None:
        if (self.log is None) == (self.comparison is None):
            raise UsageError(f"{self.name}: give a log or a comparison")

    def facts(self) -> LogFacts:
        """The counts of the log."""
        if self.log is not None:
            log, score = self.log, self.log.score
            if self.cascade is not None:
                score += f", then {log.second} for the best {self.cascade.top}"
            return LogFacts(
                *(self.name, log.path, self.kind, score),
                *(len(log.problems) + len(log.bare), len(log.solvable), log.candidates),
                *(log.unlabelled, sum(problem.unscored for problem in log.problems)),
                (*(problem.id for problem in log.unsolvable), *log.bare),
                log.refuted,
            )
        assert self.comparison is not None
        saved, settings = self.comparison.log, self.comparison.settings
        return LogFacts(
            *(self.name, str(settings.get("log", "")), self.kind, str(settings.get("score", ""))),
            *(saved.problems, saved.solvable, saved.candidates, saved.unlabelled, saved.unscored),
            tuple(saved.excluded),
            saved.refuted,
        )


def is_comparison(path: str) -> bool:
    """Whether the file was written by `grv compare --json`, and is not a log in JSON lines."""
    if not path.lower().endswith(".json"):
        return False
    try:
        record = parse_json(read_bytes(path))
    except (UsageError, ValueError):
        return False
    return isinstance(record, dict) and {"format", "settings", "rows", "log"} <= record.keys()


def read_comparison(path: str) -> Comparison:
    """Read what `grv compare --json` saved: a comparison without its trials."""
    try:
        record = parse_json(read_bytes(path), finite=True)
    except UsageError:
        raise
    except ValueError as error:
        raise LogError(f"cannot be read as a comparison: {error}", path=path) from error
    return parse_comparison(record, path)


def parse_comparison(record: Mapping[str, Any], path: str = "") -> Comparison:
    """The inverse of `Comparison.to_json`."""
    if not isinstance(record, Mapping) or record.get("format") != FORMAT:
        said = record.get("format") if isinstance(record, Mapping) else None
        raise LogError(f"not a comparison of format {FORMAT}, but of {said!r}", path=path)
    try:
        saved = typed(_Saved, record)
        rows = tuple(_row(row) for row in saved.rows)
    except ValueError as error:
        raise LogError(f"not what grv compare --json writes: {error}", path=path) from error
    tests = saved.tests.pairs if saved.tests is not None else ()
    return Comparison(saved.log, saved.settings, rows, saved_pairs=tests)


@dataclass(frozen=True)
class _Tests:
    """The paired tests of a comparison."""

    pairs: tuple[PairTest, ...]


@dataclass(frozen=True)
class _Saved:
    """The record of a comparison."""

    log: LogSummary
    settings: Mapping[str, Any]
    rows: tuple[Mapping[str, Any], ...]
    tests: _Tests | None = None


@dataclass(frozen=True)
class _Prices:
    """The price list of a row."""

    generate: float
    verify: float
    measured: bool = False


def _row(record: Mapping[str, Any]) -> Row:
    prices = typed(_Prices, record.get("costs"))
    kind = Measured if prices.measured else Costs
    return typed(Row, {**record, "costs": kind(prices.generate, prices.verify)})
