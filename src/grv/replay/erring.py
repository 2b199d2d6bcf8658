"""Replays a search over a log with a verifier that errs.

The labels of the log are taken to be the truth. A call of the verifier on a candidate is drawn: it
passes a wrong one with probability `false_pass` and fails a right one with `false_fail`,
independently. The rules decide as they do live (theory/confirmations.py): each candidate of a step
is verified with what the search knew before the step.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..core.limits import Limits
from ..core.search import Policy, Search
from ..core.values import Costs, Verdict
from ..logs.log import LoggedProblem
from ..theory.confirmations import CallCounts, Earlier, ErringRule, Errors, RightShares
from .engine import turns

ErringCall = Callable[[int, int], bool]  # whether call number j passes candidate i of the log


@dataclass(frozen=True, slots=True)
class ErringOutcome:
    """How a search with a verifier that errs has ended.

    Attributes:
        answer: the candidate that was returned, by its number in the log; None if there is none.
        right: whether it is right; None if there is none.
        generated: the number of candidates generated.
        verified: the number of candidates verified.
        calls: the number of calls of the verifier.
        counts: the calls on each verified candidate, ordered by the candidates' arrival.
        cost: the cost; every call costs what a verification does.
    """

    answer: int | None
    right: bool | None
    generated: int
    verified: int
    calls: int
    counts: tuple[CallCounts, ...]
    cost: float


class ErringVerifier:
    """Gives the verdicts of one search.

    Args:
        rule: how candidates are confirmed.
        call: makes a call of the verifier.
        shares: what earlier problems say about the share of right candidates.
    """

    def __init__(
        self, rule: ErringRule, call: ErringCall, shares: RightShares | None = None
    ) -> None:
        self._rule = rule
        self._call = call
        self._shares = shares
        self._known: dict[int, CallCounts] = {}  # by place in the order of arrival
        self.calls = 0

    def verdicts(self, places: Sequence[int], candidates: Sequence[int]) -> list[Verdict]:
        """The verdicts on candidates of one step: their places, and their numbers in the log."""
        known = tuple(self._known[place] for place in sorted(self._known))
        verdicts = []
        for number, (place, candidate) in enumerate(zip(places, candidates, strict=True), 1):
            rule = self._rule.of(Earlier(len(known) + number, known, self._shares))
            counts = CallCounts()
            while (decision := rule.decide(counts)) == "again":
                made = counts.passes + counts.failures
                counts = counts.plus(passed=self._call(candidate, made))
            self._known[place] = counts
            self.calls += counts.passes + counts.failures
            verdicts.append(Verdict.PASSED if decision == "return" else Verdict.FAILED)
        return verdicts

    def made(self) -> int:
        """The number of calls so far."""
        return self.calls

    @property
    def counts(self) -> tuple[CallCounts, ...]:
        """The calls on each candidate so far."""
        return tuple(self._known[place] for place in sorted(self._known))


def drawn_calls(problem: LoggedProblem, errors: Errors, seed: str) -> ErringCall:
    """Calls whose results depend on seed, candidate and number of the call only.

    So all rules and policies meet the same verifier, also if they verify in another order.
    """
    right = problem.passed.tolist()

    def call(candidate: int, number: int) -> bool:
        draw = random.Random(f"{seed} {problem.id} {candidate} {number}").random()
        error = errors.false_fail if right[candidate] else errors.false_pass
        return bool(right[candidate]) != (draw < error)

    return call


def replay_erring(
    policy: Policy,
    problem: LoggedProblem,
    costs: Costs,
    rule: ErringRule,
    call: ErringCall,
    *,
    limits: Limits = Limits(),  # noqa: B008 (a frozen value)
    order: Sequence[int] | None = None,
    keys: bool = False,
    shares: RightShares | None = None,
) -> ErringOutcome:
    """The outcome of a search if its verifier had erred in this way.

    Args:
        policy: decides what to do next.
        problem: the logged candidates; their labels are the truth.
        costs: the price list; every call is billed.
        rule: how candidates are confirmed.
        call: makes a call of the verifier.
        limits: what the search may do. Its budget reserves all calls that a candidate may need.
        order: candidate numbers in order of arrival; by default the order of the log.
        keys: whether the search uses the log's keys.
        shares: what earlier problems say about the share of right candidates.
    """
    arrivals = range(len(problem)) if order is None else [int(i) for i in order]
    place = {candidate: number for number, candidate in enumerate(arrivals)}
    verifier = ErringVerifier(rule, call, shares)

    def verify(candidates: Sequence[int]) -> list[Verdict]:
        return verifier.verdicts([place[each] for each in candidates], candidates)

    most = limits.most or rule.most(costs, limits.budget)
    search = Search(policy, costs, replace(limits, most=most))
    calls = turns(search, problem, order=order, keys=keys, verify=verify, calls=verifier.made)
    for _ in calls:
        pass
    outcome = search.outcome
    assert outcome is not None
    answer = None if outcome.answer is None else arrivals[outcome.answer]
    bill = outcome.bill
    return ErringOutcome(
        answer,
        None if answer is None else bool(problem.passed[answer]),
        bill.generated,
        bill.verified,
        verifier.calls,
        verifier.counts,
        bill.total,
    )
