"""Executes the actions of one search. Recorded results are reused before a backend is called."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile

import anyio
import anyio.to_thread

from ..backends.protocols import (
    Arrived,
    Draft,
    Finding,
    Generator,
    ParkedCall,
    Problem,
    Score,
    Scorer,
    Usage,
    Verifier,
)
from ..core.errors import BackendError, ScorerError, VerifierError
from ..core.values import (
    REFUTED,
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
from ..ledger.entries import (
    Call,
    Entry,
    Found,
    Made,
    Parked,
    Scored,
    ScoredAgain,
    Settled,
)
from ..text import checksum
from .calls import Caller
from .parked import Outside, settle_parked
from .prices import Meter
from .search_record import MOST_BROKEN, SearchRecord, broken_in_a_row
from .spending import Attempts, Plan, Reserves
from .tasks import together

Keying = Callable[[Problem, Draft], str | None]
_Keyed = tuple[str | None, str]  # a key, and why it is refuted
Refuting = Callable[[Problem, Draft], str | None]


@dataclass(frozen=True)
class Backends:
    """The generator, scorer and verifier of a search.

    Attributes:
        key: returns the equivalence class of a draft. If one draft of a class fails, all fail.
        second: gives second scores, if there is a cascade.
        own_keys: whether `key` is the user's own function, which also promises that all drafts of a
            class pass if one does. The keys of checks do not promise that.
        refutation: returns why a draft certainly fails, or None if it may pass. Such a draft gets
            the key `REFUTED` and is not verified.
    """

    generator: Generator
    scorer: Scorer
    verifier: Verifier
    key: Keying | None = None
    second: Scorer | None = None
    own_keys: bool = False
    refutation: Refuting | None = None

    def key_of(self, problem: Problem, draft: Draft) -> tuple[str | None, str]:
        """The draft's key, and why it is refuted; "" if it is not."""
        reason = None if self.refutation is None else self.refutation(problem, draft)
        if reason is not None:
            return REFUTED, reason
        return (None if self.key is None else self.key(problem, draft)), ""

    async def aclose(self) -> None:
        """Close the connections of the backends."""
        for backend in (self.generator, self.scorer, self.verifier, self.second):
            close = getattr(backend, "aclose", None)
            if close is not None:
                await close()


class Executor:
    """Executes the actions of one search. With a meter, its events have the measured cost.

    Attributes:
        plan: what the current action may reserve, if a total budget is shared.
        answers: how many answers the search needs. If more than one, a pass does not cancel the
            other verifications, and candidates without a key have a key made of their text.
    """

    name = ""  # of the generator, if there are several

    def __init__(
        self,
        problem: Problem,
        backends: Backends,
        caller: Caller,
        record: SearchRecord,
        meter: Meter | None = None,
        reserves: Reserves | None = None,
        leaving: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.problem, self.backends, self.caller, self.record = problem, backends, caller, record
        self.meter, self.reserves = meter, reserves or Reserves()
        self.plan: Plan | None = None
        self.answers = 1
        self._outside = Outside(leaving)

    async def pin_scorer(self) -> str:
        """Keep the model of a score that is trained anew; return what the ledger records of it."""
        pinned = getattr(self.backends.scorer, "pinned", None)
        if pinned is None:
            return ""
        scorer = await pinned(self.record.scorer)
        self.backends = replace(self.backends, scorer=scorer)
        return str(scorer.content)

    def numbers(self, seen: int, n: int) -> Sequence[int]:
        """The numbers in the ledger of the next n candidates, after the first `seen`."""
        return range(seen, seen + n)

    def first(self, number: int) -> int:
        """Which candidate of its generator this number is."""
        return number

    def price(self, task: Task, seen: int, costs: Costs, second: float = 0.0) -> float:
        """The price of the part of a task that is not recorded yet."""
        match task:
            case Generate(n):
                ids = self.numbers(seen, n)
                return costs.of(sum(id not in self.record.made for id in ids), 0)
            case Verify(ids, _, ahead):
                new = sum(id not in self.record.made for id in range(seen, seen + ahead))
                return costs.of(new, sum(id not in self.record.found for id in ids))
            case Rescore(ids):
                return second * sum(id not in self.record.scored_again for id in ids)

    def recorded(self, task: Task, seen: int) -> float:
        """The measured cost of those results of a task that are recorded."""
        if self.meter is None:
            return 0.0
        match task:
            case Generate(n):
                return self.record.paid(self.meter, ("generate", "score"), self.numbers(seen, n))
            case Verify(ids):
                return self.record.paid(self.meter, ("verify",), ids)
            case Rescore(ids):
                return self.record.paid(self.meter, ("rescore",), ids)

    async def carry_out(self, task: Task, seen: int, costs: Costs | None = None) -> Event:
        """Execute a task and return its result. Each result is recorded before it is used.

        If costs are measured, a cancelled verification is billed at the verification price in
        `costs`.
        """
        match task:
            case Generate(n):
                event: Event = await self._generate(self.numbers(seen, n))
            case Verify(ids, _, ahead):
                event = await self._verify_and_generate(ids, range(seen, seen + ahead))
            case Rescore(ids):
                event = await self._rescore(ids)
        if self.meter is None:
            return event
        paid = self.recorded(task, seen)
        if isinstance(event, Verified) and event.meanwhile is not None:
            made = self.recorded(Generate(len(event.meanwhile.scores)), seen)
            event = replace(event, meanwhile=replace(event.meanwhile, paid=made))
        if isinstance(event, Verified) and isinstance(task, Verify) and costs is not None:
            paid += costs.of(0, len(task.ids) - len(event.verdicts))
        return replace(event, paid=paid)

    def draft(self, candidate: int) -> Draft:
        """A recorded draft."""
        made = self.record.made[candidate]
        return Draft(made.text, made.logprobs, Usage.of(made.usage))

    async def _generate(self, wanted: Sequence[int]) -> Generated:
        missing = [id for id in wanted if id not in self.record.made]
        size = getattr(self.backends.generator, "batch", None) or len(missing) or 1
        batches = [missing[at : at + size] for at in range(0, len(missing), size)]
        errors = await together([partial(self._make, batch) for batch in batches])
        if errors:
            raise errors[0]
        there = list(takewhile(self.record.made.__contains__, wanted))  # fewer if there are no more
        await self._score([id for id in there if id not in self.record.scored])
        scores = (self.record.scored[id].score for id in there)
        ranked = tuple(-math.inf if score is None else score for score in scores)
        keys = tuple(map(self._key, there))
        values = tuple(self.record.scored[id].alike for id in there)
        alike = tuple(s if v is None else v for s, v in zip(ranked, values, strict=True))
        return Generated(
            ranked,
            keys if any(key is not None for key in keys) else (),
            alike=alike if any(value is not None for value in values) else (),
        )

    def _key(self, id: int) -> str | None:
        key = self.record.scored[id].key
        if key is None and self.answers > 1:
            return f"text:{checksum(self.record.made[id].text)}"
        return key

    async def _make(self, ids: Sequence[int]) -> None:
        """Generate drafts for these candidates.

        If the generator returns fewer drafts than requested, request the rest; if it returns none,
        stop.
        """
        left = list(ids)
        while left:
            attempts = Attempts(self, "generate", left)
            generate, first = self.backends.generator.generate, self.first(left[0])
            drafts = await self.caller.make(
                partial(generate, self.problem, len(left), first=first), attempts
            )
            done, left = left[: len(drafts)], left[len(drafts) :]
            entries = [
                Made(id, draft.text, draft.logprobs, draft.usage.as_data(), self.name)
                for id, draft in zip(done, drafts, strict=False)
            ]
            await self.record.write(*entries, *attempts.settled(len(done)))
            if not drafts:
                return
            await self.caller.check_drafts(drafts)

    async def _score(self, ids: Sequence[int]) -> None:
        """Score these candidates. A candidate without a score ranks last; the reason is kept."""
        if not ids:
            return
        drafts = {id: self.draft(id) for id in ids}
        keys = await self._keys(drafts.values())
        scores = await self._scores(self.backends.scorer, "score", drafts, keys)
        entries = [
            Scored(id, score.value, key, score.reason or why, score.usage.as_data(), score.alike)
            for id, score, (key, why) in zip(ids, scores, keys, strict=True)
        ]
        await self.record.write(*entries, *self._settled_drafts(ids, entries))
        await self.caller.check_scores(list(drafts.values()), scores)

    def _settled_drafts(self, ids: Sequence[int], scored: Sequence[Scored]) -> list[Entry]:
        """With measured costs: return what drafts and scores did not cost of their reserve."""
        if self.meter is None:
            return []
        reserved = self.reserves.of("generate", len(ids), measured=True)
        paid = self.record.paid(self.meter, ("generate",), ids)
        paid += sum(self.meter.cost("score", Usage.of(each.usage)) for each in scored)
        return [Settled("score", tuple(ids), reserved - paid)]

    async def _keys(self, drafts: Collection[Draft]) -> Sequence[_Keyed]:
        """The drafts' keys, and why they are refuted; "" if they are not.

        They are computed in a thread: texts may be long and hostile.
        """
        if self.backends.key is None and self.backends.refutation is None:
            return [(None, "")] * len(drafts)
        return await anyio.to_thread.run_sync(
            lambda: [self.backends.key_of(self.problem, draft) for draft in drafts],
            abandon_on_cancel=True,
        )

    async def _rescore(self, ids: Sequence[CandidateId]) -> Rescored:
        """Second scores for these candidates. A candidate without one ranks last."""
        assert self.backends.second is not None  # `SearchConfig` checks this
        missing = [id for id in ids if id not in self.record.scored_again]
        if missing:
            drafts: dict[int, Draft] = {id: self.draft(id) for id in missing}
            scores = await self._scores(self.backends.second, "rescore", drafts)
            entries: list[Entry] = [
                ScoredAgain(id, score.value, score.reason, score.usage.as_data())
                for id, score in zip(missing, scores, strict=True)
            ]
            if self.meter is not None:
                paid = sum(self.meter.cost("rescore", score.usage) for score in scores)
                reserved = self.reserves.of("rescore", len(missing), measured=True)
                entries.append(Settled("rescore", tuple(missing), reserved - paid))
            await self.record.write(*entries)
        second = {id: self.record.scored_again[id].score for id in ids}
        return Rescored({id: -math.inf if s is None else s for id, s in second.items()})

    async def _scores(
        self, scorer: Scorer, call: Call, given: Mapping[int, Draft], keys: Sequence[_Keyed] = ()
    ) -> list[Score]:
        """One score per candidate: a finite number, or None with a reason."""
        ids, drafts = list(given), list(given.values())
        ask = partial(scorer.score, self.problem, drafts)
        if hasattr(scorer, "score_arrivals"):
            new = [Arrived(draft, key) for draft, (key, _) in zip(drafts, keys, strict=True)]
            ask = partial(scorer.score_arrivals, self.problem, self._earlier(ids[0]), new)
        try:
            scores = await self.caller.make(ask, Attempts(self, call, ids))
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

    def _earlier(self, first: int) -> list[Arrived]:
        """The candidates that arrived before one."""
        known = ((id, self.record.scored.get(id)) for id in range(first))
        return [Arrived(self.draft(id), each.key if each else None) for id, each in known]

    async def _verify_and_generate(self, ids: Sequence[CandidateId], ahead: range) -> Verified:
        """Verify candidates and generate others meanwhile. A pass cancels the generation."""
        if not ahead:
            return await self._verify(ids)
        found: list[Verified] = []
        made: list[Generated] = []
        with anyio.CancelScope() as scope:

            async def generate() -> None:
                if not self._passed(ids):
                    made.append(await self._generate(ahead))

            async def verify() -> None:
                found.append(await self._verify(ids))
                if self._passed(ids):
                    scope.cancel()

            errors = await together([generate, verify])
            if errors and not self._passed(ids):
                raise errors[0]
        if self._passed(ids):  # as recorded, if it is; else they count as cancelled
            told = self.record.upcoming
            return replace(found[0], meanwhile=getattr(told, "meanwhile", None))
        return replace(found[0], meanwhile=made[0])

    async def _verify(self, ids: Sequence[CandidateId]) -> Verified:
        missing = [id for id in ids if id not in self.record.found]
        errors: Sequence[Exception] = ()
        if missing and (self.answers > 1 or not self._passed(ids)):
            with anyio.CancelScope() as scope:
                errors = await together([partial(self._find, id, scope) for id in missing])
        if errors and (self.answers > 1 or not self._passed(ids)):
            raise errors[0]
        await settle_parked(self.record, self.meter, ids)
        return Verified(
            {id: self.record.found[id].verdict for id in ids if id in self.record.found}
        )

    def stop_if_broken(self, newest_first: Iterable[Event]) -> None:
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
        verdict = await self._verdict(id)
        if verdict is Verdict.PASSED and self.answers == 1:
            scope.cancel()

    async def _verdict(self, id: CandidateId) -> Verdict:
        if ("verify", id) not in self.record.parked:
            attempts = Attempts(self, "verify", (id,))
            try:
                finding: Finding = await self.caller.make(
                    partial(self.backends.verifier.verify, self.problem, self.draft(id)), attempts
                )
            except ParkedCall as parked:
                await self.record.write(Parked("verify", (id,), str(parked)))
            else:
                usage = finding.usage.as_data()
                found = Found(id, finding.verdict, finding.reason, finding.evidence, usage)
                await self.record.write(found, *attempts.settled(1, finding.usage))
                return finding.verdict
        self.caller.complaints.parked()
        with self._outside.wait():
            return (await self.record.arrival(id)).verdict
