"""Job files: options in TOML.

Options stand at the top of the file, or in a table that is named like the command; then that table
alone counts. `top-p` and `top_p` are the same name. Tables of other commands are not looked at.
"""

from __future__ import annotations

import tomllib
from typing import Any

from ...core.errors import UsageError

Table = dict[str, Any]  # TOML data from the user, checked against the options' fields


def load_job(path: str) -> Table:
    """A whole job file."""
    try:
        with open(path, "rb") as file:
            return _dashed(tomllib.load(file))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path}: not TOML: {error}") from error


def read_job(path: str, command: str) -> Table:
    """The options that a job file has for a command."""
    table = load_job(path)
    own = table.get(command, None)
    if own is None:
        return {name: value for name, value in table.items() if not isinstance(value, dict)}
    if not isinstance(own, dict):
        raise UsageError(f"{path}: {command} must be a table, [{command}]")
    return _dashed(own)


def _dashed(table: Table) -> Table:
    return {name.replace("-", "_"): value for name, value in table.items()}
