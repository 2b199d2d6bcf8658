"""Replays any policy over one order of logged candidates, with the same `Search` as live runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..core.errors import UsageError
from ..core.pace import Pace
from ..core.search import Policy, Search
from ..core.values import (
    REFUTED,
    REFUTED_CODE,
    Cascade,
    Costs,
    Generate,
    Generated,
    Measured,
    Outcome,
    Rescore,
    Rescored,
    Stop,
    Verdict,
    Verified,
    Verify,
)
from ..logs.log import LoggedProblem
from ..pacing import PACE


def replay(
    policy: Policy,
    problem: LoggedProblem,
    costs: Costs,
    *,
    order: Sequence[int] | None = None,
    budget: float = math.inf,
    value: float = math.inf,
    cascade: Cascade | None = None,
    width: int | None = None,
    keys: bool = False,
    pace: Pace = PACE,
    answers: int = 1,
) -> Outcome:
    """The outcome of the policy if the candidates had arrived in this order.

    Args:
        policy: decides what to do next.
        problem: the logged candidates.
        costs: the price list. If it is `Measured`, it is a first guess and the log has the costs.
        order: candidate numbers in order of arrival; by default the order of the log.
        budget: the limit on the cost.
        value: what an answer is worth.
        cascade: how the log's second scores are used; None if they are not.
        width: the number of verifications in flight at once; `None` means a whole step of the plan.
        keys: whether the search uses the log's keys. Refuted candidates are never verified.
        pace: how far to look ahead if the width is above 1.
        answers: how many different answers to find. If more than one, the log's keys are used.
    """
    search = replayed(
        policy,
        problem,
        costs,
        order=order,
        budget=budget,
        value=value,
        cascade=cascade,
        width=width,
        keys=keys,
        pace=pace,
        answers=answers,
    )
    assert search.outcome is not None
    return search.outcome


def replayed(
    policy: Policy,
    problem: LoggedProblem,
    costs: Costs,
    *,
    order: Sequence[int] | None = None,
    budget: float = math.inf,
    value: float = math.inf,
    cascade: Cascade | None = None,
    width: int | None = None,
    keys: bool = False,
    pace: Pace = PACE,
    answers: int = 1,
) -> Search:
    """The search after it has ended, with its trace and its pool."""
    arrivals = range(len(problem)) if order is None else [int(i) for i in order]
    scores = problem.scores.tolist()
    alike = None if problem.alike is None else problem.alike.tolist()
    passed = problem.passed.tolist()
    numbers = problem.codes(keyed=keys or answers > 1)
    codes = None if numbers is None else numbers.tolist()
    generating, verifying = _costs(problem, costs)
    if cascade is not None and problem.second is None:
        raise UsageError(f"problem {problem.id!r} has no second scores")
    second = [] if problem.second is None else problem.second.tolist()
    search = Search(
        policy,
        costs,
        budget=budget,
        value=value,
        cascade=cascade,
        width=width,
        pace=pace,
        answers=answers,
    )

    def generated(n: int) -> Generated:
        batch = arrivals[search.arrived : search.arrived + n]
        names = () if codes is None else tuple(code_name(codes[i]) for i in batch)
        same = () if alike is None else tuple(alike[i] for i in batch)
        return Generated(tuple(scores[i] for i in batch), names, _paid(generating, batch), same)

    while True:
        match search.ask():
            case Generate(n):
                search.tell(generated(n))
            case Verify(ids, _, ahead):
                verdicts = {
                    i: Verdict.PASSED if passed[arrivals[i]] else Verdict.FAILED for i in ids
                }
                paid = _paid(verifying, [arrivals[i] for i in ids])
                search.tell(Verified(verdicts, paid, generated(ahead) if ahead else None))
            case Rescore(ids):
                search.tell(Rescored({i: second[arrivals[i]] for i in ids}))
            case Stop():
                return search


_Column = list[float] | None  # the cost of each candidate; None if unknown or not used


def _costs(problem: LoggedProblem, costs: Costs) -> tuple[_Column, _Column]:
    """The logged costs to generate and to verify each candidate."""
    if not isinstance(costs, Measured):
        return None, None
    generate, verify = problem.generate_costs, problem.verify_costs
    return (
        None if generate is None else generate.tolist(),
        None if verify is None else verify.tolist(),
    )


def _paid(column: _Column, candidates: Sequence[int]) -> float | None:
    return None if column is None else math.fsum(column[i] for i in candidates)


def code_name(code: int) -> str | None:
    """The key that a search gets for the number of a class; None for no class."""
    if code == REFUTED_CODE:
        return REFUTED
    return None if code < 0 else str(code)
