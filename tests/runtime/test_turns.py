"""Many problems with one budget, live: the order of a schedule, whatever interrupts it."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from grv import Costs
from grv.backends.protocols import Problem
from grv.comparing.learning_batch import LearningBatch
from grv.core.errors import UsageError
from grv.core.limits import Limits
from grv.core.values import Measured
from grv.learning.prior_file import from_text
from grv.ledger.entries import Found, Intended, Started
from grv.ledger.ledger import Ledger, MemoryLedger
from grv.ledger.postgres import PostgresLedger
from grv.ledger.sqlite import SqliteLedger
from grv.ledger.tables import TableLedger
from grv.ledger.view import SearchView
from grv.policies import Learning
from grv.replay.orders import Orders
from grv.runtime import turns
from grv.runtime.options import Calls
from grv.runtime.prices import Meter, Prices
from grv.runtime.progress import Progress
from grv.schedules import CheapestPredicted, parse
from grv.testing.fakes import Crash
from support.batches import COSTS, Batch, order_of, pure
from support.postgres import Server

pytestmark = pytest.mark.anyio
RULES = ("least-spent", "in-order", "doubling", "cheapest-predicted", "stream")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def impossible(batch: Batch) -> list[str]:
    """The problems without a right candidate among the first."""
    names = [problem.id for problem in batch.problems]
    return [name for name in names if not any(batch.passes(name, i) for i in range(40))]


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES[:4])
@pytest.mark.parametrize("policy", ["alternate", "verify-all"])
async def test_one_at_a_time_the_order_is_that_of_the_pure_schedule(rule: str, policy: str) -> None:
    batch = Batch(12)
    expected = pure(batch, rule, policy, each=120)
    how: dict[str, Any] = {"schedule": rule, "policy": policy, "budget": 120, "at_once": 1}
    assert await batch.solved(**how) == expected.solved
    assert batch.verified == expected.verified


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
async def test_a_total_budget_buys_what_the_pure_schedule_buys(rule: str) -> None:
    batch = Batch(15)
    total = 15 * 11 * 2.5
    expected = pure(batch, rule, "verify-all", total)
    ledger = MemoryLedger()
    how: dict[str, Any] = {"schedule": rule, "policy": "verify-all", "total_budget": total}
    assert await batch.solved(ledger, at_once=1, **how) == expected.solved
    assert batch.verified == expected.verified
    assert ledger.possibly_paid(None) == expected.curve[-1][0] <= total


@pytest.mark.slow
async def test_least_spent_is_the_default_with_a_total_budget_and_solves_more() -> None:
    total = 60 * 11 * 2.0
    results = []
    for rule in (None, "least-spent", "in-order"):
        batch = Batch(60)
        how: dict[str, Any] = {"policy": "verify-all", "total_budget": total, "schedule": rule}
        solved = await batch.solved(at_once=1, **how)
        results.append((batch.verified, solved))
    assert results[0] == results[1]
    assert len(results[0][1]) > len(results[2][1])
    batch = Batch(3)
    await batch.solved(policy="verify-all", budget=33, at_once=1)
    assert batch.verified == sorted(batch.verified)


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 8, 64])
async def test_many_at_once_solve_as_many_as_the_pure_schedule(at_once: int) -> None:
    batch = Batch(300, seconds=0.001)
    total = 300 * 11 * 2.0
    expected = pure(batch, "least-spent", "verify-all", total)
    others = [Batch(300, first=300 * number) for number in range(1, 13)]
    solved_by_others = [
        len(pure(other, "least-spent", "verify-all", total).solved) for other in others
    ]
    interval = 1.96 * statistics.stdev(solved_by_others)
    calls = Calls(concurrency=at_once)
    how: dict[str, Any] = {"policy": "verify-all", "total_budget": total, "calls": calls}
    solved = await batch.solved(at_once=at_once, **how)
    assert abs(len(solved) - len(expected.solved)) <= (interval if at_once > 1 else 0)
    in_order = pure(batch, "in-order", "verify-all", total)
    assert len(in_order.solved) < len(expected.solved) - interval
    assert at_once == 1 or batch.most_at_once > at_once / 2
    # No search is more than a turn ahead of one that waits, but for those that run.
    spent = Counter[str]()
    open_ones = {problem.id for problem in batch.problems}
    for problem in batch.verified:
        spent[problem] += 1
        behind = [name for name in open_ones if spent[name] < spent[problem] - 1]
        assert len(behind) < at_once
        if batch.passes(problem, spent[problem] - 1):
            open_ones.discard(problem)


@pytest.mark.slow
@pytest.mark.parametrize("warm", [0, 2000])
@pytest.mark.parametrize("rule", ["least-spent", "doubling"])
async def test_a_run_that_is_killed_and_resumed_keeps_its_order(
    rule: str, warm: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "_WARM", warm)
    total = 9 * 11 * 3.0
    expected = pure(Batch(9), rule, "alternate", total)
    how: dict[str, Any] = {"schedule": rule, "policy": "alternate", "total_budget": total}
    crashes = 0
    for steps in (3, 8, 15, 2, 10**9):

        def kill(progress: Progress, left: list[int] = [steps]) -> None:  # noqa: B006
            left[0] -= 1
            if not left[0]:
                raise Crash

        with closing(SqliteLedger(tmp_path / "ledger")) as ledger:
            try:
                await Batch(9).solved(ledger, at_once=1, progress=kill, **how)
            except* Crash:
                crashes += 1
    assert crashes == 4
    with closing(SqliteLedger(tmp_path / "ledger")) as ledger:
        number = len(expected.verified)
        assert order_of(ledger)[:number] == expected.verified
        assert len(order_of(ledger)) <= number + 2  # smaller steps with the last of the money
        assert ledger.possibly_paid(None) <= total
        assert ledger.check() == []


@pytest.mark.slow
async def test_what_dead_processes_have_lost_counts_as_spent(tmp_path: Path) -> None:
    total = 9 * 11 * 3.0
    how: dict[str, Any] = {"policy": "verify-all", "total_budget": total, "at_once": 3}
    served = 0
    for crash_at in (4, 9, 1, 0):
        batch = Batch(9, crash_at)
        with (
            closing(SqliteLedger(tmp_path / "ledger")) as ledger,
            suppress(Crash, BaseExceptionGroup),
        ):
            await batch.solved(ledger, **how)
        served += len(batch.verified)
    with closing(SqliteLedger(tmp_path / "ledger")) as ledger:
        assert 10 * served <= ledger.possibly_paid(None) <= total
        assert ledger.check() == []


@pytest.mark.slow
async def test_a_total_budget_can_be_raised(tmp_path: Path) -> None:
    batch = Batch(12)
    once = pure(batch, "least-spent", "verify-all", 12 * 11 * 4.0)
    with closing(SqliteLedger(tmp_path / "ledger")) as ledger:
        for factor in (1.0, 2.5, 4.0):
            total = 12 * 11 * factor
            solved = await Batch(12).solved(
                ledger, policy="verify-all", total_budget=total, at_once=1
            )
            assert ledger.possibly_paid(None) <= total
        assert solved == once.solved
        assert order_of(ledger) == once.verified


@pytest.mark.alone
async def test_nothing_is_paid_twice_by_two_runs_on_one_ledger(tmp_path: Path) -> None:
    await two_runs(lambda: SqliteLedger(tmp_path / "ledger"))


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
async def test_nothing_is_paid_twice_by_two_runs_on_one_database(postgres: Server) -> None:
    address = postgres.new_database()
    await two_runs(lambda: PostgresLedger(address))


async def two_runs(opened: Callable[[], TableLedger]) -> None:
    total = 30 * 11 * 2.0
    expected = pure(Batch(30), "least-spent", "verify-all", total)
    solved: list[set[str]] = []

    async def run(seconds: float) -> None:
        with closing(opened()) as ledger:
            how: dict[str, Any] = {"policy": "verify-all", "total_budget": total, "at_once": 2}
            solved.append(await Batch(30, seconds=seconds).solved(ledger, **how))

    async with anyio.create_task_group() as group:
        # What the other run has is asked for again after a quarter of a second. If turns were much
        # shorter than that, others would have several meanwhile.
        group.start_soon(run, 0.06)
        group.start_soon(run, 0.08)
    with closing(opened()) as ledger:
        assert total - 44 <= ledger.possibly_paid(None) <= total
        spent = Counter[str]()
        for name in order_of(ledger):
            spent[name] += 1
            ended = expected.solved.union(*solved)
            behind = [p.id for p in Batch(30).problems if spent[p.id] < spent[name] - 1]
            assert len(set(behind) - ended) <= 4
        for search in ledger.searches():
            entries = ledger.read(search.id)
            for kind in ("generate", "verify"):
                ids = Counter(
                    id
                    for entry in entries
                    if isinstance(entry, Intended) and entry.call == kind
                    for id in entry.candidates
                )
                assert set(ids.values()) <= {1}
            found = Counter(entry.candidate for entry in entries if isinstance(entry, Found))
            assert set(found.values()) <= {1}
    assert solved[0] == solved[1]
    assert abs(len(solved[0]) - len(expected.solved)) <= 4


@pytest.mark.slow
async def test_another_schedule_on_the_same_ledger_is_refused(tmp_path: Path) -> None:
    with (
        closing(SqliteLedger(tmp_path / "ledger")) as first,
        closing(SqliteLedger(tmp_path / "ledger")) as second,
    ):
        how: dict[str, Any] = {"policy": "verify-all", "total_budget": 200, "at_once": 1}
        run = Batch(5).solutions(first, **how)
        await anext(run)
        with pytest.raises(UsageError, match="follows --schedule least-spent, and this one would"):
            await Batch(5).solved(second, **how, schedule="doubling")
        await run.aclose()
        await Batch(5).solved(second, **how, schedule="doubling")


async def test_a_problem_with_twice_the_weight_gets_twice_the_money() -> None:
    batch = Batch(40)
    names = impossible(batch)
    problems = [Problem(names[0], weight=2.0), Problem(names[1]), Problem(names[2], weight=4.0)]
    how: dict[str, Any] = {"policy": "verify-all", "total_budget": 11 * 28, "at_once": 1}
    await batch.solved(problems=problems, **how)
    counts = Counter(batch.verified)
    assert [counts[problem.id] for problem in problems] == [8, 4, 16]


async def test_predicted_problems_go_first() -> None:
    batch = Batch(40)
    names = impossible(batch)
    problems = [Problem(names[0], expected_cost=100.0), Problem(names[1], expected_cost=12.0)]
    how: dict[str, Any] = {"policy": "verify-all", "total_budget": 11 * 7, "at_once": 1}
    await batch.solved(problems=problems, schedule="cheapest-predicted(k=1)", **how)
    assert batch.verified[:7] == [names[1]] * 7


@pytest.mark.slow
async def test_a_run_ends_at_its_deadline_and_can_be_continued() -> None:
    batch, ledger = Batch(30, seconds=0.05), MemoryLedger()
    how: dict[str, Any] = {"policy": "verify-all", "total_budget": 900.0}
    first = await batch.solved(ledger, at_once=2, run_deadline=0.4, **how)
    verified = len(batch.verified)
    assert 0 < verified < 25
    batch.seconds = 0.0
    second = await batch.solved(ledger, at_once=2, **how)
    assert first < second
    assert len(batch.verified) <= 900 / 11 + 2


@pytest.mark.slow
async def test_problems_that_arrive_late_catch_up() -> None:
    batch = Batch(60)
    names = impossible(batch)[:6]

    async def arriving() -> AsyncGenerator[Problem]:
        for name in names[:3]:
            yield Problem(name)
        while len(batch.verified) < 20:  # noqa: ASYNC110
            await anyio.sleep(0.001)
        for name in names[3:]:
            yield Problem(name)

    how: dict[str, Any] = {"policy": "verify-all", "total_budget": 11 * 60.0, "at_once": 1}
    found = batch.solutions(problems=arriving(), **how)
    with anyio.fail_after(60):
        outcomes = {each.problem: each.outcome async for each in found}
    assert outcomes == dict.fromkeys(names, "out of budget")
    late = [place for place, name in enumerate(batch.verified) if name in names[3:]]
    assert late[0] >= 20
    assert late[:9] == list(range(late[0], late[0] + 9))


@pytest.mark.slow
@pytest.mark.parametrize("more", [{"width": 3}, {"answers": 2}, {"several": True}])
async def test_wide_searches_several_answers_and_generators_give_way_too(
    more: dict[str, Any],
) -> None:
    batch = Batch(8)
    how: dict[str, Any] = {"policy": "verify-all", "total_budget": 8 * 11 * 4.0, **more}
    if how.pop("several", False):
        how |= {"generator": {"a": batch, "b": batch}, "costs": {"a": COSTS, "b": Costs(2, 10)}}
        how["identity"] = {"generators": {"a": {"n": "a"}, "b": {"n": "b"}}}
    ledger = MemoryLedger()
    solved = await batch.solved(ledger, at_once=1, **how)
    assert solved
    first = [batch.verified.index(problem.id) for problem in batch.problems]
    widest = more.get("width", 1)
    assert max(first) < 8 * widest  # all have a verdict before one has its second turn
    assert ledger.possibly_paid(None) <= 8 * 11 * 4.0


async def learning(ledger: Ledger, steps: int = 10**9, **more: Any) -> dict[str, tuple[str, float]]:
    """A run of the policy `learning` under one budget, killed after some steps."""
    left = steps

    def kill(progress: Progress) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise Crash

    how: dict[str, Any] = {"policy": "learning", "total_budget": 18 * 11 * 6.0, "at_once": 1}
    how |= {"identity": {"generator": "made up", "score": "made up"}, "progress": kill}
    found = Batch(18).solutions(ledger, **how, **more)
    return {each.problem: (each.policy, each.bill.total) async for each in found}


@pytest.mark.slow
async def test_a_search_that_waits_takes_the_newest_prior_and_a_resumed_run_repeats_it(
    tmp_path: Path,
) -> None:
    whole = MemoryLedger()
    expected = await learning(whole)
    with closing(SqliteLedger(tmp_path / "whole")) as ledger:
        assert await learning(ledger) == expected
        searches = [each.id for each in ledger.searches()]
        starts = {search: starts_of(ledger, search) for search in searches}
    priors = [len({start.prior for start in some}) for some in starts.values()]
    assert max(priors) >= 2  # some were begun without a prior, and went on with one
    crashes = 0
    for steps in (90, 60, 40, 10**9):
        with closing(SqliteLedger(tmp_path / "killed")) as ledger:
            try:
                found = await learning(ledger, steps)
            except* Crash:
                crashes += 1
    assert crashes >= 2
    assert found == expected
    with closing(SqliteLedger(tmp_path / "killed")) as ledger:
        for search in searches:
            assert starts_of(ledger, search) == starts[search]


@pytest.mark.slow
async def test_the_fit_counts_open_searches_and_a_prior_changes_at_doublings(
    tmp_path: Path,
) -> None:
    with closing(SqliteLedger(tmp_path / "ledger")) as ledger:
        await learning(ledger)
        changes = 0
        for each in ledger.searches():
            view = SearchView(())
            last = 0.0
            for entry in ledger.read(each.id):
                if isinstance(entry, Started) and view.started is not None:
                    assert view.tally.paid >= 2 * last
                    last = view.tally.paid
                    evidence = from_text(entry.prior, "history").evidence
                    assert evidence.problems > evidence.passed >= 6  # all that had ended passed
                    changes += 1
                view.add(entry)
        assert changes


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["least-spent", "cheapest-predicted", "in-order"])
async def test_a_replay_that_learns_takes_the_same_steps(rule: str) -> None:
    batch = Batch(36)
    total = 36 * 11 * 4.0
    orders = Orders(batch.log(800).problems, 1, scheme="logged")
    places = range(36)
    run = LearningBatch(orders, "made up", COSTS, Limits()).run(
        Learning(), parse(rule), 0, total, places
    )
    how: dict[str, Any] = {"policy": "learning", "total_budget": total, "at_once": 1}
    how |= {"identity": {"generator": "made up", "score": "made up"}, "schedule": rule}
    await batch.solved(**how)
    replayed = [batch.problems[place].id for place in run.steps.problems.tolist()]
    paid = run.steps.costs.cumsum() <= total
    assert run.decided[paid].mean() > 0.3
    assert batch.verified[: paid.sum()] == replayed[: paid.sum()]
    assert len(batch.verified) <= paid.sum() + 2  # smaller steps with the last of the money


def starts_of(ledger: Ledger, search: str) -> list[Started]:
    return [entry for entry in ledger.read(search) if isinstance(entry, Started)]


@pytest.mark.slow
async def test_the_prior_predicts_where_the_user_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float] = []
    real = CheapestPredicted.key

    def key(self: CheapestPredicted, level: float, expected: float) -> float:
        told.append(expected)
        return real(self, level, expected)

    monkeypatch.setattr(CheapestPredicted, "key", key)
    await learning(MemoryLedger(), schedule="cheapest-predicted")
    assert told[0] == 0.0  # no prior yet
    assert len(set(told)) > 5


@pytest.mark.slow
async def test_measured_costs_leave_no_money_that_calls_have_returned() -> None:
    """Calls reserve a hundred times what they cost; what they return is spent by others."""
    batch = Batch(200, seconds=0.001)
    prices = Prices({}, {"generate_call": 1.0, "verify_call": 10.0})
    ledger = MemoryLedger()
    how: dict[str, Any] = {"costs": Measured(1, 10), "meter": Meter(prices, ""), "at_once": 8}
    how |= {"most": Costs(100, 1000), "policy": "verify-all", "total_budget": 2500.0}
    await batch.solved(ledger, **how)
    assert 2500 - 1100 - 11 <= ledger.possibly_paid(None) <= 2500
