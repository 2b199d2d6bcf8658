"""What a report is asked for: its files, the options of `grv compare`, and a few more."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..comparing.rows import DEFAULT_ROWS, baseline_of, parse_row, row_name, runs_live
from ..comparing.settings import TableSettings
from ..core.errors import UsageError
from ..core.values import Costs, Measured
from ..logs.reading_options import Reading
from ..options import MOST, Family, from_table, option
from ..parsing import check_names, parse_named_cost, written_costs
from ..policies import POLICIES


@dataclass(frozen=True)
class SourceFile(Family):
    """A file of a report, as the command line or a job file names it."""

    path: str = option(..., "A log, a ledger or a saved comparison.", job_only=True)
    name: str = option("", "Its name in tables; the name of the file if empty.", job_only=True)
    score: str | None = option(None, "What ranks, as grv compare takes it.", job_only=True)
    reading: Reading = field(default_factory=Reading)

    @classmethod
    def parse(cls, given: str | Mapping[str, Any]) -> SourceFile:
        """From `PATH`, from `NAME=PATH`, or from a table of a job file."""
        if not isinstance(given, str):
            return from_table(cls, given)
        name, equals, path = given.partition("=")
        if not equals or os.path.exists(given):
            return cls(given)
        if not name or not path:
            raise UsageError("give a file, or NAME=FILE")
        return cls(path, name)


@dataclass(frozen=True)
class ReportRequest(TableSettings):
    """The options of a report. Without policies, its rows are those of `default_rows`."""

    many_orders: int = option(
        100, "Number of orders in which each problem's cheapest pair is found.", least=1, most=MOST
    )

    generators: tuple[tuple[str, float], ...] = option(
        (),
        "A generator of the log (column generator) and the cost of one of its candidates. The page"
        " then says what each generator contributes. Repeatable.",
        "--generator",
        metavar="NAME=COST",
        parse=parse_named_cost,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names([name for name, _ in self.generators], "--generator")
        if not self.costs:
            raise UsageError("a report needs at least one price list")
        names = [price_name(costs) for costs in self.costs]
        if len(set(names)) < len(names):
            raise UsageError(f"a price list is given twice: {', '.join(names)}")
        for text in (*self.policies, *([] if self.baseline is None else [self.baseline])):
            parse_row(text)

    @property
    def rows(self) -> tuple[str, ...]:
        """The rows to compare; the baseline is one of them."""
        rows = tuple(map(row_name, self.policies)) or default_rows()
        try:
            baseline_of(rows, self.baseline)
        except UsageError:
            return (*rows, row_name(str(self.baseline)))
        return rows

    @property
    def live(self) -> tuple[str, ...]:
        """The rows that can run live."""
        return tuple(name for name in dict.fromkeys(self.rows) if runs_live(name))


def price_name(costs: Costs | None) -> str:
    """A price list as the user writes it. The initial estimate of measured costs is left out."""
    if costs is None or isinstance(costs, Measured):
        return "measured"
    return written_costs(costs)


def default_rows() -> tuple[str, ...]:
    """The rows of a report by default: those of the paper, and all policies without parameters."""
    others = [name for name in POLICIES if name not in DEFAULT_ROWS and _ready(name)]
    return (*DEFAULT_ROWS, *others)


def _ready(name: str) -> bool:
    """Whether the policy needs no parameters. Without a class, centered-star is verify-all."""
    if name == "centered-star":
        return False
    try:
        parse_row(name)
    except UsageError:
        return False
    return True
