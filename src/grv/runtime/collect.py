"""Generate and score so many candidates a problem and verify them, for a log.

Nothing is decided here and a pass ends nothing, so there is no `Search`; what is paid for is
recorded, and not paid for again, by the same `Executor` and `SearchRecord`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from ..backends.protocols import Problem
from ..core.errors import BackendError, UsageError
from ..core.values import CandidateId, Costs, Event, Generate, Generated, Verdict, Verified, Verify
from ..ledger.entries import Call, Ended, Failed, Started, Told
from ..ledger.ledger import Ledger, MemoryLedger
from .calls import Caller
from .config import SearchConfig
from .executor import Backends, Executor
from .ledger_writer import LedgerWriter
from .prices import Meter
from .search_record import OWN_KEYS, SearchRecord
from .tasks import together

COLLECTED = "collected"
_CHUNK = 32  # candidates of a problem that are generated, or verified, at once


@dataclass(frozen=True)
class Collection:
    """What is collected of each problem, and with what.

    Attributes:
        backends: who generates, scores and verifies.
        n: candidates a problem.
        sample: how many of them are verified, drawn at random; None is all.
        seed: what the sample is drawn from.
        costs: the price list of the totals in the ledger.
        meter: what calls really cost, for the rows.
        about: as in `SearchConfig`; a search and a collection share what is on record.
    """

    backends: Backends
    n: int
    sample: int | None = None
    seed: int = 0
    costs: Costs = field(default_factory=Costs)
    about: Mapping[str, Any] = field(default_factory=dict)
    meter: Meter | None = None

    def __post_init__(self) -> None:
        if self.n < 1:
            raise UsageError(f"there must be at least one candidate a problem, not {self.n}")
        if self.sample is not None and self.sample < 0:
            raise UsageError(f"{self.sample} candidates cannot be verified")

    def search_id(self, problem: Problem) -> str:
        """The collection's name in a ledger."""
        return SearchConfig(self.backends, about=self.about).search_id(problem)

    def started(self, problem: Problem) -> Started:
        """The entry with which it begins."""
        verify = "all" if self.sample is None else self.sample
        plan: dict[str, Any] = {"collect": self.n, "verify": verify}
        if self.backends.own_keys:
            plan[OWN_KEYS] = True
        return Started(problem.id, {**self.about, **plan})

    def chosen(self, problem: Problem, made: int) -> Sequence[int]:
        """Which of so many candidates are verified, in order. The same ones every time."""
        if self.sample is None or self.sample >= made:
            return range(made)
        drawn = random.Random(f"{self.seed} {problem.id}").sample(range(made), self.sample)
        return sorted(drawn)


@dataclass(frozen=True, slots=True)
class Labelled:
    """One row of a log. `passed` is None where nobody asked, or the verifier could not tell.

    Costs are None where nobody measured them. That of verifying is the class's, like the label.
    """

    candidate: int
    passed: bool | None
    score: float | None
    key: str | None
    generate_cost: float | None = None
    verify_cost: float | None = None


@dataclass(frozen=True)
class Collected:
    """What there is of one problem.

    Attributes:
        problem: which.
        rows: a row a candidate.
        verified: how many verifications are on record for them.
        broken: candidates that were to be verified and have no label all the same.
        lost: calls that were in flight when a process died: possibly paid, lost.
        message: why there is not more, if a backend failed for good.
    """

    problem: str
    rows: tuple[Labelled, ...]
    verified: int
    broken: int
    lost: Mapping[Call, int]
    message: str = ""


Progress = Callable[[int], None]  # so many candidates more are generated, or have their label


async def collect(
    problem: Problem,
    collection: Collection,
    *,
    ledger: Ledger | None = None,
    caller: Caller | None = None,
    progress: Progress = lambda done: None,
) -> Collected:
    """Generate, score and verify; what the ledger holds is not paid for again."""
    writer = LedgerWriter(ledger or MemoryLedger())
    return await _collect(problem, collection, writer, caller or Caller(), progress)


async def collect_many(
    problems: Iterable[Problem],
    collection: Collection,
    *,
    ledger: Ledger | None = None,
    caller: Caller | None = None,
    progress: Progress = lambda done: None,
    done: Callable[[Collected], None],
) -> None:
    """Collect from many problems at once, and hand over each as it is done.

    Problems that another process is working on are left to it.
    """
    ledger, caller = ledger or MemoryLedger(), caller or Caller()
    writer, slots = LedgerWriter(ledger), anyio.Semaphore(caller.calls.concurrency)

    async def one(problem: Problem) -> None:
        search = collection.search_id(problem)
        async with slots:
            if not await anyio.to_thread.run_sync(ledger.claim, search):
                return
            try:
                done(await _collect(problem, collection, writer, caller, progress))
            finally:
                ledger.release(search)

    await together([partial(one, problem) for problem in problems])


async def _collect(
    problem: Problem,
    collection: Collection,
    writer: LedgerWriter,
    caller: Caller,
    progress: Progress,
) -> Collected:
    record = await SearchRecord.open(writer, collection.search_id(problem))
    await record.begin(collection.started(problem))
    executor = Executor(problem, collection.backends, caller, record)
    chosen: Sequence[int] = ()
    try:
        made = await _generate(executor, collection.n, progress)
        chosen = collection.chosen(problem, made)
        await _verify(executor, chosen, progress)
    except BackendError as error:
        await record.write(Failed(str(error)))
        return _collected(problem, record, collection, chosen, message=str(error))
    found = _collected(problem, record, collection, chosen)
    total = collection.costs.of(made, found.verified)
    ended = Ended(COLLECTED, None, made, found.verified, total)
    if record.ended != ended:
        await record.write(ended)
    return found


async def _generate(executor: Executor, n: int, progress: Progress) -> int:
    """Candidates with scores, a chunk at a time; how many there are, if need be fewer."""
    made = 0
    while made < n:
        step = Generate(min(_CHUNK, n - made), f"{n} are collected")
        event = await executor.carry_out(step, made)
        assert isinstance(event, Generated)
        await executor.record.tell(Told(event, step.why))
        made += len(event.scores)
        progress(len(event.scores))
        if len(event.scores) < step.n:
            break
    return made


async def _verify(executor: Executor, chosen: Sequence[int], progress: Progress) -> None:
    """Verdicts for the chosen, one candidate of a class at a time: if it fails, so do the others.

    Where it passes, only those with the same text pass with it (or all, by the user's own keys).
    """
    record, events = executor.record, list[Event]()
    todo = _without_verdict(record, chosen)
    progress(len(chosen) - len(todo))
    while todo:
        firsts = {record.class_of(id): id for id in reversed(todo)}
        ids = [CandidateId(id) for id in sorted(firsts.values())[:_CHUNK]]
        failures = await together([partial(_find, executor, id) for id in ids])
        if failures:
            raise failures[0]
        events.append(Verified({id: record.found[id].verdict for id in ids}))
        await record.tell(Told(events[-1], "all that are collected"))
        executor.refuse_broken(reversed(events))
        left = _without_verdict(record, chosen)
        progress(len(todo) - len(left))
        todo = left


def _without_verdict(record: SearchRecord, chosen: Iterable[int]) -> list[int]:
    """Those of the chosen that are still to be verified."""
    known = record.verdicts_from()
    return [id for id in chosen if id not in known and id not in record.found]


async def _find(executor: Executor, id: CandidateId) -> None:
    """One verdict, by itself: a step of several would end with its first pass."""
    await executor.carry_out(Verify((id,)), 0)


def _collected(
    problem: Problem,
    record: SearchRecord,
    collection: Collection,
    chosen: Sequence[int],
    *,
    message: str = "",
) -> Collected:
    labels = _labels(record, chosen)
    ids = [id for id in range(collection.n) if id in record.scored]
    meter = collection.meter
    verifying = {} if meter is None else record.verifying(meter)
    return Collected(
        problem.id,
        tuple(
            Labelled(
                id,
                labels.get(id),
                record.scored[id].score,
                record.scored[id].key,
                None if meter is None else record.making(meter, id),
                verifying.get(id) if id in labels else None,
            )
            for id in ids
        ),
        sum(id in record.found for id in ids),
        len(chosen) - len(labels),
        dict(record.lost),
        message,
    )


def _labels(record: SearchRecord, chosen: Iterable[int]) -> dict[int, bool]:
    """The verdicts of those chosen, and of nobody else.

    To label the rest of a class as well would cost nothing, but those with a label would then no
    longer be a fair sample: large classes would be in it more often.
    """
    known = record.verdicts_from()
    return {id: record.found[known[id]].verdict is Verdict.PASSED for id in chosen if id in known}
