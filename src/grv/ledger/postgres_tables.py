"""The tables of a ledger in PostgreSQL, and how to tell them from tables that run code.

A statement on a foreign table may run code of its owner with the rights of who asks: the table may
be a view, or have triggers, rules, policies, or expressions in defaults, indexes, constraints and
statistics; operators and functions may be found in a schema of the owner. So the session looks
names up in `pg_catalog` only, every table is written with its schema, and the tables must be
exactly those that grv creates. To find that out, only the catalog is read, which runs nothing.

That is not enough against an owner who renames: PostgreSQL looks names up again in every statement,
no lock holds the name of a schema, and the planner already runs code. So tables of a foreign owner
are read only by a role that has nothing to lose (`other_right`). Names of a trusted owner stay:
nobody else can rename, drop or replace a schema or what is in it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from types import MappingProxyType

from ..core.errors import LedgerError
from ..files import LONGEST_LINE
from .rows import Database

# Not what the owner of the database or of the role has set for all sessions.
SESSION: Mapping[str, str] = MappingProxyType(
    {
        "search_path": "pg_catalog, pg_temp",  # the temporary schema last, not first
        "synchronous_commit": "on",  # durable when the commit returns
        "row_security": "off",  # an error instead of rows that a policy leaves out
        "default_transaction_isolation": "'read committed'",
        "standard_conforming_strings": "on",
        "transform_null_equals": "off",
        "extra_float_digits": "3",  # numbers come back as they were written
        "bytea_output": "hex",
        "client_encoding": "UTF8",  # any other lacks characters, or sends bytes instead of texts
        "quote_all_identifiers": "off",  # the catalog describes columns as `COLUMNS` does
    }
)

CREATE_SCHEMA = "CREATE SCHEMA IF NOT EXISTS grv"
CREATE = (
    "CREATE TABLE grv.entries (position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    " search text NOT NULL, number bigint NOT NULL, kind text NOT NULL, at double precision"
    " NOT NULL, body text NOT NULL, seal text NOT NULL, UNIQUE (search, number))",
    "CREATE TABLE grv.texts (hash text PRIMARY KEY, text bytea NOT NULL)",
    "CREATE TABLE grv.searches (id text PRIMARY KEY, problem bytea, started double precision,"
    " ended double precision, outcome text, generated bigint, verified bigint,"
    " total double precision, account text NOT NULL DEFAULT '',"
    " paid double precision NOT NULL DEFAULT 0)",
    "CREATE TABLE grv.accounts (name text PRIMARY KEY, unit text, paid double precision)",
    "CREATE TABLE grv.ledger (count bigint, head text, key text, format integer)",
)

# What the catalog says of tables that grv has created: their columns, and their unique indexes.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "entries": (
        "position bigint identity",
        "search text",
        "number bigint",
        "kind text",
        "at double precision",
        "body text",
        "seal text",
    ),
    "texts": ("hash text", "text bytea"),
    "searches": (
        "id text",
        "problem bytea",
        "started double precision",
        "ended double precision",
        "outcome text",
        "generated bigint",
        "verified bigint",
        "total double precision",
        "account text default ''::text",
        "paid double precision default 0",
    ),
    "accounts": ("name text", "unit text", "paid double precision"),
    "ledger": ("count bigint", "head text", "key text", "format integer"),
}
_UNIQUE: Mapping[str, frozenset[str]] = {
    "entries": frozenset({"position", "search number"}),
    "texts": frozenset({"hash"}),
    "searches": frozenset({"id"}),
    "accounts": frozenset({"name"}),
    "ledger": frozenset(),
}
_NAMES = "('entries', 'texts', 'searches', 'accounts', 'ledger')"

_FACTS = f"""
SELECT c.relname,
  c.relkind = 'r' AND c.relpersistence = 'p' AND NOT c.relispartition AND c.reloftype = 0
    AND EXISTS (SELECT 1 FROM pg_am WHERE pg_am.oid = c.relam AND amname = 'heap'),
  EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = c.oid),
  EXISTS (SELECT 1 FROM pg_rewrite WHERE ev_class = c.oid),
  c.relrowsecurity OR c.relforcerowsecurity
    OR EXISTS (SELECT 1 FROM pg_policy WHERE polrelid = c.oid),
  EXISTS (SELECT 1 FROM pg_inherits WHERE c.oid IN (inhparent, inhrelid)),
  EXISTS (SELECT 1 FROM pg_constraint WHERE conrelid = c.oid AND contype NOT IN ('p', 'u', 'n')),
  EXISTS (SELECT 1 FROM pg_index WHERE indrelid = c.oid AND
    (indexprs IS NOT NULL OR indpred IS NOT NULL OR indisexclusion)),
  EXISTS (SELECT 1 FROM pg_statistic_ext WHERE stxrelid = c.oid),
  ARRAY(SELECT a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
      || CASE WHEN a.attidentity <> '' THEN ' identity' ELSE '' END
      || CASE WHEN a.attgenerated <> '' THEN ' generated' ELSE '' END
      || CASE WHEN a.attcollation NOT IN (0, 100) THEN ' collated' ELSE '' END
      || CASE WHEN d.oid IS NULL THEN '' ELSE ' default ' || pg_get_expr(d.adbin, d.adrelid) END
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum),
  ARRAY(SELECT (SELECT string_agg(attname, ' ' ORDER BY key.place) FROM
      unnest(indkey::int2[]) WITH ORDINALITY AS key (number, place)
      JOIN pg_attribute ON attrelid = c.oid AND attnum = key.number)
    FROM pg_index WHERE indrelid = c.oid AND indisunique AND indisvalid AND indisready
      AND indimmediate)
FROM pg_class c WHERE c.relname IN {_NAMES}
  AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'grv')
"""
_STRANGE = (
    "has triggers",
    "has rules, or is a view",
    "has row-level security",
    "is part of an inheritance",
    "has constraints of its own",
    "has an index on an expression",
    "has statistics of its own",
)
# Owners that can do all that we can do: ourselves, the roles that we are members of, superusers.
# We are who has logged in: the owner of the database can give its sessions another current role,
# and code can leave that role again. A membership says whom we trust only if we gave it ourselves,
# or a role that has power over us anyway: a superuser, an administrator of our role, and before
# PostgreSQL 16 all who may create roles. The administrators of any other role give it to whom they
# like. A superuser counts as a member of every role, so that does not say whom it trusts.
_FOREIGN = f"""
WITH RECURSIVE me AS (SELECT * FROM pg_roles WHERE rolname = session_user),
  trusted (oid) AS (
    SELECT oid FROM me
    UNION SELECT given.roleid FROM trusted
      JOIN pg_auth_members given ON given.member = trusted.oid
      JOIN pg_roles giver ON giver.oid = given.grantor
      JOIN me ON NOT me.rolsuper AND (giver.rolsuper OR giver.oid = me.oid
        OR pg_has_role(giver.oid, me.oid, 'MEMBER WITH ADMIN OPTION')
        OR (giver.rolcreaterole AND current_setting('server_version_num')::int < 160000)))
SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'grv'),
  (SELECT count(*) FROM pg_class WHERE relname IN {_NAMES}
    AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'grv')),
  (SELECT owner.rolname FROM pg_roles owner
    WHERE owner.oid IN (SELECT relowner FROM pg_class WHERE relname IN {_NAMES}
          AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'grv')
        UNION SELECT nspowner FROM pg_namespace WHERE nspname = 'grv')
      AND NOT owner.rolsuper AND owner.oid NOT IN (SELECT oid FROM trusted)
    ORDER BY owner.rolname LIMIT 1)
"""
# What code of a foreign owner could use. What PUBLIC may do, the owner may do as well. Rights in
# other databases are out of reach. Grants on the ledger, on databases and for tables to come are
# harmless.
_OTHER_RIGHTS = """
WITH me AS (SELECT * FROM pg_roles WHERE rolname = session_user),
  mine AS (SELECT pg_roles.* FROM pg_roles, me WHERE me.oid = pg_roles.oid
    OR (NOT me.rolsuper AND pg_has_role(me.oid, pg_roles.oid, 'MEMBER')))
SELECT said FROM (
  SELECT 1, 'is a superuser' FROM me WHERE rolsuper
  UNION ALL SELECT 2, 'is a member of ' || rolname FROM mine
    WHERE left(rolname, 3) = 'pg_' OR (rolsuper AND rolname <> session_user)
  UNION ALL SELECT 3, 'may create roles or databases, replicate, or pass by row security' FROM mine
    WHERE rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls
  UNION ALL SELECT 4, CASE deptype WHEN 'o' THEN 'owns ' ELSE 'has rights on ' END
      || pg_describe_object(classid, objid, objsubid)
    FROM pg_shdepend JOIN mine ON refclassid = 'pg_authid'::regclass AND refobjid = mine.oid
    WHERE dbid IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
      AND (deptype = 'o' OR deptype = 'a'
        AND classid NOT IN ('pg_database'::regclass, 'pg_default_acl'::regclass)
        AND NOT (classid = 'pg_class'::regclass AND objid IN (SELECT oid FROM pg_class
          WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'grv')))
        AND NOT (classid = 'pg_namespace'::regclass
          AND objid IN (SELECT oid FROM pg_namespace WHERE nspname = 'grv')))
) AS rights (place, said) ORDER BY place, said LIMIT 1
"""
LOCK = "LOCK TABLE " + ", ".join(f"grv.{name}" for name in COLUMNS) + " IN ACCESS SHARE MODE"


def are_there(db: Database) -> bool:
    """Whether the database has a ledger, or something that has its name."""
    # Not `to_regclass`: a session may remember for a while that there was no schema.
    query = "SELECT 1 FROM pg_class WHERE relname = 'ledger' AND relnamespace ="
    query += " (SELECT oid FROM pg_namespace WHERE nspname = 'grv')"
    return db.execute(query).fetchone() is not None


def check_tables(db: Database) -> None:
    """Refuse tables that differ from those that grv creates."""
    facts = {row[0]: row[1:] for row in db.execute(_FACTS).fetchall()}
    for name, columns in COLUMNS.items():
        if name not in facts:
            raise _not_ours(name, "is missing")
        plain, *strange, described, unique = facts[name]
        for is_so, what in zip(strange, _STRANGE, strict=True):
            if is_so:
                raise _not_ours(name, what)
        if not plain:
            raise _not_ours(name, "is not an ordinary table")
        if tuple(described) != columns:
            others = sorted({*described} ^ {*columns})
            raise _not_ours(name, f"has other columns than a ledger: {', '.join(others)[:200]}")
        if not _UNIQUE[name] <= {*unique}:
            raise _not_ours(name, "lacks a unique index")


def _not_ours(name: str, what: str) -> LedgerError:
    return LedgerError(f"not a ledger of grv: grv.{name} {what}; nothing was read from it")


def foreign_owner(db: Database, *, tables: int = len(COLUMNS)) -> str:
    """The first owner of the schema or of its tables that can do more than we can; or empty.

    All owners are looked at in one moment, in which the schema and its tables must be there: an
    owner who renames them must not look like no owner.

    Args:
        db: the connection.
        tables: how many tables must be there.
    """
    schema, count, owner = db.execute(_FOREIGN).fetchone()
    if not schema or count < tables:
        raise LedgerError("renamed or dropped while it was opened; nothing was read from it")
    return "" if owner is None else str(owner)


def other_right(db: Database) -> str:
    """A right of ours, beside reading the ledger, that code of its owner could use; or empty."""
    row = db.execute(_OTHER_RIGHTS).fetchone()
    return "" if row is None else str(row[0])


def _limited(column: str) -> str:
    """A column as it is read: null instead of a value above the limit, which is then not sent."""
    return f"CASE WHEN octet_length({column}) <= {LONGEST_LINE} THEN {column} END AS {column}"


# A unique index bounds the other texts, which are in it.
_LIMITED = frozenset(
    {"kind", "body", "seal", "text", "problem", "outcome", "account", "unit", "head", "key"}
)


def _read(name: str) -> str:
    columns = [each.split()[0] for each in COLUMNS[name]]
    shown = [_limited(each) if each in _LIMITED else each for each in columns]
    return f"(SELECT {', '.join(shown)} FROM grv.{name}) {name}"


_TABLE = re.compile(rf"\b(FROM|JOIN|INTO|UPDATE)\s+({'|'.join(COLUMNS)})\b")


@functools.lru_cache(4096)
def statement_for(statement: str) -> str:
    """A statement of ledgers as PostgreSQL gets it: with schemas, limits and its parameters."""

    def named(match: re.Match[str]) -> str:
        verb, name = match.groups()
        return f"{verb} {_read(name) if verb in ('FROM', 'JOIN') else f'grv.{name}'}"

    return _TABLE.sub(named, statement).replace("?", "%s")
