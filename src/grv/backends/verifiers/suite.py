"""Checks that consist of several tests: which test runs next, and what each one cost.

A candidate passes if it passes every test, and the first failure ends its verification. So the
order of the tests changes what a failure costs, and never the verdict. A `Suite` counts how often
each test of a problem ran and failed, and puts those first that refute for the least money:

    ((failures + 1/2) / (runs + 1)) / cost,  decreasing; ties in the order of the file

A kind of check with several tests has a `Suite` as its field `suite`, and runs them with `find`.
This is sound only if no test can see which tests ran before it: each has a process of its own, or
the candidate keeps nothing between two calls (`programs/forgetful.py`). Otherwise the check asks
for the order of the file.
"""

from __future__ import annotations

import enum
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.values import Verdict
from ..protocols import Finding, Stage

# A test that takes less costs as much as this: to start a process takes longer than most tests, and
# a difference of milliseconds is noise.
_LEAST_SECONDS = 0.05
_LONGEST_NUMBER = 9  # digits
_MOST_LISTED = 100  # stages of a finding that are listed one by one


class TestOrder(enum.Enum):
    """In which order the tests of a check run."""

    __test__ = False  # it is not a test of pytest's

    FILE = "file"
    LEARNED = "learned"


@dataclass
class _Counts:
    """By test: how often it ran and failed, and what that took."""

    runs: Counter[int] = field(default_factory=Counter)
    failures: Counter[int] = field(default_factory=Counter)
    seconds: dict[int, float] = field(default_factory=dict)
    dollars: dict[int, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Suite:
    """The tests of one problem: how often each ran and failed. Any thread may use it.

    Attributes:
        what: what a test is called, as in "test 3".
        order_tests: which order `order` gives.
    """

    def __init__(self, what: str = "test") -> None:
        self.what = what
        self.order_tests = TestOrder.LEARNED
        self._counts = _Counts()

    def name(self, test: int) -> str:
        """The name of a test in a finding's stages."""
        return f"{self.what} {test}"

    def number(self, name: str) -> int | None:
        """The number of the test with this name; None if it is not the name of a test."""
        what, _, number = name.rpartition(" ")
        is_number = number.isascii() and number.isdigit() and len(number) < _LONGEST_NUMBER
        return int(number) if what == self.what and is_number else None

    def order(self, tests: int, prices: Sequence[float | None] = ()) -> Sequence[int]:
        """The numbers of the tests, in the order to run them.

        `prices` are the dollars of one run of each test, as far as they are known before.
        """
        counts = self._counts
        with counts.lock:
            if self.order_tests is TestOrder.FILE or not (counts.failures or prices):
                return range(tests)
            costs = _costs(counts, tests, prices)
            merits = [_merit(counts, test, costs[test]) for test in range(tests)]
        return sorted(range(tests), key=lambda test: -merits[test])

    def note(self, ran: Iterable[tuple[int, Stage]]) -> None:
        """Count what ran; a broken run says nothing about a test."""
        counts = self._counts
        with counts.lock:
            for test, stage in ran:
                if stage.verdict is Verdict.BROKEN:
                    continue
                counts.runs[test] += 1
                if stage.verdict is Verdict.FAILED:
                    counts.failures[test] += 1
                counts.seconds[test] = counts.seconds.get(test, 0.0) + stage.seconds
                if stage.cost is not None:
                    counts.dollars[test] = counts.dollars.get(test, 0.0) + stage.cost

    def recall(self, findings: Iterable[Iterable[Stage]]) -> None:
        """Start from the stages of earlier findings of the same problem, if nothing has run yet."""
        if self._counts.runs:
            return
        for stages in findings:
            numbered = [(self.number(stage.name), stage) for stage in stages]
            self.note([(number, stage) for number, stage in numbered if number is not None])

    def share(self, other: Suite) -> None:
        """Count together with another suite of the same tests."""
        self._counts = other._counts

    def find(
        self, tests: int, one: Callable[[int], Finding], order: Sequence[int] | None = None
    ) -> Finding:
        """Run tests until one does not pass; its finding, or a pass, with the stages that ran.

        Args:
            tests: how many there are.
            one: the finding of the test with this number.
            order: which runs when; by default as `order` says.
        """
        ran: list[tuple[int, Stage]] = []
        finding = Finding(Verdict.PASSED, "", {f"{self.what}s": tests})
        for number in self.order(tests) if order is None else order:
            started = time.monotonic()
            result = one(number)
            seconds = round(time.monotonic() - started, 6)
            ran.append((number, Stage(self.name(number), result.verdict, seconds)))
            if result.verdict is not Verdict.PASSED:
                finding = result
                break
        self.note(ran)
        return with_stages(finding, [stage for _, stage in ran])


@dataclass(frozen=True, slots=True)
class PaidStage:
    """A stage that a candidate has passed and that was paid for; or a call of a check that errs.

    Attributes:
        run: which stage it is, and in which of several verifications of the candidate.
        stage: what it cost.
        evidence: what it found.
    """

    run: str
    stage: Stage
    evidence: Mapping[str, Any]

    @property
    def finding(self) -> Finding:
        """What was found. It is not paid for again."""
        return Finding(self.stage.verdict, "", self.evidence)


class StageMemory:
    """The stages of one candidate's verification that were paid for, so that none is paid twice.

    A verification that breaks is repeated, by this process or by the next one after a kill.

    Args:
        known: those of earlier processes.
        keep: writes a stage down. It is durable when the function returns, and the next stage
            begins only then.
    """

    def __init__(
        self,
        known: Iterable[PaidStage] = (),
        keep: Callable[[PaidStage], None] = lambda stage: None,
    ) -> None:
        self._known = {each.run: each for each in known}
        self._keep = keep

    def get(self, run: str) -> PaidStage | None:
        """The stage, if the candidate has passed it before."""
        return self._known.get(run)

    def add(self, paid: PaidStage) -> None:
        """Remember a stage that the candidate has passed."""
        self._keep(paid)
        self._known[paid.run] = paid


def _merit(counts: _Counts, test: int, cost: float) -> float:
    """Refutations per cost; what is free comes first."""
    rate = (counts.failures[test] + 0.5) / (counts.runs[test] + 1)
    return rate / cost if cost > 0 else math.inf


def _costs(counts: _Counts, tests: int, prices: Sequence[float | None]) -> list[float]:
    """What a run of each test costs: in dollars if they are known of any, else in seconds."""
    known = {test: price for test, price in enumerate(prices) if price is not None}
    for test, dollars in counts.dollars.items():
        known.setdefault(test, dollars / counts.runs[test])
    if known:
        return [known.get(test, 0.0) for test in range(tests)]
    spent = ((counts.seconds.get(test, 0.0), counts.runs[test]) for test in range(tests))
    return [max(_LEAST_SECONDS, seconds / max(1, runs)) for seconds, runs in spent]


def with_stages(finding: Finding, stages: Sequence[Stage]) -> Finding:
    """The finding with the stages that ran, as evidence."""
    return replace(finding, evidence={**finding.evidence, **listed(stages)})


def listed(stages: Sequence[Stage]) -> Mapping[str, Any]:
    """The stages as evidence; of very many, the middle ones are summed up as one."""
    if len(stages) > _MOST_LISTED:
        first = stages[: _MOST_LISTED - 2]
        rest = stages[len(first) : -1]
        costs = [stage.cost for stage in rest if stage.cost is not None]
        seconds = math.fsum(stage.seconds for stage in rest)
        others = Stage(
            f"{len(rest)} others", Verdict.PASSED, seconds, sum(costs) if costs else None
        )
        stages = [*first, others, stages[-1]]
    return {"stages": [stage.as_data() for stage in stages]}
