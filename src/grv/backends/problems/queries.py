"""Questions about a database, to be answered with SQL: BIRD and Spider.

`db_id` names the folder and the file of a database, `ID/ID.sqlite`, below one folder. A name that
leads out of that folder is refused. Of a database only the definitions of its tables are read here.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...core.errors import UsageError
from ...files import is_sqlite, shown
from ..protocols import Problem
from .prompts import filled
from .records import Converted, Record, Wanted

_FOLDERS = ("dev_databases", "train_databases", "test_databases", "database", "databases")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,199}")
_LONGEST_SCHEMA = 200_000  # characters of the definitions in a prompt
SQL_PROMPT = "{code}\n\n{question}\n\nAnswer with one SQLite query.\n\n```sql\n"


def bird(record: Record, wanted: Wanted) -> Converted:
    """A question of BIRD."""
    question = record.text("question")
    if evidence := record.text("evidence", ""):
        question = f"{question}\n\nHint: {evidence}"
    return _converted(record, question, record.text("SQL"), wanted)


def spider(record: Record, wanted: Wanted) -> Converted:
    """A question of Spider."""
    return _converted(record, record.text("question"), record.text("query"), wanted)


def _converted(record: Record, question: str, reference: str, wanted: Wanted) -> Converted:
    database = database_of(record, record.text("db_id"), wanted)
    check = {"kind": "sql", "engine": "sqlite", "databases": [database], "reference": reference}
    code = definitions(database)
    problem = asked(record.name("question_id"), question, code, check, wanted, record)
    return Converted(problem, record.text("difficulty", "") or None, (fenced(reference),))


def asked(
    name: str, question: str, code: str, check: Any, wanted: Wanted, record: Record
) -> Problem:
    """A question about a database with these definitions."""
    if name.isdecimal():
        name = f"{record.source}/{name}"
    return Problem(name, filled(wanted.prompt or SQL_PROMPT, question, code), check, question, code)


def fenced(reference: str) -> str:
    """A query as a model writes it."""
    return f"```sql\n{reference.strip()}\n```"


def database_of(record: Record, name: str, wanted: Wanted) -> str:
    """The path of a database; a UsageError if there is none of this name."""
    if not _NAME.fullmatch(name) or name.endswith((".", " ")):
        raise UsageError(f"field db_id must be the name of a database, not {shown(name)}")
    folder = _folder(record.path, wanted.databases)
    path = folder / name / f"{name}.sqlite"
    if not path.is_file():
        raise UsageError(f"field db_id: there is no database {path}")
    inside = os.path.realpath(folder)
    if not os.path.realpath(path).startswith(f"{inside}{os.sep}"):
        raise UsageError(f"field db_id: {path} leads out of {folder}; refused")
    if not is_sqlite(str(path)):
        raise UsageError(f"field db_id: {path} is not an SQLite database")
    return os.path.abspath(path)


def _folder(path: str, given: str | None) -> Path:
    """The folder of the databases: as given, or beside the file."""
    if given is not None:
        if not os.path.isdir(given):
            raise UsageError(f"--databases {given}: there is no such folder")
        return Path(given)
    for name in _FOLDERS:
        if (folder := Path(path).parent / name).is_dir():
            return folder
    raise UsageError(
        f"no databases beside the file ({', '.join(_FOLDERS)}): give --databases FOLDER"
    )


@functools.lru_cache(maxsize=64)
def definitions(path: str) -> str:
    """The statements that made the tables of a database. It is opened for reading only."""
    try:
        address = f"file:{quote(path)}?mode=ro&immutable=1"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as database:
            database.execute("PRAGMA trusted_schema = OFF")
            found = database.execute(
                "SELECT sql FROM sqlite_master WHERE type IN ('table', 'view') AND sql IS NOT NULL"
                " AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY rowid"
            )
            statements = [str(row[0]).strip() for row in found]
    except sqlite3.Error as error:
        raise UsageError(f"field db_id: {path} cannot be read: {error}") from error
    text = "\n\n".join(f"{statement.rstrip(';')};" for statement in statements)
    if len(text) > _LONGEST_SCHEMA:
        raise UsageError(
            f"field db_id: the tables of {path} take more than {_LONGEST_SCHEMA:,} characters"
        )
    return text
