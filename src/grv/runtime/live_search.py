"""One live search: claimed and run, joined if another caller runs it, or read if it has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial

import anyio
import anyio.to_thread

from ..backends.callables import in_thread
from ..backends.protocols import Problem
from ..conditions import Conditions
from ..core.values import Reason
from ..ledger.entries import Ended, Entry
from .budget import RunBudget
from .calls import Caller
from .config import SearchConfig
from .experience import Experience
from .ledger_writer import LedgerWriter, claim, claim_when_free
from .loop import Loop
from .own_models import OwnModels
from .record import ReadOnly, SearchRecord
from .solution import UNFINISHED, Solution


def nothing() -> None:
    """Do nothing after a step."""


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
    """

    problem: Problem
    config: SearchConfig
    writer: LedgerWriter
    caller: Caller
    budget: RunBudget
    on_step: Callable[[], None] = nothing
    outside: Callable[[], AbstractContextManager[None]] = nullcontext

    @cached_property
    def id(self) -> str:
        """Its id in the ledger."""
        return self.config.search_id(self.problem)

    async def find(self) -> Solution:
        """The recorded solution, or else that of a search, which only one caller at a time runs."""
        recorded = await self.recorded(await self._read())
        return await self.claimed() if recorded is None else recorded

    async def claimed(self) -> Solution:
        """The solution of a search that has none on record, as far as the caller knows.

        If another caller runs the search, in this process or in another one, wait for its result;
        if that caller dies, take over.
        """
        ledger = self.writer.ledger
        if not await claim(ledger, self.id):
            with self.outside():
                await claim_when_free(ledger, self.id)
        try:
            return await self.run()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(ledger.release, self.id)

    async def run(self) -> Solution:
        """Search for a verified answer. Results in the ledger are reused, not paid for again."""
        conditions = partial(self.config.conditions, self.problem)
        record = await SearchRecord.open(self.writer, self.id, conditions)
        experience = Experience.of(self.config, self.writer)
        models = OwnModels.of(self.config, self.writer)
        newest = None
        if self.config.is_auto and not record.scorer:
            learns = self.config.learns and not self.config.is_named
            newest = await in_thread(partial(models.newest, learns=learns))
        config = self.config.recorded(record.started)
        if config is None:
            own = None if newest is None else newest.prior
            config = self.config.chosen(own or await experience.prior())
        model = None if newest is None else newest.model
        solution = await Loop(self, config, record, model).solution()
        await experience.add(record)
        if record.ended is not None:
            models.ended()
        return replace(solution, policy=config.policy_name)

    async def recorded(self, entries: Sequence[Entry]) -> Solution | None:
        """The solution of a search that has ended; None if it has to start or to continue.

        This writes nothing, so it needs no claim.
        """
        if not any(isinstance(entry, Ended) for entry in entries):
            return None
        record = SearchRecord(None, self.id, entries, await self._conditions())
        config = self.config.recorded(record.started)
        if record.ended is None or config is None:
            return None
        try:
            solution = await Loop(self, config, record).solution()
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
        record = SearchRecord(None, self.id, await self._read(), await self._conditions())
        config = self.config.recorded(record.started) or self.config.chosen(None)
        loop = Loop(self, config, record)
        try:
            return await loop.solution()
        except ReadOnly:
            return loop.solved(UNFINISHED)

    async def _read(self) -> Sequence[Entry]:
        return await anyio.to_thread.run_sync(self.writer.ledger.read, self.id)

    async def _conditions(self) -> Conditions | None:
        """The conditions of verdicts now, found in a thread: checks are parsed, files read."""
        return await anyio.to_thread.run_sync(self.config.conditions, self.problem)
