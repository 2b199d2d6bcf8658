"""The bill of a search, its export, its page and the ledger agree after every interruption."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import anyio
import pytest

from grv.apps.search_lines import SearchLines, search_data
from grv.core.values import Verdict
from grv.ledger.entries import Ended, Found, Scored
from grv.ledger.pending import pending_calls
from grv.ledger.sqlite import SqliteLedger
from grv.ledger.view import SearchView
from grv.runtime.export import exported
from grv.runtime.solution import UNFINISHED
from grv.serve.pages.one_search import search_data as page_data
from grv.serve.pages.store import Listed
from support.interruptions import KINDS, SECOND, Interrupted, interrupted, prices_of

pytestmark = pytest.mark.slow

EXACT = pytest.approx


def check(found: Interrupted) -> None:
    """Add everything up: what the backends did, the ledger, the bill, the export, the page."""
    ledger, served, kind = found.ledger, found.counts.served, found.counts.kind
    entries = ledger.read(found.search)
    tally = pending_calls(entries)
    lost, made = tally.lost, len(tally.made)
    verified = tally.verified + tally.cancelled
    assert ledger.check() == []

    # Each call that a backend served has one place.
    assert served["generate"] == made + tally.cancelled_drafts + lost["generate"]
    assert served["verify"] == verified + lost["verify"]
    assert served["rescore"] == tally.rescored + lost["rescore"]

    paid = ledger.possibly_paid(None)
    assert tally.paid == EXACT(paid)
    costs = prices_of(kind)
    if not kind.get("measured"):
        findings = [entry for entry in entries if isinstance(entry, Found)]
        failed = sum(each.verdict is Verdict.FAILED for each in findings)
        served_cost = served["generate"] * costs.generate + costs.of(0, served["verify"], failed)
        served_cost += served["score"] * costs.score + served["rescore"] * SECOND
        assert paid == EXACT(served_cost)
        lost_cost = lost["generate"] * costs.generate + lost["verify"] * costs.verify
        lost_cost += lost["score"] * costs.score + lost["rescore"] * SECOND
        assert tally.billed == EXACT(paid - lost_cost)
    if not kind.get("value"):
        assert paid <= found.limit * (1 + 1e-9)

    columns = exported(ledger).columns
    assert len(columns["candidate"]) == made
    (summary,) = ledger.searches()
    shown = search_data(summary, entries)
    assert len(shown["candidates"]) == made
    assert shown["lost"] == dict(lost)
    page = page_data(Listed(summary, "", 0), [*ledger.intact(found.search)], "")
    assert (page["generated"], page["verified"]) == (made, verified)
    assert len(page["candidates"]) == made
    assert page["lost"] == dict(lost)
    closing = SearchLines(SearchView(entries)).lines()[-1]
    assert closing.startswith(f"in all: {made} generated, {verified} verified, cost ")

    solution = found.solution
    if solution is None or solution.outcome == UNFINISHED:
        return
    bill = solution.bill
    assert (bill.generated, bill.verified) == (made, verified)
    assert bill.total == EXACT(tally.billed)
    assert solution.lost == lost
    assert solution.unneeded == tally.cancelled
    assert sum(each.total for each in solution.bills.values()) in (0, EXACT(bill.total))
    assert sum(each.generated for each in solution.bills.values()) in (0, made)
    if solution.outcome == "out of budget":  # the last money was for a verification
        unverified = tally.made - {entry.candidate for entry in entries if isinstance(entry, Found)}
        scored = {entry.candidate for entry in entries if isinstance(entry, Scored)}
        needed = 12.0 if kind.get("measured") else costs.verify
        if unverified.isdisjoint(scored):  # the process died before it was scored
            needed += 0.5 if kind.get("measured") else costs.score
        assert found.limit - paid < needed or not unverified
    ends = [entry for entry in entries if isinstance(entry, Ended)]
    if solution.outcome != "failed":
        ended = ends[-1]
        assert (ended.generated, ended.verified) == (made, verified)
        assert ended.total == EXACT(bill.total)
        assert (summary.generated, summary.verified) == (made, verified)


def run(kind: str, seed: int, folder: Path) -> None:
    """Interrupt a search, and add up."""
    with closing(SqliteLedger(str(folder / f"{seed}.ledger"))) as ledger:
        check(anyio.run(interrupted, kind, seed, ledger))


@pytest.mark.parametrize("kind", KINDS)
def test_after_an_interruption_bill_export_page_and_ledger_agree(kind: str, tmp_path: Path) -> None:
    run(kind, 0, tmp_path)


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("second scores that are lost", 1),  # all attempts for one candidate
        ("measured costs, dead process", 10),  # a smaller step fits
        ("measured costs, dead process", 20),  # only a verification fits
    ],
)
def test_the_last_money_is_not_left_over(kind: str, seed: int, tmp_path: Path) -> None:
    run(kind, seed, tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_after_two_hundred_interruptions_bill_export_page_and_ledger_agree(
    kind: str, tmp_path: Path
) -> None:
    for seed in range(1, 11):
        run(kind, seed, tmp_path)
