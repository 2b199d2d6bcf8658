"""Executes the actions of one search. Recorded results are reused before a backend is called."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import anyio
import anyio.to_thread

from ..backends.protocols import Draft, Finding, Generator, Problem, Score, Scorer, Usage, Verifier
from ..core.errors import BackendError, ScorerError, VerifierError
from ..core.values import (
    CandidateId,
    Costs,
    Event,
    Generate,
    Generated,
    Rescore,
    Rescored,
    Task,
    Verdict,
    Verified,
    Verify,
)
from ..ledger.entries import Call, Found, Intended, Made, Scored, ScoredAgain
from .calls import Caller
from .prices import Meter
from .search_record import MOST_BROKEN, SearchRecord, broken_in_a_row
from .tasks import together

Keying = Callable[[Problem, Draft], str | None]


@dataclass(frozen=True)
class Backends:
    """The generator, scorer and verifier of a search.

    Attributes:
        key: returns the equivalence class of a draft. If one draft of a class fails, all fail.
        second: gives second scores, if there is a cascade.
        own_keys: whether `key` is the user's own function, which also promises that all drafts of a
            class pass if one does. The keys of checks do not promise that.
    """

    generator: Generator
    scorer: Scorer
    verifier: Verifier
    key: Keying | None = None
    second: Scorer | None = None
    own_keys: bool = False

    async def aclose(self) -> None:
        """Close the connections of the backends."""
        for backend in (self.generator, self.scorer, self.verifier, self.second):
            close = getattr(backend, "aclose", None)
            if close is not None:
                await close()


class Executor:
    """Executes the actions of one search. With a meter, events carry the measured cost."""

    def __init__(
        self,
        problem: Problem,
        backends: Backends,
        caller: Caller,
        record: SearchRecord,
        meter: Meter | None = None,
    ) -> None:
        self.problem, self.backends, self.caller, self.record = problem, backends, caller, record
        self.meter = meter

    def price(self, task: Task, seen: int, costs: Costs, second: float = 0.0) -> float:
        """The price of a task, without the results that are already recorded."""
        match task:
            case Generate(n):
                ids = range(seen, seen + n)
                return costs.of(sum(id not in self.record.made for id in ids), 0)
            case Verify(ids):
                return costs.of(0, sum(id not in self.record.found for id in ids))
            case Rescore(ids):
                return second * sum(id not in self.record.scored_again for id in ids)

    def recorded(self, task: Task, seen: int) -> float:
        """The measured cost of those results of a task that are recorded."""
        if self.meter is None:
            return 0.0
        match task:
            case Generate(n):
                return self.record.paid(self.meter, ("generate", "score"), range(seen, seen + n))
            case Verify(ids):
                return self.record.paid(self.meter, ("verify",), ids)
            case Rescore(ids):
                return self.record.paid(self.meter, ("rescore",), ids)

    async def carry_out(self, task: Task, seen: int, costs: Costs | None = None) -> Event:
        """Execute a task and return its result. Each result is recorded before it is used.

        If costs are measured, a cancelled verification is billed as `costs` says.
        """
        match task:
            case Generate(n):
                event: Event = await self._generate(range(seen, seen + n))
            case Verify(ids):
                event = await self._verify(ids)
            case Rescore(ids):
                event = await self._rescore(ids)
        if self.meter is None:
            return event
        paid = self.recorded(task, seen)
        if isinstance(event, Verified) and isinstance(task, Verify) and costs is not None:
            paid += costs.of(0, len(task.ids) - len(event.verdicts))
        return replace(event, paid=paid)

    def draft(self, candidate: int) -> Draft:
        """A recorded draft."""
        made = self.record.made[candidate]
        return Draft(made.text, made.logprobs, Usage.of(made.usage))

    async def _generate(self, wanted: range) -> Generated:
        missing = [id for id in wanted if id not in self.record.made]
        size = getattr(self.backends.generator, "batch", None) or len(missing) or 1
        batches = [missing[at : at + size] for at in range(0, len(missing), size)]
        errors = await together([partial(self._make, batch) for batch in batches])
        if errors:
            raise errors[0]
        there = []
        for id in wanted:
            if id not in self.record.made:
                break  # the generator has no more
            there.append(id)
        await self._score([id for id in there if id not in self.record.scored])
        scores = (self.record.scored[id].score for id in there)
        ranked = tuple(-math.inf if score is None else score for score in scores)
        keys = tuple(self.record.scored[id].key for id in there)
        return Generated(ranked, keys if any(key is not None for key in keys) else ())

    async def _make(self, ids: Sequence[int]) -> None:
        """Generate drafts for these candidates.

        If the generator returns fewer drafts than requested, request the rest; if it returns none,
        stop.
        """
        left = list(ids)
        while left:
            drafts = await self.caller.make(
                partial(self.backends.generator.generate, self.problem, len(left), first=left[0]),
                partial(self.record.write, Intended("generate", tuple(left))),
            )
            if not drafts:
                return
            done, left = left[: len(drafts)], left[len(drafts) :]
            await self.record.write(
                *(
                    Made(id, draft.text, draft.logprobs, draft.usage.as_data())
                    for id, draft in zip(done, drafts, strict=False)
                )
            )
            await self.caller.check_drafts(drafts)

    async def _score(self, ids: Sequence[int]) -> None:
        """Score these candidates. A candidate without a score ranks last; the reason is kept."""
        if not ids:
            return
        scores = await self._scores(self.backends.scorer, "score", ids)
        keys = await self._keys(ids)
        await self.record.write(
            *(
                Scored(id, score.value, key, score.reason, score.usage.as_data())
                for id, score, key in zip(ids, scores, keys, strict=True)
            )
        )
        await self.caller.check_scores([self.draft(id) for id in ids], scores)

    async def _keys(self, ids: Sequence[int]) -> Sequence[str | None]:
        """The candidates' keys, computed in a thread: texts may be long and hostile."""
        key = self.backends.key
        if key is None:
            return [None] * len(ids)
        drafts = [self.draft(id) for id in ids]
        return await anyio.to_thread.run_sync(
            lambda: [key(self.problem, draft) for draft in drafts], abandon_on_cancel=True
        )

    async def _rescore(self, ids: Sequence[CandidateId]) -> Rescored:
        """Second scores for these candidates. A candidate without one ranks last."""
        assert self.backends.second is not None  # `SearchConfig` checks this
        missing = [id for id in ids if id not in self.record.scored_again]
        if missing:
            scores = await self._scores(self.backends.second, "rescore", missing)
            await self.record.write(
                *(
                    ScoredAgain(id, score.value, score.reason, score.usage.as_data())
                    for id, score in zip(missing, scores, strict=True)
                )
            )
        second = {id: self.record.scored_again[id].score for id in ids}
        return Rescored({id: -math.inf if s is None else s for id, s in second.items()})

    async def _scores(self, scorer: Scorer, call: Call, ids: Sequence[int]) -> list[Score]:
        """One score per candidate: a finite number, or None with a reason."""
        drafts = [self.draft(id) for id in ids]
        try:
            scores = await self.caller.make(
                partial(scorer.score, self.problem, drafts),
                partial(self.record.write, Intended(call, tuple(ids))),
            )
            if len(scores) != len(drafts):
                raise ScorerError(f"{len(scores)} scores for {len(drafts)} drafts")
        except BackendError as error:
            return [Score(None, reason=str(error))] * len(drafts)
        return [
            score
            if score.value is None or math.isfinite(score.value)
            else Score(None, score.usage, f"the scorer returned {score.value}")
            for score in scores
        ]

    async def _verify(self, ids: Sequence[CandidateId]) -> Verified:
        missing = [id for id in ids if id not in self.record.found]
        errors: Sequence[BackendError] = ()
        if missing and not self._passed(ids):
            with anyio.CancelScope() as scope:
                errors = await together([partial(self._find, id, scope) for id in missing])
        if errors and not self._passed(ids):
            raise errors[0]
        return Verified(
            {id: self.record.found[id].verdict for id in ids if id in self.record.found}
        )

    def refuse_broken(self, newest_first: Iterable[Event]) -> None:
        """Raise a VerifierError if the last `MOST_BROKEN` verdicts or more are all broken."""
        ids = broken_in_a_row(newest_first)
        if len(ids) >= MOST_BROKEN:
            reason = self.record.found[max(ids)].reason
            raise VerifierError(f"{len(ids)} broken verdicts in a row: {reason}")

    def _passed(self, ids: Sequence[CandidateId]) -> bool:
        found = (self.record.found[id].verdict for id in ids if id in self.record.found)
        return Verdict.PASSED in found

    async def _find(self, id: CandidateId, scope: anyio.CancelScope) -> None:
        """Get one verdict. If it is a pass, cancel the other verifications of the step."""
        finding: Finding = await self.caller.make(
            partial(self.backends.verifier.verify, self.problem, self.draft(id)),
            partial(self.record.write, Intended("verify", (id,))),
        )
        usage = finding.usage.as_data()
        await self.record.write(Found(id, finding.verdict, finding.reason, finding.evidence, usage))
        if finding.verdict is Verdict.PASSED:
            scope.cancel()
