"""Reads logs: Parquet, JSON lines, CSV, and the two files of the published code.

A log has the columns `problem`, `candidate`, `passed`, at least one score, and optionally `key`,
`refuted`, `shared`, `generate_cost`, `verify_cost`, `failed_stage`, `stage_costs`, `expected_cost`,
`censored`, `text` and `prompt`. An error is one line that names the file, the line or row, and the
value.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import LogError, UsageError
from ..core.values import REFUTED
from ..files import shown
from ..frames import frame_columns, index_names
from ..options import choose, misspelt
from ..text import is_name
from .buffers import column
from .columns import LABEL, PRICE, SCORE, WHOLE, ColumnKind, key_name
from .log import Log, LoggedProblem, classes
from .reading_options import Unlabelled
from .stages import StageCosts, read_stages
from .tables import ColumnTable, read_table

REQUIRED = ("problem", "candidate", "passed")
OPTIONAL = (
    "key",
    "refuted",
    "shared",
    "generate_cost",
    "verify_cost",
    "failed_stage",
    "stage_costs",
    "expected_cost",
    "generator",
    "censored",
    "labels",
    "text",
    "prompt",
)
JUDGED = "judged"  # in the column labels: by a check that errs
PUBLISHED = "published"  # in the column labels: by the rules of the paper's published code
_FRAME = "the data frame"  # stands for the path of a file
GENERATORS = "generators"  # numbers of generators, which `generators.py` adds to a table


def read_log(
    path: str,
    *,
    score: str | None = None,
    second: str | None = None,
    rewards: str | None = None,
    unlabelled: Unlabelled | str = Unlabelled.ERROR,
    may_bound: bool = False,
    alike: str | None = None,
    refute: bool = True,
) -> Log:
    """The log in a file.

    Args:
        path: Parquet, JSON lines or CSV by its ending; or the `generations.jsonl` or
            `verified.jsonl` of the published code.
        score: the column that ranks; optional if there is only one, or in published files.
        second: the column with second scores, for cascades.
        rewards: the `rewards.jsonl` that belongs to a published file.
        unlabelled: what to do about candidates without a label: an error, count them as failed,
            drop them, or keep them for bounds.
        may_bound: whether to keep them, instead of an error, if the log is censored.
        alike: the column of `LoggedProblem.alike`; None for the score.
        refute: whether refuted candidates are never verified; if not, they are like others.
    """
    unlabelled = choose(Unlabelled, unlabelled, "unlabelled")
    if rewards is not None:
        from .published import ranks_by, read_published

        table = read_published(path, rewards)
        score = score or ranks_by(table)
    else:
        table = read_table(path)
    if may_bound and unlabelled is Unlabelled.ERROR and is_censored(table):
        unlabelled = Unlabelled.BOUND
    log = log_of(table, score=score, unlabelled=unlabelled, second=second, alike=alike)
    log = dataclasses.replace(log, reading={"rewards": rewards, "unlabelled": unlabelled})
    return log if refute else log.without_refutations()


def log_of_frame(
    frame: Any,
    *,
    score: str | None = None,
    second: str | None = None,
    unlabelled: Unlabelled | str = Unlabelled.ERROR,
    alike: str | None = None,
) -> Log:
    """The log in a data frame; see `Log.from_frame`."""
    unlabelled = choose(Unlabelled, unlabelled, "unlabelled")
    columns = frame_columns(frame)
    hidden = [name for name in index_names(frame) if name in REQUIRED and name not in columns]
    if hidden:
        raise UsageError(
            f"{_quoted(hidden)} is in the frame's index, not a column: use frame.reset_index()"
        )
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise UsageError("the columns of the frame differ in length")
    arrays = {name: column(values) for name, values in columns.items()}
    table = ColumnTable(_FRAME, arrays, range(1, max(lengths, default=0) + 1))
    if unlabelled is Unlabelled.ERROR and is_censored(table):
        unlabelled = Unlabelled.BOUND
    log = log_of(table, score=score, unlabelled=unlabelled, second=second, alike=alike)
    return dataclasses.replace(log, reading={"rewards": None, "unlabelled": unlabelled})


def is_censored(table: ColumnTable) -> bool:
    """Whether a search chose which candidates of the table to verify."""
    marks = table.columns.get("censored", np.zeros(0, dtype=np.bool_)).tolist()
    return any(mark is True or str(mark).lower() in ("true", "1") for mark in marks)


def log_of(
    table: ColumnTable,
    *,
    score: str | None = None,
    unlabelled: Unlabelled | str = Unlabelled.ERROR,
    second: str | None = None,
    alike: str | None = None,
) -> Log:
    """The log in a table; see `read_log`."""
    return _Columns(table, score, unlabelled, second, alike).log()


@dataclass(frozen=True)
class _Columns:
    """Makes a log from a table."""

    table: ColumnTable
    wanted: str | None
    unlabelled: Unlabelled | str
    second: str | None = None
    alike: str | None = None

    def log(self) -> Log:
        """Check every column, then group the rows by problem."""
        self._check_names()
        score = self._score_name()
        second = None if self.second is None else self._score_name(self.second)
        alike = None if self.alike is None else self._score_name(self.alike)
        problems = self._problems()
        candidates = self._column("candidate", WHOLE)
        labels = self._column("passed", LABEL)
        keys = self._keys()
        refuted = self._refuted(labels, keys)
        if keys is not None:  # a refuted candidate is in no other class
            keys = [None if out else key for key, out in zip(keys, refuted.tolist(), strict=True)]
        missing = (labels < 0) & ~refuted
        if missing.any() and self.unlabelled == "error":
            at = int(np.flatnonzero(missing)[0])
            raise self._error(
                at,
                f"no label for candidate {candidates[at]} of {problems.name(at)!r}"
                f" ({int(missing.sum())} have none; --unlabelled fail or drop accepts them, and"
                " bound in grv compare)",
            )
        columns: dict[str, NDArray[Any]] = {"scores": self._scores(score)}
        others = {"second": second, "alike": alike}
        columns |= {what: self._scores(name) for what, name in others.items() if name is not None}
        if refuted.any():
            columns["refuted"] = refuted
        if "shared" in self.table.columns and (free := self._column("shared", LABEL) > 0).any():
            columns["shared"] = free
        if GENERATORS in self.table.columns:
            columns[GENERATORS] = self.table.columns[GENERATORS]
        kept = ~missing if self.unlabelled == "drop" else np.ones(len(missing), dtype=np.bool_)
        stages = self._stages()
        prices, unpriced = self._prices(kept, refuted, stages)
        if stages is not None:
            columns["stages"] = stages.rows
        if self.unlabelled != "bound":
            labels = np.maximum(labels, 0)
        columns |= prices
        if "expected_cost" in self.table.columns:
            columns["expected"] = self._column("expected_cost", PRICE)
        logged = [
            _problem(id, rows, labels[rows], keys, columns)
            for id, rows in self._rows_by_problem(problems, candidates, kept)
        ]
        if not logged:
            raise LogError("no candidate has a label", path=self.table.path)
        there = {problem.id for problem in logged}
        named = dict.fromkeys(map(str, [*problems.names, *self.table.bare]))
        bare = tuple(id for id in named if id not in there)
        missed = int(missing.sum())
        return Log(
            tuple(logged),
            score,
            self.table.path,
            missed,
            bare,
            second=second,
            alike=alike,
            unpriced=unpriced,
            censored=is_censored(self.table),
            published=self._labelled(PUBLISHED, kept),
            judged=self._labelled(JUDGED, kept),
        )

    def _rows_by_problem(
        self, problems: _Problems, candidates: NDArray[np.int64], kept: NDArray[np.bool_]
    ) -> Iterator[tuple[str, slice | NDArray[np.intp]]]:
        """The rows of each problem, sorted by candidate; a candidate may occur only once."""
        by_name = sorted(range(len(problems.names)), key=problems.names.__getitem__)
        places = np.empty(len(by_name), dtype=np.int32)  # numbers by value, names by letters
        places[by_name] = np.arange(len(by_name), dtype=np.int32)
        place = places[problems.codes]
        numbers = None if kept.all() else np.flatnonzero(kept)
        if numbers is not None:
            place = place[numbers]
            candidates = candidates[numbers]
        if not _in_order(place, candidates):
            order = np.lexsort((candidates, place))
            place = place[order]
            candidates = candidates[order]
            numbers = order if numbers is None else numbers[order]
        same = (place[1:] == place[:-1]) & (candidates[1:] == candidates[:-1])
        if same.any():
            twice = int(np.flatnonzero(same)[0]) + 1
            at = twice if numbers is None else int(numbers[twice])
            name = problems.name(at)
            raise self._error(at, f"candidate {candidates[twice]} of {name!r} occurs twice")
        starts = np.flatnonzero(np.diff(place, prepend=-1)).tolist()
        for start, stop in itertools.pairwise([*starts, len(place)]):
            rows = slice(start, stop) if numbers is None else numbers[start:stop]
            yield str(problems.names[by_name[place[start]]]), rows

    def _check_names(self) -> None:
        missing = [name for name in REQUIRED if name not in self.table.columns]
        if missing and self.table.columns:
            published = "samples" in self.table.columns
            hint = "; a published file needs --rewards rewards.jsonl" if published else ""
            if "check" in self.table.columns:
                hint = "; this is a file of problems: grv collect makes a log from it"
            elif not published and (close := misspelt(self.table.columns, missing)):
                hint = f"; {close}"
            elif self.table.path == _FRAME:
                hint = "; rename the columns of the frame, or add what is missing"
            elif not published:
                hint = "; grv convert makes a log of a file with other names, or without numbers"
            raise LogError(
                f"no column {_quoted(missing)}; there are {_quoted(self.table.columns)}{hint}",
                path=self.table.path,
            )
        if not self.table.rows:
            raise LogError("the log is empty", path=self.table.path)

    def _score_name(self, wanted: str | None = None) -> str:
        others = [n for n in self.table.columns if n not in (*REQUIRED, *OPTIONAL)]
        wanted = self.wanted if wanted is None else wanted
        if wanted is not None:
            if wanted in others:
                return wanted
            raise LogError(
                f"no score {wanted!r}; there are {_quoted(others) or 'none'}",
                path=self.table.path,
            )
        likely = [name for name in others if name.startswith("score")] or others
        if len(likely) != 1:
            raise LogError(
                f"several scores: {_quoted(likely)}; choose one with --score"
                if likely
                else f"no score among the columns {_quoted(self.table.columns)}",
                path=self.table.path,
            )
        return likely[0]

    def _problems(self) -> _Problems:
        """The problem of each row: all names, or all numbers."""
        column = self.table.columns["problem"]
        if column.dtype.kind == "i":
            return _Problems.of_numbers(column)
        values: list[Any] = column.tolist()
        if set(map(type, values)) <= {str} and all(map(is_name, dict.fromkeys(values))):
            return _Problems.of(values)
        for at, value in enumerate(values):
            if not is_name(value):
                raise self._error(
                    at, f"a problem must be a name or a whole number, not {shown(value)}"
                )
            if type(value) is not type(values[0]):
                raise self._error(
                    at,
                    "problems must be all names or all numbers, but"
                    f" {shown(values[0])} came before {shown(value)}",
                )
        return _Problems.of(values)

    def _scores(self, name: str) -> NDArray[np.float64]:
        scores = self._column(name, SCORE)
        return np.where(np.isnan(scores), -np.inf, scores)

    def _prices(
        self, kept: NDArray[np.bool_], refuted: NDArray[np.bool_], stages: StageCosts | None
    ) -> tuple[dict[str, NDArray[np.float64]], int]:
        """The cost columns, and the number of nulls; the mean of the others replaces them.

        Refuted candidates are never verified, so their cost of verifying is not used.
        """
        prices: dict[str, NDArray[np.float64]] = {}
        unpriced = 0
        for name in ("generate_cost", "verify_cost"):
            has_stages = name == "verify_cost" and stages is not None
            if name in self.table.columns or has_stages:
                values: NDArray[np.float64] = self._price(name, stages if has_stages else None)
                used = kept & ~refuted if name == "verify_cost" else kept
                values = np.where(used, values, np.nan)
                known = used & ~np.isnan(values)
                if known.any():
                    unpriced += int((used & ~known).sum())
                    prices[f"{name}s"] = np.where(np.isnan(values), values[known].mean(), values)
        return prices, unpriced

    def _price(self, name: str, stages: StageCosts | None) -> NDArray[np.float64]:
        """A column of costs; where it has none, what the stages add up to."""
        rows = self.table.rows
        known = name in self.table.columns
        values = self._column(name, PRICE) if known else np.full(rows, np.nan)
        return values if stages is None else np.where(np.isnan(values), stages.sums, values)

    def _stages(self) -> StageCosts | None:
        """The stages of each verification, if the log has them."""
        if "stage_costs" not in self.table.columns:
            return None
        failed = self.table.columns.get("failed_stage")
        names = [None] * self.table.rows if failed is None else failed.tolist()
        rows = []
        for at, value in enumerate(self.table.columns["stage_costs"].tolist()):
            try:
                rows.append(read_stages(value, names[at]))
            except ValueError as error:
                raise self._error(at, f"stage_costs must be {error}, not {shown(value)}") from error
        return StageCosts.of(rows)

    def _labelled(self, source: str, kept: NDArray[np.bool_]) -> int:
        """The number of candidates whose label is of this source."""
        if "labels" not in self.table.columns:
            return 0
        found = 0
        for at, value in enumerate(self.table.columns["labels"].tolist()):
            if value not in (None, "", PUBLISHED, JUDGED):
                there = f"{PUBLISHED!r}, {JUDGED!r} or null"
                raise self._error(at, f"labels must be {there}, not {shown(value)}")
            found += value == source and bool(kept[at])
        return found

    def _keys(self) -> list[str | None] | None:
        if "key" not in self.table.columns:
            return None
        keys = []
        known: dict[str, str | None] = {}  # few texts are the keys of many candidates
        for at, value in enumerate(self.table.columns["key"].tolist()):
            if type(value) is str and value in known:
                keys.append(known[value])
                continue
            try:
                key = key_name(value)
            except ValueError as error:
                raise self._error(at, f"key must be {error}, not {shown(value)}") from error
            keys.append(key)
            if type(value) is str:
                known[value] = key
        return keys

    def _refuted(
        self, labels: NDArray[np.int8], keys: list[str | None] | None
    ) -> NDArray[np.bool_]:
        """Which candidates were refuted without verification."""
        refuted = np.zeros(self.table.rows, dtype=np.bool_)
        if keys is not None:
            refuted = np.array([key == REFUTED for key in keys])
        if "refuted" in self.table.columns:
            refuted |= self._column("refuted", LABEL) > 0
        if (wrong := np.flatnonzero(refuted & (labels > 0))).size:
            raise self._error(int(wrong[0]), "this candidate passed although it is refuted")
        return refuted

    def _column(self, name: str, kind: ColumnKind) -> NDArray[Any]:
        values = self.table.columns[name]
        if kind.plain(values):
            return values.astype(kind.dtype, copy=False)
        listed: list[Any] = values.tolist()
        try:
            if kind is LABEL and set(map(type, listed)) == {str}:
                meaning = {text: kind.read(text) for text in set(listed)}
                return np.fromiter(map(meaning.__getitem__, listed), kind.dtype, len(listed))
            return np.fromiter(map(kind.read, listed), dtype=kind.dtype, count=len(listed))
        except ValueError:
            raise self._first_error(name, kind, listed) from None

    def _first_error(self, name: str, kind: ColumnKind, values: Sequence[Any]) -> LogError:
        """The error about the first value that is not of the kind."""
        for at, value in enumerate(values):
            try:
                kind.read(value)
            except ValueError as error:
                return self._error(at, f"{name} must be {error}, not {shown(value)}", name)
        raise AssertionError("all values are of the kind")

    def _error(self, at: int, message: str, column: str = "") -> LogError:
        path, line = self.table.place(at, column)
        return LogError(message, path=path, line=line)


@dataclass(frozen=True, eq=False)
class _Problems:
    """The problem of each row, as a number; and the names, by number, as they first occur."""

    codes: NDArray[np.int32]
    names: list[Any]

    @classmethod
    def of(cls, values: Sequence[Any]) -> _Problems:
        names = dict.fromkeys(values)
        numbers = {name: number for number, name in enumerate(names)}
        codes = np.fromiter(map(numbers.__getitem__, values), dtype=np.int32, count=len(values))
        return cls(codes, list(names))

    @classmethod
    def of_numbers(cls, values: NDArray[np.integer]) -> _Problems:
        names, first, codes = np.unique(values, return_index=True, return_inverse=True)
        order = np.argsort(first)
        number = np.empty(len(order), dtype=np.int32)
        number[order] = np.arange(len(order), dtype=np.int32)
        return cls(number[codes], names[order].tolist())

    def name(self, row: int) -> str:
        return str(self.names[self.codes[row]])


def _in_order(place: NDArray[np.int32], candidates: NDArray[np.int64]) -> bool:
    """Whether rows are sorted by problem, then by candidate."""
    later = place[1:] > place[:-1]
    return bool((later | ((place[1:] == place[:-1]) & (candidates[1:] > candidates[:-1]))).all())


def _problem(
    id: str,
    rows: slice | NDArray[np.intp],
    labels: NDArray[np.int8],
    keys: Sequence[str | None] | None,
    columns: Mapping[str, NDArray[Any]],
) -> LoggedProblem:
    codes: NDArray[np.int32] | None = None
    contradictory: tuple[str, ...] = ()
    if keys is not None:
        own = keys[rows] if isinstance(rows, slice) else [keys[row] for row in rows]
        codes, contradictory = classes(own, labels)
    unscored = int(np.isneginf(columns["scores"][rows]).sum())
    cut: dict[str, Any] = {name: column[rows] for name, column in columns.items()}
    if (expected := cut.pop("expected", None)) is not None:
        known = expected[~np.isnan(expected)]
        cut["expected"] = float(known[0]) if len(known) else None
    return LoggedProblem(
        id,
        passed=labels > 0,
        keys=codes,
        unscored=unscored,
        contradictory=contradictory,
        unknown=labels < 0 if (labels < 0).any() else None,
        **cut,
    )


def _quoted(names: Any) -> str:
    return ", ".join(repr(str(name)) for name in names)
