"""The numbers of candidates in the ledger, if several generators share one record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..core.values import CandidateId, Event, Rescore, Rescored, Task, Verified, Verify


@dataclass(frozen=True)
class Numbering:
    """The numbers of one generator's candidates.

    Candidate `i` of the generator at place `p` of `n` has the number `n * i + p`. So the numbers do
    not depend on who acted when, and a resumed search finds its candidates. One generator alone has
    the numbers of its own search.

    Attributes:
        name: the generator's name; empty if it is alone.
        place: its place among the generators.
        generators: how many there are.
    """

    name: str = ""
    place: int = 0
    generators: int = 1

    def number(self, id: int) -> CandidateId:
        """The number in the ledger of a candidate of this generator."""
        return CandidateId(id * self.generators + self.place)

    def numbers(self, seen: int, n: int) -> Sequence[int]:
        """The numbers in the ledger of the next n candidates, after the first `seen`."""
        return range(self.number(seen), self.number(seen + n), self.generators)

    def own(self, number: int) -> CandidateId:
        """Which candidate of this generator has this number in the ledger."""
        return CandidateId(number // self.generators)

    def numbered(self, task: Task) -> Task:
        """The task with the ledger's numbers."""
        if self.generators > 1 and isinstance(task, Verify | Rescore):
            return replace(task, ids=tuple(map(self.number, task.ids)))
        return task

    def told(self, event: Event) -> Event:
        """The event with the numbers of this generator."""
        if self.generators == 1:
            return event
        match event:
            case Verified(verdicts):
                own = {self.own(number): verdict for number, verdict in verdicts.items()}
                return replace(event, verdicts=own, shared=frozenset(map(self.own, event.shared)))
            case Rescored(scores):
                own_scores = {self.own(number): score for number, score in scores.items()}
                return replace(event, scores=own_scores)
            case _:
                return event
