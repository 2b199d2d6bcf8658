"""Reads how often each of several generators passed and failed, from logs and ledgers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.errors import LogError, UsageError
from ..core.values import REFUTED, Verdict
from ..ledger.entries import Entry, Found, Made, Scored
from ..ledger.opening import is_ledger, open_ledger
from ..logs.generators import COLUMN, by_generator
from ..logs.log import Log
from ..logs.reading import Unlabelled
from ..logs.tables import read_table
from .joint import Tally


def read_tallies(path: str, names: Sequence[str]) -> list[Tally]:
    """The passes and failures of these generators on each problem of a log or a ledger."""
    if is_ledger(path):
        found = _of_ledger(path)
    else:
        table = read_table(path)
        if COLUMN not in table.columns:
            raise LogError(f"no column {COLUMN!r}: this history has no names", path=path)
        found = tallies_of(by_generator(table, unlabelled=Unlabelled.DROP))
    kept: list[Tally] = [{name: tally[name] for name in names if name in tally} for tally in found]
    missing = [name for name in names if not any(name in tally for tally in kept)]
    if missing:
        raise UsageError(f"{path}: nothing about the generator {missing[0]!r}")
    return kept


def tallies_of(log: Log) -> list[Tally]:
    """The passes and failures in a log that was read by generator."""
    found: list[Tally] = []
    for problem in log.problems:
        assert problem.generators is not None
        rows = [problem.passed[problem.generators == n] for n in range(len(log.generators))]
        counts = [(int(row.sum()), int(np.size(row) - row.sum())) for row in rows]
        found.append({n: c for n, c in zip(log.generators, counts, strict=True) if sum(c)})
    return found


def _of_ledger(path: str) -> list[Tally]:
    ledger = open_ledger(path, read_only=True)
    return [tally_of_entries(ledger.read(summary.id)) for summary in ledger.searches()]


def tally_of_entries(entries: Sequence[Entry]) -> Tally:
    """The passes and failures of one search. A candidate with a key that failed has failed too."""
    made = {each.candidate: each.generator for each in entries if isinstance(each, Made)}
    keys = {each.candidate: each.key for each in entries if isinstance(each, Scored)}
    found = {each.candidate: each.verdict for each in entries if isinstance(each, Found)}
    wrong = {keys.get(id) for id, verdict in found.items() if verdict is Verdict.FAILED}
    wrong = (wrong | {REFUTED}) - {None}
    counts: dict[str, list[int]] = {}
    for id, name in made.items():
        passed = found.get(id) is Verdict.PASSED
        if name and (passed or found.get(id) is Verdict.FAILED or keys.get(id) in wrong):
            counts.setdefault(name, [0, 0])[not passed] += 1
    return {name: (passed, failed) for name, (passed, failed) in counts.items()}
