"""The two files of the paper's published code, as one table.

Each line of `generations.jsonl` (mathematics) or `verified.jsonl` (programming) is a problem,
`{"id", "samples": [{"correct", ...}, ...]}`. So is each line of `rewards.jsonl`,
`{"id", "rewards": [{"idx", <score>: ..., ...}, ...]}`, where `idx` is the index of the sample in
its list. A sample without a reward has no score. The published figures rank by `r_last` in
mathematics and by `r_score` in programming.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..core.errors import LogError
from ..files import json_lines, shown
from ..memory import check_columns
from ..text import is_name
from .buffers import column
from .tables import ColumnTable

RANKS = ("r_last", "r_score")  # what the published figures rank by
_NO_SCORES = ("idx", "n_steps", "step_scores")


def ranks_by(table: ColumnTable) -> str | None:
    """The score that the published figures rank by; None if the table does not have it."""
    return next((name for name in RANKS if name in table.columns), None)


def read_published(generations: str, rewards: str) -> ColumnTable:
    """One row per sample: `problem`, `candidate`, `passed`, and the scores of the rewards file."""
    scores = _rewards(rewards)
    rows: dict[str, list[Any]] = {name: [] for name in ("problem", "candidate", "passed")}
    names: dict[str, None] = {}
    known = {*_NO_SCORES, *rows}
    for _, by_place in scores.values():
        for entry in by_place.values():
            if not known.issuperset(entry):
                names |= dict.fromkeys(name for name in entry if name not in known)
                known |= entry.keys()
    check_columns(rewards, len(names))
    rows |= {name: [] for name in names}
    lines: list[int] = []
    score_lines: list[int] = []
    seen: dict[Any, None] = {}
    for line, id, samples in _lists(generations, "samples"):
        if id in seen:
            raise LogError(f"problem {id!r} occurs twice", path=generations, line=line)
        seen[id] = None
        score_line, by_place = scores.get(id, (0, {}))
        count = len(samples)
        entries = [by_place.get(place, {}) for place in range(count)]
        rows["problem"] += [id] * count
        rows["candidate"] += range(count)
        rows["passed"] += [sample.get("correct") for sample in samples]
        for name in names:
            rows[name] += [entry.get(name) for entry in entries]
        lines += [line] * count
        score_lines += [score_line] * count
    if seen and not seen.keys() & scores.keys():
        raise LogError(f"has no problem of {generations}", path=rewards)
    columns = {name: column(values) for name, values in rows.items()}
    there = set(rows["problem"])
    bare = tuple(id for id in seen if id not in there)
    return ColumnTable(
        generations, columns, lines, bare, {name: (rewards, score_lines) for name in names}
    )


def _rewards(path: str) -> dict[Any, tuple[int, dict[int, dict[str, Any]]]]:
    """The line of each problem, and its entries by the index of their sample."""
    scores: dict[Any, tuple[int, dict[int, dict[str, Any]]]] = {}
    for line, id, entries in _lists(path, "rewards"):
        if id in scores:
            raise LogError(f"problem {id!r} occurs twice", path=path, line=line)
        places: list[Any] = [entry.get("idx") for entry in entries]
        wrong = [place for place in places if type(place) is not int]
        if wrong:
            raise LogError(
                f"'idx' must be a whole number, not {shown(wrong[0])}", path=path, line=line
            )
        by_place: dict[int, dict[str, Any]] = dict(zip(places, entries, strict=True))
        if len(by_place) < len(places):
            twice = next(place for place in places if places.count(place) > 1)
            raise LogError(f"idx {twice} of {id!r} occurs twice", path=path, line=line)
        scores[id] = line, by_place
    return scores


def _lists(path: str, name: str) -> Iterator[tuple[int, Any, list[dict[str, Any]]]]:
    """The line number, the problem id and the entries of each line."""
    for line, record in json_lines(path):
        id = record.get("id")
        entries = record.get(name)
        if not is_name(id):
            raise LogError(
                f"'id' must be a name or a whole number, not {shown(id)}", path=path, line=line
            )
        if not isinstance(entries, list) or any(type(entry) is not dict for entry in entries):
            there = ", ".join(repr(key) for key in record)
            raise LogError(
                f"{name!r} must be a list of objects; there are {there}", path=path, line=line
            )
        yield line, id, entries
