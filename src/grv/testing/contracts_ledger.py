"""The contract of every ledger, as tests to inherit. Needs the extra `testing`.

A subclass defines `make`::

    class TestMyLedger(LedgerContract):
        def make(self, folder):
            return MyLedger(folder / "ledger")
"""

# ruff: noqa: D102 (the names of the tests are sentences)

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ..core.values import CandidateId, Generated, Verdict, Verified
from ..ledger.entries import Ended, Entry, Failed, Found, Intended, Made, Scored, Started, Told
from ..ledger.ledger import Caps, Ledger, OverBudget, SearchStanding
from ..usage import Usage

LIFE: Sequence[Entry] = (
    Started("p", {"policy": "adaptive", "seed": 0}),
    Intended("generate", (0, 1)),
    Made(0, "a text\nof two lines \x00 \ud800 \u20ac", (-0.5, -1.0), Usage(seconds=0.1)),
    Made(1, "", None),
    Intended("score", (0, 1)),
    Scored(0, -0.75, "key"),
    Scored(1, None, None, "no tokens"),
    Told(Generated((-0.75, float("-inf")), ("key", None)), "the first shell"),
    Intended("verify", (0,)),
    Found(0, Verdict.PASSED, "fine", {"tests": [1, None, {"a": True}]}, Usage(seconds=2)),
    Told(Verified({CandidateId(0): Verdict.PASSED}, paid=1.5)),
    Ended("solved", 0, 2, 1, 12.0),
)

_numbers = st.floats(allow_nan=False, allow_infinity=False)
_data = st.dictionaries(
    st.text(max_size=5), st.none() | st.booleans() | st.integers() | _numbers | st.text(max_size=9)
)
_ids = st.integers(0, 10**6)
_scores = st.lists(_numbers | st.just(float("-inf")), max_size=5)
_usages = st.builds(Usage, _ids, _ids, _numbers, st.none() | _numbers, _ids, _ids, _ids, _numbers)
_verdicts = st.sampled_from(Verdict)
_texts = st.text(st.characters(), max_size=30)  # including lone surrogates
_events = st.builds(
    Generated, _scores.map(tuple), st.just(()), st.none() | st.floats(0, 100)
) | st.builds(Verified, st.dictionaries(_ids.map(CandidateId), _verdicts, min_size=1, max_size=4))


def entries() -> st.SearchStrategy[Entry]:
    """Any entry, even one that makes no sense."""
    return st.one_of(
        st.builds(Started, _texts, _data),
        st.builds(
            Intended,
            st.sampled_from(["generate", "score", "verify"]),
            st.lists(_ids, max_size=4).map(tuple),
        ),
        st.builds(Made, _ids, _texts, st.none() | st.lists(_numbers).map(tuple), _usages),
        st.builds(Scored, _ids, st.none() | _numbers, st.none() | _texts, _texts, _usages),
        st.builds(Found, _ids, _verdicts, _texts, _data, _usages),
        st.builds(Told, _events, _texts, _texts),
        st.builds(
            Ended,
            st.sampled_from(["solved", "out of budget"]),
            st.none() | _ids,
            _ids,
            _ids,
            st.floats(0, 1e9),
        ),
        st.builds(Failed, _texts),
    )


class LedgerContract:
    """Properties of every ledger. Inherit, and define `make`."""

    def make(self, folder: Path) -> Ledger:
        """A new ledger, which may store files in this folder."""
        raise NotImplementedError

    @pytest.fixture
    def ledger(self, tmp_path: Path) -> Iterator[Ledger]:
        """A ledger that is closed after the test, if it has `close`."""
        made = self.make(tmp_path)
        yield made
        close = getattr(made, "close", None)
        if close is not None:
            close()

    def test_what_is_not_there_reads_as_nothing(self, ledger: Ledger) -> None:
        assert list(ledger.read("nothing")) == []

    def test_what_is_appended_is_read_in_order(self, ledger: Ledger) -> None:
        for at in range(0, len(LIFE), 3):
            ledger.append("s", LIFE[at : at + 3])
            assert list(ledger.read("s")) == list(LIFE[: at + 3])

    def test_appending_nothing_changes_nothing(self, ledger: Ledger) -> None:
        ledger.append("s", LIFE[:2])
        ledger.append("s", [])
        assert list(ledger.read("s")) == list(LIFE[:2])

    def test_searches_do_not_mix(self, ledger: Ledger) -> None:
        for entry in LIFE:
            for search in ("s", "S", "s ", "t"):
                ledger.append(search, [entry])
        for search in ("s", "S", "s ", "t"):
            assert list(ledger.read(search)) == list(LIFE)

    def test_what_was_read_does_not_change(self, ledger: Ledger) -> None:
        ledger.append("s", LIFE[:2])
        read = ledger.read("s")
        ledger.append("s", LIFE[2:4])
        assert list(read) == list(LIFE[:2])

    def test_any_entries_come_back_as_they_were(self, ledger: Ledger) -> None:
        count = iter(range(10**9))

        @given(st.lists(entries(), max_size=6))
        def check(written: list[Entry]) -> None:
            search = f"s{next(count)}"
            ledger.append(search, written)
            assert list(ledger.read(search)) == written

        check()

    def test_a_search_is_claimed_once_until_it_is_released(self, ledger: Ledger) -> None:
        assert ledger.claim("s")
        assert not ledger.claim("s")
        assert ledger.claim("t")
        ledger.release("s")
        assert ledger.claim("s")
        assert not ledger.claim("t")

    def test_an_unclaimed_search_can_be_released(self, ledger: Ledger) -> None:
        ledger.release("s")
        assert ledger.claim("s")

    def test_a_cap_holds_for_a_search_an_account_and_all_accounts(self, ledger: Ledger) -> None:
        def over(search: str, account: str, amount: float, caps: Caps) -> str | None:
            started = Started("p", {}, account=account)
            entries: list[Entry] = [started, Intended("verify", (0,), amount)]
            try:
                ledger.append(search, entries, caps)
            except OverBudget as error:
                return error.of
            return None

        assert over("a", "one", 6.0, Caps(account=7, search=6, total=10)) is None
        assert over("b", "two", 5.0, Caps(total=10)) == "total"
        assert over("c", "one", 2.0, Caps(account=7, total=10)) == "account"
        assert over("a", "one", 1.0, Caps(search=6)) == "search"
        assert over("b", "two", 4.0, Caps(account=4, total=10)) is None
        paid = [ledger.possibly_paid(name) for name in ("one", "two", "", None)]
        assert paid == [6, 4, 0, 10]
        assert list(ledger.read("c")) == []

    def test_searches_that_have_ended_are_listed_in_the_order_of_their_ends(
        self, ledger: Ledger
    ) -> None:
        end = Ended("solved", 0, 1, 1, 11.0)
        for search in ("a", "b", "c", "d"):
            ledger.append(search, [Started("p", {"seed": search})])
        ledger.append("c", [end])
        ledger.append("a", [Started("p", {"seed": "again"}, prior="a text")])
        ledger.append("a", [end])
        ledger.append("b", [Failed("no server")])
        assert list(ledger.ended_searches()) == [("c", {"seed": "c"}), ("a", {"seed": "again"})]
        ledger.append("c", [end])
        assert [search for search, _ in ledger.ended_searches()] == ["a", "c"]
        assert list(ledger.read("a"))[1] == Started("p", {"seed": "again"}, prior="a text")

    def test_searches_that_were_open_when_another_one_ended(self, ledger: Ledger) -> None:
        end = Ended("solved", 0, 1, 1, 11.0)
        for search in ("a", "b", "c", "d"):
            ledger.append(search, [Started("p", {"seed": search})])
        ledger.append("b", LIFE[1:4])
        ledger.append("d", [end])
        ledger.append("c", [end])
        ledger.append("a", LIFE[1:4])
        ledger.append("b", [end])
        expected = [("a", {"seed": "a"}, 1), ("b", {"seed": "b"}, 4)]
        assert list(ledger.open_at_end("c", 9)) == expected
        assert list(ledger.open_at_end("c", 1)) == expected[:1]
        assert list(ledger.open_at_end("b", 9)) == [("a", {"seed": "a"}, 4)]
        assert list(ledger.open_at_end("a", 9)) == []

    def test_how_far_searches_are_can_be_asked(self, ledger: Ledger) -> None:
        ledger.append("a", [*LIFE[:2], Intended("verify", (0,), 2.5)])
        ledger.append("b", LIFE)
        ledger.append("c", [LIFE[0], Failed("no server")])
        assert list(ledger.standings(["c", "nothing", "a", "b"])) == [
            SearchStanding(2, 0.0, "failed"),
            SearchStanding(),
            SearchStanding(3, 2.5),
            SearchStanding(len(LIFE), 0.0, "solved"),
        ]
        ledger.append("b", LIFE[:2])
        (again,) = ledger.standings(["b"])
        assert again == SearchStanding(len(LIFE) + 2, 0.0, "solved")

    def test_a_ledger_has_one_schedule_at_a_time(self, ledger: Ledger) -> None:
        assert ledger.follow("one") is None
        assert ledger.follow("one") is None
        assert ledger.follow("two") is not None
        ledger.leave("one")
        assert ledger.follow("two") is not None
        ledger.leave("one")
        assert ledger.follow("two") is None
        assert ledger.follow("one") is not None
        ledger.leave("two")

    def test_threads_can_append_at_once(self, ledger: Ledger) -> None:

        def work(search: str) -> None:
            for _ in range(20):
                ledger.append(search, LIFE[:2])

        threads = [threading.Thread(target=work, args=(name,)) for name in "aabb"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for search in "ab":
            assert Counter(map(type, ledger.read(search))) == {Started: 40, Intended: 40}
