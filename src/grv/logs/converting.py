"""One log from several files, joined by problem and candidate.

`entries.py` reads the files. Candidates without a number are numbered from 0 in their list. Files
may complement each other; a contradiction is an error. So is a label of another text than the one
that another file has for the same candidate.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import LogError, UsageError, installing
from ..files import replacing, shown
from ..memory import check_columns, check_room
from ..text import TEXT_HASH, csv_text, is_name, text_hash
from .columns import LABEL, PRICE, SCORE, WHOLE, ColumnKind, is_absent, key_name, names
from .computed_scores import COMPUTED, VOTES_NOTE, length_of, logprob_of, votes
from .entries import EntryReader, Fields, Importer, Scores
from .lookup import look_up

_COSTS = ("generate_cost", "verify_cost", "verify_seconds")
_OPTIONAL = ("key", "censored", *_COSTS)
_LOOK = 1 << 16  # rows between two looks at the free memory
_ROW = 700  # bytes that a joined row takes, measured with one score
_TEXT = "hash of the text"  # a column that is only compared
_LABEL_OF = re.compile(rf"[0-9a-f]{{{4 * TEXT_HASH}}}")  # what a label of `grv verify` is of
ENDINGS = (".parquet", ".jsonl", ".csv")


@dataclass
class Joined:
    """The columns of a log, by name, with one row per candidate. Unknown values are None.

    Attributes:
        columns: by name.
        notes: sentences about what was decided on the way.
    """

    columns: dict[str, list[Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _rows: dict[tuple[str, int], int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def score_names(self) -> list[str]:
        """The names of the score columns."""
        return [
            n
            for n in self.columns
            if n not in ("problem", "candidate", "passed", *_OPTIONAL, _TEXT)
        ]

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


def join(paths: Sequence[str], fields: Fields, importer: Importer | None = None) -> Joined:
    """The candidates of all files, joined; the importer of a plugin reads them if it is given."""
    reader = EntryReader(fields, importer)
    scores = fields.scores or _score_fields(reader, paths)
    joined = Joined(
        {
            name: []
            for name in (
                "problem",
                "candidate",
                "passed",
                *(column for _, column in scores),
                *_OPTIONAL,
                _TEXT,
            )
        }
    )
    seen: dict[str, None] = {}  # the names of all fields, in order
    lines: dict[str, dict[tuple[str, int], int]] = {path: {} for path in paths}
    for number, (path, (line, entry, place)) in enumerate(reader.entries(paths), 1):
        seen |= dict.fromkeys(entry)
        try:
            problem = _problem(entry, fields)
            candidate = _candidate(entry, place, fields)
            if (problem, candidate) in lines[path]:
                raise ValueError(f"candidate {candidate} of {problem!r} occurs twice")
            lines[path][problem, candidate] = line
            values = _values(entry, fields, scores)
            wrong = joined.put(problem, candidate, values)
            if number % _LOOK == 0:
                check_room(path, len(joined), _ROW)
            if wrong == _TEXT:
                raise ValueError(
                    f"candidate {candidate} of {problem!r} has another text in another file, or its"
                    " label is of another text; choose the field of the text with --text"
                )
            if wrong is not None:
                raise ValueError(
                    f"{wrong} of candidate {candidate} of {problem!r} is"
                    f" {shown(values[wrong])} here, but differs in another file"
                )
        except ValueError as error:
            raise LogError(str(error), path=path, line=line) from error
    del joined.columns[_TEXT]
    joined.notes = list(reader.notes)
    _count_votes(joined, scores)
    _check_found(joined, fields, scores, tuple(seen))
    joined.columns["problem"] = list(names(joined.columns["problem"]))
    for name in _OPTIONAL:
        if all(value is None for value in joined.columns[name]):
            del joined.columns[name]
    return joined


def _count_votes(joined: Joined, scores: Scores) -> None:
    """Fill the column of votes, if it is computed: it needs all candidates."""
    for name, column in scores:
        if name == "votes" and all(value is None for value in joined.columns[column]):
            keys = joined.columns["key"]
            joined.columns[column] = list(votes(joined.columns["problem"], keys))
            joined.notes.append(VOTES_NOTE.replace("score_votes", column))


def _check_found(joined: Joined, fields: Fields, scores: Scores, seen: Sequence[str]) -> None:
    """Refuse a log without candidates, without labels, or without a requested score."""
    if not len(joined):
        raise UsageError("no candidates in these files")
    for name, column in scores:
        if all(value is None for value in joined.columns[column]):
            raise UsageError(f"no score {name!r} in these files; there are {', '.join(seen)}")
    if joined.unlabelled == len(joined):
        looked_for = " or ".join(fields.passed)
        if joined.notes:
            raise UsageError(f"no label in these files. {joined.notes[0]}")
        raise UsageError(
            f"no label in these files: no field {looked_for} among {', '.join(seen)};"
            " --passed FIELD names it"
        )


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


def _score_fields(reader: EntryReader, paths: Sequence[str]) -> Scores:
    """The numeric fields whose names begin with score; without any, scores to compute."""
    found: dict[str, None] = {}
    possible: set[str] = set()
    for _, (_, entry, _) in reader.entries(paths):
        for name, value in entry.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                found[name] = None
        if logprob_of(entry) is not None:
            possible.add("logprob")
        if length_of(entry, reader.fields.text) is not None:
            possible.add("length")
        if look_up(entry, reader.fields.key) is not None:
            possible.add("votes")
    scores = sorted(name for name in found if name.startswith("score"))
    check_columns(", ".join(paths), len(scores))
    computed = [name for name in COMPUTED if name in possible]
    if not scores and not computed:
        raise UsageError(
            "no numeric field begins with score, and there are no texts (--text), keys (--key) or"
            " log-probabilities to compute a score from; name a score with --score"
            f" (numbers are in: {', '.join(found) or 'none'})"
        )
    if scores:
        return tuple((name, name) for name in scores)
    return tuple((name, f"score_{name}") for name in computed)


def _problem(entry: dict[str, Any], fields: Fields) -> str:
    value = look_up(entry, fields.problem)
    if value is None:
        raise ValueError(_absent("problem", fields.problem, entry))
    if not is_name(value):
        raise ValueError(f"a problem must be a name or a whole number, not {shown(value)}")
    return str(value)


def _candidate(entry: dict[str, Any], place: int | None, fields: Fields) -> int:
    value = look_up(entry, fields.candidate)
    if value is None and place is not None:
        return place
    if value is None:
        raise ValueError(_absent("candidate number", fields.candidate, entry))
    return int(_read(WHOLE, "a candidate", value))


def _values(entry: dict[str, Any], fields: Fields, scores: Scores) -> dict[str, Any]:
    """The values of a candidate by column; None if the entry lacks one."""
    values: dict[str, Any] = {}
    for name, column in scores:
        score = _read(SCORE, name, _score(entry, name, fields))
        values[column] = values.get(column) if math.isnan(score) else score
    label = _read(LABEL, "a label", look_up(entry, fields.passed))
    values["passed"] = None if label < 0 else bool(label)
    values["censored"] = True if _read(LABEL, "censored", entry.get("censored")) > 0 else None
    values[_TEXT] = _text_of(entry, fields)
    for name in _COSTS:
        known = not is_absent(entry.get(name))
        values[name] = _read(PRICE, name, entry[name]) if known else None
    key = look_up(entry, fields.key)
    try:
        values["key"] = key_name(key)
    except ValueError as error:
        raise ValueError(f"a key must be {error}, not {shown(key)}") from error
    return values


def _text_of(entry: dict[str, Any], fields: Fields) -> int | None:
    """The hash of the candidate's text, or of the text that a label is of; None if unknown."""
    text = look_up(entry, fields.text)
    label_of = entry.get("of")
    if isinstance(text, str):
        return int.from_bytes(text_hash(text), "big")
    if "verdict" in entry and isinstance(label_of, str) and _LABEL_OF.fullmatch(label_of):
        return int.from_bytes(bytes.fromhex(label_of)[:TEXT_HASH], "big")
    return None


def _score(entry: dict[str, Any], name: str, fields: Fields) -> Any:
    """The value of a score: a field, or computed if there is no such field."""
    value = look_up(entry, [name])
    if value is None and name == "length":
        return length_of(entry, fields.text)
    if value is None and name == "logprob":
        return logprob_of(entry)
    return value


def _read(kind: ColumnKind, what: str, value: Any) -> float:
    try:
        return kind.read(value)
    except ValueError as error:
        raise ValueError(f"{what} must be {error}, not {shown(value)}") from error


def _absent(what: str, names: Sequence[str], entry: dict[str, Any]) -> str:
    option = f"--{what.partition(' ')[0]}"
    there = ", ".join(entry)
    hint = f"{option} FIELD names it"
    if names == Fields.candidate:
        hint += "; rows without one are numbered if there is only one file"
    return f"no {what}: no field {' or '.join(names)} among {there}; {hint}"
