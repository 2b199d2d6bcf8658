"""Drafts that wait in a batch: what they count as, before and after they are found again."""

from __future__ import annotations

from grv.ledger.entries import (
    Ended,
    Entry,
    Failed,
    Intended,
    Made,
    Parked,
    Settled,
    from_text,
    kind_of,
    to_text,
)
from grv.ledger.pending import pending_calls
from grv.ledger.view import SearchView

TICKET = {"batch": "b", "request": "b-0", "before": "", "id": ""}
SENT: list[Entry] = [
    Intended("generate", (0, 1), 4.0),
    Parked("generate", (0, 1), batch=TICKET),
    Parked("generate", (0, 1), batch={**TICKET, "id": "batch_1"}),
]


def test_a_ticket_is_read_as_it_was_written() -> None:
    for entry in SENT:
        assert from_text(kind_of(entry), to_text(entry)) == entry
    plain = Parked("verify", (1,), "a note")
    assert "batch" not in to_text(plain)


def test_drafts_in_a_batch_are_in_flight_and_can_be_found() -> None:
    view = SearchView(SENT)
    assert view.tally.in_batch == {("generate", 0), ("generate", 1)}
    assert view.tally.in_flight == view.tally.in_batch
    assert not view.tally.parked  # no person is asked
    assert not view.waiting
    assert view.in_batches[1].batch["id"] == "batch_1"
    assert view.in_batches[1].reserved == 4.0


def test_drafts_that_arrive_are_billed() -> None:
    view = SearchView([*SENT, Made(0, "a"), Made(1, "b")])
    assert not view.in_batches
    assert not view.tally.lost
    assert view.tally.billed == 4.0


def test_a_part_without_an_answer_costs_nothing_and_is_asked_for_again() -> None:
    view = SearchView([*SENT, Settled("generate", (0, 1), 4.0, "expired", unpaid=True)])
    assert not view.in_batches
    assert view.tally.paid == 0
    assert not view.tally.lost


def test_drafts_that_are_found_after_the_end_are_not_lost() -> None:
    for end in (Failed("no connection"), Ended("finished", None, 0, 0, 0.0)):
        tally = pending_calls([*SENT, end])
        assert (tally.lost["generate"], tally.lost_paid, tally.billed) == (2, 4.0, 0.0)
        tally = pending_calls([*SENT, end, Made(0, "a"), Made(1, "b")])
        assert (tally.lost["generate"], tally.lost_paid, tally.billed) == (0, 0.0, 4.0)
        unpaid = Settled("generate", (0, 1), 4.0, "expired", unpaid=True)
        tally = pending_calls([*SENT, end, unpaid])
        assert (tally.lost["generate"], tally.lost_paid, tally.paid) == (0, 0.0, 0.0)
