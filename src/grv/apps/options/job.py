"""Job files: options in TOML.

Options stand at the top of the file, or in a table that is named like the command; then only that
table counts. `top-p` and `top_p` are the same name. A command skips the tables of other commands.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ...core.errors import UsageError
from ...files import read_toml
from ...options import option

Table = dict[str, Any]  # TOML data from the user, checked against the options

RUNS = "runs"
ALLOW = "allow_commands"  # the option that lets a job file name code; only a flag counts


def job_option(more: str = "") -> Any:
    """The option `--job`."""
    return option(
        None, f"Options from a TOML file{more}. The command line takes precedence.", metavar="FILE"
    )


def allow_option() -> Any:
    """The option `--allow-commands` of commands that run no commands."""
    return option(
        False,
        "Let the job file name code of your own, FILE.py:CLASS, which runs with your rights.",
        "--allow-commands",
    )


def read_job(path: str, command: str, known: Collection[str], commands: Collection[str]) -> Table:
    """The options that a job file has for a command."""
    table = _underscored(read_toml(path))
    own = table.get(command)
    if own is not None:
        if not isinstance(own, dict):
            raise UsageError(f"{path}: {command} must be a table, [{command}]")
        return _underscored(own)
    others = [
        name
        for name, value in table.items()
        if isinstance(value, dict) and name in commands and name not in known
    ]
    if others and len(others) == len(table):
        tables = ", ".join(f"[{name}]" for name in others)
        raise UsageError(
            f"{path}: has options of other commands only, in {tables}; those of grv {command} stand"
            f" in [{command}] or at the top of the file"
        )
    return {name: value for name, value in table.items() if name not in others}


def runs_of(path: str | None, table: Table, called: str = RUNS) -> dict[str, Table]:
    """The options of each run in a job file: the common ones, and those of its own table."""
    common = {name: value for name, value in table.items() if name != called}
    tables = table.get(called, {"": {}})
    named = (
        isinstance(tables, dict) and tables and all(isinstance(t, dict) for t in tables.values())
    )
    if not named:
        raise UsageError(f"{path}: {called} must be tables, as in [{called}.large]")
    return {name: common | _underscored(own) for name, own in tables.items()}


def _underscored(table: Table) -> Table:
    return {name.replace("-", "_"): value for name, value in table.items()}
