"""Reads a log with the candidates of several generators, which the column `generator` names."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import LogError
from .columns import WHOLE, is_absent
from .log import Log
from .readers import GENERATORS, is_censored, log_of
from .reading_options import Unlabelled
from .tables import ColumnTable, read_table

COLUMN = "generator"


def read_generators(
    path: str,
    names: Sequence[str] = (),
    *,
    score: str | None = None,
    unlabelled: Unlabelled = Unlabelled.ERROR,
) -> Log:
    """The log with the candidates of these generators, by default of all of them.

    Candidates are numbered per generator. A problem of this log has the candidates of the first
    generator, then those of the second, and so on.
    """
    return by_generator(read_table(path), names, score=score, unlabelled=unlabelled)


def by_generator(
    table: ColumnTable,
    names: Sequence[str] = (),
    *,
    score: str | None = None,
    unlabelled: Unlabelled = Unlabelled.ERROR,
) -> Log:
    """The log in a table; see `read_generators`."""
    if COLUMN not in table.columns:
        have = ", ".join(repr(name) for name in table.columns)
        raise LogError(
            f"no column {COLUMN!r}, which says what made each candidate; there are {have}",
            path=table.path,
        )
    values = ["" if is_absent(v) else str(v) for v in table.columns[COLUMN].tolist()]
    known = sorted(set(values) - {""})
    for name in names:
        if name not in known:
            there = ", ".join(known) or "none"
            raise LogError(f"no generator {name!r}; there are {there}", path=table.path)
    chosen = tuple(names) or tuple(known)
    numbers = {name: number for number, name in enumerate(chosen)}
    codes = np.array([numbers.get(value, -1) for value in values], dtype=np.int32)
    if score is None and not any(name.startswith("score") for name in table.columns):
        table = _without_score(table)
        score = "score"
    for number in range(len(chosen)):  # names the line of a mistake
        log_of(_part(table, codes == number), score=score, unlabelled=unlabelled)
    rows = _part(table, codes >= 0)
    codes = codes[codes >= 0]
    own = np.fromiter(map(WHOLE.read, rows.columns["candidate"].tolist()), dtype=np.int64)
    step = int(own.max() - own.min()) + 1
    columns = {**rows.columns, "candidate": own + step * codes, GENERATORS: codes}
    joint = dataclasses.replace(rows, columns=columns)
    log = log_of(joint, score=score, unlabelled=unlabelled)
    return dataclasses.replace(log, generators=chosen, censored=is_censored(table))


def _part(table: ColumnTable, kept: NDArray[np.bool_]) -> ColumnTable:
    """Some rows of a table."""
    columns: dict[str, NDArray[Any]] = {n: column[kept] for n, column in table.columns.items()}
    lines = [line for line, keep in zip(table.lines, kept.tolist(), strict=True) if keep]
    return dataclasses.replace(table, columns=columns, lines=lines)


def _without_score(table: ColumnTable) -> ColumnTable:
    """The table with a score that ranks nothing: with several generators none is needed."""
    return dataclasses.replace(table, columns={**table.columns, "score": np.zeros(table.rows)})
