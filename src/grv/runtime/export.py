"""A ledger as a log."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..backends.protocols import JUDGED, VERIFIED_FIELDS, verified_part
from ..backends.verifiers.checks import is_published
from ..backends.verifiers.programs.published import PUBLISHED
from ..core.errors import LedgerError
from ..files import parse_json
from ..ledger.tables import TableLedger
from ..ledger.view import RecordedCandidate
from .ledger_writer import LedgerWriter
from .prices import Meter, Prices, meters_of, model_of
from .record import SearchRecord
from .stage_columns import NAMES, stage_columns

_ALWAYS = ("problem", "candidate", "passed", "score", "key", "censored")
_PAID = ("generate_cost", "verify_cost")

_Row = dict[str, Any]  # one candidate, by column; unknown values are missing


@dataclass(frozen=True)
class ExportedLog:
    """The candidates of a ledger as a log. It is censored: searches chose what to verify.

    Attributes:
        columns: by name.
        paid: the candidates that were verified, with a conclusive verdict.
        shared: the candidates with a verdict that cost nothing: that of another one of their class,
            or one that was known otherwise.
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
        mark = {"labels": PUBLISHED} if _is_published(record) else {}
        whole = {"problem": problem, "censored": True, **mark}
        rows += [{**whole, **row} for row in _rows(record, prices)]
        verdicts += sum(_is_paid(candidate) for candidate in record.candidates)
    if damaged:
        more = f", and {len(damaged) - 1} more" if len(damaged) > 1 else ""
        words = f"{damaged[0]}{more}; see grv runs repair"
        if not rows:
            raise LedgerError(words) from damaged[0]
        warnings.warn(f"left out: {words}", stacklevel=2)
    names = [*_ALWAYS, *(_PAID if prices is not None else ())]
    if any("score_second" in row for row in rows):
        names.append("score_second")
    optional = ("refuted", "shared", "alike", "generator", "labels", *NAMES, *VERIFIED_FIELDS)
    names += [name for name in optional if any(name in row for row in rows)]
    columns = {name: [row.get(name) for row in rows] for name in names}
    refuted = sum("refuted" in row for row in rows)
    labelled = len(rows) - columns["passed"].count(None) - refuted
    return ExportedLog(columns, paid=verdicts, shared=labelled - verdicts)


def _is_published(record: SearchRecord) -> bool:
    """Whether labels are those of the paper's published code, by the check of the last run."""
    check = "" if record.started is None else record.started.check
    try:
        parsed = parse_json(check) if check else {}
    except ValueError:
        return False
    return isinstance(parsed, dict) and is_published(parsed)


def _is_paid(candidate: RecordedCandidate) -> bool:
    """Whether its label was paid for: a verification of its own, with a conclusive verdict."""
    finding = candidate.verdict
    return candidate.label_from == candidate.id and finding is not None and not finding.shared


def _rows(record: SearchRecord, prices: Prices | None) -> Iterator[_Row]:
    """The candidates of one search, by number."""
    meter = None if prices is None else Meter(prices)
    verify_costs = {} if meter is None else record.costs_of_verifying(meter)
    for candidate in record.candidates:
        row: _Row = {"candidate": candidate.id}
        if candidate.generator:
            row["generator"] = candidate.generator
        if candidate.scored is not None:
            row |= {"score": candidate.score, "key": candidate.key}
            if candidate.scored.alike is not None:
                row["alike"] = candidate.scored.alike
        if candidate.refuted:
            row["refuted"] = True
        if candidate.passed is not None:
            row["passed"] = candidate.passed
        if candidate.second_score is not None:
            row["score_second"] = candidate.second_score
        if candidate.verdict is not None:
            row |= verified_part(candidate.verdict.evidence)
            if candidate.verdict.shared:
                row["shared"] = True
            if JUDGED in candidate.verdict.evidence:
                row["labels"] = JUDGED
        if candidate.label_from is not None:
            row |= stage_columns(record, candidate.label_from, meter)
        if prices is not None:
            own = replace(_meter(record, candidate.generator), prices=prices)
            row["generate_cost"] = record.cost_of_generating(own, candidate.id)
            row["verify_cost"] = verify_costs.get(candidate.id)
        yield row


def _model(record: SearchRecord, name: str) -> str:
    """The model of a search, or of one of its generators."""
    several: Any = record.about.get("generators", {})
    about = several.get(name, record.about) if isinstance(several, Mapping) else record.about
    return model_of(str(about.get("generator", "")))


def _meter(record: SearchRecord, name: str) -> Meter:
    """What computes the dollars of one generator of a search, without prices of a file."""
    recorded = meters_of(record.about).get(name, Meter())
    return replace(recorded, model=recorded.model or _model(record, name))
