"""Batches of made-up problems, a third of them impossible; live, and with the pure schedule."""

from __future__ import annotations

import math
import random
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
import numpy as np

from grv.backends.protocols import Draft, Finding, Problem, Score
from grv.core.limits import Limits
from grv.core.search import Search
from grv.core.values import Costs, Generate, Generated, Stop, Verdict, Verified, Verify
from grv.ledger.entries import Found
from grv.ledger.ledger import Ledger
from grv.ledger.tables import TableLedger
from grv.logs.log import Log, LoggedProblem
from grv.policies import spec
from grv.policies.portfolio import BySpending, Portfolio
from grv.runtime.solution import Solution
from grv.runtime.solve import SolveOptions, solve_many
from grv.schedules import parse
from grv.testing.fakes import Crash

COSTS = Costs(1, 10)


@dataclass
class Batch:
    """Generator, scorer and verifier; they count what they do.

    Attributes:
        number: how many problems there are.
        crash_at: the number of the verification at which the process dies.
        seconds: how long a verification takes.
        first: the number of the first problem; batches with other numbers are other batches.
        verified: the problem of each verification, in order.
        most_at_once: the most verifications that ran at the same time.
    """

    number: int
    crash_at: int = 0
    seconds: float = 0.0
    first: int = 0
    verified: list[str] = field(default_factory=list)
    running: int = 0
    most_at_once: int = 0

    @property
    def problems(self) -> list[Problem]:
        return [Problem(f"p{i}", f"prompt {i}") for i in self._numbers]

    @property
    def _numbers(self) -> range:
        return range(self.first, self.first + self.number)

    def passes(self, problem: str, number: int) -> bool:
        own = random.Random(problem)
        rate = own.choice([0.0, 0.03, 0.3])
        return random.Random(f"{problem} {number}").random() < rate

    def score_of(self, problem: str, number: int) -> float:
        noise = random.Random(f"score {problem} {number}").gauss(0, 1)
        return noise + 1.5 * self.passes(problem, number)

    def log(self, size: int) -> Log:
        """The first candidates of each problem, as a log."""
        return Log(
            tuple(
                LoggedProblem(
                    problem.id,
                    np.array([self.score_of(problem.id, i) for i in range(size)]),
                    np.array([self.passes(problem.id, i) for i in range(size)]),
                )
                for problem in self.problems
            )
        )

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        await anyio.lowlevel.checkpoint()
        return [Draft(str(first + i)) for i in range(n)]

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        await anyio.lowlevel.checkpoint()
        return [Score(self.score_of(problem.id, int(each.text))) for each in drafts]

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            await anyio.sleep(self.seconds)
            self.verified.append(problem.id)
            if len(self.verified) == self.crash_at:
                raise Crash
        finally:
            self.running -= 1
        passes = self.passes(problem.id, int(draft.text))
        return Finding(Verdict.PASSED if passes else Verdict.FAILED)

    def solutions(self, ledger: Ledger | None = None, **options: Any) -> AsyncGenerator[Solution]:
        """The live run."""
        how: SolveOptions = {"generator": self, "scorer": self, "verifier": self}
        how |= {"costs": COSTS, "ledger": ledger, "identity": {"generator": "made up"}}
        given: Any = {"problems": self.problems, **how, **options}
        return solve_many(**given)

    async def solved(self, ledger: Ledger | None = None, **options: Any) -> set[str]:
        """The problems that the live run solves."""
        found = self.solutions(ledger, **options)
        return {each.problem async for each in found if each.verified}


@dataclass
class Pure:
    """What a schedule alone does: one step at a time, over the same candidates.

    Attributes:
        verified: the problem of each verification, in order.
        solved: the problems that are solved.
        curve: what was spent, and how many were solved, after each verification.
    """

    verified: list[str] = field(default_factory=list)
    solved: set[str] = field(default_factory=set)
    curve: list[tuple[float, int]] = field(default_factory=list)


def pure(
    batch: Batch, rule: str, policy: str, total: float = math.inf, each: float = math.inf
) -> Pure:
    """The course of a batch by the rule of a schedule."""
    result = Pure()
    problems = batch.problems
    searches = [
        Portfolio(
            {"": Search(spec.parse(policy), COSTS, Limits(budget=each))}, BySpending({"": 1.0})
        )
        for _ in problems
    ]
    schedule = parse(rule).begin(budget=total, problems=len(problems))
    for place, problem in enumerate(problems):
        schedule.add(
            place,
            weight=problem.weight,
            expected=problem.expected_cost,
            next_cost=searches[place].to_verdict,
        )
    spent = 0.0
    while (chosen := schedule.ask()) is not None:
        place = chosen
        search = searches[place]
        before = search.bill.total
        if spent + search.to_verdict > total * (1 + 1e-9):
            schedule.tell(place, spent=before, ended=True)
            continue
        ended = _step(batch, problems[place].id, search, result)
        spent += search.bill.total - before
        result.curve.append((spent, len(result.solved)))
        schedule.tell(place, spent=search.bill.total, next_cost=search.to_verdict, ended=ended)
    return result


def _step(batch: Batch, problem: str, search: Portfolio, result: Pure) -> bool:
    """Run a search to its next verdict; whether it has ended."""
    while not isinstance(action := search.ask().action, Stop):
        match action:
            case Generate(n):
                first = search.members[0].search.arrived
                search.tell(Generated(tuple(batch.score_of(problem, first + i) for i in range(n))))
            case Verify(ids):
                result.verified += [problem] * len(ids)
                passed = {id: batch.passes(problem, id) for id in ids}
                verdicts = {id: Verdict.PASSED if p else Verdict.FAILED for id, p in passed.items()}
                search.tell(Verified(verdicts))
                if True in passed.values():
                    result.solved.add(problem)
                return isinstance(search.ask().action, Stop)
    return True


def order_of(ledger: TableLedger) -> list[str]:
    """The problem of each verdict, in the order of the ledger."""
    names = {each.id: each.problem for each in ledger.searches()}
    return [names[search] for _, search, entry in ledger.since(0) if isinstance(entry, Found)]
