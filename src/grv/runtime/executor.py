"""Executes the actions of one search. Recorded results are reused before a backend is called."""

from __future__ import annotations

import asyncio
import itertools
import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any

import anyio
import anyio.to_thread

from ..backends.callables import checked_finding, drafts_of, scores_of
from ..backends.generators.batches import BatchedGenerator, BatchTicket
from ..backends.protocols import (
    Arrived,
    Draft,
    Finding,
    Generator,
    ParkedCall,
    Problem,
    Score,
    Scorer,
    Stage,
    Verifier,
    checked_score,
)
from ..backends.scorers.trained.model import TrainedModel
from ..backends.verifiers.suite import PaidStage, StageMemory
from ..conditions import Conditions
from ..core.errors import BackendError, ScorerError, VerifierError
from ..core.values import (
    DROPPED,
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
    Staged,
)
from ..ledger.view import MOST_BROKEN, DraftsInBatch, broken_in_a_row
from ..text import checksum
from ..theory.confirmations import Earlier, RightShares
from .batches import BatchCall, Batches, ticket_of
from .budget import Plan, ReservedAttempts, Reserves
from .calls import Caller
from .numbering import Numbering
from .parked import Outside, settle_parked
from .prices import Meter
from .record import SearchRecord
from .tasks import together

Keying = Callable[[Problem, Draft], str | None]
ALONE = Numbering()  # of the only generator
_COSTS = Costs()
_PATIENCE = 60.0  # seconds until an entry of a thread that verifies is durable
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

    def conditions(self, problem: Problem) -> Conditions | None:
        """What verdicts depend on besides the text; None if the verifier does not say."""
        own = getattr(self.verifier, "conditions", None)
        return None if own is None else own(problem)

    async def aclose(self) -> None:
        """Close the connections of the backends."""
        for backend in (self.generator, self.scorer, self.verifier, self.second):
            close = getattr(backend, "aclose", None)
            if close is not None:
                await close()


class Executor:
    """Executes the actions of one search. With a meter, its events have the measured cost.

    Attributes:
        numbering: the numbers of the generator's candidates in the ledger.
        pricing: computes the dollars that are reported, whatever the costs are.
        plan: what the current action may reserve, if a total budget is shared.
        shares: what earlier problems say about the share of right candidates, if a check that errs
            decides by it.
        answers: how many answers the search needs. If more than one, a pass does not cancel the
            other verifications, and candidates without a key have a key made of their text.
    """

    def __init__(
        self,
        problem: Problem,
        backends: Backends,
        caller: Caller,
        record: SearchRecord,
        *,
        meter: Meter | None = None,
        pricing: Meter | None = None,
        reserves: Reserves | None = None,
        numbering: Numbering = ALONE,
        answers: int = 1,
        outside: Callable[[], AbstractContextManager[None]] = nullcontext,
        batches: Batches | None = None,
    ) -> None:
        self.problem = problem
        self.backends = backends
        self.caller = caller
        self.record = record
        self.meter = meter
        self.pricing = pricing or meter or Meter()
        self.reserves = reserves or Reserves()
        self.numbering = numbering
        self.answers = answers
        self.plan: Plan | None = None
        self.shares: RightShares | None = None
        self._outside = Outside(outside)
        self._batches = batches

    async def pin_scorer(self, recorded: str, own: TrainedModel | None = None) -> str:
        """Keep the model of a score that is trained anew; return what the ledger records of it.

        Args:
            recorded: what is recorded already; empty if the search starts.
            own: the newest model of the run's own ledger, for the score `auto`.
        """
        pinned = getattr(self.backends.scorer, "pinned", None)
        if pinned is None:
            return ""
        scorer = await pinned(recorded, own)
        self.backends = replace(self.backends, scorer=scorer)
        return str(scorer.content)

    @property
    def ranked_by(self) -> str:
        """What the score `auto` stands for here; empty for another score, or without a draft."""
        ranked_by = getattr(self.backends.scorer, "ranked_by", None)
        if ranked_by is None:
            return ""
        numbers = map(self.numbering.number, itertools.count())
        arrived = takewhile(self.record.made.__contains__, numbers)
        return str(ranked_by(map(self.draft, arrived)))

    def price(self, task: Task, seen: int, *, recorded: bool = False) -> float:
        """What the part of a task costs at most that is not recorded yet, or that is."""
        record = self.record
        costs = self.reserves.costs or _COSTS

        def number(ids: Sequence[int], results: Mapping[int, object]) -> int:
            there = sum(map(results.__contains__, ids))
            return there if recorded else len(ids) - there

        match task:
            case Generate(n):
                ids = self.numbering.numbers(seen, n)
                scoring = number(ids, record.scored) * costs.score
                return number(ids, record.made) * costs.generate + scoring
            case Verify(ids, _, ahead):
                drafts = self.price(Generate(ahead), seen, recorded=recorded) if ahead else 0.0
                if recorded and self.meter is None:
                    found = [record.found[id] for id in ids if id in record.found]
                    return drafts + sum(map(self._cost_of_verdict, found))
                return drafts + number(ids, record.found) * costs.verify
            case Rescore(ids):
                return self.reserves.second * number(ids, record.scored_again)

    def is_recorded(self, task: Task, seen: int) -> bool:
        """Whether all results of a task are recorded, so that it needs no call."""
        record = self.record
        match task:
            case Generate(n):
                return all(id in record.scored for id in self.numbering.numbers(seen, n))
            case Verify(ids, _, ahead):
                return all(id in record.found for id in ids) and self.is_recorded(
                    Generate(ahead), seen
                )
            case Rescore(ids):
                return all(id in record.scored_again for id in ids)

    def recorded(self, task: Task, seen: int) -> float:
        """The measured cost of those results of a task that are recorded."""
        if self.meter is None:
            return 0.0
        match task:
            case Generate(n):
                made = self.numbering.numbers(seen, n)
                return self.record.paid(self.meter, ("generate", "score"), made)
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
                event: Event = await self._generate(self.numbering.numbers(seen, n))
            case Verify(ids, _, ahead):
                event = await self._verify_and_generate(ids, self.numbering.numbers(seen, ahead))
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

    def _cost_of_verdict(self, found: Found) -> float:
        """What the verification cost that gave a verdict."""
        if self.meter is not None:
            return self.meter.cost("verify", found.usage)
        return self._listed(finding_of(found))

    def cost_of(self, call: Call, results: Sequence[Draft | Score | Finding]) -> float | None:
        """What the results of a call cost, in the unit of the search; None if that is unknown."""
        if self.meter is not None:
            return self.dollars_of(call, results)
        if call == "verify":
            return sum([self._listed(each) for each in results if isinstance(each, Finding)])
        return self.reserves.of(call, len(results), measured=False)

    def dollars_of(self, call: Call, results: Sequence[Draft | Score | Finding]) -> float | None:
        """What the results of a call cost in dollars; None if that is unknown."""
        dollars = [self.pricing.price(call, each.usage) for each in results]
        known = [each for each in dollars if each is not None]
        return sum(known) if len(known) == len(dollars) else None

    def _listed(self, finding: Finding) -> float:
        """What a verification costs by the price list."""
        if finding.shared:
            return 0.0
        failed = finding.verdict is Verdict.FAILED
        return self.reserves.verdict(failed=failed, repeated=finding.repeated)

    def draft(self, candidate: int) -> Draft:
        """A recorded draft."""
        made = self.record.made[candidate]
        return Draft(made.text, made.logprobs, made.usage, made.broken, log=made.log)

    async def _generate(self, wanted: Sequence[int]) -> Generated:
        record = self.record
        missing = [id for id in wanted if id not in record.made]
        unscored = [id for id in wanted if id not in record.scored]
        spare = self.reserves.verification + self._reserved_for("score", len(unscored))
        await self._make_all(missing, spare)
        there = list(takewhile(record.made.__contains__, wanted))  # fewer if there are no more
        await self._score([id for id in there if id not in record.scored])
        await self._key_again(there)
        scored = [record.scored[id] for id in there]
        ranked = tuple([-math.inf if each.score is None else each.score for each in scored])
        keys = tuple([each.key for each in scored])
        if self.answers > 1:
            keys = tuple([self._key(each) for each in scored])
        values = [each.alike for each in scored]
        alike: tuple[float, ...] = ()
        if values.count(None) < len(values):
            alike = tuple([s if v is None else v for s, v in zip(ranked, values, strict=True)])
        return Generated(ranked, keys if keys.count(None) < len(keys) else (), alike=alike)

    @property
    def _judge(self) -> int:
        """The version of the judge that makes keys now."""
        return 0 if self.record.conditions is None else self.record.conditions.judge

    async def _key_again(self, candidates: Sequence[int]) -> None:
        """Make the keys again that another judge made: it may have refuted a right candidate.

        Scores stay.
        """
        judge = self._judge
        scored = [self.record.scored[id] for id in candidates]
        ids = [e.candidate for e in scored if e.judge != judge and e.key != DROPPED]
        if not ids:
            return
        keys = await self._keys([self.draft(id) for id in ids])
        entries: list[Entry] = []
        for id, (key, why) in zip(ids, keys, strict=True):
            old = self.record.scored[id]
            reason = old.reason if old.score is None else why
            entries.append(replace(old, key=key, reason=reason, judge=judge))
        await self.record.write(*entries)

    def _key(self, scored: Scored) -> str:
        """The candidate's key if several answers must differ: by default one of its text."""
        if scored.key is not None:
            return scored.key
        return f"text:{checksum(self.record.made[scored.candidate].text)}"

    def _reserved_for(self, call: Call, n: int) -> float:
        return self.reserves.of(call, n, measured=self.meter is not None)

    @property
    def _batch(self) -> int:
        """How many candidates one call asks for at most; it falls if the server makes fewer."""
        return getattr(self.backends.generator, "batch", None) or sys.maxsize

    async def _make_all(self, ids: Sequence[int], spare: float) -> None:
        """Generate drafts for these candidates, with calls side by side."""
        parked = self.record.in_batches if self._batches is not None else {}
        known = {parked[id].candidates: parked[id] for id in ids if id in parked}
        new = [id for id in ids if id not in parked]
        size = min(self._batch, len(new))
        calls = [partial(self._make, each, spare, known[each]) for each in known]
        calls += [
            partial(self._make, new[place : place + size], spare)
            for place in range(0, len(new), size or 1)
        ]
        errors = await together(calls)
        if errors:
            raise errors[0]

    async def _make(
        self, ids: Sequence[int], spare: float, parked: DraftsInBatch | None = None
    ) -> None:
        """Generate drafts for these candidates. The budget must cover `spare` besides.

        If the generator returns fewer drafts than requested, request the rest; if it returns none,
        stop. `parked` says which batch has them, if they were requested already.
        """
        left = list(ids)
        while left:
            if parked is None and self._batch < len(left):
                await self._make_all(left, spare)
                return
            attempts = ReservedAttempts(self, "generate", left, spare)
            first = self.numbering.own(left[0])
            generator = self.backends.generator
            if self._batches is not None and isinstance(generator, BatchedGenerator):
                drafts = await self._batched(self._batches, generator, attempts, parked)
                parked = None
            else:
                draw = partial(self._drafts, len(left), first)
                drafts = await self.caller.make(draw, attempts, generator)
            longest = self.caller.calls.longest_candidate
            drafts = [_within(draft, longest) for draft in drafts[: len(left)]]
            done = left[: len(drafts)]
            left = left[len(drafts) :]
            entries = [
                _made(id, draft, self.numbering.name)
                for id, draft in zip(done, drafts, strict=False)
            ]
            await self.record.write(*entries, *attempts.settled(len(done)))
            self.caller.complaints.notice(getattr(self.backends.generator, "notices", ()))
            if not drafts:
                return
            await self.caller.check_drafts(drafts)

    async def _batched(
        self,
        batches: Batches,
        generator: BatchedGenerator,
        attempts: ReservedAttempts,
        parked: DraftsInBatch | None,
    ) -> list[Draft]:
        """Drafts from a batch. What a batch does not answer is part of the next one."""
        ids = attempts.ids
        reserved = attempts.reserved
        is_begun = parked is not None
        if parked is not None:
            attempts.reserved = parked.reserved

        async def park(ticket: BatchTicket) -> None:
            nonlocal is_begun
            entry = Parked("generate", ids, batch=asdict(ticket))
            if is_begun:
                await self.record.write(entry)
            else:
                await attempts.begin(entry)
                is_begun = True

        for attempt in itertools.count(1):
            call = BatchCall(
                generator,
                self.problem,
                len(ids),
                self.numbering.own(ids[0]),
                self.pricing,
                None if parked is None else ticket_of(parked.batch),
            )
            try:
                with self._outside.wait():
                    return list(await batches.drafts(call, park))
            except BackendError as error:
                if is_begun:
                    with anyio.CancelScope(shield=True):
                        await attempts.missed(error)
                if error.fault == "stop":
                    await self.caller.stop_for(error)
                if error.final or attempt == self.caller.calls.attempts:
                    raise
            attempts.reserved = reserved
            parked = None
            is_begun = False
        raise AssertionError  # the loop has no end

    async def drop_batches(self) -> None:
        """Cancel batches that no search waits for any more, after this one has dropped a call."""
        if self._batches is not None:
            await self._batches.cancel_dropped()

    async def _drafts(self, n: int, first: int) -> list[Draft]:
        generator = self.backends.generator
        return drafts_of(await generator.generate(self.problem, n, first=first), generator)

    async def _score(self, ids: Sequence[int]) -> None:
        """Score these candidates. A candidate without a score ranks last; the reason is kept."""
        broken = [id for id in ids if self.record.made[id].broken]
        if broken:
            await self._drop(broken)
            ids = [id for id in ids if not self.record.made[id].broken]
        if not ids:
            return
        drafts = {id: self.draft(id) for id in ids}
        keys = await self._keys(drafts.values())
        scores, reserved = await self._scores(self.backends.scorer, "score", drafts, keys)
        judge = self._judge
        entries = [
            Scored(
                id,
                score.value,
                key,
                score.reason or why,
                score.usage,
                score.alike,
                judge,
            )
            for id, score, (key, why) in zip(ids, scores, keys, strict=True)
        ]
        settled = self._settled_drafts(ids, entries, reserved)
        if getattr(self.backends.scorer, "is_repeatable", False) and not self._pays_scores:
            self.record.note(*entries, *settled)
        else:
            await self.record.write(*entries, *settled)
        self.caller.complaints.notice(getattr(self.backends.scorer, "notices", ()))
        self.caller.complaints.ranked(self.ranked_by)
        await self.caller.check_scores(list(drafts.values()), scores)

    @property
    def _pays_scores(self) -> bool:
        """Whether what was possibly paid changes with a score: it has a price, or is measured."""
        return self.meter is not None or self._reserved_for("score", 1) > 0

    async def _drop(self, ids: Sequence[int]) -> None:
        """Record that these candidates are broken: they are neither scored nor verified."""
        attempts = ReservedAttempts(self, "score", ids)
        if attempts.reserved and self.meter is None:  # a candidate's price includes its score
            await attempts.begin()
        entries = [Scored(id, None, DROPPED, self.record.made[id].broken) for id in ids]
        await self.record.write(*entries, *self._settled_drafts(ids, entries))

    def _settled_drafts(
        self, ids: Sequence[int], scored: Sequence[Scored], scoring: float = 0.0
    ) -> list[Entry]:
        """With measured costs: return what drafts and scores did not cost of their reserve.

        `scoring` is what the attempt to score has reserved besides.
        """
        if self.meter is None:
            return []
        reserved = self.reserves.of("generate", len(ids), measured=True) + scoring
        paid = self.record.paid(self.meter, ("generate",), ids)
        paid += sum(self.meter.cost("score", each.usage) for each in scored)
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
            scores, reserved = await self._scores(self.backends.second, "rescore", drafts)
            entries: list[Entry] = [
                ScoredAgain(id, score.value, score.reason, score.usage)
                for id, score in zip(missing, scores, strict=True)
            ]
            if self.meter is not None:
                paid = sum(self.meter.cost("rescore", score.usage) for score in scores)
                entries.append(Settled("rescore", tuple(missing), reserved - paid))
            await self.record.write(*entries)
        second = {id: self.record.scored_again[id].score for id in ids}
        return Rescored({id: -math.inf if s is None else s for id, s in second.items()})

    async def _scores(
        self, scorer: Scorer, call: Call, given: Mapping[int, Draft], keys: Sequence[_Keyed] = ()
    ) -> tuple[list[Score], float]:
        """One score per candidate: a finite number, or None with a reason.

        And what is still reserved for them: nothing, if no attempt had a result.
        """
        ids = list(given)
        drafts = list(given.values())
        ask = partial(scorer.score, self.problem, drafts)
        if hasattr(scorer, "score_arrivals"):
            new = [Arrived(draft, key) for draft, (key, _) in zip(drafts, keys, strict=True)]
            ask = partial(scorer.score_arrivals, self.problem, self._earlier(ids[0]), new)

        async def scores_for_all() -> list[Score]:
            return scores_of(await ask(), scorer)

        try:
            attempts = ReservedAttempts(self, call, ids, self.reserves.verification)
            scores = await self.caller.make(scores_for_all, attempts, scorer)
            if len(scores) != len(drafts):
                raise ScorerError(f"{len(scores)} scores for {len(drafts)} drafts")
        except BackendError as error:
            return [Score(None, reason=str(error))] * len(drafts), 0.0
        return [checked_score(score) for score in scores], attempts.reserved + attempts.held

    def _earlier(self, first: int) -> list[Arrived]:
        """The candidates of the same generator that arrived before one."""
        before = self.numbering.numbers(0, self.numbering.own(first))
        entries = ((id, self.record.scored.get(id)) for id in before)
        return [Arrived(self.draft(id), each.key if each else None) for id, each in entries]

    async def _verify_and_generate(
        self, ids: Sequence[CandidateId], ahead: Sequence[int]
    ) -> Verified:
        """Verify candidates and generate others meanwhile. A pass cancels the generation."""
        if not ahead:
            return await self._verify(ids)
        results: list[Verified] = []
        made: list[Generated] = []
        with anyio.CancelScope() as scope:

            async def generate() -> None:
                if not self._passed(ids):
                    made.append(await self._generate(ahead))

            async def verify() -> None:
                results.append(await self._verify(ids))
                if self._passed(ids):
                    scope.cancel()

            errors = await together([generate, verify])
            if errors and not self._passed(ids):
                raise errors[0]
        if self._passed(ids):  # as recorded, if it is; else they count as cancelled
            await self.drop_batches()
            told = self.record.upcoming
            return replace(results[0], meanwhile=getattr(told, "meanwhile", None))
        return replace(results[0], meanwhile=made[0])

    async def _verify(self, ids: Sequence[CandidateId]) -> Verified:
        missing = [id for id in ids if id not in self.record.found]
        errors: Sequence[Exception] = ()
        if missing and (self.answers > 1 or not self._passed(ids)):
            known = self._known_before(ids)
            with anyio.CancelScope() as scope:
                errors = await together(
                    [partial(self._find, id, known[id], scope) for id in missing]
                )
        if errors and (self.answers > 1 or not self._passed(ids)):
            raise errors[0]
        if self.meter is not None or self._settles:
            await settle_parked(self.record, self._cost_of_verdict, ids)
        findings = {id: self.record.found[id] for id in ids if id in self.record.found}
        return Verified(
            {id: each.verdict for id, each in findings.items()},
            shared=frozenset(id for id, each in findings.items() if each.shared),
            repeated=sum(finding_of(each).repeated for each in findings.values()),
        )

    @property
    def _settles(self) -> bool:
        """Whether verdicts differ in what they cost by the price list."""
        return (self.reserves.prices or self.reserves.costs or _COSTS).has_failure

    def unused(self, call: Call, id: int) -> float:
        """The part of the reserve of an attempt without a result that was certainly not paid."""
        measured = self.meter is not None
        reserved = self.reserves.of(call, 1, measured=measured)
        return min(
            self.record.tally.reserved(call, id) or 0.0,
            reserved - self.reserves.lost(call, 1, measured=measured),
        )

    def cancelled(self, ids: Iterable[int]) -> list[Entry]:
        """Return what verifications that a pass made needless did not cost of their reserve.

        They cost the calls that are on record, and the one in flight.
        """
        entries: list[Entry] = []
        for id in ids:
            if ("verify", id) in self.record.tally.in_flight and id not in self.record.found:
                made = len(self.record.staged.get(id, ()))
                prices = self.reserves.prices
                kept = 0.0 if prices is None else made * prices.verify
                returned = self.unused("verify", id) - kept
                if returned > 0:
                    entries.append(Settled("verify", (id,), returned))
        return entries

    def stop_if_broken(self, newest_first: Iterable[Event]) -> None:
        """Raise a VerifierError if the last `MOST_BROKEN` verdicts or more are all broken."""
        ids = broken_in_a_row(newest_first)
        if len(ids) >= MOST_BROKEN:
            reason = self.record.found[max(ids)].reason
            raise VerifierError(f"{len(ids)} broken verdicts in a row: {reason}")

    def _passed(self, ids: Sequence[CandidateId]) -> bool:
        verdicts = (self.record.found[id].verdict for id in ids if id in self.record.found)
        return Verdict.PASSED in verdicts

    def _known_before(self, ids: Sequence[CandidateId]) -> dict[CandidateId, Earlier]:
        """For each candidate of a step, what the search knows before it is verified.

        The same after a kill: the candidates of a step are numbered after those of earlier steps.
        """
        before = sorted(self.record.found.keys() - set(ids))
        found = [finding_of(self.record.found[id]).call_counts for id in before]
        counts = tuple(each[0] for each in found if each is not None)
        return {
            id: Earlier(len(before) + place, counts, self.shares) for place, id in enumerate(ids, 1)
        }

    async def _find(self, id: CandidateId, earlier: Earlier, scope: anyio.CancelScope) -> None:
        """Get one verdict. If it is a pass, cancel the other verifications of the step."""
        verdict = await self._verdict(id, earlier)
        if verdict is Verdict.PASSED and self.answers == 1:
            scope.cancel()

    async def _finding(self, id: CandidateId, earlier: Earlier) -> Finding:
        verifier = self.backends.verifier
        more: dict[str, Any] = {}
        if getattr(verifier, "reads_earlier", False):
            more["earlier"] = earlier
        if getattr(verifier, "reads_memory", False):
            more["memory"] = self._memory(id)
        found = await verifier.verify(self.problem, self.draft(id), **more)
        return checked_finding(found, verifier)

    def _memory(self, id: CandidateId) -> StageMemory:
        """The stages that a candidate has passed; new ones are written to the ledger."""
        loop = asyncio.get_running_loop()
        record = self.record

        def keep(paid: PaidStage) -> None:  # in the thread that verifies
            entry = Staged(id, paid.run, paid.stage.as_data(), paid.evidence, record.conditions)
            asyncio.run_coroutine_threadsafe(record.write(entry), loop).result(_PATIENCE)

        return StageMemory(map(_paid_stage, record.staged.get(id, ())), keep)

    async def recall(self) -> None:
        """Let the verifier learn from what is on record which test to run first."""
        recall = getattr(self.backends.verifier, "recall", None)
        found = [each for each in self.record.found.values() if each.evidence.get("stages")]
        if recall is not None and found:
            findings = [Finding(each.verdict, evidence=each.evidence) for each in found]
            await anyio.to_thread.run_sync(recall, self.problem, findings)

    async def _verdict(self, id: CandidateId, earlier: Earlier) -> Verdict:
        if ("verify", id) not in self.record.tally.parked:
            attempts = ReservedAttempts(self, "verify", (id,))
            try:
                find = partial(self._finding, id, earlier)
                finding = await self.caller.make(find, attempts, self.backends.verifier)
            except ParkedCall as parked:
                await self.record.write(Parked("verify", (id,), str(parked)))
            else:
                entry = Found(
                    id,
                    finding.verdict,
                    finding.reason,
                    finding.evidence,
                    finding.usage,
                    conditions=finding.conditions,
                    shared=finding.shared,
                )
                number = 0 if finding.shared else 1
                listed = self._listed(finding)
                settled = attempts.settled(number, finding.usage, listed=listed)
                await self.record.write(entry, *settled)
                return finding.verdict
        elif ("verify", id) in self.record.closed:  # the search continues after its end
            await self.record.write(Parked("verify", (id,)))
        self.caller.complaints.parked(self.record.place)
        with self._outside.wait():
            return (await self.record.arrival(id)).verdict


def finding_of(found: Found) -> Finding:
    """The finding that an entry records."""
    return Finding(found.verdict, found.reason, found.evidence, found.usage, shared=found.shared)


def _paid_stage(entry: Staged) -> PaidStage:
    stage = Stage.of(entry.stage) or Stage(entry.run, Verdict.PASSED)
    return PaidStage(entry.run, stage, entry.evidence)


def _made(id: int, draft: Draft, generator: str) -> Made:
    """The entry of a draft. The text of a broken one is in no file."""
    text = "" if draft.broken else draft.text
    return Made(id, text, draft.logprobs, draft.usage, generator, draft.broken, draft.log)


def _within(draft: Draft, longest: int) -> Draft:
    """The draft; without its text, if that is too long or has too many tokens."""
    size = max(len(draft.text), len(draft.logprobs or ()))
    if draft.broken or size <= longest:
        return draft
    broken = f"{size:,} characters or tokens, and --longest-candidate is {longest:,}"
    return Draft("", None, draft.usage, broken, log=draft.log)
