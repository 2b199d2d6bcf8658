"""A PostgreSQL database whose owner wants to run code with the rights of who reads it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from grv.core.errors import LedgerError
from grv.ledger import postgres as postgres_ledger
from grv.ledger.entries import Intended, Started
from grv.ledger.postgres import PostgresLedger
from grv.testing.contracts_ledger import LIFE
from support.commands import here, refuses
from support.postgres import PASSWORD, Server

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]

# Runs a program of the server's machine, if a superuser calls it; also in a read-only transaction.
# What is immutable may be in an index, and may be called by the planner.
EVIL = """
CREATE FUNCTION grv.run() RETURNS boolean VOLATILE LANGUAGE plpgsql AS $$ BEGIN
  EXECUTE $c$COPY (SELECT 1) TO PROGRAM 'touch {mark}'$c$; RETURN true;
EXCEPTION WHEN insufficient_privilege THEN RETURN true; END $$;
CREATE FUNCTION grv.evil(x anyelement) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
  RETURN grv.run(); END $$
"""
EVIL_EQUALS = """
CREATE FUNCTION grv.evil_equals(x {kind}, y {kind}) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
  PERFORM grv.evil(1); RETURN true; END $$;
CREATE OPERATOR grv.= (FUNCTION = grv.evil_equals, LEFTARG = {kind}, RIGHTARG = {kind});
CREATE OPERATOR grv.> (FUNCTION = grv.evil_equals, LEFTARG = {kind}, RIGHTARG = {kind})
"""


@dataclass
class Database:
    """A database that Mallory owns, with a ledger of his own, and the superuser who reads it."""

    superuser: str
    mallory: str
    mark: Path  # exists as soon as code of Mallory has run with rights that are not his

    def change(self, *statements: str) -> None:
        """As Mallory."""
        with psycopg.connect(self.mallory, autocommit=True) as db:
            for statement in statements:
                db.execute(statement)

    def login(self, *statements: str) -> str:
        """The address of a new role with rights from these statements, which name it {role}."""
        name = f"r{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.superuser, autocommit=True) as db:
            db.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
            for statement in statements:
                db.execute(statement.format(role=name))
        return self.superuser.replace("//grv:", f"//{name}:")

    def watcher(self, *statements: str) -> str:
        """The address of a role that may read the ledger, with further rights."""
        return self.login(
            "GRANT USAGE ON SCHEMA grv TO {role}",
            "GRANT SELECT ON ALL TABLES IN SCHEMA grv TO {role}",
            *statements,
        )


@pytest.fixture(scope="module")
def owned(postgres: Server) -> Database:
    """An empty database that Mallory owns."""
    superuser = postgres.new_database()
    made = Database(superuser, superuser, postgres.folder / f"ran-{uuid.uuid4().hex}")
    made.mallory = made.login(f"ALTER DATABASE {superuser.rpartition('/')[2]} OWNER TO {{role}}")
    return made


@pytest.fixture
def database(owned: Database) -> Iterator[Database]:
    for schema in ("grv", "away", "decoy"):
        owned.change(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    owned.mark.unlink(missing_ok=True)
    owned.change(f"ALTER DATABASE {owned.superuser.rpartition('/')[2]} RESET ALL")
    with closing(PostgresLedger(owned.mallory)) as ledger:
        ledger.append("s", LIFE)
        ledger.append("t", [Started("p", {}), Intended("generate", (0,), 3.0)])
    owned.change(EVIL.format(mark=owned.mark))
    yield owned
    assert not owned.mark.exists(), "code of the owner ran with the rights of the reader"


HIDDEN = "ALTER TABLE grv.searches RENAME TO hidden"
CHANGES = {
    "a view": (
        HIDDEN,
        "CREATE VIEW grv.searches AS SELECT * FROM grv.hidden WHERE grv.evil(1)",
    ),
    "a view in place of the head": (
        "ALTER TABLE grv.ledger RENAME TO hidden",
        "CREATE VIEW grv.ledger AS SELECT * FROM grv.hidden WHERE grv.evil(1)",
    ),
    "a materialized view": (
        HIDDEN,
        "CREATE MATERIALIZED VIEW grv.searches AS SELECT * FROM grv.hidden",
    ),
    "a trigger": (
        "CREATE FUNCTION grv.fires() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM grv.evil(1); RETURN NEW; END $$",
        "CREATE TRIGGER t BEFORE INSERT ON grv.entries FOR EACH ROW EXECUTE FUNCTION grv.fires()",
    ),
    "a rule": ("CREATE RULE r AS ON UPDATE TO grv.accounts DO ALSO SELECT grv.evil(1)",),
    "a policy": (
        "CREATE POLICY p ON grv.searches USING (grv.evil(1))",
        "ALTER TABLE grv.searches ENABLE ROW LEVEL SECURITY",
    ),
    "a default": ("ALTER TABLE grv.searches ALTER outcome SET DEFAULT grv.evil(1)::text",),
    "an index on an expression": ("CREATE INDEX ON grv.searches (grv.evil(id))",),
    "an index on a constant": ("CREATE INDEX ON grv.searches ((grv.evil(1)))",),
    "an index with a condition": ("CREATE INDEX ON grv.searches (id) WHERE grv.evil(id)",),
    "a constraint": ("ALTER TABLE grv.entries ADD CHECK (grv.evil(body))",),
    "statistics": ("CREATE STATISTICS grv.st ON (grv.evil(id)), id FROM grv.searches",),
    "a child": ("CREATE TABLE grv.child () INHERITS (grv.searches)",),
    "a foreign key": ("CREATE TABLE grv.other (id text REFERENCES grv.searches)",),
    "another column": ("ALTER TABLE grv.searches ADD extra text",),
    "a generated column": (
        "ALTER TABLE grv.texts ADD x boolean GENERATED ALWAYS AS (grv.evil(hash)) STORED",
    ),
    "a missing column": ("ALTER TABLE grv.accounts DROP unit",),
    "a type of its own": (
        "CREATE DOMAIN grv.text AS text",
        "ALTER TABLE grv.searches ALTER outcome TYPE grv.text",
    ),
    "no unique index": ("ALTER TABLE grv.accounts DROP CONSTRAINT accounts_pkey",),
    "an unlogged table": ("ALTER TABLE grv.texts SET UNLOGGED",),
    "a missing table": ("DROP TABLE grv.texts",),
}


@pytest.mark.parametrize("change", CHANGES)
def test_tables_that_are_not_those_of_grv_are_refused_before_anything_is_read(
    database: Database, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.change(*CHANGES[change])
    for read_only in (True, False):
        with pytest.raises(LedgerError, match=r"not a ledger of grv: grv\.\w+ "):
            PostgresLedger(database.superuser, read_only=read_only)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    address = database.superuser.replace(f":{PASSWORD}", "")
    for command in ("check", "list"):
        refuses(["runs", command, address], "not a ledger of grv: grv.")


@pytest.mark.parametrize("kind", ["text", "bigint", "double precision", "bytea"])
def test_operators_and_functions_of_the_owner_are_not_found(database: Database, kind: str) -> None:
    name = database.superuser.rpartition("/")[2]
    database.change(
        EVIL_EQUALS.format(kind=kind),
        "CREATE FUNCTION grv.octet_length(x text) RETURNS int LANGUAGE sql AS"
        " 'SELECT grv.evil(1)::int'",
        "CREATE FUNCTION grv.pg_try_advisory_lock(x bigint) RETURNS boolean LANGUAGE sql AS"
        " 'SELECT grv.evil(1)'",
        f"ALTER DATABASE {name} SET search_path = grv, pg_catalog",
        f"ALTER DATABASE {name} SET extra_float_digits = -15",
        f"ALTER DATABASE {name} SET default_transaction_isolation = serializable",
    )
    with closing(PostgresLedger(database.watcher(), read_only=True)) as ledger:
        assert list(ledger.read("s")) == list(LIFE)
        assert ledger.check() == []
        assert [each.id for each in ledger.searches()] == ["s", "t"]
        assert ledger.possibly_paid() == 3
        assert ledger.claimed(["s"]) == set()


def test_tables_that_are_exchanged_after_the_ledger_was_opened_are_refused(
    database: Database,
) -> None:
    with closing(PostgresLedger(database.watcher(), read_only=True)) as ledger:
        assert [each.id for each in ledger.searches()] == ["s", "t"]
        database.change(*CHANGES["a view"], "GRANT SELECT ON grv.searches TO PUBLIC")
        with pytest.raises(LedgerError, match=r"grv\.searches has rules, or is a view"):
            list(ledger.searches())
        with pytest.raises(LedgerError, match=r"grv\.searches has rules, or is a view"):
            ledger.check()


def test_nobody_writes_to_the_tables_of_a_role_with_other_rights(database: Database) -> None:
    with pytest.raises(LedgerError, match=r"its tables belong to r\w+, who could run code as you"):
        PostgresLedger(database.superuser)


def test_a_role_that_may_only_read_reads(database: Database) -> None:
    with closing(PostgresLedger(database.watcher(), read_only=True)) as ledger:
        assert list(ledger.read("s")) == list(LIFE)
        assert ledger.check() == []
        assert ledger.data_version() == ROWS_OF_LIFE + 2


RIGHTS = {
    "is a superuser": "ALTER ROLE {role} SUPERUSER",
    "is a member of pg_read_server_files": "GRANT pg_read_server_files TO {role}",
    "is a member of pg_execute_server_program": "GRANT pg_execute_server_program TO {role}",
    "may create roles or databases": "ALTER ROLE {role} CREATEROLE",
    "may create roles or databases, replicate, or pass by row security": (
        "ALTER ROLE {role} BYPASSRLS"
    ),
    "owns table public.mine_": (
        "CREATE TABLE public.mine_{role} (); ALTER TABLE mine_{role} OWNER TO {role}"
    ),
    "has rights on table public.theirs_": (
        "CREATE TABLE public.theirs_{role} (); GRANT SELECT ON theirs_{role} TO {role}"
    ),
    "has rights on column x of table public.some_": (
        "CREATE TABLE public.some_{role} (x int); GRANT SELECT (x) ON some_{role} TO {role}"
    ),
    "owns table public.of_group_": (
        "CREATE ROLE group_{role}; GRANT group_{role} TO {role};"
        " CREATE TABLE public.of_group_{role} (); ALTER TABLE of_group_{role} OWNER TO group_{role}"
    ),
}


@pytest.mark.parametrize("right", RIGHTS)
def test_a_role_with_other_rights_does_not_read_the_tables_of_another(
    database: Database, right: str
) -> None:
    reader = database.watcher(RIGHTS[right])
    role, owner = reader.partition("//")[2].partition(":")[0], _owner(database)
    with pytest.raises(LedgerError) as error:
        PostgresLedger(reader, read_only=True)
    said = str(error.value)
    assert f"its tables belong to {owner}, who could run code as you, and your role {right}" in said
    assert f"read it as {owner}, or as a role that has only SELECT on the tables of grv" in said
    assert "\n" not in said
    assert role in said


def test_rights_elsewhere_do_not_matter(postgres: Server, database: Database) -> None:
    reader = database.watcher(
        f"GRANT CONNECT ON DATABASE {_name(database)} TO {{role}}",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA grv GRANT SELECT ON TABLES TO {role}",
    )
    role = reader.partition("//")[2].partition(":")[0]
    with psycopg.connect(postgres.new_database(), autocommit=True) as db:
        db.execute(f"CREATE SCHEMA AUTHORIZATION {role}")
    with closing(PostgresLedger(reader, read_only=True)) as ledger:
        assert list(ledger.read("s")) == list(LIFE)


# A second schema, in which every table is a view that runs code; and how both exchange their names.
DECOY = """
CREATE SCHEMA decoy;
CREATE FUNCTION decoy.evil() RETURNS boolean VOLATILE LANGUAGE plpgsql AS $$ BEGIN
  EXECUTE $c$COPY (SELECT 1) TO PROGRAM 'touch {mark}'$c$; RETURN true;
EXCEPTION WHEN insufficient_privilege THEN RETURN true; END $$;
CREATE VIEW decoy.entries AS SELECT * FROM grv.entries WHERE decoy.evil();
CREATE VIEW decoy.texts AS SELECT * FROM grv.texts WHERE decoy.evil();
CREATE VIEW decoy.searches AS SELECT * FROM grv.searches WHERE decoy.evil();
CREATE VIEW decoy.accounts AS SELECT * FROM grv.accounts WHERE decoy.evil();
CREATE VIEW decoy.ledger AS SELECT * FROM grv.ledger WHERE decoy.evil()
"""
RENAMES = {
    "exchange": (
        "ALTER SCHEMA grv RENAME TO away; ALTER SCHEMA decoy RENAME TO grv",
        "ALTER SCHEMA grv RENAME TO decoy; ALTER SCHEMA away RENAME TO grv",
    ),
    "hide, then exchange": (
        "ALTER SCHEMA grv RENAME TO away",
        "ALTER SCHEMA decoy RENAME TO grv",
        "ALTER SCHEMA grv RENAME TO decoy",
        "ALTER SCHEMA away RENAME TO grv",
    ),
    "one table": (
        "ALTER TABLE grv.ledger RENAME TO away; ALTER TABLE grv.evil RENAME TO ledger",
        "ALTER TABLE grv.ledger RENAME TO evil; ALTER TABLE grv.away RENAME TO ledger",
    ),
}
READS = 200
ROWS_OF_LIFE = len(LIFE) - 2  # drafts and scores are a row each


@contextmanager
def repeated(address: str, *statements: str) -> Iterator[None]:
    """Execute the statements again and again during the block, each as one transaction."""
    ended = threading.Event()

    def run() -> None:
        with psycopg.connect(address, autocommit=True) as db:
            while not ended.is_set():
                for statement in statements:
                    with suppress(psycopg.Error):  # a lock of the reader, or a name that is taken
                        db.execute(statement)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("how", RENAMES)
def test_an_owner_who_renames_all_the_time_runs_no_code_as_a_superuser(
    database: Database, how: str
) -> None:
    database.change(DECOY.format(mark=database.mark))
    database.change("CREATE VIEW grv.evil AS SELECT * FROM decoy.ledger")
    with repeated(database.mallory, *RENAMES[how]):
        for _ in range(READS):
            with pytest.raises(LedgerError):
                _read_all(database.superuser)
    assert not database.mark.exists()


def _read_all(address: str) -> None:
    with closing(PostgresLedger(address, read_only=True)) as ledger:
        list(ledger.searches())
        ledger.read("s")
        ledger.check()


def test_a_watcher_reads_while_the_owner_renames(database: Database) -> None:
    """It has nothing to lose: it reads the ledger, or a line says what is wrong with it."""
    database.change(DECOY.format(mark=database.mark))
    watcher = database.watcher()
    with repeated(database.mallory, *RENAMES["exchange"]):
        for _ in range(READS // 4):
            with suppress(LedgerError):
                _read_all(watcher)


def test_a_schema_of_another_is_no_place_for_a_new_ledger(database: Database) -> None:
    """Also if it is renamed while the tables are created."""
    database.change("DROP SCHEMA grv CASCADE", "CREATE SCHEMA grv", "CREATE SCHEMA decoy")
    with pytest.raises(LedgerError, match=f"its tables belong to {_owner(database)}, who could"):
        PostgresLedger(database.superuser)
    with psycopg.connect(database.mallory) as db:
        made = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'grv'").fetchall()
    assert made == []
    database.change(
        "CREATE TABLE decoy.ledger (count bigint, head text, key text, format integer)",
        "CREATE FUNCTION decoy.fires() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" EXECUTE $c$COPY (SELECT 1) TO PROGRAM 'touch {database.mark}'$c$; RETURN NEW;"
        " EXCEPTION WHEN insufficient_privilege THEN RETURN NEW; END $$",
        "CREATE TRIGGER t BEFORE INSERT ON decoy.ledger FOR EACH ROW"
        " EXECUTE FUNCTION decoy.fires()",
    )
    with repeated(database.mallory, *RENAMES["exchange"]):
        for _ in range(READS):
            with pytest.raises(LedgerError):
                PostgresLedger(database.superuser)
    assert not database.mark.exists()


def test_a_member_of_the_owner_writes(database: Database) -> None:
    owner = database.mallory.partition("//")[2].partition(":")[0]
    member = database.login(f"GRANT {owner} TO {{role}}")
    with closing(PostgresLedger(member)) as ledger:
        ledger.append("t", [Intended("generate", (1,), 3.0)])
        assert ledger.possibly_paid() == 6


def test_a_role_that_the_database_sets_does_not_make_its_owner_trusted(database: Database) -> None:
    """Code of a trigger could leave that role again, and be the superuser who has logged in."""
    owner = _owner(database)
    database.change(f"ALTER DATABASE {_name(database)} SET role = '{owner}'")
    with pytest.raises(LedgerError, match=f"its tables belong to {owner}"):
        PostgresLedger(database.superuser)


def test_a_role_that_was_given_by_its_own_administrator_is_not_trusted(database: Database) -> None:
    owner = _owner(database)
    with psycopg.connect(database.superuser, autocommit=True) as db:
        db.execute(f"CREATE ROLE team_{owner}")
        db.execute(f"GRANT team_{owner} TO {owner} WITH ADMIN OPTION")
        db.execute(f"ALTER SCHEMA grv OWNER TO team_{owner}")
        for table in ("entries", "texts", "searches", "accounts", "ledger"):
            db.execute(f"ALTER TABLE grv.{table} OWNER TO team_{owner}")
    victim = database.login()
    role = victim.partition("//")[2].partition(":")[0]
    database.change(f"GRANT team_{owner} TO {role}")
    with pytest.raises(LedgerError, match=f"its tables belong to team_{owner}"):
        PostgresLedger(victim)
    with psycopg.connect(database.superuser, autocommit=True) as db:
        db.execute(f"REVOKE team_{owner} FROM {role}")
        db.execute(f"GRANT team_{owner} TO {role}")
    with closing(PostgresLedger(victim)) as ledger:
        ledger.append("t", [Intended("generate", (1,), 3.0)])


@pytest.mark.parametrize(
    "setting",
    ["client_encoding = 'SQL_ASCII'", "client_encoding = 'LATIN1'", "quote_all_identifiers = on"],
)
def test_how_a_database_writes_texts_does_not_matter(database: Database, setting: str) -> None:
    database.change(f"ALTER DATABASE {_name(database)} SET {setting}")
    with closing(PostgresLedger(database.mallory)) as ledger:
        ledger.append("\u6f22", [Started("\u6f22", {}, prompt="\u6f22")])
        assert list(ledger.read("\u6f22")) == [Started("\u6f22", {}, prompt="\u6f22")]
        assert ledger.check() == []


@pytest.mark.timeout(60)
def test_a_role_without_rights_that_keeps_a_lock_is_not_waited_for(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_ledger, "_PATIENCE", 1)
    with (
        closing(PostgresLedger(database.mallory)) as ledger,
        psycopg.connect(database.login(), autocommit=True) as other,
    ):
        other.execute("SELECT pg_advisory_lock(%s), pg_advisory_lock(%s)", (0x677277, 0x677276))
        with pytest.raises(LedgerError, match="held the advisory lock 6779511 for 1 s"):
            ledger.follow("least spent")
        database.change("DROP SCHEMA grv CASCADE")
        with pytest.raises(LedgerError, match="held the advisory lock 6779510 for 1 s"):
            PostgresLedger(database.mallory)
        other.execute("SELECT pg_advisory_unlock_all()")
        assert ledger.follow("least spent") is None
        ledger.leave("least spent")


def _name(database: Database) -> str:
    return database.superuser.rpartition("/")[2]


def _owner(database: Database) -> str:
    return database.mallory.partition("//")[2].partition(":")[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("UPDATE grv.accounts SET paid = -1000", "-1000.0 is not an amount"),
        ("UPDATE grv.accounts SET paid = 'NaN'", "nan is not an amount"),
        ("UPDATE grv.searches SET paid = -1000", "-1000.0 is not an amount"),
        ("UPDATE grv.searches SET total = -5", "-5.0 is not an amount"),
    ],
)
def test_amounts_that_cannot_be_are_one_line(database: Database, change: str, said: str) -> None:
    database.change(change)
    with closing(PostgresLedger(database.mallory)) as ledger:
        read = ledger.searches if "searches" in change else ledger.possibly_paid
        with pytest.raises(LedgerError, match=said):
            read()
        assert ledger.check() != []


@pytest.mark.parametrize(
    ("change", "search"),
    [
        (
            "UPDATE grv.entries SET body = repeat('x', 70000000) WHERE search = 's' AND number = 3",
            "s",
        ),
        (
            "UPDATE grv.entries SET seal = repeat('x', 70000000) WHERE search = 's' AND number = 3",
            "s",
        ),
        ("UPDATE grv.texts SET text = convert_to(repeat('x', 70000000), 'utf8')", "s"),
    ],
)
def test_a_record_above_the_limit_is_not_sent(database: Database, change: str, search: str) -> None:
    database.change(change)
    with closing(PostgresLedger(database.mallory, read_only=True)) as ledger:
        with pytest.raises(LedgerError, match=r"more than 64 MB|changed since it was written"):
            ledger.read(search)
        assert ledger.check() != []
        rows = ledger.select("SELECT body, seal FROM entries")
        rows += ledger.select("SELECT text, hash FROM texts")
        assert all(value is None or len(value) < 1000 for row in rows for value in row)


def test_a_ledger_that_is_dropped_and_made_anew_is_noticed(database: Database) -> None:
    """As after a restored backup: the budget would be spent again."""
    with closing(PostgresLedger(database.mallory)) as ledger:
        database.change("DROP SCHEMA grv CASCADE")
        with closing(PostgresLedger(database.mallory)):
            pass
        with pytest.raises(LedgerError, match="replaced by another ledger, or by an older copy"):
            ledger.append("t", [Intended("generate", (1,), 3.0)])


def test_a_view_that_is_named_like_a_ledger_is_no_ledger_to_write_to(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = postgres.new_database()
    with psycopg.connect(address, autocommit=True) as db:
        db.execute("CREATE SCHEMA grv")
        db.execute("CREATE VIEW grv.ledger AS SELECT 1 AS format, '' AS key")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    ran = here("runs", "check", address.replace(f":{PASSWORD}", ""))
    assert (ran.code, ran.out) == (2, "")
    assert "not a ledger of grv: grv.entries is missing" in ran.err
