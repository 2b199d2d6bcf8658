"""Leases: one reviewer per item, over threads, servers and the end of a process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from grv.ledger.opening import open_ledger
from grv.ledger.tables import TableLedger
from grv.serve.review.leases import Leases
from grv.serve.review.queue import ItemId
from support.postgres import POSTGRES, Server

FIRST, SECOND = ItemId("a" * 24, 0), ItemId("a" * 24, 1)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=POSTGRES)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], TableLedger]]:
    """Opens the same ledger again and again, as several servers do."""
    place = str(tmp_path / "ledger")
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        place = server.new_database()
    ledgers: list[TableLedger] = []

    def another() -> TableLedger:
        ledgers.append(open_ledger(place))
        return ledgers[-1]

    yield another
    for each in ledgers:
        each.close()


def test_two_servers_never_lease_one_item(opened: Callable[[], TableLedger]) -> None:
    one, other = Leases(opened()), Leases(opened())

    first = one.take("ann", [FIRST, SECOND])
    second = other.take("bob", [FIRST, SECOND])

    assert first is not None
    assert second is not None
    assert (first.id, second.id) == (FIRST, SECOND)
    assert one.take("cleo", [FIRST, SECOND]) is None
    one.end(first)
    again = other.take("cleo", [FIRST, SECOND])
    assert again is not None
    assert again.id == FIRST


def test_an_item_returns_when_its_page_is_silent(opened: Callable[[], TableLedger]) -> None:
    clock = Clock()
    leases = Leases(opened(), silence=20, clock=clock)
    lease = leases.take("ann", [FIRST])
    assert lease is not None

    clock.now = 15
    assert leases.held(FIRST, lease.secret, "ann") is lease
    clock.now = 34
    assert leases.take("bob", [FIRST]) is None
    clock.now = 36
    assert leases.held(FIRST, lease.secret, "ann") is None
    taken = leases.take("bob", [FIRST])
    assert taken is not None
    assert leases.held(FIRST, "guessed", "bob") is None
    assert leases.held(FIRST, lease.secret, "ann") is None


@pytest.mark.slow
def test_a_silent_page_frees_its_item_for_other_servers_too(
    opened: Callable[[], TableLedger],
) -> None:
    one, other = Leases(opened(), silence=0.2), Leases(opened())
    assert one.take("ann", [FIRST]) is not None

    for _ in range(200):
        if other.take("bob", [FIRST]) is not None:
            return
        subprocess.run(["sleep", "0.05"], check=True)
    pytest.fail("the item did not return")


def test_an_item_returns_when_its_server_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    script = (
        "import sys, time; from grv.ledger.opening import open_ledger;"
        "ledger = open_ledger(sys.argv[1]); print(ledger.claim(sys.argv[2]), flush=True);"
        "time.sleep(60)"
    )
    with (
        closing(open_ledger(path)) as ledger,
        subprocess.Popen(
            [sys.executable, "-c", script, str(path), FIRST.claim],
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        leases = Leases(ledger)
        assert leases.take("ann", [FIRST]) is None
        process.kill()
        process.wait()
        assert leases.take("ann", [FIRST]) is not None
