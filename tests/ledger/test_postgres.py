"""A ledger in a real PostgreSQL: the contract, claims, lost connections, bad addresses."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from grv.core.errors import LedgerError, LedgerFormatError
from grv.ledger.entries import Intended, Made, Started
from grv.ledger.ledger import Append, Caps, Ledger, OverBudget
from grv.ledger.opening import open_ledger
from grv.ledger.postgres import PostgresLedger, _Postgres
from grv.ledger.rows import Cursor
from grv.ledger.tables import SoFar
from grv.ledger.view import SearchView
from grv.testing.contracts_ledger import LIFE, LedgerContract
from support.commands import here
from support.postgres import PASSWORD, Server, pooler

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]


class TestPostgresLedger(LedgerContract):
    @pytest.fixture(autouse=True)
    def _server(self, postgres: Server) -> None:
        self.server = postgres

    def make(self, folder: Path) -> Ledger:
        return PostgresLedger(self.server.new_database())


@pytest.fixture
def address(postgres: Server) -> str:
    return postgres.new_database()


@pytest.fixture
def ledger(address: str) -> Iterator[PostgresLedger]:
    with closing(PostgresLedger(address)) as made:
        yield made


def test_a_ledger_is_checked_and_listed_like_one_in_a_file(ledger: PostgresLedger) -> None:
    ledger.append("s", LIFE)
    assert ledger.check() == []
    (summary,) = ledger.searches()
    assert (summary.id, summary.problem, summary.outcome, summary.total) == ("s", "p", "solved", 12)
    ledger.append("t", LIFE[:4])
    assert ledger.so_far() == {"t": SoFar(generated=2, verified=0, waiting=0)}


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ("UPDATE grv.entries SET body = replace(body, 'fine', 'poor')", "changed since"),
        ("DELETE FROM grv.entries WHERE number = 11", "9 rows of entries, but 10 were written"),
        ("UPDATE grv.accounts SET paid = 5", "5.0 possibly paid"),
        ("UPDATE grv.texts SET text = 'x'", "does not match its hash"),
        ("UPDATE grv.searches SET outcome = 'failed'", "does not match the index"),
    ],
)
def test_edits_are_detected(ledger: PostgresLedger, address: str, edit: str, said: str) -> None:
    ledger.append("s", LIFE)
    with psycopg.connect(address) as db:
        db.execute(edit)
    assert said in "\n".join(ledger.check())


def test_a_claim_ends_with_its_process(ledger: PostgresLedger, address: str) -> None:
    code = (
        "import sys, time\nfrom grv.ledger.postgres import PostgresLedger\n"
        "ledger = PostgresLedger(sys.argv[1])\nprint(ledger.claim('s'), flush=True)\ntime.sleep(60)"
    )
    call = [sys.executable, "-c", code, address]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        assert not ledger.claim("s")
        process.send_signal(signal.SIGKILL)
    until = time.monotonic() + 20
    while not ledger.claim("s"):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_many_may_create_the_ledger_at_once(address: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        ledgers = list(threads.map(PostgresLedger, [address] * 16))
    for at, made in enumerate(ledgers):
        made.append(f"s{at}", LIFE)
        made.close()
    with closing(PostgresLedger(address)) as last:
        assert len(last.search_ids()) == 16
        assert last.check() == []


def test_closing_frees_claims_at_once(ledger: PostgresLedger, address: str) -> None:
    with closing(PostgresLedger(address)) as other:
        assert other.claim("s")
        assert not ledger.claim("s")
    assert ledger.claim("s")


def test_a_cap_holds_over_several_connections(ledger: PostgresLedger, address: str) -> None:
    caps = Caps(account=10)
    with closing(PostgresLedger(address)) as other:
        for at, one in enumerate((ledger, other)):
            one.append(f"s{at}", [Started("p", {})])
            one.append(f"s{at}", [Intended("generate", (0,), 5.0)], caps)
        for one in (ledger, other):
            with pytest.raises(OverBudget):
                one.append("s0", [Intended("generate", (1,), 0.1)], caps)
        assert ledger.possibly_paid() == other.possibly_paid() == 10
    assert ledger.check() == []


def test_eight_spenders_spend_a_cap_to_the_last_cent_and_no_more(address: str) -> None:
    """Each writes batches as fast as it can, and remembers what it has written itself."""
    caps = Caps(account=60, total=60)

    def spend(name: int) -> int:
        with closing(PostgresLedger(address)) as ledger:
            ledger.append_all([Append(f"s{name}.{own}", [Started("p", {})]) for own in range(3)])
            accepted = 0
            for number in range(100):
                batch = [
                    Append(f"s{name}.{own}", [Intended("generate", (number,), 1.0)], caps)
                    for own in range(3)
                ]
                errors = ledger.append_all(batch)
                accepted += errors.count(None)
                if any(errors):
                    assert all(error is None or isinstance(error, OverBudget) for error in errors)
                    return accepted
        raise AssertionError("the cap does not hold")

    with ThreadPoolExecutor(8) as threads:
        accepted = list(threads.map(spend, range(8)))
    assert sum(accepted) == 60
    with closing(PostgresLedger(address)) as ledger:
        assert ledger.possibly_paid() == 60
        assert ledger.check() == []


def test_a_ledger_forgets_its_sums_when_another_process_writes(
    ledger: PostgresLedger, address: str
) -> None:
    caps = Caps(account=10)
    ledger.append("s", [Started("p", {}), Intended("generate", (0,), 4.0)], caps)
    with closing(PostgresLedger(address)) as other:
        other.append("s", [Intended("generate", (1,), 5.0)], caps)
    with pytest.raises(OverBudget):
        ledger.append("s", [Intended("generate", (2,), 2.0)], caps)
    ledger.append("s", [Intended("generate", (2,), 1.0)], caps)
    assert ledger.possibly_paid() == 10
    assert len(ledger.read("s")) == 4
    assert ledger.check() == []


_RUN = """
import os, sys
import grv
from grv.ledger import postgres
address, calls, when, commit = sys.argv[1:]
left, execute = int(commit), postgres._Postgres.execute

def dying(self, statement, values=(), /):
    global left
    left -= statement == "COMMIT"
    if left == 0 and statement == "COMMIT" and when == "before":
        os._exit(9)
    result = execute(self, statement, values)
    if left == 0 and statement == "COMMIT":
        with self._connection.pipeline():
            pass  # the server has committed
        os._exit(9)
    return result

postgres._Postgres.execute = dying

def called(what):
    with open(calls, "a") as file:
        file.write(what + "\\n")

def generate(problem):
    called("generate")
    return os.urandom(4).hex()

def verify(problem, text):
    called("verify")
    return sum(line == "verify\\n" for line in open(calls)) >= 4

solution = grv.solve_now(
    "p", generator=generate, scorer=lambda problem, text: 0.0, verifier=verify, ledger=address,
    costs=grv.Costs(1, 10), policy="verify-all", budget=500,
)
assert solution.verified
print(solution.bill.total)
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_around_a_commit_loses_nothing_and_pays_nothing_twice(
    address: str, tmp_path: Path, when: str
) -> None:
    """The process dies before one of its commits, or after it, before it hears of it."""
    calls = tmp_path / "calls"
    deaths = (2, 4, 3)  # the commit of each process that is its last
    for commit in (*deaths, 10_000):
        command = [sys.executable, "-c", _RUN, address, str(calls), when, str(commit)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == (9 if commit in deaths else 0), done.stderr
    made = calls.read_text().split()
    with closing(PostgresLedger(address)) as ledger:
        assert ledger.check() == []
        (search,) = ledger.search_ids()
        view = SearchView(ledger.read(search))
        # A call is made after its reservation, so each call was paid for once, and no result twice.
        paid = made.count("generate") + 10 * made.count("verify")
        assert ledger.possibly_paid() >= paid
        lost = len(made) - len(view.made) - len(view.found)
        if when == "after":
            assert lost == 0
            assert float(done.stdout) == paid
        else:
            assert lost <= len(deaths)


def test_entries_of_other_processes_are_heard(ledger: PostgresLedger, address: str) -> None:
    heard: list[object] = []
    ledger.listen(lambda search, entries: heard.extend(entries))
    with closing(PostgresLedger(address)) as other:
        other.append("s", LIFE)
    until = time.monotonic() + 20
    while len(heard) < len(LIFE):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert heard == list(LIFE)


def test_a_lost_connection_is_an_error_and_gives_up_the_claims(
    ledger: PostgresLedger, address: str
) -> None:
    ledger.append("s", LIFE[:2])
    assert ledger.claim("s")
    with psycopg.connect(address, autocommit=True) as db:
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    with pytest.raises(LedgerError, match=r"^postgresql://grv@127\.0\.0\.1:[0-9]+/"):
        ledger.append("s", LIFE[2:4])
    with pytest.raises(LedgerError):
        ledger.claim("t")
    ledger.release("s")
    with closing(PostgresLedger(address)) as other:
        assert other.claim("s")
        assert list(other.read("s")) == list(LIFE[:2])


def test_a_key_is_needed_where_one_was_set(address: str) -> None:
    with closing(PostgresLedger(address, key=b"k")) as made:
        made.append("s", LIFE)
    for key in (b"", b"other"):
        with pytest.raises(LedgerError, match="GRV_LEDGER_KEY"):
            PostgresLedger(address, key=key)
    with closing(PostgresLedger(address, key=b"k")) as made:
        assert made.check() == []


def test_a_database_of_another_format_is_refused(ledger: PostgresLedger, address: str) -> None:
    with psycopg.connect(address) as db:
        db.execute("UPDATE grv.ledger SET format = 4")
    with pytest.raises(LedgerFormatError, match="format 4; this grv reads 3"):
        PostgresLedger(address)


def test_a_database_of_the_format_before_is_read_as_it_is_and_continued(address: str) -> None:
    with closing(PostgresLedger(address)) as ledger:
        for entry in LIFE:  # as that format has them: one in each row
            ledger.append("s", [entry])
    with psycopg.connect(address) as db:
        db.execute("UPDATE grv.ledger SET format = 2")
    with closing(PostgresLedger(address, read_only=True)) as ledger:
        assert list(ledger.read("s")) == list(LIFE)
        assert ledger.select("SELECT format FROM ledger") == [(2,)]
    with closing(PostgresLedger(address)) as ledger:
        ledger.append("s", LIFE[2:4])
        assert list(ledger.read("s")) == [*LIFE, *LIFE[2:4]]
        assert ledger.select("SELECT format FROM ledger") == [(3,)]
        assert ledger.check() == []


def test_a_transaction_has_as_many_statements_for_many_searches_as_for_one(
    ledger: PostgresLedger, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other processes write in between: what is known of a search is not read again."""
    statements: list[str] = []
    execute = _Postgres.execute

    def counted(self: _Postgres, statement: str, values: Sequence[Any] = (), /) -> Cursor:
        statements.append(statement)
        return execute(self, statement, values)

    searches = [f"s{number}" for number in range(100)]
    ledger.append_all([Append(search, [Started("p", {})]) for search in searches])
    counts = []
    with closing(PostgresLedger(address)) as other:
        for some in (searches[:1], searches):
            other.append("other", [Started("p", {}), Intended("verify", (0,), 1.0)])
            groups = [Append(id, [Intended("generate", (0,), 1.0), Made(0, id)]) for id in some]
            with monkeypatch.context() as patch:
                patch.setattr(_Postgres, "execute", counted)
                assert set(ledger.append_all(groups)) == {None}
            counts.append(len(statements))
            statements.clear()
    assert counts[0] == counts[1] <= 12
    assert ledger.possibly_paid() == 103
    assert ledger.check() == []


def test_many_writers_of_one_search_lose_nothing(address: str) -> None:
    """What each of them knows of the end of the search is soon wrong."""
    caps = Caps(search=40)

    def write(number: int) -> int:
        refused = 0
        with closing(PostgresLedger(address)) as ledger:
            for _ in range(15):
                try:
                    ledger.append("s", [Intended("verify", (number,), 1.0)], caps)
                except OverBudget:
                    refused += 1
        return refused

    with closing(PostgresLedger(address)) as ledger:
        ledger.append("s", [Started("p", {})])
        with ThreadPoolExecutor(4) as threads:
            refused = sum(threads.map(write, range(4)))
        assert refused == 20
        assert len(ledger.read("s")) == 41
        assert ledger.paid_by("s") == ledger.possibly_paid() == 40
        assert ledger.check() == []


def test_what_is_only_read_is_not_created_or_changed(address: str) -> None:
    with pytest.raises(LedgerError, match="no ledger in this database"):
        PostgresLedger(address, read_only=True)
    PostgresLedger(address).close()
    with closing(PostgresLedger(address, read_only=True)) as made, pytest.raises(LedgerError):
        made.append("s", LIFE)


def test_a_ledger_is_copied_to_a_database_and_back(
    address: str, tmp_path: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, back = tmp_path / "first", tmp_path / "back"
    with closing(open_ledger(first)) as ledger:
        ledger.append("s", [Started("p", {"costs": [1, 10, 0]})])
        ledger.append("s", [Intended("generate", (0, 1), 2.0)])
        ledger.append("t", LIFE)
        entries = {search: list(ledger.intact(search)) for search in "st"}
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    bare = address.replace(f":{PASSWORD}", "")
    for _ in range(2):
        ran = here("runs", "copy", first, bare)
        assert (ran.code, ran.err) == (0, "")
    assert "2 were there already" in ran.out
    assert here("runs", "copy", bare, back).code == 0
    with closing(open_ledger(back)) as ledger:
        assert {search: list(ledger.intact(search)) for search in "st"} == entries
        assert ledger.check() == []
        assert ledger.possibly_paid() == 2.0
    assert here("runs", "check", bare).out.startswith("all is well\n")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("127.0.0.1", "127.0.0.1:1/x?host=127.0.0.1&port=1#"), "connection"),
        ((PASSWORD, "wrong"), "password authentication failed"),
        (("/d", "/nothing"), "does not exist"),
    ],
    ids=["no server", "wrong password", "no database"],
)
def test_a_bad_address_is_one_line_without_the_password(
    address: str, change: tuple[str, str], said: str
) -> None:
    with pytest.raises(LedgerError, match=said) as raised:
        PostgresLedger(address.replace(*change))
    assert "\n" not in str(raised.value)
    assert PASSWORD not in str(raised.value)


def test_a_password_in_the_address_is_refused_by_commands(address: str, tmp_path: Path) -> None:
    ran = here("runs", "list", address)
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert "set PGPASSWORD" in ran.err
    assert PASSWORD not in ran.err


def test_poolers_in_session_mode_are_used_and_those_in_transaction_mode_refused(
    address: str, postgres: Server
) -> None:
    for mode in ("session", "transaction"):
        with pooler(postgres, mode) as port:
            through = address.replace(f":{postgres.port}/", f":{port}/")
            if mode == "session":
                with closing(PostgresLedger(through)) as ledger:
                    ledger.append("s", LIFE)
                    assert list(ledger.read("s")) == list(LIFE)
            else:
                with pytest.raises(LedgerError, match="pooler in transaction mode"):
                    PostgresLedger(through)
