"""Verification in stages: which runs next, whether a candidate is worth it, what a screen saves.

Statements and proofs are in docs/theory/stages.md. All functions are exact if they are given
fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

Number = float | Fraction


@dataclass(frozen=True)
class StagedKind:
    """One kind of candidate.

    Attributes:
        mass: its probability.
        score: its score, which is seen before any stage.
        results: what each stage says of it: 0 fails it; any other number passes it, and is seen.
    """

    mass: Number
    score: float
    results: tuple[int, ...]


@dataclass(frozen=True)
class StagedOptimum:
    """The least expected cost of a pass, and what the optimal strategy does with one candidate.

    Attributes:
        cost: J*.
        spent: the expected cost of the stages of one candidate.
        passes: the chance that one candidate passes all stages.
    """

    cost: Number
    spent: Number
    passes: Number


# What a strategy spends on candidates of some kinds, and the mass of those that pass.
_Course = tuple[Number, Number]
_NOTHING: _Course = (0, 0)


def staged_optimum(
    kinds: Sequence[StagedKind], costs: Sequence[Number], generate: Number
) -> StagedOptimum:
    """J*: the root of `E V_J = generate`, by iterating over strategies.

    `V_J(x) = max(0, max_j (-c_j + E V_J(x')))` and `V_J = J` once all stages have passed. The
    strategy that is best for J costs `(generate + spent) / passes`, which is no more than J, and J*
    is where it stays. There are finitely many strategies, so this ends.
    """
    stages = frozenset(range(len(costs)))
    right = sum(kind.mass for kind in kinds if all(kind.results))
    if not right:
        raise ValueError("no kind of candidate passes all stages")
    best = (generate + sum(costs)) / right
    while True:
        spent: Number = 0
        passes: Number = 0
        for score in {kind.score for kind in kinds}:
            same = [kind for kind in kinds if kind.score == score]
            course = _best_course(same, stages, costs, best)
            spent += course[0]
            passes += course[1]
        cost = (generate + spent) / passes
        if cost >= best:
            return StagedOptimum(best, spent, passes)
        best = cost


def _best_course(
    kinds: Sequence[StagedKind], left: frozenset[int], costs: Sequence[Number], worth: Number
) -> _Course:
    """The course with the largest `worth * passes - spent`; dropping the candidate is 0.

    Among equal ones, a course that goes on is preferred: the first J is that of running everything.
    """
    mass = sum(kind.mass for kind in kinds)
    if not left:
        return 0, mass
    best = _NOTHING
    for stage in sorted(left):
        spent = mass * costs[stage]
        passes: Number = 0
        for result in {kind.results[stage] for kind in kinds} - {0}:
            same = [kind for kind in kinds if kind.results[stage] == result]
            course = _best_course(same, left - {stage}, costs, worth)
            spent += course[0]
            passes += course[1]
        if worth * passes - spent > worth * best[1] - best[0]:
            best = (spent, passes)
    return best


def cost_of_order(
    kinds: Sequence[StagedKind], costs: Sequence[Number], order: Sequence[int]
) -> Number:
    """The expected cost of running the stages in this order, to the first failure or the end."""
    total: Number = 0
    left = list(kinds)
    for stage in order:
        total += sum(kind.mass for kind in left) * costs[stage]
        left = [kind for kind in left if kind.results[stage]]
    return total


def ratio_order(refutes: Sequence[Number], costs: Sequence[Number]) -> list[int]:
    """The best order of independent stages: decreasing chance to refute per cost."""
    return sorted(range(len(costs)), key=lambda stage: (-refutes[stage] / costs[stage], stage))


def greedy_order(kinds: Sequence[StagedKind], costs: Sequence[Number]) -> list[int]:
    """The stage that refutes most per cost among the candidates that are left, again and again."""
    order: list[int] = []
    left = list(kinds)
    stages = list(range(len(costs)))
    while stages:
        refuted = {
            stage: sum(kind.mass for kind in left if not kind.results[stage]) for stage in stages
        }
        stage = max(stages, key=lambda each: (refuted[each] / costs[each], -each))
        stages.remove(stage)
        order.append(stage)
        left = [kind for kind in left if kind.results[stage]]
    return order


def least_spared(refutes: float, price: float) -> float | None:
    """What later stages must cost, so that a redundant screen pays; None if it refutes nothing.

    A screen is redundant if every candidate that it refutes fails a later stage too. It pays if and
    only if `refutes * spared > price`, where `spared` is what the later stages would have cost for
    a candidate that it refutes.

    >>> least_spared(refutes=0.5, price=2.0)
    4.0
    """
    return price / refutes if refutes else None


def price_of_pass(
    reached: Number, passes: Number, failure: Number, success: Number, generate: Number = 1
) -> Number:
    """The expected cost of a pass if candidates above a threshold are verified.

    Args:
        reached: the share of candidates above the threshold.
        passes: the share of these that pass.
        failure: what a verification costs that fails.
        success: what a verification costs that passes.
        generate: what a candidate costs.
    """
    return (generate + failure * reached) / (reached * passes) + (success - failure)
