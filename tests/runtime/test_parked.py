"""Verdicts of people: searches wait without a place, money is settled, corrections count."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from grv import Costs, Verdict
from grv.backends.protocols import Problem, Usage
from grv.core import Measured
from grv.ledger.entries import Ended, Entry, Found, Intended, Parked, Settled, Told, charge_of
from grv.ledger.sqlite import SqliteLedger
from grv.runtime.prices import Meter, Prices
from grv.runtime.record import SearchRecord
from grv.runtime.solution import Solution
from grv.runtime.solve import solve_many
from support.pages import HUMAN, Backends, options

pytestmark = pytest.mark.anyio
NAMES = ("a", "b", "c", "d")


async def solve(ledger: SqliteLedger, names: Sequence[str], **more: Any) -> list[Solution]:
    problems = [Problem(each, f"Write {each}.", HUMAN) for each in names]
    how = options(ledger, Backends(every=2, parks=True), at_once=1, **more)
    return [solution async for solution in solve_many(problems, **how)]


def parked(ledger: SqliteLedger) -> list[tuple[str, int]]:
    waits = [
        (id, SearchRecord(None, id, ledger.read(id)).tally.parked) for id in ledger.search_ids()
    ]
    return [(id, candidate) for id, calls in waits for _, candidate in sorted(calls)]


async def give(ledger: SqliteLedger, until: int, seconds: float = 60.0) -> None:
    """Pass every second candidate, until enough verdicts are given."""
    given = 0
    while given < until:
        for search, candidate in parked(ledger):
            verdict = Verdict.PASSED if candidate % 2 else Verdict.FAILED
            found = Found(candidate, verdict, usage=Usage(seconds=seconds), reviewer="ann")
            ledger.append(search, [found])
            given += 1
        await anyio.sleep(0.02)


def entries(ledger: SqliteLedger) -> list[Entry]:
    return [each for id in ledger.search_ids() for each in ledger.read(id)]


async def test_a_search_that_waits_for_a_person_holds_no_place(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "ledger")
    found: list[Solution] = []

    async def work() -> None:
        found.extend(await solve(ledger, NAMES))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(work)
            while len(parked(ledger)) < len(NAMES):  # noqa: ASYNC110 - only one runs at once
                await anyio.sleep(0.02)
            await give(ledger, 8)

    assert [each.outcome for each in found] == ["solved"] * 4
    assert sum(isinstance(each, Parked) for each in entries(ledger)) == 8
    assert (
        sum(isinstance(each, Intended) and each.call == "verify" for each in entries(ledger)) == 8
    )
    ledger.close()


@pytest.mark.parametrize("stops", [False, True])
async def test_minutes_are_billed_and_the_rest_of_the_reserve_returns(
    tmp_path: Path, stops: bool
) -> None:
    ledger = SqliteLedger(tmp_path / "ledger")
    prices = Prices({}, {"verify_minute": 0.5, "generate_call": 0.01})
    money: Any = {"costs": Measured(0.01, 1.0), "meter": Meter(prices), "most": Costs(0.01, 2.0)}
    money |= {"budget": 20.0}
    with anyio.fail_after(60):
        if stops:  # the verdict arrives while no process runs
            async with anyio.create_task_group() as group:
                group.start_soon(lambda: solve(ledger, ["a"], **money))
                while not parked(ledger):  # noqa: ASYNC110 - another thread writes
                    await anyio.sleep(0.02)
                group.cancel_scope.cancel()
            await give(ledger, 1, 90.0)
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: solve(ledger, ["a"], **money))
            await give(ledger, 1 if stops else 2, 90.0)

    settled = [each for each in entries(ledger) if isinstance(each, Settled)]
    verified = [each.returned for each in settled if each.call == "verify"]
    assert verified == pytest.approx([2.0 - 0.75] * 2)
    assert charge_of(entries(ledger)) == pytest.approx(2 * 0.01 + 2 * 0.75)
    ledger.close()


async def test_a_corrected_verdict_continues_a_search_that_had_ended(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "ledger")
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(solve, ledger, ["a"])
            await give(ledger, 2)
        (search,) = ledger.search_ids()
        ledger.append(search, [Found(1, Verdict.FAILED, reviewer="bob", note="too fast")])
        async with anyio.create_task_group() as group:
            group.start_soon(solve, ledger, ["a"])
            await give(ledger, 2)
        (again,) = await solve(ledger, ["a"])

    assert again.outcome == "solved"
    answers = [each.answer for each in ledger.read(search) if isinstance(each, Ended)]
    assert answers == [1, 3]
    told = [each for each in ledger.read(search) if isinstance(each, Told)]
    await solve(ledger, ["a"])
    assert [each for each in ledger.read(search) if isinstance(each, Told)] == told
    assert ledger.check() == []
    ledger.close()
