"""Smallest hitting sets: which candidates to verify to show that a whole batch fails (Lemma D.8).

The *trace* of a concept is the set of candidates in the batch that pass under it. If one candidate
of every nonempty trace has failed, no candidate of the batch passes under any remaining concept. A
smallest hitting set has at most as many members as the centered star number of the class: each
member is the only one in some trace, and so the members are a star.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from ...core.errors import UsageError


@dataclass(frozen=True)
class HittingSet:
    """A set that hits every trace and needs all its members for that.

    Attributes:
        members: the members, increasing.
        lower: no hitting set has fewer members than this.
    """

    members: tuple[int, ...]
    lower: int

    @property
    def is_minimum(self) -> bool:
        """Whether the set is known to be a smallest one."""
        return len(self.members) == self.lower


def smallest_hitting_set(
    traces: Iterable[Iterable[int]], *, nodes: int | None = None, time_limit: float | None = None
) -> HittingSet:
    """A smallest set with a member in every nonempty trace (Lemma D.8).

    It is exact unless a limit is reached: simple reductions, then an integer programme, solved by
    HiGHS. Without a time limit, the same traces always give the same set.

    Args:
        traces: sets of non-negative integers.
        nodes: the maximum number of nodes that HiGHS visits.
        time_limit: the limit in seconds.
    """
    wanted = _checked(traces)
    if time_limit is not None:
        return _smallest(wanted, nodes, time_limit)
    return _remembered(wanted, nodes)


def quick_hitting_set(traces: Iterable[Iterable[int]]) -> HittingSet:
    """A small hitting set, fast: greedy, with a number of disjoint traces as the lower bound.

    It has at most s_0 members, because it needs all its members.
    """
    wanted = _checked(traces)
    left = wanted
    members = list[int]()
    while left:
        counts = Counter(number for trace in left for number in trace)
        members.append(min(counts, key=lambda number: (-counts[number], number)))
        left = frozenset(trace for trace in left if members[-1] not in trace)
    return HittingSet(_irredundant(members, wanted), _disjoint(wanted))


def _checked(traces: Iterable[Iterable[int]]) -> frozenset[frozenset[int]]:
    wanted = frozenset(frozenset(trace) for trace in traces) - {frozenset()}
    if any(number < 0 for trace in wanted for number in trace):
        raise UsageError("a trace must not contain negative numbers")
    return wanted


def _irredundant(members: list[int], traces: frozenset[frozenset[int]]) -> tuple[int, ...]:
    """The members without superfluous ones; earlier members are removed first."""
    kept = set(members)
    for member in members:
        others = kept - {member}
        if not any(others.isdisjoint(trace) for trace in traces):
            kept = others
    return tuple(sorted(kept))


def _disjoint(traces: Iterable[frozenset[int]]) -> int:
    """A number of pairwise disjoint traces, chosen greedily, short ones first."""
    used: set[int] = set()
    found = 0
    for trace in sorted(traces, key=lambda trace: (len(trace), sorted(trace))):
        if used.isdisjoint(trace):
            used |= trace
            found += 1
    return found


def _smallest(
    traces: frozenset[frozenset[int]], nodes: int | None, time_limit: float | None = None
) -> HittingSet:
    forced, left = _reduced(traces)
    found = quick_hitting_set(left)
    if not found.is_minimum:
        found = _by_programme(left, found, nodes, time_limit)
    members = _irredundant([*found.members, *forced], traces)
    return HittingSet(members, len(forced) + found.lower)


_remembered = lru_cache(maxsize=65_536)(_smallest)


def _reduced(
    traces: frozenset[frozenset[int]],
) -> tuple[frozenset[int], frozenset[frozenset[int]]]:
    """Members that belong to a smallest set, and the traces left to hit.

    A trace that contains another trace is hit with it. A number is not needed if all its traces
    contain some other number; of two numbers in the same traces, the smaller one stays.
    """
    forced: frozenset[int] = frozenset()
    while True:
        before = traces
        forced |= {next(iter(trace)) for trace in traces if len(trace) == 1}
        traces = frozenset(trace for trace in traces if forced.isdisjoint(trace))
        traces = _minimal(traces)
        where: dict[int, set[frozenset[int]]] = {}
        for trace in traces:
            for number in trace:
                where.setdefault(number, set()).add(trace)
        spare = {
            number
            for number, own in where.items()
            for other in next(iter(own))
            if (own < where[other]) or (own == where[other] and other < number)
        }
        traces = frozenset(trace - spare for trace in traces)
        if traces == before:
            return forced, traces


def _minimal(traces: frozenset[frozenset[int]]) -> frozenset[frozenset[int]]:
    """The traces that contain no other trace."""
    kept: list[frozenset[int]] = []
    for trace in sorted(traces, key=len):
        if not any(smaller <= trace for smaller in kept):
            kept.append(trace)
    return frozenset(kept)


def _by_programme(
    traces: frozenset[frozenset[int]],
    quick: HittingSet,
    nodes: int | None,
    time_limit: float | None,
) -> HittingSet:
    """Minimise the sum of 0/1 variables, one per number, with a sum of at least 1 per trace."""
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    rows = sorted(sorted(trace) for trace in traces)
    numbers = sorted(frozenset().union(*traces))
    at = {number: i for i, number in enumerate(numbers)}
    # `milp` of SciPy 1.13 reads the indices of a matrix as 32 bits.
    columns = np.array([at[number] for row in rows for number in row], dtype=np.int32)
    ends = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int32)
    matrix = csr_array((np.ones(len(columns)), columns, ends), shape=(len(rows), len(numbers)))
    limits = {"node_limit": nodes, "time_limit": time_limit}
    solved = milp(
        np.ones(len(numbers)),
        constraints=LinearConstraint(matrix, 1, np.inf),
        integrality=np.ones(len(numbers)),
        bounds=Bounds(0, 1),
        options={name: value for name, value in limits.items() if value is not None},
    )
    lower = quick.lower
    if solved.mip_dual_bound is not None and math.isfinite(solved.mip_dual_bound):
        lower = max(lower, math.ceil(solved.mip_dual_bound - 1e-6))
    if solved.x is None:
        return HittingSet(quick.members, lower)
    chosen = [numbers[i] for i in np.flatnonzero(solved.x > 0.5)]
    members = _irredundant(chosen, traces)
    return HittingSet(min(quick.members, members, key=len), lower)
