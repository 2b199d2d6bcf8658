"""Addresses of ledgers, and whose credentials they get.

libpq fills in what an address does not say: from PGPASSWORD, PGHOST and other variables, from
`~/.pgpass`, from service files, from certificates and tickets of the user. That is right for an
address that the operator named. For any other, its author would receive the operator's password.
"""

from __future__ import annotations

from typing import Any

from ..core.errors import LedgerError

_ADDRESSES = ("postgresql://", "postgres://")
# Give up a server that does not answer; notice a connection that is dead.
_BOUNDS: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
# What an address may say that the operator did not name. None of it names a file.
_PLAIN = ("host", "port", "dbname", "user", "password", "sslmode", *_BOUNDS)
# Settings that have no default, and their values here. libpq would replace an empty name of a file
# by that of the user's own. Neither tickets nor certificates of the user are shown.
_NO_FILE = "/dev/null/none"
_NEUTRAL = {
    "passfile": _NO_FILE,
    "sslcert": _NO_FILE,
    "sslkey": _NO_FILE,
    "sslcertmode": "disable",
    "require_auth": "none,password,md5,scram-sha-256",
    "min_protocol_version": "3.0",
    "max_protocol_version": "3.0",
    "client_encoding": "UTF8",
}
_NOT_SET = ("service",)  # what a service says is set already; an empty one is an error


class OperatorAddress(str):
    """The place of a ledger in a policy that the operator named.

    It is a text like any other. A policy is a value that travels far, and one that a guest names
    must never carry an address; if it did, the address would not be `OperatorAddress`.
    """

    __slots__ = ()


def is_address(place: str) -> bool:
    """Whether this is the address of a database, not a file."""
    return place.startswith(_ADDRESSES)


def settings_of(address: str, shown: str, *, named: bool) -> dict[str, Any]:
    """What to connect with; every connection has a timeout.

    If the operator did not name the address, every setting that libpq would take from the
    environment is set to its default, and no file of the user is read.

    Raises:
        LedgerError: such an address leaves something to the environment.
    """
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.errors import ProgrammingError
    from psycopg.pq import Conninfo

    if named:
        return {"conninfo": address, **_BOUNDS}
    try:
        parameters = conninfo_to_dict(address)
    except ProgrammingError as error:
        raise LedgerError(f"{shown}: not an address", path=shown) from error
    for name in ("host", "user", "dbname"):
        if not parameters.get(name):
            raise LedgerError(f"{shown}: the address must name its {name}", path=shown)
    if str(parameters["host"]).startswith(("/", "@")) or not set(parameters) <= set(_PLAIN):
        raise LedgerError(
            f"{shown}: only the operator may name sockets, files and services", path=shown
        )
    settings = {
        name: (each.compiled or b"").decode() if name not in _NEUTRAL else _NEUTRAL[name]
        for each in Conninfo.get_defaults()
        if each.envvar is not None and (name := each.keyword.decode()) not in _NOT_SET
    }
    return settings | parameters | _BOUNDS
