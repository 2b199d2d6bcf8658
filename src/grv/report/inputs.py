"""The inputs of a report: logs, ledgers of live runs, and saved comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from ..comparing.batch_row import BatchRow
from ..comparing.comparison import FORMAT, Comparison, LogSummary, Row
from ..comparing.significance import PairTest
from ..core.errors import LogError, UsageError
from ..core.values import Cascade, Costs, Measured
from ..files import parse_json, read_bytes, typed
from ..learning.score_combination import read_scored
from ..ledger.opening import is_ledger
from ..logs.buffers import column
from ..logs.generators import read_generators
from ..logs.log import Log
from ..logs.readers import log_of
from ..logs.reading_options import Unlabelled
from ..logs.tables import ColumnTable
from ..parsing import parse_cascade
from .report import LogFacts
from .request import SourceFile

_Row = TypeVar("_Row", Row, BatchRow)


@dataclass(frozen=True, eq=False)
class ReportSource:
    """A log or a comparison, exactly one of them.

    Attributes:
        name: its name in tables.
        kind: where it comes from.
        log: a log with candidates.
        comparison: a comparison without candidates.
        warnings: sentences on what may mislead a reader.
        cascade: how policies use the second scores of the log, if they do.
        bounded: the same log with all candidates, if `log` leaves out those without a label.
    """

    name: str
    kind: Literal["log", "ledger", "comparison"] = "log"
    log: Log | None = None
    comparison: Comparison | None = None
    warnings: tuple[str, ...] = ()
    cascade: Cascade | None = None
    bounded: Log | None = None

    def __post_init__(self) -> None:
        if (self.log is None) == (self.comparison is None):
            raise UsageError(f"{self.name}: give a log or a comparison")

    def facts(self) -> LogFacts:
        """The counts of the log."""
        if self.log is not None:
            log = self.log
            score = self.log.score
            if self.cascade is not None:
                score += f", then {log.second} for the best {self.cascade.top}"
            return LogFacts(
                self.name,
                log.path,
                self.kind,
                score,
                len(log.problems) + len(log.bare),
                len(log.solvable),
                log.candidates,
                log.unlabelled,
                sum(problem.unscored for problem in log.problems),
                (*(problem.id for problem in log.unsolvable), *log.bare),
                log.refuted,
                log.published,
                log.judged,
            )
        assert self.comparison is not None
        saved = self.comparison.log
        settings = self.comparison.settings
        return LogFacts(
            self.name,
            str(settings.get("log", "")),
            self.kind,
            str(settings.get("score", "")),
            saved.problems,
            saved.solvable,
            saved.candidates,
            saved.unlabelled,
            saved.unscored,
            tuple(saved.excluded),
            saved.refuted,
            saved.published,
            saved.judged,
        )


def read_sources(
    given: Sequence[SourceFile], generators: Sequence[str] = ()
) -> tuple[ReportSource, ...]:
    """The contents of the files, with names that tell them apart.

    If generators are named, logs have the candidates of these only.
    """
    return tuple(
        _read(each, name, generators) for each, name in zip(given, _names(given), strict=True)
    )


def _names(given: Sequence[SourceFile]) -> list[str]:
    """The given names, or the shortest that tell the files and scores apart."""
    stems = [each.name or Path(each.path).stem for each in given]
    paths = [each.name or each.path for each in given]
    scores = [f" {each.score}" if each.score else "" for each in given]
    scored = [stem + score for stem, score in zip(stems, scores, strict=True)]
    names = [path + score for path, score in zip(paths, scores, strict=True)]
    for shorter in (stems, scored, names):
        if len(set(shorter)) == len(shorter):
            return shorter
    twice = next(name for name in names if names.count(name) > 1)
    raise UsageError(f"{twice}: given twice; NAME=FILE gives it another name")


def _read(given: SourceFile, name: str, generators: Sequence[str]) -> ReportSource:
    if is_ledger(given.path):
        return _read_ledger(given, name)
    if is_comparison(given.path):
        warning = (
            f"{name} is a saved comparison: tables that need its candidates are left out, and it"
            " keeps the options of its own run."
        )
        return ReportSource(name, "comparison", None, read_comparison(given.path), (warning,))
    if generators:
        unlabelled = given.reading.unlabelled
        log = read_generators(given.path, generators, score=given.score, unlabelled=unlabelled)
        log = log if given.reading.refute else log.without_refutations()
        return ReportSource(name, "log", log, None, _of_labels(name, log, unlabelled))
    first, second, cascade = parse_cascade(given.score) or (given.score, None, None)
    log = read_scored(given.path, first, second=second, reading=given.reading)
    warnings = _of_labels(name, log, given.reading.unlabelled)
    return ReportSource(name, "log", log, None, warnings, cascade)


def _read_ledger(given: SourceFile, name: str) -> ReportSource:
    from ..ledger.opening import open_ledger
    from ..runtime.export import log_columns

    if given.score not in (None, "score"):
        raise LogError(f"a ledger has only one score, not {given.score!r}", path=given.path)
    columns = {
        label: column(values)
        for label, values in log_columns(open_ledger(given.path, read_only=True)).items()
    }
    table = ColumnTable(given.path, columns, range(1, len(columns["problem"]) + 1))
    # A live run does not verify most of its candidates.
    unlabelled = given.reading.unlabelled
    if unlabelled is Unlabelled.ERROR:
        unlabelled = Unlabelled.DROP
    alike = "alike" if "alike" in columns else None
    log = log_of(table, unlabelled=unlabelled, alike=alike)
    log = replace(log, reading={"rewards": None, "unlabelled": unlabelled})
    bounded = None
    if given.reading.unlabelled is Unlabelled.ERROR and log.unlabelled:
        bounded = log_of(table, unlabelled=Unlabelled.BOUND, alike=alike)
    if not given.reading.refute:
        log = log.without_refutations()
        bounded = None if bounded is None else bounded.without_refutations()
    warnings = _of_labels(name, log, unlabelled)
    return ReportSource(name, "ledger", log, warnings=warnings, bounded=bounded)


def _of_labels(name: str, log: Log, unlabelled: Unlabelled) -> tuple[str, ...]:
    """The warning about missing labels."""
    if not log.unlabelled:
        return ()
    total = log.candidates + (log.unlabelled if unlabelled is Unlabelled.DROP else 0)
    what = "left out" if unlabelled is Unlabelled.DROP else "counted as failed"
    return (
        f"{name}: {log.unlabelled} of {total} candidates were never verified and are {what}. If"
        " a policy chose what to verify, the verified candidates differ from the others: pass rates"
        " and AUC are not those of all candidates.",
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
        rows = tuple(_row(row, Row) for row in saved.rows)
        batches = tuple(_row(row, BatchRow) for row in saved.batches)
    except ValueError as error:
        raise LogError(f"not what grv compare --json writes: {error}", path=path) from error
    tests = saved.tests.pairs if saved.tests is not None else ()
    return Comparison(saved.log, saved.settings, rows, saved_pairs=tests, batches=batches)


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
    batches: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class _Prices:
    """The price list of a row."""

    generate: float
    verify: float
    failure: float | None = None
    measured: bool = False


def _row(record: Mapping[str, Any], row: type[_Row]) -> _Row:
    prices = typed(_Prices, record.get("costs"))
    kind = Measured if prices.measured else Costs
    costs = kind(prices.generate, prices.verify, failure=prices.failure)
    return typed(row, {**record, "costs": costs})
