"""What a view makes of entries, also of those of older formats."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from grv.core.values import CandidateId, Event, Generated, Verdict, Verified
from grv.ledger.checking import repair
from grv.ledger.entries import (
    Ended,
    Entry,
    Failed,
    Found,
    Made,
    Parked,
    Scored,
    Started,
    Told,
    from_text,
    kind_of,
    to_text,
    with_generator,
)
from grv.ledger.opening import open_ledger
from grv.ledger.sqlite import SqliteLedger
from grv.ledger.tables import TableLedger
from grv.ledger.view import SearchView
from grv.serve.pages.one_search import search_data
from grv.serve.pages.store import Store
from support.commands import here
from support.postgres import Server

ASSETS = Path(__file__).parents[1] / "assets"
OLD = ASSETS / "ledger-2-generators.sqlite"  # written before results named their generator
PASSED, FAILED, BROKEN = Verdict.PASSED, Verdict.FAILED, Verdict.BROKEN
START = Started("p", {"generators": {"a": {}, "a: b": {}}})


def generated(n: int, generator: str = "") -> Told:
    return Told(Generated((0.5,) * n), "more", generator)


def verified(id: int, verdict: Verdict) -> Told:
    return Told(Verified({CandidateId(id): verdict}))


def made(*ids: int, generator: str = "") -> list[Entry]:
    return [Made(id, f"text {id}", generator=generator) for id in ids]


def arrived(view: SearchView) -> list[tuple[int, ...]]:
    return [step.ids for step in view.steps if step.kind == "generated"]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copy(OLD, tmp_path / "ledger"))


def test_a_result_names_its_generator() -> None:
    told = generated(2, "small")
    assert from_text(kind_of(told), to_text(told)) == told
    assert "generator" not in to_text(generated(2))


@pytest.mark.parametrize(
    ("why", "generator", "rest"),
    [
        ("a: the best: of two", "a", "the best: of two"),
        ("a: b: the best", "a: b", "the best"),
        ("c: the best", "", "c: the best"),
        ("the best", "", "the best"),
        ("a:the best", "", "a:the best"),
    ],
)
def test_the_name_in_an_old_reason_is_found(why: str, generator: str, rest: str) -> None:
    event: Event = Generated((0.5,))
    names = ("a", "a: b")
    assert with_generator(Told(event, why), names) == Told(event, rest, generator)
    assert with_generator(Told(event, why, "a"), names) == Told(event, why, "a")


def test_a_search_with_one_generator_keeps_its_reasons(tmp_path: Path) -> None:
    told = Told(Generated((0.5,)), "a: the best")
    with closing(SqliteLedger(tmp_path / "ledger")) as ledger:
        ledger.append("s", [Started("p", {"generator": "a"}), told])
        assert ledger.read("s")[1] == told


def check_old(ledger: TableLedger) -> None:
    (search,) = ledger.search_ids()
    view = SearchView(ledger.read(search))
    assert ledger.check() == []
    assert {told.generator for told in view.told} == {"small", "large"}
    assert not any(told.why.startswith(("small: ", "large: ")) for told in view.told)
    for step in view.steps:
        if step.kind in ("generated", "verified"):
            assert {view.made[id].generator for id in step.ids} == {step.generator}
    store = Store(ledger)
    listed = store.one(search)
    assert listed is not None
    page = search_data(listed, *store.entries(search))
    steps = [each for each in page["steps"] if each["step"] == "generated"]
    assert steps[2]["ids"] == [2, 4, 6]
    assert steps[2]["why"] == "small: 3 more to choose from"
    assert {each["generator"] for each in steps} == {"small", "large"}


def test_a_ledger_without_names_of_generators_shows_the_same(old: Path) -> None:
    assert here("runs", "show", old, "p").out == OLD.with_suffix(".txt").read_text()
    with closing(open_ledger(str(old), read_only=True)) as ledger:
        check_old(ledger)
    with closing(SqliteLedger(old)) as ledger:
        check_old(ledger)


def test_a_copy_of_such_a_ledger_has_the_names(old: Path, tmp_path: Path) -> None:
    with closing(SqliteLedger(old)) as ledger, closing(SqliteLedger(tmp_path / "new")) as new:
        assert repair(ledger, new).damaged == ()
        check_old(new)
        bodies = new.select("SELECT body FROM entries WHERE kind = 'told'")
        assert all('"generator":' in body for (body,) in bodies)
        assert repair(ledger, new).known == 1


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_in_postgres_they_are_found_too(old: Path, postgres: Server) -> None:
    with (
        closing(SqliteLedger(old)) as ledger,
        closing(open_ledger(postgres.new_database())) as new,
    ):
        assert repair(ledger, new).damaged == ()
        check_old(new)
        (search,) = new.search_ids()
        told = Told(Generated((0.5,)), "large: as an older grv wrote it")
        new.append(search, [told])
        assert new.read(search)[-1] == Told(told.event, "as an older grv wrote it", "large")


def test_candidates_of_several_generators_arrive_by_number() -> None:
    entries: list[Entry] = [
        START,
        *made(0, 2, generator="a"),
        generated(2, "a"),
        *made(4, generator="a"),  # and then the process dies
        *made(1, 3, generator="a: b"),
        generated(2, "a: b"),
        Told(Verified({CandidateId(0): FAILED}, meanwhile=Generated((0.5,))), "", "a"),
    ]
    view = SearchView(entries)
    assert arrived(view) == [(0, 2), (1, 3)]
    assert view.steps[-1].meanwhile == (4,)
    assert view.steps[-1].reason == "a: "


def test_a_search_that_starts_again_is_told_from_the_first_candidate_on() -> None:
    entries = [START, *made(0, 1), generated(2), Started("p", {"budget": 2}), generated(1)]
    view = SearchView(entries)
    assert [step.kind for step in view.steps] == [
        "started",
        "generated",
        "continued",
        "generated",
    ]
    assert arrived(view) == [(0, 1), (0,)]
    assert view.told == [entries[-1]]


LIFE: Sequence[Entry] = (
    START,
    *made(0),
    generated(1),
    Found(0, FAILED),
    verified(0, FAILED),
    *made(1),
    generated(1),
)


def test_after_a_correction_candidates_are_told_again() -> None:
    corrected = [*LIFE, Found(0, BROKEN, reviewer="ann")]
    view = SearchView(corrected)
    assert view.is_corrected
    assert view.told == [*LIFE[2:3]]
    again = SearchView([*corrected, verified(0, BROKEN), generated(1)])
    assert arrived(again) == [(0,), (1,), (1,)]
    assert not again.is_corrected


def test_a_verdict_corrected_before_it_was_told_is_told_again_later() -> None:
    """Another process corrected it; the search was told the first one, and then resumed."""
    entries = [
        *LIFE[:4],
        Found(0, BROKEN, reviewer="ann"),
        *LIFE[4:],
        verified(0, BROKEN),
        generated(1),
    ]
    view = SearchView(entries)
    assert arrived(view) == [(0,), (1,), (1,)]
    assert view.told == [LIFE[2], verified(0, BROKEN), generated(1)]


def test_broken_verdicts_that_ended_a_search_are_shown_and_requested_again() -> None:
    entries: list[Entry] = [START, *made(0, 1, 2), generated(3)]
    for id in range(3):
        entries += [Found(id, BROKEN, "no worker"), verified(id, BROKEN)]
    view = SearchView([*entries, Failed("3 broken verdicts in a row")])
    assert view.found == {}
    verdicts = [each.verdict for each in view.candidates if each.verdict is not None]
    assert [found.reason for found in verdicts] == ["no worker"] * 3
    assert view.tally.verifications == 3


def test_what_waits_is_open_until_the_search_ends() -> None:
    entries: list[Entry] = [START, *made(0, 1), Scored(0, 0.5), Parked("verify", (0, 1), "ask")]
    view = SearchView(entries)
    assert view.waiting == view.open_to_review == {0, 1}
    assert [each.waiting for each in view.candidates] == [True, True]
    decided = SearchView([*entries, Found(0, PASSED, reviewer="ann")])
    assert decided.waiting == {1}
    ended = SearchView([*entries, Ended("out of budget", None, 2, 0, 2.0)])
    assert (ended.waiting, ended.open_to_review) == ({0, 1}, set())
    assert ended.asked == {0, 1}


def test_a_verdict_without_a_draft_is_not_shown() -> None:
    assert SearchView([START, Found(3, FAILED), Scored(4, 0.5)]).candidates == []
