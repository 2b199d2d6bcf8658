"""One log from several JSON-lines files, joined by problem and candidate.

A line describes one candidate, or one problem with a list of objects, one per candidate, or with
parallel lists of values. Candidates without a number are numbered from 0 in their list. Files may
complement each other; a contradiction is an error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import LogError, UsageError, installing
from ..files import json_lines, replacing, shown
from ..text import csv_text, is_name
from .columns import LABEL, SCORE, WHOLE, Kind, key_name, names

ENDINGS = (".parquet", ".jsonl", ".csv")

Scores = tuple[tuple[str, str], ...]  # pairs of a field and its column


@dataclass(frozen=True)
class Fields:
    """The names of the fields that a log needs. The first name that a record has counts.

    Attributes:
        problem: the problem's name.
        candidate: the candidate's number.
        passed: the label: true or false, 1 or 0, passed or failed. Broken is not a label.
        scores: score fields, each with the name of its column.
        key: the equivalence class.
        list: the list of candidates in a line about a problem; not needed if there is only one.
    """

    problem: tuple[str, ...] = ("problem", "id", "task_id")
    candidate: tuple[str, ...] = ("candidate", "idx")
    passed: tuple[str, ...] = ("passed", "correct", "verdict")
    scores: Scores = ()
    key: tuple[str, ...] = ("key",)
    list: str | None = None


@dataclass
class Joined:
    """The columns of a log, by name, with one row per candidate. Unknown values are None."""

    columns: dict[str, list[Any]] = field(default_factory=dict)
    _rows: dict[tuple[str, int], int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def score_names(self) -> list[str]:
        """The names of the score columns."""
        return [n for n in self.columns if n not in ("problem", "candidate", "passed", "key")]

    @property
    def unlabelled(self) -> int:
        """The number of rows without a label."""
        return self.columns["passed"].count(None)

    @property
    def unscored(self) -> int:
        """The number of rows without any score."""
        scores = [self.columns[name] for name in self.score_names]
        return sum(all(value is None for value in values) for values in zip(*scores, strict=True))

    def put(self, problem: str, candidate: int, values: dict[str, Any]) -> str | None:
        """Add values of a candidate. Returns the name of a column that contradicts them, if any."""
        row = self._rows.setdefault((problem, candidate), len(self._rows))
        if row == len(self.columns["problem"]):
            for values_of in self.columns.values():
                values_of.append(None)
            self.columns["problem"][row] = problem
            self.columns["candidate"][row] = candidate
        for name, value in values.items():
            there = self.columns[name][row]
            if value is not None and there is not None and there != value:
                return name
            self.columns[name][row] = there if value is None else value
        return None


def join(paths: Sequence[str], fields: Fields) -> Joined:
    """The candidates of all files, joined."""
    scores = fields.scores or _score_fields(paths, fields)
    joined = Joined(
        {n: [] for n in ("problem", "candidate", "passed", *(c for _, c in scores), "key")}
    )
    seen: dict[str, None] = {}  # the names of all fields, in order
    for path in paths:
        lines: dict[tuple[str, int], int] = {}
        for line, entry, place in _entries(path, fields):
            seen |= dict.fromkeys(entry)
            try:
                problem, candidate = _problem(entry, fields), _candidate(entry, place, fields)
                if (problem, candidate) in lines:
                    raise ValueError(f"candidate {candidate} of {problem!r} occurs twice")
                lines[problem, candidate] = line
                values = _values(entry, fields, scores)
                wrong = joined.put(problem, candidate, values)
                if wrong is not None:
                    raise ValueError(
                        f"{wrong} of candidate {candidate} of {problem!r} is"
                        f" {shown(values[wrong])} here, but differs in another file"
                    )
            except ValueError as error:
                raise LogError(str(error), path=path, line=line) from error
    _check_found(joined, fields, scores, tuple(seen))
    joined.columns["problem"] = list(names(joined.columns["problem"]))
    if all(value is None for value in joined.columns["key"]):
        del joined.columns["key"]
    return joined


def _check_found(joined: Joined, fields: Fields, scores: Scores, seen: Sequence[str]) -> None:
    """Refuse a log without candidates, without labels, or without a requested score."""
    if not len(joined):
        raise UsageError("no candidates in these files")
    for name, column in scores:
        if all(value is None for value in joined.columns[column]):
            raise UsageError(f"no score {name!r} in these files; there are {', '.join(seen)}")
    if joined.unlabelled == len(joined):
        looked_for = " or ".join(fields.passed)
        raise UsageError(f"no label in these files: no field {looked_for} among {', '.join(seen)}")


def check_ending(path: str) -> None:
    """Refuse a file name without a known ending."""
    if not path.endswith(ENDINGS):
        raise UsageError(f"{path}: the name of a log must end in {', '.join(ENDINGS)}")


def write_log(columns: Mapping[str, list[Any]], path: str) -> None:
    """Replace a file by a log, in the format that its ending names."""
    check_ending(path)
    with replacing(path) as temporary:
        if path.endswith(".parquet"):
            try:
                import pyarrow as pa
                import pyarrow.parquet as pq
            except ImportError as error:
                raise UsageError(
                    f"{path}: writing Parquet needs pyarrow: {installing('parquet')}"
                ) from error
            pq.write_table(pa.table(dict(columns)), temporary)
            return
        rows = list(zip(*columns.values(), strict=True))
        if path.endswith(".jsonl"):
            text = "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)
        else:
            text = csv_text(list(columns), rows)
        temporary.write_text(text, encoding="utf-8")


def _score_fields(paths: Sequence[str], fields: Fields) -> Scores:
    """The numeric fields whose names begin with score."""
    found: dict[str, None] = {}
    for path in paths:
        for _, entry, _ in _entries(path, fields):
            for name, value in entry.items():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    found[name] = None
    scores = sorted(name for name in found if name.startswith("score"))
    if not scores:
        raise UsageError(
            "no numeric field begins with score; name one with --score"
            f" (numbers are in: {', '.join(found) or 'none'})"
        )
    return tuple((name, name) for name in scores)


def _entries(path: str, fields: Fields) -> Iterator[tuple[int, dict[str, Any], int | None]]:
    """The line, the fields, and the index in its list (if any) of each candidate of a file."""
    line = 0
    for line, record in json_lines(path):
        nested = _nested(path, line, record, fields)
        if nested is not None:
            for place, entry in enumerate(record[nested]):
                yield line, _inner(record, entry, fields), place
        elif beside := _beside(path, line, record, fields):
            for place in range(len(record[beside[0]])):
                yield line, {**record, **{name: record[name][place] for name in beside}}, place
        elif _is_numbered(record, fields) or [] not in record.values():
            yield line, record, None
        # Otherwise the line is a problem with an empty list of candidates.
    if not line:
        raise LogError("the file is empty", path=path)


def _inner(record: dict[str, Any], entry: Any, fields: Fields) -> dict[str, Any]:
    """One entry of a problem's list, with the problem's name from the line around it."""
    inside = entry if isinstance(entry, dict) else {}
    outside = {name: record[name] for name in fields.problem if record.get(name) is not None}
    if not outside:
        return inside
    return outside | {n: value for n, value in inside.items() if n not in fields.problem}


def _is_numbered(record: dict[str, Any], fields: Fields) -> bool:
    """Whether the line describes one candidate."""
    number = _first(record, fields.candidate)
    return number is not None and not isinstance(number, list)


def _nested(path: str, line: int, record: dict[str, Any], fields: Fields) -> str | None:
    """The field with the list of candidates, in a line about a problem."""
    if fields.list is not None and isinstance(record.get(fields.list), list):
        return fields.list
    if _is_numbered(record, fields):
        return None
    lists = [
        name
        for name, value in record.items()
        if isinstance(value, list) and value and all(isinstance(each, dict) for each in value)
    ]
    if len(lists) > 1:
        raise LogError(
            f"several lists could hold the candidates: {', '.join(lists)}; choose one with --list",
            path=path,
            line=line,
        )
    return lists[0] if lists else None


def _beside(path: str, line: int, record: dict[str, Any], fields: Fields) -> list[str]:
    """The fields that are parallel lists, with one value per candidate."""
    if _is_numbered(record, fields):
        return []
    known = {*fields.candidate, *fields.passed, *fields.key, *(name for name, _ in fields.scores)}
    names = [
        name
        for name, value in record.items()
        if isinstance(value, list) and (name in known or name.startswith("score"))
    ]
    lengths = {len(record[name]) for name in names}
    if len(lengths) > 1:
        raise LogError(f"{' and '.join(names)} differ in length", path=path, line=line)
    return names


def _first(entry: dict[str, Any], names: Sequence[str]) -> Any:
    return next((entry[name] for name in names if entry.get(name) is not None), None)


def _problem(entry: dict[str, Any], fields: Fields) -> str:
    value = _first(entry, fields.problem)
    if value is None:
        raise ValueError(_absent("problem", fields.problem, entry))
    if not is_name(value):
        raise ValueError(f"a problem must be a name or a whole number, not {shown(value)}")
    return str(value)


def _candidate(entry: dict[str, Any], place: int | None, fields: Fields) -> int:
    value = _first(entry, fields.candidate)
    if value is None and place is not None:
        return place
    if value is None:
        raise ValueError(_absent("candidate number", fields.candidate, entry))
    return int(_read(WHOLE, "a candidate", value))


def _values(entry: dict[str, Any], fields: Fields, scores: Scores) -> dict[str, Any]:
    """The values of a candidate by column; None if the entry lacks one."""
    values: dict[str, Any] = {}
    for name, column in scores:
        score = _read(SCORE, name, entry.get(name))
        values[column] = values.get(column) if math.isnan(score) else score
    label = _read(LABEL, "a label", _first(entry, fields.passed))
    values["passed"] = None if label < 0 else bool(label)
    key = _first(entry, fields.key)
    try:
        values["key"] = key_name(key)
    except ValueError as error:
        raise ValueError(f"a key must be {error}, not {shown(key)}") from error
    return values


def _read(kind: Kind, what: str, value: Any) -> float:
    try:
        return kind.read(value)
    except ValueError as error:
        raise ValueError(f"{what} must be {error}, not {shown(value)}") from error


def _absent(what: str, names: Sequence[str], entry: dict[str, Any]) -> str:
    return f"no {what}: no field {' or '.join(names)} among {', '.join(entry)}"
