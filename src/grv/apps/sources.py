"""What `grv report` is given: logs, ledgers of live runs, saved comparisons."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ..core.errors import LogError, UsageError
from ..files import is_sqlite
from ..learning.score_combination import read_scored
from ..logs.log import Log
from ..logs.readers import Unlabelled, log_of
from ..logs.tables import ColumnTable, column
from ..report.source import Source, is_comparison, read_comparison
from .console import parse_cascade


@dataclass(frozen=True)
class Given:
    """One file, as it is asked for.

    Attributes:
        path: of a log, a ledger or a saved comparison.
        name: what tables shall call it; the file's name where none is given.
        score: what ranks, as `grv compare` takes it: a column, a cascade, or a prior.
        rewards: the file that goes with a published `generations.jsonl`.
        unlabelled: what to do about candidates without a label.
    """

    path: str
    name: str = ""
    score: str | None = None
    rewards: str | None = None
    unlabelled: Unlabelled = "error"

    @classmethod
    def parse(cls, text: str) -> Given:
        """From `PATH` or `NAME=PATH`."""
        name, equals, path = text.partition("=")
        if not equals or os.path.exists(text):
            return cls(text)
        if not name or not path:
            raise UsageError(f"{text}: give a file, or NAME=FILE")
        return cls(path, name)


def parse_given(records: Any, path: str) -> tuple[Given, ...]:
    """The files that a job file names, as a list of tables."""
    if not isinstance(records, list) or not all(isinstance(each, dict) for each in records):
        raise UsageError(f"{path}: logs must be a list of tables, [[report.logs]]")
    known = [field.name for field in fields(Given)]
    for record in records:
        unknown = [name for name in record if name not in known]
        if unknown or not all(isinstance(value, str) for value in record.values()):
            said = f"unknown option {', '.join(unknown)}" if unknown else "what is no text"
            raise UsageError(f"{path}: a log has {said}; it may have {', '.join(known)}")
        if "path" not in record:
            raise UsageError(f"{path}: a log needs a path")
    return tuple(Given(**record) for record in records)


def read_sources(given: Sequence[Given]) -> tuple[Source, ...]:
    """What is in the files, under names that tell them apart."""
    return tuple(_read(each, name) for each, name in zip(given, _names(given), strict=True))


def _names(given: Sequence[Given]) -> list[str]:
    """The names asked for, or the shortest that tell the files and scores apart."""
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


def _read(given: Given, name: str) -> Source:
    if is_sqlite(given.path):
        return _read_ledger(given, name)
    if is_comparison(given.path):
        warning = (
            f"{name} is a saved comparison: tables that need its candidates are left out, and it"
            " was made with the options it was made with."
        )
        return Source(name, "comparison", None, read_comparison(given.path), (warning,))
    first, second, cascade = parse_cascade(given.score) or (given.score, None, None)
    log = read_scored(
        given.path, first, second=second, rewards=given.rewards, unlabelled=given.unlabelled
    )
    return Source(name, "log", log, None, _of_labels(name, log, given.unlabelled), cascade)


def _read_ledger(given: Given, name: str) -> Source:
    from ..ledger.sqlite import SqliteLedger
    from .exporting import log_columns

    if given.score not in (None, "score"):
        raise LogError(f"a ledger has no score {given.score!r}, but one", path=given.path)
    columns = {
        label: column(values)
        for label, values in log_columns(SqliteLedger(given.path, read_only=True)).items()
    }
    table = ColumnTable(given.path, columns, range(1, len(columns["problem"]) + 1))
    # Live, most candidates are never verified: that is the point of it.
    unlabelled: Unlabelled = "drop" if given.unlabelled == "error" else given.unlabelled
    log = log_of(table, unlabelled=unlabelled)
    log = replace(log, reading={"rewards": None, "unlabelled": unlabelled})
    return Source(name, "ledger", log, warnings=_of_labels(name, log, unlabelled))


def _of_labels(name: str, log: Log, unlabelled: Unlabelled) -> tuple[str, ...]:
    """What missing labels do to a report."""
    if not log.unlabelled:
        return ()
    total = log.candidates + (log.unlabelled if unlabelled == "drop" else 0)
    what = "left out" if unlabelled == "drop" else "counted as failed"
    return (
        f"{name}: {log.unlabelled} of {total} candidates were never verified and are {what}. Where"
        " a policy chose what to verify, those verified are not like the others: pass rates and AUC"
        " are not those of all candidates.",
    )
