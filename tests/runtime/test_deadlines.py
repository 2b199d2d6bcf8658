"""A deadline is that of the whole search, however many generators there are."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

import grv
from grv.backends.protocols import Problem
from grv.ledger.entries import Told
from grv.ledger.ledger import MemoryLedger
from grv.runtime.config import config_of

pytestmark = pytest.mark.slow

SLOW = 0.5  # seconds of a call: one round of each kind ends in time, another one does not
PACE = grv.core.Pace(deadline=1.6)


class Slow:
    """A generator and a verifier that take their time, and never pass anything."""

    def __init__(self) -> None:
        self.calls = 0

    async def generate(self, problem: Problem) -> str:
        return await self._wait("a text")

    async def verify(self, problem: Problem, text: str) -> bool:
        await self._wait(text)
        return False

    async def _wait(self, text: str) -> str:
        self.calls += 1
        await anyio.sleep(SLOW)
        return text


def options(backend: Slow, generators: int) -> dict[str, Any]:
    how: dict[str, Any] = {"scorer": lambda problem, text: 0.0, "verifier": backend.verify}
    how |= {"policy": "verify-all", "pace": PACE, "budget": 1000.0}
    if not generators:
        return how | {"generator": backend.generate, "costs": grv.Costs(1, 10)}
    names = [f"g{number}" for number in range(generators)]
    how["generator"] = dict.fromkeys(names, backend.generate)
    how["costs"] = dict.fromkeys(names, grv.Costs(1, 10))
    return how


@pytest.mark.parametrize("generators", [0, 1, 2, 4])
def test_several_generators_end_when_one_does(generators: int) -> None:
    """No call is started that the deadline would cut off, also by a generator without any yet."""
    backend = Slow()
    solution = grv.solve_now("a problem", **options(backend, generators))
    assert solution.outcome == "finished"
    assert solution.message == "no further verification ends within the deadline of 1.6 seconds"
    assert backend.calls == 2
    assert 2 * SLOW <= solution.seconds <= PACE.deadline


@pytest.mark.parametrize("generators", [0, 3])
def test_a_search_that_is_resumed_has_less_time(generators: int) -> None:
    """Seconds on record count, so that interruptions do not postpone the deadline."""
    backend, ledger, problem = Slow(), MemoryLedger(), Problem("p", "a problem")
    how = options(backend, generators) | {"ledger": ledger}
    first = grv.solve_now(problem, **how)
    search = config_of(how).search_id(problem)
    told = [entry for entry in ledger.read(search) if isinstance(entry, Told)]
    assert sum(each.event.seconds or 0.0 for each in told) == pytest.approx(first.seconds)
    again = grv.solve_now(problem, **how)
    assert (again.seconds, again.message) == (first.seconds, first.message)
    assert backend.calls == 2
