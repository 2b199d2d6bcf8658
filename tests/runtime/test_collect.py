"""Collections over scripted worlds: everything is verified, once a class, and paid for once."""

import dataclasses
from collections import Counter
from collections.abc import Mapping
from functools import partial

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv import Costs, Verdict
from grv.backends.protocols import Problem
from grv.core.errors import UsageError
from grv.ledger.entries import Ended, Failed, Found, Started
from grv.ledger.ledger import Ledger, MemoryLedger
from grv.runtime.calls import Caller
from grv.runtime.collect import Collected, Collection, collect_many
from grv.runtime.executor import Backends
from grv.runtime.prices import Meter, Prices
from grv.testing.fakes import (
    Crash,
    Fault,
    ScriptedGenerator,
    TableScorer,
    TableVerifier,
    rate_limited,
    verifier_down,
    world_key,
)
from grv.testing.strategies import worlds
from grv.testing.worlds import World, all_wrong, needle
from support.live import one_generator, search

pytestmark = pytest.mark.anyio
PROBLEM = Problem("p", "prompt")
P, F, B = Verdict.PASSED, Verdict.FAILED, Verdict.BROKEN


class Bench:
    """A collection over one world, and what its backends saw."""

    def __init__(
        self,
        world: World,
        n: int = 40,
        sample: int | None = None,
        seed: int = 0,
        own_keys: bool = False,
    ) -> None:
        self.generator = ScriptedGenerator(world)
        self.scorer = TableScorer(world)
        self.verifier = TableVerifier(world)
        key = world_key(world)
        backends = Backends(
            self.generator, self.scorer, self.verifier, key, own_keys=own_keys and key is not None
        )
        self.collection = Collection(backends, n, sample, seed)

    def failing(self, faults: Mapping[int, Fault]) -> "Bench":
        self.verifier.faults = faults
        return self

    async def collect(self, ledger: Ledger | None = None) -> Collected:
        found: list[Collected] = []
        await collect_many(
            [PROBLEM], self.collection, ledger=ledger, caller=patient(), done=found.append
        )
        return found[0]


def patient() -> Caller:
    """A caller that does not really wait."""

    async def no_sleep(_: float) -> None:
        await anyio.lowlevel.checkpoint()

    return Caller(sleep=no_sleep)


@pytest.mark.slow
@given(world=worlds(most_broken=2), n=st.integers(1, 60), own_keys=st.booleans())
def test_every_candidate_has_its_score_and_the_verdict_of_its_class(
    world: World, n: int, own_keys: bool
) -> None:
    bench = Bench(world, n, own_keys=own_keys)
    rows = anyio.run(bench.collect).rows
    there = min(n, len(world))
    assert [row.candidate for row in rows] == list(range(there))
    known: dict[str | int, bool] = {}
    for id, verdict in enumerate(world.verdicts[:there]):
        if verdict is not B:
            known[(world.keys[id] if world.keys else None) or id] = verdict is P
    for row in rows:
        assert row.score == (world.scores[row.candidate] if row.score is not None else None)
        verdict = world.verdicts[row.candidate]
        own = None if verdict is B else verdict is P
        of_class = known.get(row.key or row.candidate)
        shared = of_class if own_keys or of_class is False else None
        assert row.passed == (shared if own is None else own)
    assert max(Counter(bench.verifier.verified).values(), default=1) == 1


async def test_a_pass_does_not_end_it() -> None:
    bench = Bench(needle(50, at=3))
    found = await bench.collect()
    assert sorted(bench.verifier.verified) == list(range(40))
    assert [row.candidate for row in found.rows if row.passed] == [3]


async def test_a_class_is_verified_once_and_again_only_where_the_verdict_is_broken() -> None:
    world = World((0.0,) * 6, (F, F, P, B, F, B), ("a", "a", None, "b", "b", "c"))
    bench = Bench(world)
    found = await bench.collect()
    assert sorted(bench.verifier.verified) == [0, 2, 3, 4, 5]
    assert [row.passed for row in found.rows] == [False, False, True, False, False, None]
    assert (found.verified, found.broken) == (5, 1)


async def test_a_pass_is_not_shared_by_key_unless_the_key_is_the_users_own() -> None:
    """By the keys of a check, twins fail together; each has to pass for itself."""
    bench = Bench(World((0.0,) * 4, (P, F, P, P)))
    twins = dataclasses.replace(
        bench.collection.backends, key=lambda problem, draft: "aaab"[int(draft.text)]
    )
    bench.collection = dataclasses.replace(bench.collection, backends=twins)
    found = await bench.collect()
    assert bench.verifier.verified == [0, 3, 1]  # with the failure the class is refuted
    assert [row.passed for row in found.rows] == [True, False, False, True]

    agreed = World((0.0,) * 3, (P, P, P), ("a", "a", "a"))
    for own_keys, verified in ((True, [0]), (False, [0, 1, 2])):
        bench = Bench(agreed, own_keys=own_keys)
        found = await bench.collect()
        assert bench.verifier.verified == verified
        assert [row.passed for row in found.rows] == [True, True, True]


async def test_three_broken_verdicts_in_a_row_end_a_collection_that_can_be_run_again() -> None:
    ledger = MemoryLedger()
    broken = await Bench(World((0.0,) * 4, (B, B, B, B))).collect(ledger)
    assert broken.message == "4 broken verdicts in a row: could not tell"
    assert [row.passed for row in broken.rows] == [None] * 4
    mended = Bench(World((0.0,) * 4, (F, P, F, F)))
    found = await mended.collect(ledger)
    assert mended.verifier.verified == [0, 1, 2, 3]
    assert [row.passed for row in found.rows] == [False, True, False, False]


async def test_a_sample_is_random_fair_and_the_same_every_time() -> None:
    world = all_wrong(40)
    first, again, other = (Bench(world, sample=10, seed=seed) for seed in (1, 1, 2))
    for bench in (first, again, other):
        found = await bench.collect()
        labelled = [row.candidate for row in found.rows if row.passed is not None]
        assert labelled == sorted(bench.verifier.verified)
        assert len(labelled) == 10
    assert first.verifier.verified == again.verifier.verified != other.verifier.verified
    assert first.collection.chosen(Problem("q"), 40) != first.collection.chosen(PROBLEM, 40)


async def test_outside_the_sample_nobody_gets_the_label_of_the_class() -> None:
    world = World((0.0,) * 8, (F,) * 8, ("a",) * 8)
    found = await Bench(world, sample=3).collect()
    assert sum(row.passed is None for row in found.rows) == 5
    assert found.verified == 1


async def test_a_row_says_what_it_cost_by_the_meter() -> None:
    world = World((0.0,) * 4, (F, F, P, B), ("a", "a", None, "c"))
    bench = Bench(world)
    meter = Meter(Prices(other={"generate_call": 1.0, "score_call": 0.25, "verify_call": 8.0}))
    bench.collection = dataclasses.replace(bench.collection, meter=meter)
    found = await bench.collect()
    assert [row.generate_cost for row in found.rows] == [1.25] * 4
    assert [row.verify_cost for row in found.rows] == [8.0, 8.0, 8.0, None]


async def test_collected_again_it_costs_nothing_and_more_costs_only_the_rest() -> None:
    ledger = MemoryLedger()
    first = await Bench(all_wrong(80), sample=5).collect(ledger)
    again = Bench(all_wrong(80), sample=5)
    assert await again.collect(ledger) == first
    assert (again.generator.calls, again.scorer.calls, again.verifier.calls) == (0, 0, 0)
    kinds = Counter(type(e) for e in ledger.read(again.collection.search_id(PROBLEM)))
    assert (kinds[Started], kinds[Ended]) == (1, 1)
    more = Bench(all_wrong(80), n=70)
    assert len((await more.collect(ledger)).rows) == 70
    assert (len(more.generator.made), len(more.verifier.verified)) == (30, 65)


async def test_what_a_search_for_an_answer_paid_for_is_used() -> None:
    ledger = MemoryLedger()
    world = needle(60, at=9)
    bench = Bench(world)
    await search(
        PROBLEM, one_generator(bench.collection.backends, costs=Costs(1, 1), width=8), ledger=ledger
    )
    verified = set(bench.verifier.verified)
    assert verified
    after = Bench(world)
    await after.collect(ledger)
    assert not verified & set(after.verifier.verified)
    assert not set(bench.generator.made) & set(after.generator.made)


@pytest.mark.parametrize("at", [1, 7, 33, 40])
async def test_after_a_crash_nothing_on_record_is_paid_for_again(at: int) -> None:
    async def crash() -> None:
        raise Crash

    ledger = MemoryLedger()
    bench = Bench(all_wrong(40)).failing({at: crash})
    with pytest.raises(Crash):
        await bench.collect(ledger)
    entries = ledger.read(bench.collection.search_id(PROBLEM))
    found = {entry.candidate for entry in entries if isinstance(entry, Found)}
    after = Bench(all_wrong(40))
    whole = await after.collect(ledger)
    assert not found & set(after.verifier.verified)
    assert after.generator.calls == 0
    assert all(row.passed is False for row in whole.rows)


async def test_a_verifier_that_stays_away_fails_the_problem_and_can_be_tried_again() -> None:
    ledger = MemoryLedger()
    bench = Bench(all_wrong(5)).failing(dict.fromkeys(range(1, 100), verifier_down()))
    found = await bench.collect(ledger)
    assert "connection refused" in found.message
    assert isinstance(ledger.read(bench.collection.search_id(PROBLEM))[-1], Failed)
    again = await Bench(all_wrong(5)).collect(ledger)
    assert (again.message, len(again.rows), again.verified) == ("", 5, 5)


async def test_a_generator_that_is_slow_to_answer_is_asked_again() -> None:
    bench = Bench(all_wrong(5))
    bench.generator.faults = {1: rate_limited(1.0)}
    assert len((await bench.collect()).rows) == 5


async def test_many_at_once_each_handed_over_and_those_of_others_when_they_are_free() -> None:
    ledger, found = MemoryLedger(), list[Collected]()
    collection = Bench(all_wrong(3)).collection
    problems = [Problem(f"p{i}") for i in range(20)]
    taken = collection.search_id(problems[7])
    assert ledger.claim(taken)
    steps: list[int] = []
    async with anyio.create_task_group() as group:
        group.start_soon(
            partial(
                collect_many,
                problems,
                collection,
                ledger=ledger,
                done=found.append,
                progress=steps.append,
            )
        )
        with anyio.fail_after(60):
            while len(found) < 19:  # noqa: ASYNC110 - what it waits for sets no event
                await anyio.sleep(0.01)
        assert {each.problem for each in found} == {f"p{i}" for i in range(20) if i != 7}
        ledger.release(taken)
    assert len(found) == 20
    assert sum(steps) == 20 * (3 + 3)


def test_nonsense_is_refused() -> None:
    backends = Bench(all_wrong(1)).collection.backends
    with pytest.raises(UsageError, match="n must be at least 1, not 0"):
        Collection(backends, 0)
    with pytest.raises(UsageError, match="the number of candidates to verify cannot be -1"):
        Collection(backends, 1, -1)
