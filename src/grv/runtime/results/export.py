"""A ledger as a log."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import LedgerError
from ...core.values import Verdict
from ...ledger.tables import TableLedger
from ..ledger_writer import LedgerWriter
from ..prices import Meter, Prices, model_of
from ..search_record import SearchRecord

_ALWAYS = ("problem", "candidate", "passed", "score", "key", "censored")
_PAID = ("generate_cost", "verify_cost")

_Row = dict[str, Any]  # one candidate, by column; unknown values are missing


@dataclass(frozen=True)
class ExportedLog:
    """The candidates of a ledger as a log. It is censored: searches chose what to verify.

    Attributes:
        columns: by name.
        paid: the candidates that were verified, with a conclusive verdict.
        shared: the candidates that have the verdict of another one of their class.
    """

    columns: dict[str, list[Any]]
    paid: int
    shared: int

    @property
    def unlabelled(self) -> int:
        """The number of candidates without a label."""
        return self.columns["passed"].count(None)


def log_columns(ledger: TableLedger, prices: Prices | None = None) -> dict[str, list[Any]]:
    """The columns of `exported`."""
    return exported(ledger, prices).columns


def exported(ledger: TableLedger, prices: Prices | None = None) -> ExportedLog:
    """The candidates of every search as a log; with prices, their costs too.

    A failure labels all candidates of its class. A pass labels those with the same text; where the
    keys are the user's own, it labels its class too. Candidates that were refuted without
    verification failed; then there is a column `refuted`.

    If a problem was searched in several ways (another model, another score), the later searches
    have the search's id in the name of the problem. Damaged searches are left out, with a warning;
    a LedgerError if all are damaged.
    """
    rows: list[_Row] = []
    seen: set[str] = set()
    damaged: list[LedgerError] = []
    verdicts = 0
    writer = LedgerWriter(ledger)
    for summary in ledger.searches():
        name = summary.problem
        problem = name if name not in seen else f"{name} ({summary.id})"
        seen.add(name)
        try:
            record = SearchRecord(writer, summary.id, ledger.read(summary.id))
        except LedgerError as error:
            if error.entry is None:
                raise
            damaged.append(error)
            continue
        rows += [{"problem": problem, "censored": True, **row} for row in _rows(record, prices)]
        verdicts += sum(id == other for id, other in record.verdicts_from().items())
    if damaged:
        more = f", and {len(damaged) - 1} more" if len(damaged) > 1 else ""
        words = f"{damaged[0]}{more}; see grv runs repair"
        if not rows:
            raise LedgerError(words) from damaged[0]
        warnings.warn(f"left out: {words}", stacklevel=2)
    names = [*_ALWAYS, *(_PAID if prices is not None else ())]
    if any("score_second" in row for row in rows):
        names.append("score_second")
    optional = ("refuted", "alike", "generator")
    names += [name for name in optional if any(name in row for row in rows)]
    columns = {name: [row.get(name) for row in rows] for name in names}
    refuted = sum("refuted" in row for row in rows)
    labelled = len(rows) - columns["passed"].count(None) - refuted
    return ExportedLog(columns, paid=verdicts, shared=labelled - verdicts)


def _rows(record: SearchRecord, prices: Prices | None) -> Iterator[_Row]:
    """The candidates of one search, by number."""
    meter = None if prices is None else Meter(prices)
    verify_costs = {} if meter is None else record.costs_of_verifying(meter)
    verdicts_from = record.verdicts_from()
    for id in sorted(record.made):
        row: _Row = {"candidate": id}
        if record.made[id].generator:
            row["generator"] = record.made[id].generator
        if id in record.scored:
            row |= {"score": record.scored[id].score, "key": record.scored[id].key}
            if record.scored[id].alike is not None:
                row["alike"] = record.scored[id].alike
        if record.refuted(id):
            row |= {"key": None, "refuted": True, "passed": False}
        if id in record.scored_again and record.scored_again[id].score is not None:
            row["score_second"] = record.scored_again[id].score
        if id in verdicts_from:
            row["passed"] = record.found[verdicts_from[id]].verdict is Verdict.PASSED
        if prices is not None:
            own = Meter(prices, _model(record, record.made[id].generator))
            row["generate_cost"] = record.cost_of_generating(own, id)
            row["verify_cost"] = verify_costs.get(id)
        yield row


def _model(record: SearchRecord, name: str) -> str:
    """The model of a search, or of one of its generators."""
    several: Any = record.about.get("generators", {})
    about = several.get(name, record.about) if isinstance(several, Mapping) else record.about
    return model_of(str(about.get("generator", "")))
