"""Opens a ledger by its place: a file, or the address of a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from ..core.errors import UsageError, installing
from ..files import is_sqlite
from .tables import TableLedger

_ADDRESSES = ("postgresql://", "postgres://")


def is_address(place: str) -> bool:
    """Whether this is the address of a database, not a file."""
    return place.startswith(_ADDRESSES)


def is_ledger(place: str) -> bool:
    """Whether this is a ledger, rather than a log or another file."""
    return is_address(place) or is_sqlite(place)


def open_ledger(
    place: str | Path, *, read_only: bool = False, key: bytes | None = None
) -> TableLedger:
    """The ledger in a file or a database; a new one if there is none, unless it is only read."""
    if isinstance(place, Path) or not is_address(place):
        from .sqlite import SqliteLedger

        return SqliteLedger(place, read_only=read_only, key=key)
    _need_driver()
    from .postgres import PostgresLedger

    return PostgresLedger(place, read_only=read_only, key=key)


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
