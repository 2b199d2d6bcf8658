"""The candidates of a file, each as a record of fields, whatever the format of the file.

A row of a JSON-lines, Parquet or CSV file describes one candidate, or one problem with a list of
objects, one per candidate, or with parallel lists of values. Files of inspect_ai,
lm-evaluation-harness, verifiers and lighteval, and folders of Harbor, have modules of their own.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import plugins
from ..core.errors import GrvError, LogError, UsageError
from ..files import json_lines, shown
from ..own_code import Code, raised
from ..parquet import read_rows
from ..text import is_name
from .computed_scores import LOGPROBS
from .harbor_jobs import JobReader
from .inspect_logs import InspectReader, is_inspect_log
from .lighteval_details import DetailReader, is_detail
from .lm_eval_samples import SampleReader, is_lm_eval
from .lookup import look_up
from .swe_bench import collected, is_collection, is_prediction, is_report, labels, prediction
from .tables import read_table
from .verifiers_traces import TraceReader, is_episode

Scores = tuple[tuple[str, str], ...]  # pairs of a field and its column
Entry = tuple[int, dict[str, Any], int | None]  # line, fields, index in the problem's list if any


@dataclass(frozen=True)
class Fields:
    """The names of the fields that a log needs. The first name that a record has counts.

    A name may be a path: `scores.match.answer` is the field `answer` of the field `match` of the
    field `scores`.

    Attributes:
        problem: the problem's name.
        candidate: the candidate's number.
        passed: the label: true or false, 1 or 0, passed or failed. Broken is not a label.
        scores: score fields, each with the name of its column.
        key: the equivalence class.
        text: the candidate's text; it is needed only to compute a score from it.
        list: the list of candidates in a line about a problem; not needed if there is only one.
        filter: the filter of lm-evaluation-harness whose labels count.
        hour: dollars per hour of the machine that verified the trials of Harbor.
    """

    problem: tuple[str, ...] = ("problem", "id", "task_id")
    candidate: tuple[str, ...] = ("candidate", "idx")
    passed: tuple[str, ...] = ("passed", "correct", "verdict")
    scores: Scores = ()
    key: tuple[str, ...] = ("key",)
    text: tuple[str, ...] = ("text", "completion", "response")
    list: str | None = None
    filter: str | None = None
    hour: float | None = None

    @property
    def own_label(self) -> str | None:
        """The field of the label, if the caller chose it."""
        return None if self.passed == Fields().passed else self.passed[0]


@dataclass(frozen=True)
class Importer:
    """Reads files with the function of a plugin, which takes a path and yields records.

    A record has the fields of a row: problem, passed, and what else there is. Records without the
    number of a candidate are numbered.
    """

    code: Code

    def records(self, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """The records of a file, with their numbers from 1."""
        number = 0
        try:
            for number, record in enumerate(self.code.value(path), 1):
                if not isinstance(record, Mapping):
                    what = type(record).__name__
                    raise LogError(f"{self.code.name} gave {what}, not a record", path=path)
                yield number, dict(record)
        except (Exception, SystemExit) as error:
            if isinstance(error, GrvError):
                raise
            raise LogError(
                f"{self.code.name} cannot read it: {raised(error)}", path=path
            ) from error
        if not number:
            raise LogError(f"{self.code.name} finds no candidates", path=path)


def importer_named(name: str) -> Importer:
    """The importer of a plugin that the operator names; a UsageError if there is none."""
    code = plugins.load("importers", name)
    if code is None:
        there = plugins.names("importers")
        hint = f" (there are: {', '.join(there)})" if there else "; no package here has one"
        raise UsageError(f"unknown importer {shown(name)}{hint}")
    if not callable(code.value):
        raise UsageError(f"{name} is no importer; expected a function of a path")
    return Importer(code)


class EntryReader:
    """Reads files one after the other. Samples of one problem in several files are numbered on.

    A single file may have one candidate per row without a number: then its rows are numbered. Rows
    of several files are not, because files are joined by these numbers.

    Args:
        fields: the names of the fields.
        importer: reads all files; None if the reader finds out what they are.

    Attributes:
        notes: sentences about what the reader decided.
    """

    def __init__(self, fields: Fields, importer: Importer | None = None) -> None:
        self.fields = fields
        self.importer = importer
        self.notes: dict[str, None] = {}
        self._numbers: Counter[str] = Counter()
        self._labelled: Counter[str] = Counter()
        self._is_alone = False
        self._inspect = InspectReader(fields.own_label)
        self._lm_eval = SampleReader(fields.own_label, fields.filter)
        self._harbor = JobReader(fields.own_label, fields.hour)
        self._verifiers = TraceReader(fields.own_label)
        self._lighteval = DetailReader(fields.own_label)

    def entries(self, paths: Sequence[str]) -> Iterator[tuple[str, Entry]]:
        """The candidates of all files, each with its file. They can be read several times."""
        self._numbers.clear()
        self._labelled.clear()
        self._is_alone = len(paths) == 1
        for path in paths:
            for entry in self._of_file(path):
                yield path, entry
        readers = (
            self._inspect,
            self._lm_eval,
            self._harbor,
            self._verifiers,
            self._lighteval,
        )
        self.notes |= {note: None for reader in readers for note in reader.notes}

    def _of_file(self, path: str) -> Iterator[Entry]:
        if self.importer is not None:
            yield from self._imported(path, self.importer)
            return
        if os.path.isdir(path):
            yield from self._numbered(self._harbor.trials(path))
            return
        if is_inspect_log(path):
            yield from self._numbered(self._inspect.samples(path))
            return
        if is_report(path):
            yield from self._numbered(labels(path), self._labelled)
            return
        if is_collection(path):
            yield from self._numbered(collected(path))
            return
        rows = _READERS.get(path.rsplit(".", 1)[-1].lower(), json_lines)(path)
        line = 0
        is_bare = self._is_alone and self.fields.candidate == Fields.candidate
        for line, record in rows:
            if is_lm_eval(record):
                yield from self._numbered(self._lm_eval.samples(path, line, record))
            elif is_episode(record):
                yield from self._numbered(self._verifiers.samples(path, line, record))
            elif is_detail(record):
                yield from self._numbered(self._lighteval.samples(path, line, record))
            elif is_prediction(record):
                yield from self._numbered([(line, prediction(record))])
            else:
                is_bare = is_bare and not any(name in record for name in self.fields.candidate)
                for entry in _candidates(path, line, record, self.fields):
                    yield self._with_number(path, entry) if is_bare else entry
        self._lm_eval.finish(path)
        if not line:
            raise LogError("the file is empty", path=path)

    def _with_number(self, path: str, entry: Entry) -> Entry:
        """A candidate of a row without a number: the next of its problem gets the next number."""
        line, record, place = entry
        if place is not None:
            return entry
        problem = str(look_up(record, self.fields.problem))
        number = self._numbers[problem]
        self._numbers[problem] += 1
        self.notes[f"{path} has no candidate numbers: its rows are numbered in their order"] = None
        return line, record, number

    def _imported(self, path: str, importer: Importer) -> Iterator[Entry]:
        for line, record in importer.records(path):
            problem = look_up(record, self.fields.problem)
            if problem is None or _is_numbered(record, self.fields):
                yield line, record, None
            else:
                yield from self._numbered([(line, {**record, "problem": str(problem)})])

    def _numbered(
        self, samples: Iterable[tuple[int, dict[str, Any]]], numbers: Counter[str] | None = None
    ) -> Iterator[Entry]:
        """Samples have no numbers of their own: the next of its problem gets the next number."""
        counted = self._numbers if numbers is None else numbers
        for line, entry in samples:
            problem = entry["problem"]
            if not is_name(problem):
                yield line, entry, 0  # what reads the name refuses it
                continue
            number = counted[problem]
            counted[problem] += 1
            yield line, entry, number


def _parquet_rows(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    yield from enumerate(read_rows(path), 1)


def _csv_rows(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    table = read_table(path)
    columns = [values.tolist() for values in table.columns.values()]
    for line, *values in zip(table.lines, *columns, strict=True):
        yield line, dict(zip(table.columns, values, strict=True))


_READERS: dict[str, Callable[[str], Iterator[tuple[int, dict[str, Any]]]]] = {
    "parquet": _parquet_rows,
    "csv": _csv_rows,
    "tsv": _csv_rows,
}


def _candidates(path: str, line: int, record: dict[str, Any], fields: Fields) -> Iterator[Entry]:
    """The candidates in one row."""
    nested = _nested(path, line, record, fields)
    if nested is not None:
        for place, entry in enumerate(record[nested]):
            yield line, _inner(record, entry, fields), place
    elif beside := _beside(path, line, record, fields):
        for place in range(len(record[beside[0]])):
            yield line, {**record, **{name: record[name][place] for name in beside}}, place
    elif _is_numbered(record, fields) or [] not in record.values():
        yield line, record, None
    # Otherwise the row is a problem with an empty list of candidates.


def _inner(record: dict[str, Any], entry: Any, fields: Fields) -> dict[str, Any]:
    """One entry of a problem's list, with the problem's name from the line around it."""
    inside = entry if isinstance(entry, dict) else {}
    outside = {name: record[name] for name in fields.problem if record.get(name) is not None}
    if not outside:
        return inside
    return outside | {n: value for n, value in inside.items() if n not in fields.problem}


def _is_numbered(record: dict[str, Any], fields: Fields) -> bool:
    """Whether the line describes one candidate."""
    number = look_up(record, fields.candidate)
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
    also = [n for n in (*fields.text, *LOGPROBS) if isinstance(record.get(n), list)]
    if names:
        return names + [name for name in also if len(record[name]) in lengths]
    return [name for name in also if name in fields.text][:1]
