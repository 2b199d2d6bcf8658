"""Carries out what one search asks for, using what is on record before asking anybody again."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import anyio

from ..backends.protocols import Draft, Finding, Generator, Problem, Score, Scorer, Usage, Verifier
from ..core.errors import BackendError, ScorerError
from ..core.values import (
    CandidateId,
    Costs,
    Event,
    Generate,
    Generated,
    Step,
    Verdict,
    Verified,
    Verify,
)
from ..ledger.entries import Found, Intended, Made, Scored
from .book import Book
from .calls import Calls

Keying = Callable[[Problem, Draft], str | None]


@dataclass(frozen=True)
class Backends:
    """Who generates, scores and verifies; and what makes two drafts equivalent, if any."""

    generator: Generator
    scorer: Scorer
    verifier: Verifier
    key: Keying | None = None

    async def aclose(self) -> None:
        """Close the connections of those who have any."""
        for backend in (self.generator, self.scorer, self.verifier):
            close = getattr(backend, "aclose", None)
            if close is not None:
                await close()


class Desk:
    """The outside world of one search."""

    def __init__(self, problem: Problem, backends: Backends, calls: Calls, book: Book) -> None:
        self.problem, self.backends, self.calls, self.book = problem, backends, calls, book

    def price(self, step: Step, seen: int, costs: Costs) -> float:
        """What carrying the step out will cost, beyond what is on record."""
        match step:
            case Generate(n):
                ids = range(seen, seen + n)
                return costs.of(sum(id not in self.book.made for id in ids), 0)
            case Verify(ids):
                return costs.of(0, sum(id not in self.book.found for id in ids))

    async def carry_out(self, step: Step, seen: int) -> Event:
        """The result of a step, of which nothing is used before it is on record."""
        match step:
            case Generate(n):
                return await self._generate(range(seen, seen + n))
            case Verify(ids):
                return await self._verify(ids)

    def draft(self, candidate: int) -> Draft:
        """A draft that is on record."""
        made = self.book.made[candidate]
        return Draft(made.text, made.logprobs, Usage(**made.usage))

    async def _generate(self, wanted: range) -> Generated:
        missing = [id for id in wanted if id not in self.book.made]
        size = getattr(self.backends.generator, "batch", None) or len(missing) or 1
        batches = [missing[at : at + size] for at in range(0, len(missing), size)]
        errors = await together([partial(self._make, batch) for batch in batches])
        if errors:
            raise errors[0]
        there = []
        for id in wanted:
            if id not in self.book.made:
                break  # no more to be had
            there.append(id)
        await self._score([id for id in there if id not in self.book.scored])
        scores = (self.book.scored[id].score for id in there)
        ranked = tuple(-math.inf if score is None else score for score in scores)
        keys = tuple(self.book.scored[id].key for id in there)
        return Generated(ranked, keys if any(key is not None for key in keys) else ())

    async def _make(self, ids: Sequence[int]) -> None:
        """Drafts for these candidates. A short answer is asked to go on, an empty one ends it."""
        left = list(ids)
        while left:
            drafts = await self.calls.make(
                partial(self.backends.generator.generate, self.problem, len(left), first=left[0]),
                partial(self.book.write, Intended("generate", tuple(left))),
            )
            if not drafts:
                return
            done, left = left[: len(drafts)], left[len(drafts) :]
            await self.book.write(
                *(
                    Made(id, draft.text, draft.logprobs, draft.usage.as_data())
                    for id, draft in zip(done, drafts, strict=False)
                )
            )

    async def _score(self, ids: Sequence[int]) -> None:
        """Scores for these candidates; one that cannot be had ranks last, and says why."""
        if not ids:
            return
        drafts = [self.draft(id) for id in ids]
        try:
            scores = await self.calls.make(
                partial(self.backends.scorer.score, self.problem, drafts),
                partial(self.book.write, Intended("score", tuple(ids))),
            )
            if len(scores) != len(drafts):
                raise ScorerError(f"{len(scores)} scores for {len(drafts)} drafts")
        except BackendError as error:
            scores = [Score(None, reason=str(error))] * len(drafts)
        await self.book.write(
            *(
                self._scored(id, draft, score)
                for id, draft, score in zip(ids, drafts, scores, strict=True)
            )
        )

    def _scored(self, id: int, draft: Draft, score: Score) -> Scored:
        key = self.backends.key(self.problem, draft) if self.backends.key is not None else None
        value, reason = score.value, score.reason
        if value is not None and not math.isfinite(value):
            value, reason = None, f"the scorer said {value}"
        return Scored(id, value, key, reason, score.usage.as_data())

    async def _verify(self, ids: Sequence[CandidateId]) -> Verified:
        missing = [id for id in ids if id not in self.book.found]
        errors: Sequence[BackendError] = ()
        if missing and not self._passed(ids):
            with anyio.CancelScope() as scope:
                errors = await together([partial(self._find, id, scope) for id in missing])
        if errors and not self._passed(ids):
            raise errors[0]
        return Verified({id: self.book.found[id].verdict for id in ids if id in self.book.found})

    def _passed(self, ids: Sequence[CandidateId]) -> bool:
        found = (self.book.found[id].verdict for id in ids if id in self.book.found)
        return Verdict.PASSED in found

    async def _find(self, id: CandidateId, scope: anyio.CancelScope) -> None:
        """One verdict. When it is a pass, the others of its step are no longer needed."""
        finding: Finding = await self.calls.make(
            partial(self.backends.verifier.verify, self.problem, self.draft(id)),
            partial(self.book.write, Intended("verify", (id,))),
        )
        usage = finding.usage.as_data()
        await self.book.write(Found(id, finding.verdict, finding.reason, finding.evidence, usage))
        if finding.verdict is Verdict.PASSED:
            scope.cancel()


async def together(jobs: Sequence[Callable[[], Awaitable[object]]]) -> Sequence[BackendError]:
    """Run jobs at once, each to its end: what is in flight is paid for, whoever else fails."""
    failures: list[BackendError] = []

    async def run(job: Callable[[], Awaitable[object]]) -> None:
        try:
            await job()
        except BackendError as error:
            failures.append(error)

    if len(jobs) == 1:
        await run(jobs[0])
        return failures
    try:
        async with anyio.create_task_group() as group:
            for job in jobs:
                group.start_soon(run, job)
    except BaseExceptionGroup as errors:
        raise first_error(errors) from errors
    return failures


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that ended a group of tasks, as it was raised."""
    inner = errors.exceptions[0]
    return first_error(inner) if isinstance(inner, BaseExceptionGroup) else inner
