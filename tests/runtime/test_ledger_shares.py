"""What the ended searches of a ledger say about the share of right candidates."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Sequence

import pytest

from grv.core.values import Verdict
from grv.learning.online import FitSchedule, window
from grv.ledger.entries import Ended, Entry, Found, Made, Started
from grv.ledger.ledger import MemoryLedger
from grv.runtime import ledger_shares
from grv.runtime.ledger_shares import LedgerShares
from grv.theory.confirmations import CallCounts, Errors, RightShares

pytestmark = pytest.mark.anyio

ERRORS = Errors(0.2, 0.1)
SEARCHES = 21


class Counting(MemoryLedger):
    """A ledger that counts how often each search is read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: Counter[str] = Counter()

    def read(self, search: str) -> Sequence[Entry]:
        self.reads[search] += 1
        return super().read(search)


def record(ledger: MemoryLedger, number: int, generator: str = "g", failures: int = 1) -> None:
    """A search with one candidate, on which so many calls passed."""
    judged = {
        "passes": number % 5,
        "failures": failures,
        "errors": [ERRORS.false_pass, ERRORS.false_fail],
    }
    entries: list[Entry] = [
        Started(f"p{number}", {"generator": generator, "client": "c"}),
        Made(0, "a text", None),
        Found(0, Verdict.FAILED, "", {"judged": judged}),
        Ended("exhausted", None, 1, 1, 2.0),
    ]
    ledger.append(f"s{number}", entries)


def kept(failures: int) -> int:
    """How many counts of calls with so many failures are in memory."""
    gc.collect()
    return sum(
        isinstance(each, CallCounts) and each.failures == failures for each in gc.get_objects()
    )


@pytest.mark.slow
@pytest.mark.parametrize(("most", "failures"), [(3, 7), (400, 8)])
async def test_no_more_searches_are_kept_than_a_fit_takes_and_each_is_read_once(
    most: int, failures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = FitSchedule(2, 4, most)
    monkeypatch.setattr(ledger_shares, "RIGHT_SHARES", schedule)
    ledger, fits = Counting(), set[str]()
    shares = LedgerShares(ledger, frozenset({"g"}), "c")
    for number in range(SEARCHES):
        record(ledger, number, failures=failures)
        fitted = await shares.fitted(ERRORS)
        ended = window(number + 1, schedule)
        counts = [(CallCounts(each % 5, failures),) for each in range(number + 1)[ended]]
        assert fitted == (RightShares.fitted(counts, ERRORS) if counts else None)
        fits |= {f"s{each}" for each in range(number + 1)[ended]}
        del counts
    assert kept(failures) == min(most, SEARCHES)
    assert ledger.reads == dict.fromkeys(fits, 1)


async def test_searches_of_other_generators_and_clients_do_not_count() -> None:
    ledger = Counting()
    for number in range(SEARCHES):
        record(ledger, number, "other")
    assert await LedgerShares(ledger, frozenset({"g"}), "c").fitted(ERRORS) is None
    assert await LedgerShares(ledger, frozenset({"other"}), "d").fitted(ERRORS) is None
    assert not ledger.reads
    assert await LedgerShares(ledger, frozenset({"other"}), None).fitted(ERRORS) is not None


async def test_calls_that_were_taken_to_err_otherwise_do_not_count() -> None:
    ledger = Counting()
    for number in range(SEARCHES):
        record(ledger, number)
    shares = LedgerShares(ledger, frozenset({"g"}), "c")
    assert await shares.fitted(Errors(0.3, 0.1)) is None
    assert await shares.fitted(ERRORS) is not None
    assert set(ledger.reads.values()) == {1}  # for both
