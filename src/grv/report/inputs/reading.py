"""Reads the files of a report: logs, ledgers of live runs, saved comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ...core.errors import LogError, UsageError
from ...learning.score_combination import read_scored
from ...ledger.opening import is_ledger
from ...logs.buffers import column
from ...logs.generators import read_generators
from ...logs.log import Log
from ...logs.readers import log_of
from ...logs.reading import Unlabelled
from ...logs.tables import ColumnTable
from ...parsing import parse_cascade
from .given import Given
from .source import Source, is_comparison, read_comparison


def read_sources(given: Sequence[Given], generators: Sequence[str] = ()) -> tuple[Source, ...]:
    """The contents of the files, with names that tell them apart.

    If generators are named, logs have the candidates of these only.
    """
    return tuple(
        _read(each, name, generators) for each, name in zip(given, _names(given), strict=True)
    )


def _names(given: Sequence[Given]) -> list[str]:
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


def _read(given: Given, name: str, generators: Sequence[str]) -> Source:
    if is_ledger(given.path):
        return _read_ledger(given, name)
    if is_comparison(given.path):
        warning = (
            f"{name} is a saved comparison: tables that need its candidates are left out, and it"
            " keeps the options of its own run."
        )
        return Source(name, "comparison", None, read_comparison(given.path), (warning,))
    if generators:
        unlabelled = given.reading.unlabelled
        log = read_generators(given.path, generators, score=given.score, unlabelled=unlabelled)
        return Source(name, "log", log, None, _of_labels(name, log, unlabelled))
    first, second, cascade = parse_cascade(given.score) or (given.score, None, None)
    log = read_scored(given.path, first, second=second, reading=given.reading)
    warnings = _of_labels(name, log, given.reading.unlabelled)
    return Source(name, "log", log, None, warnings, cascade)


def _read_ledger(given: Given, name: str) -> Source:
    from ...ledger.opening import open_ledger
    from ...runtime.results.export import log_columns

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
    return Source(name, "ledger", log, warnings=_of_labels(name, log, unlabelled))


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
