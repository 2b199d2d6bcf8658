"""Collect: generate, score and verify a number of candidates per problem.

For a log the number is fixed. No policy decides anything and a pass does not end the work, so there
is no `Search`. With a target, `Seeker` decides when there are enough answers and failures. The
`Executor` and the `SearchRecord` are the same as in a search: recorded results are not paid for
again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from ..backends.protocols import Problem
from ..core.errors import BackendError, UsageError
from ..core.values import (
    Bill,
    CandidateId,
    Costs,
    Event,
    Generate,
    Generated,
    Verdict,
    Verified,
    Verify,
)
from ..ledger.entries import Call, Ended, Failed, Started, Told, recorded_prices
from ..ledger.labels import OWN_KEYS
from ..ledger.ledger import Ledger, MemoryLedger
from .budget import Reserves
from .calls import Caller
from .config import search_id, started_entry
from .executor import Backends, Executor
from .ledger_writer import LedgerWriter, claim_when_free
from .prices import Meter
from .progress import CandidateListener
from .record import SearchRecord
from .seeking import Seeker
from .solution import bill_of
from .stage_columns import stage_columns
from .tasks import together
from .training import Target

COLLECTED = "collected"
_CHUNK = 32  # candidates of one problem that are generated or verified at once


@dataclass(frozen=True)
class Collection:
    """What to collect per problem, and with which backends.

    Attributes:
        backends: the generator, scorer and verifier.
        n: the number of candidates per problem; with a target, the most.
        sample: the number of candidates to verify, drawn at random; None means all.
        seed: the seed of the sample.
        costs: the price list for the totals in the ledger.
        meter: computes the measured cost of calls, for the rows.
        target: how many answers and failures to find, if not all candidates are verified.
        about: as in `SearchConfig`; a search and a collection share recorded results.
    """

    backends: Backends
    n: int
    sample: int | None = None
    seed: int = 0
    costs: Costs = field(default_factory=Costs)
    about: Mapping[str, Any] = field(default_factory=dict)
    meter: Meter | None = None
    target: Target = field(default_factory=Target)

    def __post_init__(self) -> None:
        if self.n < 1:
            raise UsageError(f"n must be at least 1, not {self.n}: the candidates per problem")
        if self.sample is not None and self.sample < 0:
            raise UsageError(f"the number of candidates to verify cannot be {self.sample}")

    def search_id(self, problem: Problem) -> str:
        """The id of the collection in a ledger; a search with equal settings has the same."""
        return search_id(problem, self.about)

    def started(self, problem: Problem) -> Started:
        """The first ledger entry of the collection."""
        verify = "all" if self.sample is None else self.sample
        costs = recorded_prices(self.costs)
        plan: dict[str, Any] = {"collect": self.n, "verify": verify, "costs": costs}
        if self.target.is_set:
            plan |= asdict(self.target)
        if self.meter is not None:
            plan["measured"] = True
        if self.backends.own_keys:
            plan[OWN_KEYS] = True
        return started_entry(problem, {**self.about, **plan})

    def chosen(self, problem: Problem, made: int) -> Sequence[int]:
        """The candidates to verify among `made`, in order; the same in every run."""
        if self.sample is None or self.sample >= made:
            return range(made)
        drawn = random.Random(f"{self.seed} {problem.id}").sample(range(made), self.sample)
        return sorted(drawn)


@dataclass(frozen=True, slots=True)
class LogRow:
    """One row of a log.

    `passed` is None if the candidate was not verified or its verdict is broken. Costs are None if
    they were not measured. The label and the cost of verifying are shared by the class. A candidate
    that was refuted without verification has no key. `failed_stage` and `stage_costs` are None if
    the check has no stages.
    """

    candidate: int
    passed: bool | None
    score: float | None
    key: str | None
    generate_cost: float | None = None
    verify_cost: float | None = None
    refuted: bool = False
    failed_stage: str | None = None
    stage_costs: str | None = None


@dataclass(frozen=True)
class Collected:
    """The collected candidates of one problem.

    Attributes:
        problem: the problem's id.
        rows: one row per candidate.
        verified: the number of recorded verifications of these candidates.
        failed: how many of them failed.
        shared: the number of their verdicts that cost nothing because they were known.
        broken: the number of candidates chosen for verification that have no label.
        lost: candidates per call whose attempt may have been paid for and has no result.
        message: the error, if a backend failed permanently.
        score: what the score `auto` has stood for; see `Solution`.
    """

    problem: str
    rows: tuple[LogRow, ...]
    verified: int
    broken: int
    lost: Mapping[Call, int]
    message: str = ""
    shared: int = 0
    score: str = ""
    failed: int = 0


async def collect_many(
    problems: Iterable[Problem],
    collection: Collection,
    *,
    ledger: Ledger | None = None,
    caller: Caller | None = None,
    progress: CandidateListener = lambda done: None,
    done: Callable[[Collected], None],
) -> None:
    """Collect many problems at once; call `done` with each when it is complete.

    Results in the ledger are reused, not paid for again. If another process works on a problem,
    wait for it. `progress` is called with the number of candidates generated or labelled since
    its last call; with a target, it is called with 1 after each problem.
    """
    ledger = ledger or MemoryLedger()
    caller = caller or Caller()
    writer = LedgerWriter(ledger)
    lanes = caller.lanes
    slots = anyio.CapacityLimiter(lanes.room)  # each problem makes a call at a time, or more

    def grow() -> None:
        slots.total_tokens = lanes.room

    async def one(problem: Problem) -> None:
        search = collection.search_id(problem)
        async with slots:
            await claim_when_free(ledger, search)
            try:
                done(await _collect(problem, collection, writer, caller, progress))
            finally:
                ledger.release(search)

    lanes.on_growth.append(grow)
    try:
        await together([partial(one, problem) for problem in problems])
    finally:
        lanes.on_growth.remove(grow)


async def _collect(
    problem: Problem,
    collection: Collection,
    writer: LedgerWriter,
    caller: Caller,
    progress: CandidateListener,
) -> Collected:
    conditions = partial(collection.backends.conditions, problem)
    record = await SearchRecord.open(writer, collection.search_id(problem), conditions)
    reserves = Reserves(collection.costs if collection.meter is None else None)
    executor = Executor(
        problem,
        collection.backends,
        caller,
        record,
        meter=collection.meter,
        reserves=reserves,
        answers=2 if collection.target.is_set else 1,
    )
    scorer = await executor.pin_scorer(record.scorer)  # a log has no score that changes
    record.begin(replace(collection.started(problem), conditions=record.conditions, scorer=scorer))
    await executor.recall()
    chosen: Sequence[int] = ()
    try:
        if collection.target.is_set:
            await Seeker(executor, collection.target, collection.n, collection.costs).seek()
            chosen = sorted({*record.found, *record.verdicts_from()})
            progress(1)
        else:
            made = await _generate(executor, collection.n, progress)
            chosen = collection.chosen(problem, made)
            await _verify(executor, chosen, progress)
    except BackendError as error:
        await record.write(Failed(str(error)))
        return _collected(problem, record, collection, chosen, message=str(error))
    collected = _collected(problem, record, collection, chosen)
    made = len(collected.rows)
    total = collection.costs.of(made, collected.verified, collected.failed)
    told = Bill(made, collected.verified, total)
    bill = bill_of(told, record.tally, made)
    ended = Ended(COLLECTED, None, bill.generated, bill.verified, bill.total, shared=bill.shared)
    await record.end(ended)
    return replace(collected, score=executor.ranked_by)


async def _generate(executor: Executor, n: int, progress: CandidateListener) -> int:
    """Generate and score `n` candidates in chunks; return the number made, which may be lower."""
    made = 0
    while made < n:
        step = Generate(min(_CHUNK, n - made), f"collect {n} candidates")
        event = await executor.carry_out(step, made)
        assert isinstance(event, Generated)
        executor.record.tell(Told(event, step.why))
        made += len(event.scores)
        progress(len(event.scores))
        if len(event.scores) < step.n:
            break
    return made


async def _verify(executor: Executor, chosen: Sequence[int], progress: CandidateListener) -> None:
    """Verify the chosen candidates, one of each class at a time: if it fails, so do the others.

    If it passes, those with the same text pass with it; with the user's own keys, the whole class.
    """
    record = executor.record
    events = list[Event]()
    todo = _without_verdict(record, chosen)
    progress(len(chosen) - len(todo))
    while todo:
        firsts = {record.class_of(id): id for id in reversed(todo)}
        ids = [CandidateId(id) for id in sorted(firsts.values())[:_CHUNK]]
        failures = await together([partial(_find, executor, id) for id in ids])
        if failures:
            raise failures[0]
        shared = frozenset(id for id in ids if record.found[id].shared)
        verdicts = {id: record.found[id].verdict for id in ids}
        events.append(Verified(verdicts, shared=shared))
        record.tell(Told(events[-1], "verify the chosen candidates"))
        executor.stop_if_broken(reversed(events))
        left = _without_verdict(record, chosen)
        progress(len(todo) - len(left))
        todo = left


def _without_verdict(record: SearchRecord, chosen: Iterable[int]) -> list[int]:
    """The chosen candidates that are still to be verified."""
    sources = record.verdicts_from()
    todo = [id for id in chosen if id not in sources and id not in record.found]
    return [id for id in todo if not record.refuted(id) and not record.dropped(id)]


async def _find(executor: Executor, id: CandidateId) -> None:
    """Verify one candidate in a step of its own: the first pass ends a step of several."""
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
    verify_costs = {} if meter is None else record.costs_of_verifying(meter)
    sources = record.verdicts_from()
    findings = [record.found[id] for id in ids if id in record.found]
    shared = sum(each.shared for each in findings)
    return Collected(
        problem.id,
        tuple(
            LogRow(
                id,
                labels.get(id),
                record.scored[id].score,
                None if record.refuted(id) or record.dropped(id) else record.scored[id].key,
                None if meter is None else record.cost_of_generating(meter, id),
                verify_costs.get(id) if id in labels else None,
                # Without a label it is not part of the sample.
                refuted=id in labels and record.refuted(id),
                **(stage_columns(record, sources.get(id, id), meter) if id in labels else {}),
            )
            for id in ids
        ),
        len(findings) - shared,
        len(chosen) - len(labels),
        dict(record.tally.lost),
        message,
        shared,
        failed=sum(e.verdict is Verdict.FAILED and not e.shared for e in findings),
    )


def _labels(record: SearchRecord, chosen: Iterable[int]) -> dict[int, bool]:
    """The labels of the chosen candidates only.

    To label the rest of each class would cost nothing, but the labelled candidates would then no
    longer be a fair sample: it would have too many of large classes.
    """
    sources = record.verdicts_from()
    refuted = {id: False for id in chosen if record.refuted(id)}
    verdicts = {id: record.found[sources[id]].verdict for id in chosen if id in sources}
    return {id: verdict is Verdict.PASSED for id, verdict in verdicts.items()} | refuted
