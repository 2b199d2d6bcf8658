"""Opens a ledger by its place: a file, or the address of a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from ..core.errors import UsageError, installing
from ..files import is_sqlite
from .address import is_address as is_address
from .tables import TableLedger


def is_ledger(place: str) -> bool:
    """Whether this is a ledger, rather than a log or another file."""
    return is_address(place) or is_sqlite(place)


def open_ledger(
    place: str | Path, *, read_only: bool = False, key: bytes | None = None, named: bool = True
) -> TableLedger:
    """The ledger in a file or a database; a new one if there is none, unless it is only read.

    `named` is whether the operator named this place, on a command line, in a job file or in Python.
    For any other address, no credentials of the environment are used.
    """
    if isinstance(place, Path) or not is_address(place):
        from .sqlite import SqliteLedger

        return SqliteLedger(place, read_only=read_only, key=key)
    _need_driver()
    from .postgres import PostgresLedger

    return PostgresLedger(place, read_only=read_only, key=key, named=named)


def _need_driver() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        message = f"a ledger in PostgreSQL needs psycopg: {installing('postgres')}"
        raise UsageError(message) from error


def refuse_password(place: str) -> None:
    """Refuse an address with a password: other users of the machine see command lines."""
    if is_address(place):
        _need_driver()
        from .postgres import has_password

        if has_password(place):
            raise UsageError(
                "--ledger: leave the password out of the address; set PGPASSWORD, or put it into"
                " ~/.pgpass"
            )
