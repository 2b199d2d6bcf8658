"""What a live run prints: its limits before, its failures as they happen, a summary at the end."""

from __future__ import annotations

import re
import shlex
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..backends.scorers.auto import BY_GIVEN, BY_LOGPROB, BY_TRAINED, UNRANKED
from ..core.values import Reason
from ..files import is_number
from ..learning.online import HISTORY
from ..text import counted

if TYPE_CHECKING:
    from ..runtime.options import Spending
    from ..runtime.progress import Listener, Progress

NO_LIMIT = (
    "no limit is set: a problem that cannot be solved is searched without end; give --budget,"
    " --total-budget or --value"
)
OUT_OF_TOTAL = "out of the total budget"
_OUTCOMES = [*(reason.value for reason in Reason), OUT_OF_TOTAL]  # others stand after them
_FROM_HISTORY = f"prior={HISTORY!r}"  # in the name of a policy that `learning` has chosen
# What the score `auto` stands for.
_SCORES = {
    BY_LOGPROB: "log-probabilities",
    BY_TRAINED: "trained on the verdicts in this ledger",
    BY_GIVEN: "that of --alike",
    UNRANKED: "none",
}
_REASONS = 5  # different failures that are printed
_EVERY_SECONDS = 60.0  # between two lines about spending, where there is no progress bar


class Reasons:
    """Prints each reason of a failure once.

    Reasons that differ only in numbers or in the problem's name are the same.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._seen: set[str] = set()

    def add(self, problem: str, what: str, reason: str) -> None:
        """Print why a problem has this outcome, if the reason is new."""
        is_word = problem.isalpha() and len(problem) < 3  # it may be any word of the reason
        kind = reason if is_word else re.sub(rf"\b{re.escape(problem)}\b", "#", reason)
        kind = re.sub(r"\d+", "#", kind)
        if kind in self._seen or len(self._seen) >= _REASONS:
            return
        self._seen.add(kind)
        self._tell(f"grv: problem {problem} {what}: {reason}")


def _rank(outcome: str) -> tuple[int, str]:
    """The place of an outcome in a summary, whichever problem has ended first."""
    return _OUTCOMES.index(outcome) if outcome in _OUTCOMES else len(_OUTCOMES), outcome


@dataclass
class Summary:
    """The outcomes and costs of a run.

    Attributes:
        problems: the number of problems.
        outcomes: the number of problems per outcome.
        first: the first problem with each outcome.
        policies: the number of problems of this run per policy that decided.
        scores: the number of problems of this run per score that `auto` has stood for.
        dollars: what the problems cost whose dollars are known.
        without_dollars: the number of the others.
        judged: the number of answers that a check which errs has passed.
        lacks_tokens: whether half of the candidates ended before their answer.
    """

    problems: int
    outcomes: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    policies: Counter[str] = field(default_factory=Counter)
    scores: Counter[str] = field(default_factory=Counter)
    cost: float = 0.0
    dollars: float = 0.0
    without_dollars: int = 0
    generated: float = 0
    verified: float = 0
    refuted: float = 0
    shared: float = 0
    judged: int = 0
    lacks_tokens: bool = False
    by_generator: dict[str, Counter[str]] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    def add(self, record: Mapping[str, Any], outcome: str) -> None:
        """Count the answer to a problem, perhaps of an earlier run."""
        self.outcomes[outcome] += 1
        self.first.setdefault(outcome, str(record["problem"]))
        usage = record.get("usage")
        self.cost += _number(record, "cost")
        self.generated += _number(record, "generated")
        self.verified += _number(record, "verified")
        self.refuted += _number(record, "refuted")
        self.shared += _number(record, "shared")
        self.judged += record.get("answer_status") == "judged"
        dollars = usage.get("dollars") if isinstance(usage, Mapping) else None
        if is_number(dollars):
            self.dollars += dollars
        else:
            self.without_dollars += 1
        for name, bill in (record.get("by_generator") or {}).items():
            self.by_generator.setdefault(name, Counter()).update(bill)

    @property
    def unfinished(self) -> int:
        """The problems without an outcome: interrupted, or another process works on them."""
        return self.problems - self.outcomes.total()

    def lines(
        self, ledger: str, spending: Spending, unfinished: float = 0.0, paid: float | None = None
    ) -> list[str]:
        """The summary.

        Args:
            ledger: where the ledger is.
            spending: the options.
            unfinished: what was spent on problems without an outcome.
            paid: what this run has possibly paid, if the ledger counts other runs too.
        """
        counts = [f"{self.outcomes[each]} {each}" for each in sorted(self.outcomes, key=_rank)]
        if self.unfinished:
            counts.append(f"{self.unfinished} unfinished; run the same command again to continue")
        costs = [f"cost {self.cost:g}"]
        costs.append(self._dollars)
        if paid is not None and paid < 0:
            costs.append(f"{-paid:g} returned in this run, which earlier ones had reserved")
        elif paid is not None:
            costs.append(f"{paid:g} paid in this run")
        costs.append(counted(self.generated, "candidate"))
        costs.append(counted(self.verified, "verification"))
        costs.append(f"{time.monotonic() - self.started:.1f} s")
        lines = [f"{counted(self.problems, 'problem')}: {', '.join(counts)}", ", ".join(costs)]
        if unfinished:
            lines[1] += f"; another {unfinished:g} for unfinished problems"
        if self.refuted:
            lines.append(f"refuted without verification: {counted(self.refuted, 'candidate')}")
        if self.judged:
            lines.append(
                f"judged, not verified, because the check errs: {counted(self.judged, 'answer')}"
            )
        if self.shared:
            lines.append(
                f"known already, so neither run nor billed: {counted(self.shared, 'verdict')}"
            )
        for name, bill in self.by_generator.items():
            made = bill["generated"]
            checked = bill["verified"]
            lines.append(
                f"{name}: cost {bill['cost']:g}, {counted(made, 'candidate')},"
                f" {counted(checked, 'verification')}"
            )
        if ranked := score_line(self.scores):
            lines.append(ranked)
        if learned := self._learned:
            lines.append(learned)
        return [*lines, f"next: {self._next(shlex.quote(ledger), spending)}"]

    @property
    def _dollars(self) -> str:
        """The dollars in words. A part that is unknown is never counted as 0."""
        known = f"{self.dollars:.4g} dollars"
        if not self.without_dollars:
            return known
        if self.dollars:
            return f"{known} and an unknown amount for {counted(self.without_dollars, 'problem')}"
        return "dollars unknown"

    @property
    def _learned(self) -> str:
        """How many problems were decided by the history of earlier ones; empty if none was."""
        by_history = {spec: n for spec, n in self.policies.items() if _FROM_HISTORY in spec}
        if not by_history:
            return ""
        decided = sum(by_history.values())
        return (
            f"learned: the verdicts of earlier problems decided {decided} of"
            f" {self.policies.total()} problems"
        )

    def _next(self, ledger: str, spending: Spending) -> str:
        """The command to run next."""
        if self.unfinished:
            return "run the same command again to continue"
        if "failed" in self.first:
            return f"grv runs show {ledger} {shlex.quote(self.first['failed'])}"
        more = ""
        if OUT_OF_TOTAL in self.first:
            more = f"--total-budget {_more(spending.total_budget, spending):g}"
        elif "out of budget" in self.first:
            more = f"--budget {_more(spending.budget, spending):g}"
        if more and self.lacks_tokens:
            return (
                f"the same command with a larger --max-tokens, or else more money, such as {more}"
            )
        if more:
            return f"the same command with more money, such as {more}, continues"
        for outcome in ("finished", "exhausted"):
            if outcome in self.first:
                return f"grv runs show {ledger} {shlex.quote(self.first[outcome])}"
        return f"grv runs list {ledger}"


def score_line(scores: Mapping[str, int]) -> str:
    """What `--score auto` has ranked problems by, in words; empty if another score was given.

    >>> score_line({"none": 6, "trained": 34})
    'score: none for 6 problems, trained on the verdicts in this ledger for 34 problems'
    """
    words = {
        " and ".join(_SCORES[name] for name in each.split(" and ")): number
        for each, number in scores.items()
        if each
    }
    if len(words) == 1:
        return f"score: {next(iter(words))}"
    parts = [f"{each} for {counted(number, 'problem')}" for each, number in words.items()]
    return f"score: {', '.join(parts)}" if parts else ""


def _number(record: Mapping[str, Any], name: str) -> float:
    value = record.get(name)
    return float(value) if is_number(value) and value is not None else 0.0


def spending_lines(tell: Callable[[str], None]) -> Listener:
    """A listener that prints what is solved and spent, a line per minute."""
    last = time.monotonic()

    def show(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last < _EVERY_SECONDS:
            return
        last = time.monotonic()
        tell(
            f"{progress.done} of {progress.problems} problems done, {progress.solved} solved,"
            f" {progress.spent:g} spent, running problems included"
        )

    return show


def _more(budget: float, spending: Spending) -> float:
    """A larger budget to propose: it buys at least one candidate and its verification."""
    return max(2 * budget, spending.costs.generate + spending.costs.verify)
