"""A ledger as a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..backends.protocols import Usage
from ..core.values import Verdict
from ..ledger.entries import Entry, Found, Made, Scored, ScoredAgain, Started
from ..ledger.sqlite import SqliteLedger
from ..runtime.prices import Meter, Prices, model_of

_LABELS = {Verdict.PASSED: True, Verdict.FAILED: False, Verdict.BROKEN: None}
_ALWAYS = ("passed", "score", "key")
_PAID = ("generate_cost", "verify_cost")

_Row = dict[str, Any]  # a candidate's, by column; what is not known is not there


def log_columns(ledger: SqliteLedger, prices: Prices | None = None) -> dict[str, list[Any]]:
    """The candidates of every search, as the columns of a log; with prices, what they cost too.

    Equivalent candidates have equal verdicts, so one that was verified labels all of its class.

    Where a problem was searched in more than one way (another model, another score), the later
    searches' problems are told apart by the search's name.
    """
    rows: list[_Row] = []
    seen: set[str] = set()
    for summary in ledger.searches():
        name = summary.problem
        problem = name if name not in seen else f"{name} ({summary.id})"
        seen.add(name)
        for candidate, row in sorted(_rows(ledger.read(summary.id), prices).items()):
            rows.append({"problem": problem, "candidate": candidate, **row})
    names = ["problem", "candidate", *_ALWAYS, *(_PAID if prices is not None else ())]
    if any(row.get("score_second") is not None for row in rows):
        names.append("score_second")
    return {name: [row.get(name) for row in rows] for name in names}


def _rows(entries: Sequence[Entry], prices: Prices | None) -> dict[int, _Row]:
    """The candidates of one search, by number."""
    rows: dict[int, _Row] = {}
    meter = None if prices is None else Meter(prices)
    for entry in entries:
        match entry:
            case Started(_, about) if prices is not None:
                meter = Meter(prices, model_of(str(about.get("generator", ""))))
            case Made(candidate, usage=usage) if candidate not in rows:
                rows[candidate] = {}
                if meter is not None:
                    rows[candidate]["generate_cost"] = meter.cost("generate", Usage(**usage))
            case Scored(candidate, score, key, usage=usage):
                rows[candidate] |= {"score": score, "key": key}
                if meter is not None:
                    rows[candidate]["generate_cost"] += meter.cost("score", Usage(**usage))
            case ScoredAgain(candidate, score):
                rows[candidate]["score_second"] = score
            case Found(candidate, verdict, usage=usage):
                rows[candidate]["passed"] = _LABELS[verdict]
                if meter is not None:
                    rows[candidate]["verify_cost"] = meter.cost("verify", Usage(**usage))
    _share(rows)
    return rows


def _share(rows: dict[int, _Row]) -> None:
    """Give all candidates of a class the verdict of one, and what that one cost."""
    known = {row.get("key"): row for row in rows.values() if row.get("passed") is not None}
    for row in rows.values():
        verified = known.get(row["key"]) if row.get("key") is not None else None
        if verified is not None:
            row["passed"] = verified["passed"]
            row.setdefault("verify_cost", verified.get("verify_cost"))
