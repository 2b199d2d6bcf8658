"""A ledger as a log."""

from __future__ import annotations

from typing import Any

from ..core.values import Verdict
from ..ledger.entries import Found, Made, Scored, ScoredAgain
from ..ledger.sqlite import SqliteLedger

_LABELS = {Verdict.PASSED: True, Verdict.FAILED: False, Verdict.BROKEN: None}


def log_columns(ledger: SqliteLedger) -> dict[str, list[Any]]:
    """The candidates of every search, as the columns of a log.

    Equivalent candidates have equal verdicts, so one that was verified labels all of its class.

    Where a problem was searched in more than one way (another model, another score), the later
    searches' problems are told apart by the search's name.
    """
    columns: dict[str, list[Any]] = {
        name: [] for name in ("problem", "candidate", "passed", "score", "key")
    }
    again: list[float | None] = []  # second scores, where there was a cascade
    seen: set[str] = set()
    for summary in ledger.searches():
        problem = (
            summary.problem if summary.problem not in seen else f"{summary.problem} ({summary.id})"
        )
        seen.add(summary.problem)
        rows: dict[int, dict[str, Any]] = {}
        for entry in ledger.read(summary.id):
            match entry:
                case Made(candidate):
                    rows.setdefault(candidate, {})
                case Scored(candidate, score, key):
                    rows[candidate] |= {"score": score, "key": key}
                case ScoredAgain(candidate, score):
                    rows[candidate]["score_second"] = score
                case Found(candidate, verdict):
                    rows[candidate]["passed"] = _LABELS[verdict]
        labelled = [row for row in rows.values() if row.get("passed") is not None]
        known = {row.get("key"): row["passed"] for row in labelled}
        for candidate, row in sorted(rows.items()):
            if row.get("key") is not None:
                row["passed"] = known.get(row["key"])
            columns["problem"].append(problem)
            columns["candidate"].append(candidate)
            for name in ("passed", "score", "key"):
                columns[name].append(row.get(name))
            again.append(row.get("score_second"))
    if any(score is not None for score in again):
        columns["score_second"] = again
    return columns
