"""The result of a comparison: one row per policy and price list, to be saved or printed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError
from ..core.values import Costs, Measured
from ..files import write_whole
from ..frames import make_frame
from ..parsing import costs_record, written_costs
from ..replay.trials import Trials
from ..text import aligned, csv_text
from .batch_row import BatchRow
from .rows import REFERENCE, row_name
from .significance import METHOD, PairTest, Resampled, pair_tests

if TYPE_CHECKING:
    from ..report.figures import Picture

FORMAT = 1


@dataclass(frozen=True)
class GroupSummary:
    """One group of difficulty: the number of problems, their pass rates, and their pair."""

    problems: int
    pass_rate: tuple[float, float]
    m: int
    k: int


@dataclass(frozen=True)
class CensoredBounds:
    """The lowest and highest means of a row, whatever the missing labels are; see `bounds.py`.

    Attributes:
        cost: the mean cost.
        solved: the share of trials solved.
        generated: the mean number of candidates generated; None for hindsight, where only the cost
            is bounded.
        verified: the mean number of candidates verified; None for hindsight.
        rounds: the mean number of rounds; None for hindsight.
        ratio: the mean cost over that of the baseline, if there is a baseline.
        net: the value of solved trials minus the cost, per trial, if the value is given.
    """

    cost: tuple[float, float]
    solved: tuple[float, float]
    generated: tuple[float, float] | None = None
    verified: tuple[float, float] | None = None
    rounds: tuple[float, float] | None = None
    ratio: tuple[float, float] | None = None
    net: tuple[float, float] | None = None


@dataclass(frozen=True)
class Row:
    """One policy at one price list. Means are over trials; a trial is a problem in one order.

    Attributes:
        policy: the policy's name in the request.
        costs: the price list; a first guess if it is `Measured`.
        trials: the number of trials.
        solved: the share of trials solved.
        cost: the mean cost.
        generated: the mean number of candidates generated.
        verified: the mean number of candidates verified.
        generate_rounds: the mean number of rounds of generation; see `core.values.Rounds`.
        verify_rounds: the mean number of rounds of verification.
        rescored: the mean number of second scores, if there is a cascade.
        rescore_rounds: the mean number of rounds of second scores, if there is a cascade.
        seconds: the mean duration of a trial, if the duration of rounds is given.
        ratio: the mean cost over that of the baseline at the same costs, if there is a baseline.
        low: the lower end of the 95 % interval of the ratio, by resampling problems.
        high: the upper end.
        m: the number of candidates generated, if all problems have the same pair.
        k: the number of candidates verified, if all problems have the same pair.
        exact: the share solved over all possible orders, if there is a closed form.
        groups: the groups of difficulty, easiest last.
        solved_cost: the mean cost of the solved trials, if there are any.
        unsolved_cost: the mean cost of the unsolved trials, if there are any.
        net: the value of solved trials minus the cost, per trial, if the value is given.
        unsolvable_cost: the mean cost on problems without any pass, if they are kept.
        cost_by_position: the mean cost of the first problem of each repetition, of the second, and
            so on, if a row learns from one problem to the next.
        bounds: if labels are missing, what the row would be with the best and with the worst
            labels; the other fields are then those with the worst, where costs are highest.
    """

    policy: str
    costs: Costs
    trials: int
    solved: float
    cost: float
    generated: float
    verified: float
    generate_rounds: float
    verify_rounds: float
    seconds: float | None = None
    rescored: float | None = None
    rescore_rounds: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    m: int | None = None
    k: int | None = None
    exact: float | None = None
    groups: tuple[GroupSummary, ...] | None = None
    solved_cost: float | None = None
    unsolved_cost: float | None = None
    net: float | None = None
    unsolvable_cost: float | None = None
    cost_by_position: tuple[float, ...] | None = None
    bounds: CensoredBounds | None = None

    @property
    def measured(self) -> bool:
        """Whether the costs are those measured in the log."""
        return isinstance(self.costs, Measured)

    @property
    def prices(self) -> str:
        """The price list, as written in the option `--costs`."""
        return written_costs(self.costs, ".3g" if self.measured else "g")

    @property
    def least_cost(self) -> float | None:
        """The lower bound of the mean cost, if labels are missing."""
        return None if self.bounds is None else self.bounds.cost[0]

    @property
    def most_solved(self) -> float | None:
        """The upper bound of the share solved, if labels are missing."""
        return None if self.bounds is None else self.bounds.solved[1]

    def shown(self, amount: float) -> str:
        """An amount in the row's unit, for people."""
        return f"{amount:.4g}" if self.measured else f"{amount:.1f}"

    @property
    def rounds(self) -> float:
        """The mean number of rounds: how often a search waited for results."""
        return self.generate_rounds + self.verify_rounds + (self.rescore_rounds or 0.0)

    def to_json(self) -> dict[str, Any]:
        """The record in the file of a comparison."""
        record = asdict(self) | {"rounds": self.rounds}
        record["costs"] = costs_record(self.costs)
        always = {"ratio", "low", "high"}
        return {k: v for k, v in record.items() if v is not None or k in always}


@dataclass(frozen=True)
class LogSummary:
    """The data of a comparison, and what was left out.

    Attributes:
        problems: the number of problems in the log.
        solvable: the number of problems with at least one pass.
        candidates: the number of candidates in the log.
        unlabelled: the number of candidates without a label.
        unscored: the number of candidates without a score; they rank last.
        excluded: the ids of the problems left out.
        contradictory: keys with both labels, by problem; these keys are ignored.
        unpriced: the number of missing costs; each is replaced by the mean of the others.
        refuted: the number of candidates refuted without verification; no row verifies them.
        censored: whether a search chose what to generate and to verify.
        published: the number of candidates whose label is that of the paper's published code.
        judged: the number of candidates whose label is that of a check that errs.
        staged: the number of candidates whose verification is recorded by its stages.
    """

    problems: int
    solvable: int
    candidates: int
    unlabelled: int
    unscored: int
    excluded: tuple[str, ...]
    contradictory: Mapping[str, tuple[str, ...]]
    unpriced: int = 0
    refuted: int = 0
    censored: bool = False
    published: int = 0
    judged: int = 0
    staged: int = 0


@dataclass(frozen=True, eq=False)
class Comparison:
    """Rows in the order of the request, price list by price list.

    Attributes:
        log: the data.
        settings: the settings; enough to repeat the comparison.
        rows: the results.
        problems: the ids of the problems compared, in the order of `trials`.
        trials: for each row, arrays `[problems, orders]`; kept for figures, not saved.
        saved_pairs: the tests of a saved comparison, which has no trials.
        batches: how many problems each schedule solves with one budget for all, if one was given.

    Examples:
        >>> import grv
        >>> columns = {
        ...     "problem": ["a", "a"],
        ...     "candidate": [0, 1],
        ...     "score": [0.1, 0.9],
        ...     "passed": [0, 1],
        ... }
        >>> found = grv.compare(["varied", "verify-all"], columns, (1, 10), orders=1)
        >>> found["verify-all"].verified
        1.0
    """

    log: LogSummary
    settings: Mapping[str, Any]
    rows: tuple[Row, ...]
    problems: tuple[str, ...] = ()
    trials: tuple[Trials, ...] = field(default=(), repr=False)
    saved_pairs: tuple[PairTest, ...] = field(default=(), repr=False)
    batches: tuple[BatchRow, ...] = ()

    def __getitem__(self, wanted: str | tuple[str, Costs | str]) -> Row:
        """The row with this name: `c["adaptive"]`.

        With several price lists, name one too: `c["adaptive", "1,10"]`, or with `Costs(1, 10)`.

        Raises:
            UsageError: the name alone does not tell which price list.
        """
        policy, prices = (wanted, None) if isinstance(wanted, str) else wanted
        if isinstance(prices, str):
            prices = prices.replace(" ", "")
        if all(row.policy != policy for row in self.rows):
            policy = row_name(policy)
        rows = [
            row
            for row in self.rows
            if row.policy == policy and (prices is None or prices in (row.costs, row.prices))
        ]
        if not rows:
            names = dict.fromkeys(row.policy for row in self.rows)
            raise KeyError(f"no row {wanted!r}; there are {', '.join(names)}")
        lists = list(dict.fromkeys(row.prices for row in rows))
        if len(lists) > 1:
            raise UsageError(
                f"{policy!r} has a row for each price list ({'; '.join(lists)}):"
                f" write [{policy!r}, {lists[0]!r}]"
            )
        return rows[0]

    @property
    def is_bounded(self) -> bool:
        """Whether labels are missing, so that rows have bounds and no tests."""
        return any(row.bounds is not None for row in self.rows)

    @property
    def baseline(self) -> str | None:
        """The name of the row that ratios are relative to; None if there are no ratios."""
        name: str | None = self.settings.get("baseline", REFERENCE)
        return name

    @cached_property
    def resampled(self) -> Resampled:
        """The resamples of problems, shared by all intervals."""
        return Resampled(len(self.problems), int(self.settings["seed"]))

    @cached_property
    def pairs(self) -> tuple[PairTest, ...]:
        """Paired tests of each two rows at each price list; see `significance`."""
        return pair_tests(self) if self.trials else self.saved_pairs

    def pair(self, first: str, second: str, prices: Costs | str | None = None) -> PairTest:
        """The paired test of two rows, in this order; see `__getitem__` for price lists."""
        rows = [self[name] if prices is None else self[name, prices] for name in (first, second)]
        names = [row.policy for row in rows]
        for test in self.pairs:
            if test.prices == rows[0].prices and {test.first, test.second} == set(names):
                return test if test.first == names[0] else test.reversed()
        raise KeyError(f"no test of {first!r} and {second!r}")

    def to_json(self) -> dict[str, Any]:
        """The numbers, as plain data."""
        batches = {"batches": [row.to_json() for row in self.batches]} if self.batches else {}
        return {
            "format": FORMAT,
            "log": asdict(self.log),
            "settings": dict(self.settings),
            "rows": [row.to_json() for row in self.rows],
            **batches,
            "tests": {"method": METHOD, "pairs": [pair.to_json() for pair in self.pairs]},
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the numbers as JSON; the file is replaced atomically."""
        write_whole(path, json.dumps(self.to_json(), indent=1) + "\n")

    def save_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the rows as CSV; the file is replaced atomically."""
        write_whole(path, self.to_csv())

    def to_frame(self) -> Any:
        """The rows as a pandas frame, or a polars frame if pandas is not installed."""
        names, rows = self._cells()
        return make_frame(dict(zip(names, zip(*rows, strict=True), strict=True)))

    def plot(self, prices: str | None = None) -> Picture:
        """A picture of the costs, which a notebook shows; it needs matplotlib.

        Its attribute `figure` is the figure of matplotlib, `svg` the text of an SVG file.

        Args:
            prices: the price list, as in `--costs`; it is needed if there are several.
        """
        from ..report.figures import picture_of

        return picture_of(self, prices)

    def _repr_html_(self) -> str:
        from .conclusion import comparison_html

        return comparison_html(self)

    def to_csv(self) -> str:
        """The rows as CSV; each row lists the problems left out."""
        names, rows = self._cells()
        excluded = " ".join(self.log.excluded)
        return csv_text([*names, "excluded"], [(*row, excluded) for row in rows])

    def _cells(self) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The names of the columns, and the values of the rows."""
        plain = ["trials", "solved", "cost", "generated", "verified", "ratio", "low", "high"]
        plain += ["m", "k", "exact", "unsolvable_cost"]
        plain += ["rounds", "generate_rounds", "verify_rounds", "seconds", "measured"]
        plain += ["solved_cost", "unsolved_cost", "net", "rescored", "rescore_rounds"]
        if self.is_bounded:
            plain += ["least_cost", "most_solved"]
        rows = [
            (
                row.policy,
                row.costs.candidate,
                row.costs.verify,
                row.costs.failure,
                *(getattr(row, name) for name in plain),
            )
            for row in self.rows
        ]
        return ["policy", "cost_generate", "cost_verify", "cost_failure", *plain], rows

    def __str__(self) -> str:
        return self.table()

    def table(self) -> str:
        """The rows as plain text, for people."""
        return aligned(*self.cells(), left=2)

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """The head and the cells of the table for people."""
        head = ["policy", "costs", "generated", "verified", "cost", "ratio", "95 %", "solved"]
        head.append("rounds")
        rows = [list(row_cells(row)) for row in self.rows]
        for title, shown in _OPTIONAL.items():
            cells = [shown(row) for row in self.rows]
            if any(cell is not None for cell in cells):
                head.append(title)
                for row, cell in zip(rows, cells, strict=True):
                    row.append(cell or "")
        return head, rows


def row_cells(row: Row) -> tuple[str, ...]:
    """The cells of a row, for people."""
    if row.bounds is not None:
        return _bound_cells(row, row.bounds)
    has_interval = row.low is not None and row.high is not None
    return (
        row.policy,
        row.prices,
        f"{row.generated:.1f}",
        f"{row.verified:.1f}",
        row.shown(row.cost),
        "" if row.ratio is None else f"x{row.ratio:.2f}",
        f"{row.low:.2f}-{row.high:.2f}" if has_interval else "",
        f"{row.solved:.3f}",
        f"{row.rounds:.1f}",
    )


def _bound_cells(row: Row, bounds: CensoredBounds) -> tuple[str, ...]:
    def both(ends: tuple[float, float] | None, digits: int = 1) -> str:
        if ends is None:
            return ""
        low, high = (f"{end:.{digits}f}" for end in ends)
        return low if low == high else f"{low}-{high}"

    return (
        row.policy,
        row.prices,
        both(bounds.generated),
        both(bounds.verified),
        both(bounds.cost),
        "" if bounds.ratio is None else f"x{both(bounds.ratio, 2)}",
        "",
        both(bounds.solved, 3),
        both(bounds.rounds),
    )


# Columns that are shown only if a row has a value.
_OPTIONAL: dict[str, Callable[[Row], str | None]] = {
    "rescored": lambda row: None if row.rescored is None else f"{row.rescored:.1f}",
    "seconds": lambda row: None if row.seconds is None else f"{row.seconds:.1f}",
    "unsolved cost": lambda row: (
        None if row.unsolved_cost is None else row.shown(row.unsolved_cost)
    ),
    "net": lambda row: None if row.net is None else _net(row, row.net),
}


def _net(row: Row, net: float) -> str:
    if row.bounds is None or row.bounds.net is None:
        return row.shown(net)
    low, high = row.bounds.net
    return f"{row.shown(low)} to {row.shown(high)}"
