"""Replays any policy over one order of logged candidates, with the same `Search` as live runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from ..core.errors import UsageError
from ..core.limits import Limits
from ..core.search import Policy, Search
from ..core.values import (
    REFUTED,
    REFUTED_CODE,
    Costs,
    Event,
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


def replay(
    policy: Policy,
    problem: LoggedProblem,
    costs: Costs,
    limits: Limits = Limits(),  # noqa: B008 (a frozen value)
    *,
    order: Sequence[int] | None = None,
    keys: bool = False,
) -> Outcome:
    """The outcome of the policy if the candidates had arrived in this order.

    Args:
        policy: decides what to do next.
        problem: the logged candidates.
        costs: the price list. If it is `Measured`, it is a first guess and the log has the costs.
        limits: what the search may do. For more than one answer, the log's keys are used.
        order: candidate numbers in order of arrival; by default the order of the log.
        keys: whether the search uses the log's keys. Refuted candidates are never verified.
    """
    search = replayed(policy, problem, costs, limits, order=order, keys=keys)
    assert search.outcome is not None
    return search.outcome


def replayed(
    policy: Policy,
    problem: LoggedProblem,
    costs: Costs,
    limits: Limits = Limits(),  # noqa: B008 (a frozen value)
    *,
    order: Sequence[int] | None = None,
    keys: bool = False,
    shared: bool = False,
) -> Search:
    """The search after it has ended, with its trace and its pool.

    If `shared`, the verdicts that cost nothing in the recorded run cost nothing here too. This
    repeats a run. A comparison of policies bills every verification.
    """
    search = Search(policy, costs, limits.of(problem.id))
    for _ in turns(search, problem, order=order, keys=keys, shared=shared):
        pass
    return search


def turns(
    search: Search,
    problem: LoggedProblem,
    *,
    order: Sequence[int] | None = None,
    keys: bool = False,
    shared: bool = False,
    verify: Callable[[Sequence[int]], Sequence[Verdict]] | None = None,
    calls: Callable[[], int] | None = None,
) -> Iterator[Event]:
    """Carry out the actions of a search until it ends; yield each event after it was told.

    `verify` gives the verdicts on the candidates of a step, by their numbers in the log; by default
    they are the labels. `calls` says how many calls it has made so far, if it makes several.
    """
    costs = search.costs
    limits = search.limits
    arrivals = range(len(problem)) if order is None else [int(i) for i in order]
    scores = problem.scores.tolist()
    alike = None if problem.alike is None else problem.alike.tolist()
    passed = problem.passed.tolist()
    numbers = problem.codes(keyed=keys or limits.answers > 1)
    codes = None if numbers is None else numbers.tolist()
    generating, verifying = logged_costs(problem, costs)
    if limits.cascade is not None and problem.second is None:
        raise UsageError(f"problem {problem.id!r} has no second scores")
    second = [] if problem.second is None else problem.second.tolist()

    def generated(n: int) -> Generated:
        batch = arrivals[search.arrived : search.arrived + n]
        names = () if codes is None else tuple(code_name(codes[i]) for i in batch)
        same = () if alike is None else tuple(alike[i] for i in batch)
        return Generated(tuple(scores[i] for i in batch), names, _paid(generating, batch), same)

    def labels(candidates: Sequence[int]) -> list[Verdict]:
        return [Verdict.PASSED if passed[i] else Verdict.FAILED for i in candidates]

    verify = verify or labels
    event: Event
    while True:
        match search.ask():
            case Generate(n):
                event = generated(n)
            case Verify(ids, _, ahead):
                before = 0 if calls is None else calls()
                verdicts = dict(zip(ids, verify([arrivals[i] for i in ids]), strict=True))
                repeated = 0 if calls is None else calls() - before - len(ids)
                free = frozenset(i for i in ids if shared and _is_shared(problem, arrivals[i]))
                paid = _paid(verifying, [arrivals[i] for i in ids if i not in free])
                made = generated(ahead) if ahead else None
                event = Verified(verdicts, paid, made, shared=free, repeated=repeated)
            case Rescore(ids):
                event = Rescored({i: second[arrivals[i]] for i in ids})
            case Stop():
                return
        search.tell(event)
        yield event


def _is_shared(problem: LoggedProblem, candidate: int) -> bool:
    """Whether the verdict cost nothing in the recorded run."""
    return problem.shared is not None and bool(problem.shared[candidate])


_Column = list[float] | None  # the cost of each candidate; None if unknown or not used


def logged_costs(problem: LoggedProblem, costs: Costs) -> tuple[_Column, _Column]:
    """The logged costs to generate and to verify each candidate, if costs are measured."""
    if not isinstance(costs, Measured):
        return None, None
    generate = problem.generate_costs
    verify = problem.verify_costs
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
