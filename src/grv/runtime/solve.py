"""Search for a verified answer: one problem, or many under one budget."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio

from ..backends.protocols import Draft, Problem, Usage
from ..core.errors import BackendError, UsageError
from ..core.search import Policy, Search
from ..core.values import Bill, Cascade, Costs, Measured, Reason, Stop, Verified, Verify
from ..ledger.entries import Call, Ended, Failed, Started, Told
from ..ledger.ledger import Ledger, MemoryLedger
from ..policies import DEFAULT, spec
from .book import OWN_KEYS, Book, Scribe
from .calls import Calls
from .desk import Backends, Desk, first_error
from .money import Gate, OutOfMoney, Purse
from .prices import Meter

FAILED = "failed"


@dataclass(frozen=True)
class Solution:
    """How a live search ended.

    Attributes:
        problem: which.
        outcome: solved, finished, exhausted, out of budget or failed.
        draft: the verified answer; else the best candidate, which nobody has verified; or none.
        verified: whether `draft` passed.
        bill: what was spent, in the unit of the costs.
        usage: what that really used, by kind of call.
        unneeded: verifications in flight when another one passed: paid but unneeded.
        lost: calls that were in flight when a process died: possibly paid, lost.
        unscored: candidates whose score could not be had.
        search: its name in the ledger.
        message: why it failed, or why it gave up, if it did.
    """

    problem: str
    outcome: str
    draft: Draft | None
    verified: bool
    bill: Bill
    usage: Mapping[Call, Usage]
    unneeded: int = 0
    lost: Mapping[Call, int] = field(default_factory=dict)
    unscored: int = 0
    search: str = ""
    message: str = ""


@dataclass(frozen=True)
class Job:
    """With what problems are solved.

    Attributes:
        backends: who generates, scores and verifies.
        policy: what decides.
        costs: the price list it plans with.
        budget: the most that one problem may cost.
        width: verifications in flight at once.
        value: what an answer is worth; without end, no search gives up.
        most: what one candidate and one verification can cost at most, where costs are measured:
            budgets reserve it.
        meter: what calls really cost, for costs that are measured.
        cascade: how second scores are used, if there are any.
        about: what else makes a run what it is (model, temperature, seed): results on record are
            used again where this and the problem are the same, whatever policy and budget are.
    """

    backends: Backends
    policy: Policy = DEFAULT
    costs: Costs = field(default_factory=Costs)
    budget: float = math.inf
    width: int | None = 8
    about: Mapping[str, Any] = field(default_factory=dict)
    value: float = math.inf
    most: Costs | None = None
    meter: Meter | None = None
    cascade: Cascade | None = None

    def __post_init__(self) -> None:
        self.search()  # which checks them
        if isinstance(self.costs, Measured) != (self.meter is not None):
            raise UsageError("costs that are measured need a meter, and others have no use for one")
        if (self.cascade is None) != (self.backends.second is None):
            raise UsageError("a cascade and a second scorer belong together")
        if self.meter is not None and self.most is None and math.isfinite(self.budget):
            raise UsageError(
                "a budget over measured costs needs the most that one candidate and one"
                " verification can cost"
            )

    @property
    def reserve(self) -> Costs:
        """What a candidate and a verification are reserved at before they are paid."""
        return self.costs if self.most is None else self.most

    @property
    def second_cost(self) -> float:
        """What a second score is reserved at."""
        return 0.0 if self.cascade is None else self.cascade.cost

    def search(self) -> Search:
        """A search of this kind, at its beginning."""
        return Search(
            self.policy,
            self.costs,
            budget=self.budget,
            value=self.value,
            most=self.most,
            cascade=self.cascade,
            width=self.width,
        )

    def search_id(self, problem: Problem) -> str:
        """The search's name in a ledger: what it is about, and the problem."""
        content = [problem.id, problem.prompt, dict(problem.check), dict(self.about)]
        text = json.dumps(content, sort_keys=True, default=str)
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()

    def started(self, problem: Problem) -> Started:
        """The entry with which such a search begins."""
        plan = {
            "policy": _name(self.policy),
            "costs": [self.costs.generate, self.costs.verify, self.costs.score],
            "budget": None if math.isinf(self.budget) else self.budget,
            "width": self.width,
        }
        if self.backends.own_keys:
            plan[OWN_KEYS] = True
        if math.isfinite(self.value):
            plan["value"] = self.value
        if self.meter is not None:
            plan["measured"] = True
        if self.most is not None:
            plan["most"] = [self.most.candidate, self.most.verify]
        if self.cascade is not None:
            plan["cascade"] = [self.cascade.top, self.cascade.cost]
        return Started(problem.id, {**self.about, **plan})


async def solve(
    problem: Problem,
    job: Job,
    *,
    ledger: Ledger | None = None,
    calls: Calls | None = None,
    purse: Purse | None = None,
) -> Solution:
    """Search for a verified answer to one problem; what the ledger holds is not paid for again."""
    return await _solve(
        problem, job, Scribe(ledger or MemoryLedger()), calls or Calls(), purse or Purse()
    )


async def _solve(
    problem: Problem, job: Job, scribe: Scribe, calls: Calls, purse: Purse
) -> Solution:
    book = await Book.open(scribe, job.search_id(problem))
    await book.begin(job.started(problem))
    search = job.search()
    desk = Desk(problem, job.backends, calls, book, job.meter)
    try:
        while not isinstance(action := search.ask(), Stop):
            seen = len(search.pool)
            before = desk.recorded(action, seen)
            with purse.reserved(desk.price(action, seen, job.reserve, job.second_cost)) as held:
                event = await desk.carry_out(action, seen, search.pool.costs)
                if event.paid is not None:
                    held.paid = max(0.0, event.paid - before)
            await book.tell(Told(event, action.why))
            search.tell(event)
            desk.refuse_broken(turn.event for turn in reversed(search.trace))
    except OutOfMoney:
        action = Stop(Reason.OUT_OF_BUDGET)
    except BackendError as error:
        await book.write(Failed(str(error)))
        return _solution(problem, search, desk, FAILED, message=str(error))
    bill = search.bill
    counts = (bill.generated, bill.verified, bill.total)
    ended = Ended(action.reason.value, action.answer, *counts, action.why)
    if book.ended != ended:
        await book.write(ended)
    return _solution(
        problem, search, desk, action.reason.value, answer=action.answer, message=action.why
    )


async def solve_many(
    problems: Iterable[Problem],
    job: Job,
    *,
    ledger: Ledger | None = None,
    calls: Calls | None = None,
    purse: Purse | None = None,
    at_once: int | None = None,
) -> AsyncGenerator[Solution]:
    """Search for answers to many problems at once, under one budget; each as it ends.

    Problems that another process is working on are left to it.
    """
    ledger, calls = ledger or MemoryLedger(), calls or Calls()
    scribe, purse = Scribe(ledger), purse or Purse()
    todo = list(problems)
    if math.isfinite(purse.total):
        purse.spend(sum(recorded(ledger, job, problem) for problem in todo))
    send, receive = anyio.create_memory_object_stream[Solution](math.inf)
    gate = Gate(at_once or 2 * calls.concurrency, purse, job.costs, job.budget)

    async def one(problem: Problem) -> None:
        search = job.search_id(problem)
        try:
            if not await anyio.to_thread.run_sync(ledger.claim, search):
                return
            try:
                await send.send(await _solve(problem, job, scribe, calls, purse))
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(ledger.release, search)
        finally:
            gate.leave()

    async def everything() -> None:
        async with send, anyio.create_task_group() as group:
            for problem in todo:
                await gate.enter()  # here: ten thousand tasks that wait take room too
                group.start_soon(one, problem)

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(everything)
            async with receive:
                async for solution in receive:
                    yield solution
    except BaseExceptionGroup as errors:
        raise first_error(errors) from errors


def solve_now(problem: Problem, job: Job, **options: Any) -> Solution:
    """`solve`, for programs that are not asynchronous."""
    return anyio.run(partial(solve, problem, job, **options))


def recorded(ledger: Ledger, job: Job, problem: Problem) -> float:
    """What a search may have cost before: at the price list, or as measured."""
    search = job.search_id(problem)
    book = Book(Scribe(ledger), search, ledger.read(search))
    return book.cost(job.reserve, job.second_cost, job.meter)


def _name(policy: Policy) -> str:
    """A policy's specification, or its repr where it is somebody's own."""
    try:
        return spec.spec(policy)
    except ValueError:
        return repr(policy)


def _solution(
    problem: Problem,
    search: Search,
    desk: Desk,
    outcome: str,
    *,
    answer: int | None = None,
    message: str = "",
) -> Solution:
    book = desk.book
    best = search.pool.best(1)
    chosen = answer if answer is not None else next(iter(best), None)
    unneeded = sum(
        len(turn.action.ids) - len(turn.event.verdicts)
        for turn in search.trace
        if isinstance(turn.action, Verify) and isinstance(turn.event, Verified)
    )
    usage: dict[Call, Usage] = {
        "generate": _used(book.made.values()),
        "score": _used(book.scored.values()),
        "verify": _used(book.found.values()),
    }
    if book.scored_again:
        usage["rescore"] = _used(book.scored_again.values())
    return Solution(
        problem.id,
        outcome,
        None if chosen is None else desk.draft(chosen),
        answer is not None,
        search.bill,
        usage,
        unneeded,
        Counter(book.lost),
        sum(entry.score is None for entry in book.scored.values()),
        book.search,
        message,
    )


def _used(entries: Iterable[Any]) -> Usage:
    total = Usage()
    for entry in entries:
        total += Usage.of(entry.usage)
    return total
