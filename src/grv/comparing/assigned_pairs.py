"""The pairs that a baseline gives to the problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..logs.log import LoggedProblem
from ..theory.grouping import Group
from ..theory.hindsight import Pair
from .comparison import GroupSummary


@dataclass(frozen=True)
class AssignedPairs:
    """The pair of each problem, and its description."""

    by_problem: Mapping[str, Pair]
    single: Pair | None = None
    groups: tuple[GroupSummary, ...] = ()

    @classmethod
    def of_groups(cls, groups: Sequence[Group], ordered: Sequence[LoggedProblem]) -> AssignedPairs:
        """The pairs of groups of difficulty, over the problems in the order of the groups."""
        by_problem = {p.id: g.pair for g in groups for p in ordered[g.start : g.stop]}
        summaries = tuple(
            GroupSummary(
                g.stop - g.start,
                (ordered[g.start].pass_rate, ordered[g.stop - 1].pass_rate),
                *g.pair,
            )
            for g in groups
        )
        single = groups[0].pair if len(groups) == 1 else None
        return cls(by_problem, single, summaries)
