"""The settings of a comparison."""

from __future__ import annotations

import dataclasses
import enum
import math
import re
from dataclasses import dataclass
from typing import Any, ClassVar

from ..core.errors import UsageError
from ..core.limits import Limits
from ..core.values import Costs
from ..options import MOST, option
from ..pace_options import PaceOptions
from ..parallel import Parallel
from ..parsing import parse_log_prices, parse_value, parse_width
from ..policies import POLICIES
from ..replay.scheme import Scheme
from ..schedules import SCHEDULES

_DEFAULT = Limits()
# Ways to divide a budget that cannot run live; `allocations` has them. It needs numpy, help texts
# do not.
BASELINES = (
    "equal-shares",
    "rolling-share",
    "reset",
    "elimination",
    "two-stage",
    "hindsight",
    "oracle",
)
WIDEST = 64  # the width, if only a price of waiting is given


class Unsolvable(enum.StrEnum):
    """Whether problems without any pass are part of a comparison."""

    EXCLUDE = "exclude"
    INCLUDE = "include"


@dataclass(frozen=True)
class TotalBudget:
    """Money for all problems of a log: an amount, or a share of what solving them costs.

    Attributes:
        amount: in the unit of the costs, or the share.
        is_share: whether it is a share of the mean cost at which the default policy solves all
            solvable problems.
    """

    amount: float
    is_share: bool = False

    def __str__(self) -> str:
        return f"{100 * self.amount:g}%" if self.is_share else f"{self.amount:g}"


@dataclass(frozen=True)
class TotalBudgets:
    """The budgets of `--total-budget`."""

    budgets: tuple[TotalBudget, ...]

    @classmethod
    def of(cls, text: str) -> TotalBudgets:
        """Read `10%,25%,50%`, or amounts."""
        return cls(tuple(_total_budget(each) for each in text.split(",")))

    def __str__(self) -> str:
        return ",".join(map(str, self.budgets))


def _total_budget(text: str) -> TotalBudget:
    number = text.strip().removesuffix("%")
    is_share = text.strip().endswith("%")
    try:
        amount = float(number) / (100 if is_share else 1)
    except ValueError:
        amount = math.nan
    if not 0 < amount < math.inf:
        raise UsageError("give positive numbers or shares, as in 500 or 10%,25%,50%")
    return TotalBudget(amount, is_share)


@dataclass(frozen=True)
class Schedules:
    """The rows of `--schedule`, as they are written."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Schedules:
        """Read `least-spent,cheapest-predicted(k=1)`: a comma inside brackets does not divide."""
        from .allocations import named_allocation

        names = [each.strip() for each in re.split(r",(?![^()]*\))", text)]
        return cls(tuple(named_allocation(name)[0] for name in names))

    def __str__(self) -> str:
        return ",".join(self.names)


@dataclass(frozen=True)
class ComparisonSettings(Parallel, PaceOptions):
    """How policies are compared on a log."""

    TITLE: ClassVar[str] = "Replay"

    orders: int = option(10, "Number of orders in which each problem is tried.", least=1, most=MOST)
    seed: int = option(0, "Seed of the orders.", least=0)
    order_scheme: Scheme = option(
        Scheme.STABLE,
        "How orders are drawn; paper draws them as the published code does, logged is the order of"
        " the log.",
    )
    width: int | None = option(
        _DEFAULT.width,
        "Verifications in flight at once. 1 stops at the first pass; with more, a search looks"
        " ahead (--ramp, --overlap). all pays for whole steps, as the published experiments do."
        " With --wait-price, 1 means 64.",
        metavar="1|N|all",
        parse=parse_width,
        least=1,
        most=MOST,
    )
    keys: bool = option(False, "Verify each equivalence class (column key) only once.")
    unsolvable: Unsolvable = option(
        Unsolvable.EXCLUDE, "What to do with problems without any pass."
    )
    value: float = option(
        _DEFAULT.value,
        "Value of a solved problem, in the unit of the costs. Policies give up when the expected"
        " cost to continue exceeds it.",
        metavar="V",
        parse=parse_value,
        least=0,
    )
    answers: int = option(
        _DEFAULT.answers,
        "Different answers to find per problem: of different keys, where the log has keys.",
        least=1,
        most=MOST,
    )

    total_budget: TotalBudgets | None = option(
        None,
        "Money for all problems together: replays them as one batch, unsolvable ones included, and"
        " says how many each schedule solves. Amounts, or shares of what the default policy needs"
        " to solve all solvable problems: 10%,25%,50%.",
        metavar="B,...|SHARE%,...",
        parse=TotalBudgets.of,
    )
    schedule: Schedules = option(
        Schedules(("least-spent", "in-order")),
        "Which problem of a batch is next, one row each; needs --total-budget. Rules:"
        f" {', '.join(SCHEDULES)}. Baselines: {', '.join(BASELINES)}; hindsight and oracle are"
        " always there.",
        metavar="NAME,...",
        parse=Schedules.of,
        shown="least-spent,in-order",
    )

    baseline: str | None = option(
        None,
        "The row that all ratios are relative to; it is added if it is missing. Default: adaptive,"
        " or varied if there is no row adaptive.",
        metavar="POLICY",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.latency is None and (self.wait_price or math.isfinite(self.deadline)):
            raise UsageError(
                "--wait-price and --deadline need --latency: a replay measures no time"
            )
        if self.wait_price and self.width == 1:  # so the search chooses
            object.__setattr__(self, "width", WIDEST)

    @property
    def limits(self) -> Limits:
        """The value that searches take."""
        return Limits(value=self.value, width=self.width, pace=self.pace, answers=self.answers)

    def to_json(self) -> dict[str, Any]:
        """The record in the file of a comparison."""
        record = {
            each.name: getattr(self, each.name) for each in dataclasses.fields(ComparisonSettings)
        }
        del record["jobs"]  # it changes no number
        record["width"] = "all" if self.width is None else self.width
        record["value"] = None if math.isinf(self.value) else self.value
        names = ("ramp", "random_phase", "overlap", "wait_price", "deadline")
        pace = {name: record.pop(name) for name in names}
        if not self.random_phase:  # as in the files of earlier versions
            del pace["random_phase"]
        if self.width != 1 or math.isfinite(self.deadline):
            pace["deadline"] = None if math.isinf(self.deadline) else self.deadline
            record["pace"] = pace
        for name in ("total_budget", "schedule"):
            record[name] = str(record[name])
            if self.total_budget is None:
                del record[name]
        if self.answers == 1:  # as in the files of earlier versions
            del record["answers"]
        if self.latency is not None:
            record["latency"] = list(dataclasses.astuple(self.latency))
        return record


def _parse_candidates(text: str) -> int | None:
    if text == "endless":
        return None
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST):
        raise UsageError(f"give a whole number from 1 to {MOST:,}, or endless")
    return int(text)


@dataclass(frozen=True)
class SimulationSize(Parallel):
    """The size of a simulation."""

    problems: int = option(100, "Problems of each population.", least=1, most=MOST)
    orders: int = option(
        10, "Trials per problem: orders of its pool, or streams.", least=1, most=MOST
    )
    candidates: int | None = option(
        None,
        "Candidates of a pool, which has at least one pass; or streams without end.",
        metavar="N|endless",
        parse=_parse_candidates,
        least=1,
        most=MOST,
        shown="endless",
    )
    seed: int = option(0, "Seed of everything that is drawn.", least=0)
    width: int | None = option(
        _DEFAULT.width,
        "Verifications in flight at once; all pays for whole steps.",
        metavar="N|all",
        parse=parse_width,
        least=1,
        most=MOST,
    )

    def to_json(self) -> dict[str, Any]:
        """The record in the file of a simulation."""
        record = dataclasses.asdict(self)
        del record["jobs"]  # it changes no number
        record["candidates"] = "endless" if self.candidates is None else self.candidates
        record["width"] = "all" if self.width is None else self.width
        return record


@dataclass(frozen=True)
class TableSettings(ComparisonSettings):
    """The settings of a comparison, with its rows and price lists.

    A price list None stands for the costs in the log.
    """

    costs: tuple[Costs | None, ...] = option(
        (Costs(),),
        "Cost of generating (and scoring) one candidate, and of verifying one; F is the cost of a"
        " verification that fails, if that is less: the policy decides by F. measured takes the"
        " cost of each candidate from the log; G,V,F is then the first guess. Repeatable.",
        metavar="G,V[,F]|measured[:G,V[,F]]",
        parse=parse_log_prices,
        shown="1,10",
    )
    policies: tuple[str, ...] = option(
        (),
        f"A row of the table: {', '.join(POLICIES)},"
        " adaptive-all, hindsight, uniform-matched or difficulty-K; with parameters as in"
        " fixed(64, 4), or FILE.py:CLASS of your own. Repeatable. Default: the rows that the paper"
        " compares.",
        "--policy",
        metavar="SPEC",
        code=True,
    )
