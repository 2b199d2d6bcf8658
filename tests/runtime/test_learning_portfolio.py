"""Jobs with several generators that learn as problems end, and can be interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from grv import Costs
from grv.backends.protocols import Draft, Generator, Problem
from grv.core.errors import UsageError
from grv.learning.joint import fit_joint
from grv.learning.joint_history import read_attempts
from grv.ledger.entries import Started
from grv.ledger.ledger import Ledger, MemoryLedger
from grv.ledger.sqlite import SqliteLedger
from grv.policies.portfolio import JointPrior
from grv.runtime.solution import Solution
from grv.runtime.solve import SolveOptions, solve_many
from grv.testing.fakes import Crash
from support.learning import Problems, course

pytestmark = pytest.mark.anyio
COSTS = {"small": Costs(1, 10), "large": Costs(20, 10)}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Other:
    """A generator with other candidates for the same problems."""

    made: Problems

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        return await self.made.generate(problem, n, first=first + 1000)


async def job(
    made: Problems, problems: Sequence[Problem], ledger: Ledger, policy: str = "learning"
) -> list[Solution]:
    both: dict[str, Generator] = {"small": made, "large": Other(made)}
    how: SolveOptions = {"generator": both, "scorer": made, "verifier": made, "policy": policy}
    how |= {"ledger": ledger, "at_once": 1, "costs": COSTS, "budget": 600.0}
    each = {name: {"generator": name, "score": "made up"} for name in COSTS}
    how["identity"] = {"generators": each}
    return [solution async for solution in solve_many(problems, **how)]


def priors(ledger: Ledger, found: Sequence[Solution]) -> list[str]:
    """The prior of each search, in the order of their ends."""
    first = [ledger.read(each.search)[0] for each in found]
    return [each.prior for each in first if isinstance(each, Started)]


@pytest.mark.slow
async def test_the_prior_is_fitted_again_as_problems_end() -> None:
    ledger = MemoryLedger()
    found = await job(Problems(), Problems().problems(12), ledger)
    used = priors(ledger, found)
    assert used[:2] == ["", ""]
    assert [at for at in range(1, 12) if used[at] != used[at - 1]] == [2, 4, 6, 9]
    sizes = [JointPrior.from_text(each).problems for each in used[2:]]
    assert sizes == [2, 2, 4, 4, 6, 6, 6, 9, 9, 9]
    edges = JointPrior.from_text(used[-1]).edges
    assert all(len(edges[name]) == 4 for name in COSTS)  # scores count
    assert JointPrior.from_text(used[-1]).to_text() == used[-1]
    assert all(solution.verified for solution in found)


async def test_a_cold_job_stays_cold() -> None:
    ledger = MemoryLedger()
    found = await job(Problems(), Problems().problems(4), ledger, policy="default")
    assert priors(ledger, found) == [""] * 4


@pytest.mark.slow
async def test_a_job_that_is_killed_and_continued_takes_the_same_course(tmp_path: Path) -> None:
    problems, whole = Problems().problems(8), MemoryLedger()
    expected = await job(Problems(), problems, whole)
    path, crashes, found = tmp_path / "ledger", 0, list[Solution]()
    for crash_at in (3, 12, 7, 0):
        with closing(SqliteLedger(path)) as ledger:
            try:
                found = await job(Problems(crash_at=crash_at), problems, ledger)
            except* Crash:
                crashes += 1
    assert crashes == 3
    assert {s.problem: s.bill for s in found} == {s.problem: s.bill for s in expected}
    with closing(SqliteLedger(path)) as ledger:
        for solution in expected:
            assert course(ledger, solution.search) == course(whole, solution.search)
        again = Problems()
        assert len(await job(again, problems, ledger)) == 8
        assert again.verified == 0  # what is on record is not paid for again


@pytest.mark.slow
async def test_a_ledger_is_history_with_its_scores(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with closing(SqliteLedger(path)) as ledger:
        await job(Problems(), Problems().problems(6), ledger)
    past = read_attempts(str(path), dict.fromkeys(COSTS, "made up"))
    assert len(past) == 6
    assert len(fit_joint(past, list(COSTS)).edges["small"]) == 4
    other = read_attempts(str(path), dict.fromkeys(COSTS, "another score"))
    assert fit_joint(other, list(COSTS)).edges["small"] == ()  # its scores say nothing
    second = MemoryLedger()
    found = await job(Problems(), Problems().problems(9)[6:], second, f"learning('{path}')")
    sizes = [JointPrior.from_text(each).problems for each in priors(second, found)]
    assert sizes == [6, 6, 6]


def test_another_text_is_no_prior() -> None:
    with pytest.raises(UsageError, match="no joint prior"):
        JointPrior.from_text("[]")
    with pytest.raises(UsageError, match="no joint prior"):
        JointPrior.from_text('{"format": "grv joint prior 2"}')
