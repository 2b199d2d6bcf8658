"""One live search: claimed and run, joined if another caller runs it, or read if it has ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property

import anyio
import anyio.lowlevel

from ..backends import tracing
from ..backends.protocols import Problem
from ..core.values import Reason, Stop
from .batches import Batches
from .budget import RunBudget
from .calls import Caller
from .config import SearchConfig
from .experience import Experience
from .ledger_writer import LedgerWriter, claim_when_free, in_ledger_thread
from .loop import Loop
from .own_models import OwnModels
from .record import ReadOnly, SearchRecord
from .solution import UNFINISHED, Solution


def nothing() -> None:
    """Do nothing after a step."""


async def no_wait() -> None:
    """Give way to no other search."""


@dataclass(frozen=True)
class OpenSearch:
    """A search that was read from the ledger and can go on, one turn at a time.

    Attributes:
        loop: carries out its steps.
        config: how to search, as it was decided for this search.
        record: what the ledger has of it.
        experience: learns from its end.
        models: are trained again after its end.
    """

    loop: Loop
    config: SearchConfig
    record: SearchRecord
    experience: Experience
    models: OwnModels

    @property
    def spent(self) -> float:
        """What it has possibly paid."""
        return self.record.tally.paid

    @property
    def next_cost(self) -> float:
        """What it will spend until its next verdict, as it expects."""
        return self.loop.to_verdict

    @property
    def prediction(self) -> float | None:
        """What it is predicted to cost in all, by the prior that decides; None without one."""
        return self.loop.prediction

    async def is_outdated(self) -> bool:
        """Whether there is a newer prior than the one that decides."""
        if not (self.config.waits and _may_change_prior(self.record)):
            return False
        prior = await self.experience.prior()
        return prior is not None and prior is not self.config.prior

    async def turn(self) -> Solution | None:
        """Search until a new verdict is told, or to the end; None if the search has to go on."""
        solution = await self.loop.turn()
        return None if solution is None else await self._ended(solution)

    async def stop(self, why: str) -> Solution:
        """End the search, because there is no money for it."""
        return await self._ended(await self.loop.end(Stop(Reason.OUT_OF_BUDGET, why=why)))

    async def _ended(self, solution: Solution) -> Solution:
        await self.experience.add(self.record)
        if self.record.ended is not None:
            self.models.ended()
        return replace(solution, policy=self.config.policy_name)


def _may_change_prior(record: SearchRecord) -> bool:
    """Whether a search that has begun may take another prior.

    It may if it has spent twice as much as at its last start: so all its courses together cost at
    most three times what one of them may cost (docs/theory/guard.md). A prior does not say
    what the scores of a trained model mean, so a search with such a score keeps its own.
    """
    first = next(iter(record.made.values()), None)
    is_own = not record.scorer or (first is not None and bool(first.logprobs))
    return is_own and record.tally.paid >= 2 * record.paid_at_start


@dataclass(frozen=True)
class LiveSearch:
    """The search for the answer to one problem, with all that it works with.

    Attributes:
        problem: what to answer.
        config: how to search.
        writer: writes to the ledger.
        caller: makes the calls.
        budget: what the run may spend.
        on_step: called after each step.
        outside: the context in which the search only waits: for another caller that runs the same
            search, or for a verdict from outside.
        give_way: waits for the next turn of the search, after each verdict.
        batches: sends requests in batches, if a generator is to be asked so.
    """

    problem: Problem
    config: SearchConfig
    writer: LedgerWriter
    caller: Caller
    budget: RunBudget
    on_step: Callable[[], None] = nothing
    outside: Callable[[], AbstractContextManager[None]] = nullcontext
    give_way: Callable[[], Awaitable[None]] = no_wait
    batches: Batches | None = None

    @cached_property
    def id(self) -> str:
        """Its id in the ledger."""
        return self.config.search_id(self.problem)

    async def find(self) -> Solution:
        """The recorded solution, or else that of a search, which only one caller at a time runs."""
        record, is_claimed = await in_ledger_thread(self._take)
        if is_claimed:
            return await self._run_claimed(record)
        recorded = await self.recorded(record)
        return await self._claimed() if recorded is None else recorded

    def _take(self) -> tuple[SearchRecord, bool]:
        """The record, and whether it is claimed: if the search has not ended, and nobody has it.

        A thread calls this.
        """
        ledger = self.writer.ledger
        record = self.read(live=False)
        if record.ended is not None or not ledger.claim(self.id):
            return record, False
        try:
            if len(ledger.read(self.id)) != len(record.entries):  # another caller had it
                return self.read(), True
            record.write_to(self.writer)
            return record, True
        except BaseException:
            ledger.release(self.id)
            raise

    async def _claimed(self) -> Solution:
        """The solution of a search that has none on record, as far as the caller knows.

        If another caller runs the search, in this process or in another one, wait for its result;
        if that caller dies, take over.
        """
        ledger = self.writer.ledger
        if not await in_ledger_thread(ledger.claim, self.id):
            with self.outside():
                await claim_when_free(ledger, self.id)
        return await self._run_claimed()

    async def _run_claimed(self, record: SearchRecord | None = None) -> Solution:
        """Run the search, and give its claim up: with its end, if the ledger can."""
        try:
            if record is None:
                record = await in_ledger_thread(self.read)
            record.releases = True
            return await self.run(record)
        finally:
            if record is None or not record.released:
                with anyio.CancelScope(shield=True):
                    await in_ledger_thread(self.writer.ledger.release, self.id)

    async def run(self, record: SearchRecord | None = None) -> Solution:
        """Search for a verified answer. Results in the ledger are reused, not paid for again."""
        with self.traced() as span:
            search = await self.open(record)
            while (solution := await search.turn()) is None:
                await self.give_way()
            span.attributes(solution.traced)
            return solution

    def traced(self) -> AbstractContextManager[tracing.Told]:
        """A span for what the search does in this context, if anybody records it."""
        return tracing.searching(self.problem, self.id)

    def read(self, *, live: bool = True) -> SearchRecord:
        """The record of the search; if it is not `live`, it can only be read.

        A thread calls this: checks are parsed, files read.
        """
        entries = self.writer.ledger.read(self.id)
        conditions = self.config.conditions(self.problem)
        return SearchRecord(self.writer if live else None, self.id, entries, conditions)

    async def open(self, record: SearchRecord | None = None) -> OpenSearch:
        """The search over its record, which is read if it is not given. The caller has its claim.

        If searches wait for each other, one that learns may take a newer prior than it had.
        """
        await anyio.lowlevel.checkpoint_if_cancelled()  # as the claim was taken: nothing is begun
        if record is None:
            record = await in_ledger_thread(self.read)
        experience = Experience.of(self.config, self.writer)
        models = OwnModels.of(self.config, self.writer)
        trained = None
        if self.config.is_auto and not record.scorer:
            learns = self.config.learns and not self.config.is_named
            trained = await models.newest(learns=learns)
        config = self.config.recorded(record.started)
        if config is None or (self.config.waits and _may_change_prior(record)):
            own = None if trained is None else trained.prior
            prior = own or await experience.prior()
            if config is None or prior is not None:
                config = self.config.chosen(prior)
        model = None if trained is None else trained.model
        loop = Loop(self, config, record, model)
        if record.made:
            await loop.catch_up()
        return OpenSearch(loop, config, record, experience, models)

    async def recorded(self, record: SearchRecord) -> Solution | None:
        """The solution of a search that has ended; None if it has to start or to continue.

        The record is not live: this writes nothing, so it needs no claim.
        """
        if record.ended is None:
            return None
        config = self.config.recorded(record.started)
        if config is None:
            return None
        loop = Loop(self, config, record)
        try:
            solution = await loop.recorded_end() or await loop.solution()
        except ReadOnly:
            if record.ended.reason != Reason.SOLVED.value:
                return None
            # Less money than now may have decided a step: then the same money leads to the answer.
            loop = Loop(self, config, record)
            loop.restrict(record.ended.total)
            try:
                solution = await loop.solution()
            except ReadOnly:
                return None
        return replace(solution, policy=config.policy_name)

    async def so_far(self) -> Solution:
        """The solution, which is unfinished unless the search has ended. This writes nothing."""
        record = await in_ledger_thread(self.read, live=False)
        config = self.config.recorded(record.started) or self.config.chosen(None)
        loop = Loop(self, config, record)
        try:
            return await loop.solution()
        except ReadOnly:
            return loop.solved(UNFINISHED)
