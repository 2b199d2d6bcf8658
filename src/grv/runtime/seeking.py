"""Rejection sampling to a target: so many answers and failures of a problem, for the least money.

1. *Answers.* The default policy decides when to generate and when to verify, as in a search for
   several answers. If two answers differ by their texts, other candidates with the key of an answer
   are verified first: they are the most likely to pass.
2. *Failures.* Those met on the way count, and so do refuted candidates and those that share the key
   of a failure: they cost nothing. For the rest, the candidates with the lowest scores are
   verified. If none is open, as many are generated as one verification costs.

Everything is decided by what is on record, so a collection that stops goes on where it stopped.
"""

from __future__ import annotations

import math

from ..core.limits import Limits
from ..core.search import Search
from ..core.values import (
    CandidateId,
    Costs,
    Event,
    Generate,
    Generated,
    Step,
    Stop,
    Verified,
    Verify,
)
from ..ledger.entries import Told
from ..policies import DEFAULT
from .executor import Executor
from .training import Different, ProblemTexts, Target, kind_of


class Seeker:
    """Finds the target of one problem.

    Args:
        executor: carries out what is decided, and has the record.
        target: what to find.
        n: the most candidates.
        costs: what the policy plans with.
    """

    def __init__(self, executor: Executor, target: Target, n: int, costs: Costs) -> None:
        self._executor = executor
        self._record = executor.record
        self._target = target
        self._n = n
        self._costs = costs
        self._search = Search(DEFAULT, costs, Limits(answers=n + 1))
        self._made = 0
        self._exhausted = False
        self._verified: list[Event] = []

    async def seek(self) -> None:
        """Find as much of the target as there is."""
        while not self._target.has_passes(self._texts) and await self._next_answer():
            pass
        self._made = sum(id < self._n for id in self._record.scored)  # also by earlier processes
        while not self._target.has_failures(self._texts) and await self._next_failure():
            pass

    @property
    def _texts(self) -> ProblemTexts:
        return ProblemTexts.of(self._executor.problem, self._record)

    async def _next_answer(self) -> bool:
        """Take one step towards an answer; whether there was one to take."""
        twin = self._twin()
        if twin is not None:
            await self._verify(Verify((twin,), "its key has passed"))
            return True
        match self._search.ask():
            case Stop():
                return False
            case Generate(n, why):
                self._search.tell(await self._generate(n, why))
            case Verify() as step:
                self._search.tell(await self._verify(step))
        return True

    async def _next_failure(self) -> bool:
        """Take one step towards a failure; whether there was one to take."""
        worst = self._worst()
        if worst is not None:
            await self._verify(Verify((worst,), "the lowest score"))
        elif self._exhausted or self._made == self._n:
            return False
        else:
            await self._generate(max(1, round(self._costs.ratio)), "for candidates that fail")
        return True

    async def _generate(self, n: int, why: str) -> Generated:
        """Generate up to `n` candidates, and not more than there may be."""
        wanted = min(n, self._n - self._made)
        event: Event = Generated(())
        if wanted and not self._exhausted:
            event = await self._carry_out(Generate(wanted, why))
        assert isinstance(event, Generated)
        self._made += len(event.scores)
        self._exhausted |= len(event.scores) < wanted
        return event

    async def _verify(self, step: Verify) -> Verified:
        event = await self._carry_out(step)
        assert isinstance(event, Verified)
        self._verified.append(event)
        self._executor.stop_if_broken(reversed(self._verified))
        return event

    async def _carry_out(self, step: Step) -> Event:
        """Carry out a step. What was recorded before this process began has been told."""
        is_recorded = self._executor.is_recorded(step, self._made)
        event = await self._executor.carry_out(step, self._made)
        if not is_recorded:
            self._record.tell(Told(event, step.why))
        return event

    def _twin(self) -> CandidateId | None:
        """The best candidate with the key of an answer and another text, if texts may differ."""
        if self._target.different is Different.KEYS:
            return None
        passed = {each.kind for each in self._texts.answers(Different.TEXTS).values()}
        twins = [id for id in self._open() if self._kind(id) in passed]
        return min(twins, key=lambda id: (-self._score(id), id), default=None)

    def _worst(self) -> CandidateId | None:
        """The candidate with the lowest score, of those whose key has not passed."""
        passed = {each.kind for each in self._texts.passed.values()}
        others = [id for id in self._open() if self._kind(id) not in passed]
        return min(others, key=lambda id: (self._score(id), id), default=None)

    def _open(self) -> list[CandidateId]:
        """The candidates without a verdict, one per text."""
        record = self._record
        known = record.verdicts_from()
        texts = {record.made[id].text for id in record.found}
        first: dict[str, CandidateId] = {}
        for id in record.scored:
            text = record.made[id].text
            closed = id in known or record.refuted(id) or record.dropped(id)
            if id < self._made and not closed and text not in texts:
                first.setdefault(text, CandidateId(id))
        return [*first.values()]

    def _kind(self, id: CandidateId) -> str:
        return kind_of(self._record.scored[id].key, self._record.made[id].text)

    def _score(self, id: CandidateId) -> float:
        score = self._record.scored[id].score
        return -math.inf if score is None else score
