"""Jobs of the policy `learning`: what they learn from, and that they can be interrupted."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from grv import Costs
from grv.backends.protocols import Problem
from grv.core.errors import UsageError
from grv.ledger.entries import Started
from grv.ledger.ledger import Ledger, MemoryLedger
from grv.ledger.sqlite import SqliteLedger
from grv.policies import Learning
from grv.policies.learned.policy import UnlikeHistoryWarning
from grv.runtime.results.solution import Solution
from grv.runtime.solve import solve_many
from grv.testing.fakes import Crash
from support.learning import Problems, course

pytestmark = pytest.mark.anyio
COLD = "varied"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def job(
    made: Problems,
    problems: Sequence[Problem],
    ledger: Ledger,
    policy: str | Learning = "learning",
    at_once: int = 1,
    **options: Any,
) -> list[Solution]:
    """The solutions of a job, in the order of their ends."""
    named = {"generator": "made up", "score": "made up"}
    found = solve_many(
        problems,
        **{"generator": made, "scorer": made, "verifier": made, "policy": policy},
        **{"ledger": ledger, "at_once": at_once, "identity": named, "costs": Costs(1, 10)},
        **{"budget": 600.0, **options},
    )
    return [solution async for solution in found]


def hashes(solutions: Sequence[Solution]) -> list[str]:
    return [solution.policy for solution in solutions]


async def test_the_first_six_problems_are_cold_and_then_history_decides() -> None:
    made = Problems()
    found = await job(made, made.problems(24), MemoryLedger())

    policies = [solution.policy for solution in found]
    assert policies[:6] == [COLD] * 6
    assert all(each.startswith("learned(prior='history', hash=") for each in policies[6:])
    changes = [i for i in range(1, 24) if policies[i] != policies[i - 1]]
    assert changes == [6, 10, 15, 22]
    assert all(solution.verified for solution in found)


async def test_a_job_that_is_killed_and_continued_takes_the_same_course(tmp_path: Path) -> None:
    problems = Problems().problems(24)
    whole = MemoryLedger()
    expected = await job(Problems(), problems, whole)
    at = 0
    with SqliteLedger(tmp_path / "ledger").closing() if False else _opened(tmp_path) as ledger:
        for crash_at in (3, 40, 7, 25, 0):
            made = Problems(crash_at=crash_at)
            try:
                found = await job(made, problems, ledger)
            except BaseException as error:
                assert isinstance(_first(error), Crash)
                at += 1
        assert at == 4
        assert {(s.problem, s.policy, s.bill.total) for s in found} == {
            (s.problem, s.policy, s.bill.total) for s in expected
        }
        for solution in expected:
            assert course(ledger, solution.search) == course(whole, solution.search)
