"""The state of a search, from the ledger: it is there after a restart, too."""

from __future__ import annotations

import re
from typing import Any

from ..backends.protocols import Finding, verified_part
from ..ledger.entries import Started
from ..ledger.tables import TableLedger
from ..runtime.record import SearchRecord
from ..runtime.solution import FAILED, dollars_of
from .clients import Client
from .completions.answers import evidence_of, tokens
from .errors import ApiError

_ID = re.compile("[0-9a-f]{24}")


def state_of(ledger: TableLedger, search: str, client: Client, *, running: bool) -> dict[str, Any]:
    """What is on record about a search of a client.

    Raises:
        ApiError: the client has no such search.
    """
    name = search if _ID.fullmatch(search) else ""
    # One look at the index for every client: the time does not tell whether there is a search.
    own = ledger.select("SELECT 1 FROM searches WHERE id = ? AND account = ?", (name, client.name))
    entries = ledger.read(search) if own else ()
    started = next((each for each in entries if isinstance(each, Started)), None)
    if started is None or started.account != client.name:
        raise ApiError(404, "there is no such search", code="not_found")
    record = SearchRecord(None, search, entries)
    tally = record.tally
    ended = record.ended
    answer = None if ended is None else ended.answer
    found = None if answer is None else record.found.get(answer)
    outcome = ended.reason if ended is not None else FAILED if record.failed is not None else None
    status = "running" if running else "unfinished" if outcome is None else "ended"
    used = [each.usage for each in record.made.values()]
    evidence = program = None
    if found is not None:
        finding = Finding(found.verdict, found.reason, found.evidence)
        program = finding.answer_program
        evidence = evidence_of(finding, str(started.about.get("named_check", "")))
    return {
        "id": search,
        "object": "grv.search",
        "status": status,
        "outcome": None if running else outcome,
        "verified": answer is not None,
        "answer": None if answer is None else record.made[answer].text,
        "answer_program": program,
        "bill": {
            "cost": tally.billed if ended is None else ended.total,
            "possibly_paid": tally.paid,
            "generated": len(tally.made),
            "verified": tally.verifications,
            "shared": tally.shared,
            "lost": tally.lost.total() - (len(tally.in_flight) if running else 0),
            "dollars": dollars_of(record),
        },
        "usage": tokens(
            sum(each.prompt_tokens for each in used), sum(each.completion_tokens for each in used)
        ),
        "evidence": evidence,
        **(verified_part(found.evidence) if found is not None else {}),
    }
