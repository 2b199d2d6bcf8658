"""Writes the verdicts of reviewers into a ledger: appended, never changed."""

from __future__ import annotations

from collections.abc import Mapping

from ...core.values import Verdict
from ...ledger.entries import Found
from ...ledger.tables import TableLedger
from .queue import ItemId, decided

# What a reviewer may say, the verdict, and its reason.
SAYINGS: Mapping[str, tuple[Verdict, str]] = {
    "pass": (Verdict.PASSED, "passed by a reviewer"),
    "fail": (Verdict.FAILED, "failed by a reviewer"),
    "cannot tell": (Verdict.BROKEN, "the reviewer cannot tell"),
}
_LONGEST_NOTE = 10_000


def record(
    ledger: TableLedger,
    id: ItemId,
    saying: str,
    *,
    reviewer: str,
    note: str = "",
    seconds: float = 0.0,
    correcting: bool = False,
) -> bool:
    """Append a verdict, while the caller has the claim on the candidate.

    The same verdict of the same reviewer is written once, however often it is sent.

    Returns:
        Whether the verdict is in the ledger: not if there is one already and it is not corrected.
    """
    verdict, reason = SAYINGS[saying]
    earlier = decided(ledger.read(id.search), id.candidate)
    if earlier is not None:
        same = (earlier.verdict, earlier.reviewer) == (verdict, reviewer)
        if same and (not correcting or earlier.note == note.strip()[:_LONGEST_NOTE]):
            return True
        if not correcting:
            return False
    found = Found(
        id.candidate,
        verdict,
        reason,
        {},
        {"seconds": round(max(0.0, seconds), 1)},
        reviewer,
        note.strip()[:_LONGEST_NOTE],
    )
    ledger.append(id.search, [found])
    return True
