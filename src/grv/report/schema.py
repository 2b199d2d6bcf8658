"""What a table of a report is, whatever the log; and the columns that several of them have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .table import Cell, Column, Table

Part = Literal["costs", "score", "advice", "time"]


@dataclass(frozen=True)
class Figure:
    """What one table of a report holds, whatever the log.

    Attributes:
        name: of the table.
        title: for people.
        caption: how to read it.
        alt: what a drawing of it shows.
        columns: in order.
        part: what question it belongs to.
        draws: whether it is drawn; others are read as tables, or hold the summary of a drawn one.
        needs_candidates: whether a saved comparison is not enough to make it.
        across: the column whose values become groups of columns, in tables that are set side by
            side.
        spread: the columns of each such group.
    """

    name: str
    title: str
    caption: str
    alt: str
    columns: tuple[Column, ...]
    part: Part
    draws: bool = True
    needs_candidates: bool = True
    across: str = ""
    spread: tuple[str, ...] = field(default=())

    def table(self, rows: list[tuple[Cell, ...]], notes: list[str]) -> Table:
        """The table with these rows, set side by side if it is one of that kind."""
        made = Table(
            *(self.name, self.title, self.caption, self.alt, self.columns),
            tuple(rows),
            tuple(dict.fromkeys(notes)),
        )
        return made.across(self.across, self.spread) if self.across else made


LOG = Column("log", "log", "text", "which log, or which score of a log")
COSTS = Column("costs", "costs", "text", "the price list: cost to generate, cost to verify")
POLICY = Column("policy", "policy", "text", "the policy or baseline, as `grv compare` names it")
PROBLEM = Column("problem", "problem", "text", "the problem's name")
COST = Column("cost", "cost", "cost", "the mean cost of a trial", digits=1)
RATIO = Column(
    "ratio", "× adaptive", "number", "the mean cost over that of adaptive, paired", digits=2
)
LOW = Column("low", "from", "number", "lower end of the 95 % interval", digits=2)
HIGH = Column("high", "to", "number", "upper end of the 95 % interval", digits=2)
SOLVED = Column("solved", "solved", "percent", "the share of trials solved", digits=1)
GENERATED = Column("generated", "generated", "number", "the mean number generated", digits=1)
VERIFIED = Column("verified", "verified", "number", "the mean number verified", digits=1)
PASS_RATE = Column("pass_rate", "pass rate", "percent", "the share that passes", digits=2)
RHO = Column(
    *("rho", "cost ratio", "number", "cost to verify over cost to generate, c_ver / c_gen"),
    digits=2,
)


def number(name: str, label: str, meaning: str, digits: int = 0) -> Column:
    """A column of numbers."""
    return Column(name, label, "number", meaning, digits=digits)


def percent(name: str, label: str, meaning: str, digits: int = 1) -> Column:
    """A column of shares."""
    return Column(name, label, "percent", meaning, digits=digits)


def cost(name: str, label: str, meaning: str) -> Column:
    """A column of costs."""
    return Column(name, label, "cost", meaning, digits=1)


def text(name: str, label: str, meaning: str) -> Column:
    """A column of words."""
    return Column(name, label, "text", meaning)


PAIR_M = number("m", "m", "candidates generated, where one pair serves all problems")
PAIR_K = number("k", "k", "candidates verified, likewise")
TRIALS = number("trials", "trials", "how many trials: a problem in one order is one")
PROBLEMS = number("problems", "problems", "how many problems")
