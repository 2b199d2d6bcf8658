"""A file as `grv report` is given it, on the command line or in a job file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import UsageError
from ...logs.reading import Reading
from ...options import Family, from_table, option


@dataclass(frozen=True)
class Given(Family):
    """One file of a report."""

    path: str = option(..., "A log, a ledger or a saved comparison.", job_only=True)
    name: str = option("", "Its name in tables; the name of the file if empty.", job_only=True)
    score: str | None = option(None, "What ranks, as grv compare takes it.", job_only=True)
    reading: Reading = field(default_factory=Reading)

    @classmethod
    def parse(cls, given: str | Mapping[str, Any]) -> Given:
        """From `PATH`, from `NAME=PATH`, or from a table of a job file."""
        if not isinstance(given, str):
            return from_table(cls, given)
        name, equals, path = given.partition("=")
        if not equals or os.path.exists(given):
            return cls(given)
        if not name or not path:
            raise UsageError("give a file, or NAME=FILE")
        return cls(path, name)
