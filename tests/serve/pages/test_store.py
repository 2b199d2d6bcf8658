"""What the pages read from a ledger, in a file and in PostgreSQL."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from grv.core.values import REFUTED, Generated, Verdict, Verified
from grv.ledger.entries import (
    Charged,
    Ended,
    Entry,
    Failed,
    Found,
    Intended,
    Made,
    Parked,
    Scored,
    Settled,
    Started,
    Told,
)
from grv.ledger.opening import open_ledger
from grv.ledger.tables import TableLedger
from grv.serve.pages.answers import as_json
from grv.serve.pages.one_search import search_data
from grv.serve.pages.overview import compare, overview
from grv.serve.pages.store import Filter, Store
from support.postgres import POSTGRES, Server

ABOUT: dict[str, Any] = {"costs": [1, 10, 0], "policy": "varied", "budget": 100}
PASSED, FAILED = Verdict.PASSED, Verdict.FAILED


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=POSTGRES)])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., TableLedger]]:
    place = str(tmp_path / "ledger")
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        place = server.new_database()
    ledgers: list[TableLedger] = []

    def another(*, read_only: bool = False) -> TableLedger:
        ledgers.append(open_ledger(place, read_only=read_only))
        return ledgers[-1]

    yield another
    for each in reversed(ledgers):
        each.close()


def fill(ledger: TableLedger) -> None:
    """One solved, one unsolved, one failed, one running, one parked, one stopped search."""
    for name, account in (("Solved \ud800", "ann"), ("unsolved", ""), ("broken", "ann")):
        start(ledger, name, account)
    told = Told(Generated((0.5, 0.7)), "two to choose from")
    ledger.append("solved", [Made(0, "no"), Made(1, "the needle"), Scored(0, 0.5), Scored(1, 0.7)])
    ledger.append("solved", [told, Intended("verify", (1,), 10.0), Found(1, PASSED)])
    ledger.append("solved", [Told(Verified({1: PASSED}), "the best")])  # type: ignore[dict-item]
    ledger.append("solved", [Ended("solved", 1, 2, 1, 12.0)])
    ledger.append("unsolved", [Charged(5.0, "before"), Ended("exhausted", None, 0, 0, 5.0)])
    ledger.append("broken", [Failed("no server")])
    for name in ("running", "parked", "stopped"):
        start(ledger, name, "")
        ledger.append(name, [Made(0, "text"), Intended("verify", (0,), 10.0)])
    ledger.append("parked", [Parked("verify", (0,), "ask")])
    assert ledger.claim("running")


def start(ledger: TableLedger, name: str, account: str) -> None:
    prompt = f"the prompt of {name}"
    ledger.append(name.split()[0].lower(), [Started(name, ABOUT, prompt, "", account)])


def names(store: Store, **wanted: Any) -> list[str]:
    rows, count = store.page(Filter(**wanted))
    assert count == len(rows)
    return [each.summary.id for each in rows]


@pytest.mark.slow
def test_a_reader_lists_filters_and_counts(places: Callable[..., TableLedger]) -> None:
    fill(places())
    store = Store(places(read_only=True))

    everything = ["stopped", "parked", "running", "broken", "unsolved", "solved"]
    assert names(store) == everything
    assert names(store, show="solved") == ["solved"]
    assert names(store, show="unsolved") == ["unsolved"]
    assert names(store, show="failed") == ["broken"]
    assert names(store, account="ann") == ["broken", "solved"]
    assert names(store, text="olved") == ["unsolved", "solved"]
    assert names(store, text="stopped") == ["stopped"]
    assert names(store, text="needle") == []
    assert names(store, text="needle", texts=True) == ["solved"]
    assert names(store, text="prompt of unsolved", texts=True) == ["unsolved"]
    assert names(store, text="%' OR 1=1 --") == []
    assert names(store, sort="cost")[:4] == ["stopped", "solved", "running", "parked"]
    statuses = {each.summary.id: each.status for each in store.page(Filter())[0]}
    assert statuses == {
        "stopped": "stopped",
        "parked": "waiting for review",
        "running": "running",
        "broken": "failed",
        "unsolved": "exhausted",
        "solved": "solved",
    }


def test_while_a_run_follows_a_schedule_what_has_no_claim_waits_for_its_turn(
    places: Callable[..., TableLedger],
) -> None:
    ledger = places()
    fill(ledger)
    store = Store(places(read_only=True))
    seen = []
    ledger.follow("least-spent")
    for _ in range(2):
        shown = overview(store, 100.0)
        statuses = {each.summary.id: each.status for each in store.page(Filter())[0]}
        seen.append((statuses["stopped"], shown["in_turn"], shown["stopped"], shown["running"]))
        assert (statuses["running"], statuses["parked"]) == ("running", "waiting for review")
        ledger.leave("least-spent")

    assert seen == [("waiting for its turn", 1, 0, 1), ("stopped", 0, 1, 1)]


def test_the_overview_adds_up(places: Callable[..., TableLedger]) -> None:
    fill(places())
    shown = overview(Store(places(read_only=True)), 100.0)

    assert (shown["searches"], shown["running"], shown["waiting"], shown["stopped"]) == (6, 1, 1, 1)
    assert shown["outcomes"] == {"solved": 1, "exhausted": 1, "failed": 1, "unfinished": 3}
    assert (shown["spent"], shown["left"]) == (45.0, 55.0)
    assert sum(shown["bars"]["spent"]) == pytest.approx(45.0)
    assert (shown["verdicts"]["passed"], shown["verdicts"]["failed"]) == (1, 0)
    assert shown["baselines"] == {
        **{"searches": 1, "cost": 12.0, "least": 11.0, "most": 22.0},
        **{"hindsight": 12.0, "unknown": 1},
    }
    assert overview(Store(places(read_only=True)), math.inf)["left"] is None
    assert b"NaN" not in as_json(shown)


@pytest.mark.slow
def test_changes_of_others_are_seen(places: Callable[..., TableLedger]) -> None:
    ledger = places()
    fill(ledger)
    store = Store(places(read_only=True))
    before = store.version()
    assert store.version() == before

    ledger.append("running", [Found(0, FAILED)])

    assert store.version() != before
    assert store.changed_since(before[1], 10) == ["running"]
    assert len(store.changed_since(0, 1000)) == 6


def test_the_baselines_use_known_verdicts_only() -> None:
    found = [Found(4, FAILED), Found(2, PASSED), Found(0, FAILED)]
    entries: list[Entry] = [Started("p", ABOUT), *arrived(6), *found]

    one = compare(entries, 6, 36.0)

    assert one is not None
    assert (one.least, one.most, one.hindsight, one.unknown) == (2 + 20, 3 + 30, 3 + 10, 1)
    assert compare(entries[:-2], 6, 36.0) is None


def arrived(n: int, *keys: str) -> list[Entry]:
    """Candidates with the keys given; the others have none."""
    known = [*keys, *[None] * (n - len(keys))]
    made: list[Entry] = [Made(id, f"text {id}") for id in range(n)]
    return [*made, *(Scored(id, 0.5, key) for id, key in enumerate(known))]


def test_verify_all_neither_verifies_refuted_candidates_nor_keys_that_failed() -> None:
    """A search that was verify-all has saved nothing."""
    keys = (REFUTED, "a", "a", REFUTED, "a", REFUTED)
    found = [Found(1, FAILED), Found(6, PASSED)]
    entries: list[Entry] = [Started("p", ABOUT), *arrived(7, *keys), *found]

    one = compare(entries, 7, 7 + 20.0)

    assert one is not None
    assert one.least == one.most == one.cost == 27.0


def test_measured_costs_are_compared_by_their_means() -> None:
    told = [
        Told(Generated((0.1, 0.2), paid=0.5)),
        Told(Verified({0: FAILED, 1: PASSED}, paid=3.0)),  # type: ignore[dict-item]
    ]
    entries: list[Entry] = [Started("p", {"measured": True, "costs": [1, 1, 0]}), *told]
    found = [Found(0, FAILED), Found(1, PASSED)]
    one = compare([*entries, *arrived(2), *found], 2, 3.5)

    assert one is not None
    assert (one.cost, one.most, one.hindsight) == pytest.approx((3.5, 3.5, 2.0))


@pytest.mark.slow
def test_a_search_has_its_steps_with_reasons_and_all_verdicts(
    places: Callable[..., TableLedger],
) -> None:
    ledger = places()
    fill(ledger)
    ledger.append("solved", [Found(1, FAILED, "", {"x": math.inf}, reviewer="bob", note="no")])
    ledger.append("running", [Settled("verify", (0,), 0.0, "late")])
    store = Store(places(read_only=True))

    listed = store.one("solved")
    assert listed is not None
    shown = search_data(listed, *store.entries("solved"))
    assert [each["step"] for each in shown["steps"]] == [
        "started",
        "generated",
        "verified",
        "ended",
        "reviewed",
    ]
    assert [each["why"] for each in shown["steps"][1:3]] == ["two to choose from", "the best"]
    assert shown["steps"][2]["verdicts"] == {"1": "passed"}
    second = shown["candidates"][1]
    assert [each["verdict"] for each in second["verdicts"]] == ["passed", "failed"]
    assert shown["corrected"]
    assert b'"inf"' in as_json(shown)
    running = store.one("running")
    assert running is not None
    steps = search_data(running, *store.entries("running"))["steps"]
    assert steps[-1]["step"] == "attempt failed"
    assert store.one("nothing") is None


def test_a_damaged_search_is_shown_up_to_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = open_ledger(path)
    fill(ledger)
    ledger.close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE entries SET body = '[]' WHERE search = 'solved' AND number = 4")
    store = Store(open_ledger(path, read_only=True))

    listed = store.one("solved")
    assert listed is not None
    shown = search_data(listed, *store.entries("solved"))
    assert "changed since it was written" in shown["damage"]
    assert len(shown["candidates"]) == 2
    assert names(store, text="needle", texts=True) == ["solved"]
    assert overview(store, math.inf)["searches"] == 6
    store.ledger.close()


@pytest.mark.parametrize(
    "body",
    [
        "not JSON",
        "[1]",
        "NaN",
        "[" * 100_000,
        "9" * 10_000,
        '{"verdict": ["passed"]}',
        '{"verdict": {"passed": 1}, "shared": true}',
        b"\xff\xfe",
        7,
    ],
)
def test_damaged_verdicts_are_not_counted_and_the_overview_is_shown(
    tmp_path: Path, body: object
) -> None:
    with closing(open_ledger(str(tmp_path / "ledger"))) as ledger:
        fill(ledger)
        ledger.append("unsolved", [Found(0, FAILED)])
    with closing(sqlite3.connect(tmp_path / "ledger")) as db, db:
        db.execute(
            "UPDATE entries SET body = ? WHERE search = 'unsolved' AND kind = 'found'", (body,)
        )
    with closing(open_ledger(str(tmp_path / "ledger"), read_only=True)) as reader:
        shown = overview(Store(reader), math.inf)
    assert shown["verdicts"] == {
        "passed": 1,
        "failed": 0,
        "broken": 0,
        "shared": 0,
        "newest": False,
    }


@pytest.mark.parametrize("check", ["[" * 900 + "]" * 900, "9" * 10_000, "no JSON"])
def test_a_check_that_is_no_plain_json_is_shown_as_text(tmp_path: Path, check: str) -> None:
    with closing(open_ledger(str(tmp_path / "ledger"))) as ledger:
        ledger.append("a", [Started("a", ABOUT, "prompt", check, "")])
        store = Store(ledger)
        listed = store.one("a")
        assert listed is not None
        shown = search_data(listed, *store.entries("a"))
    assert shown["check"] == check
    assert json.loads(as_json(shown))["check"] == check
