"""What is taken from the last entry of a search is what its whole course gives."""

from __future__ import annotations

import math
from dataclasses import replace

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grv.backends.protocols import Problem
from grv.core.pace import Pace
from grv.core.search import Policy
from grv.core.values import Verdict
from grv.ledger.entries import Charged, Found
from grv.ledger.ledger import Ledger, MemoryLedger
from grv.policies import Adaptive, Alternate, Fixed, VerifyAll
from grv.runtime.budget import RunBudget
from grv.runtime.calls import Caller
from grv.runtime.config import SearchConfig
from grv.runtime.executor import Backends
from grv.runtime.ledger_writer import LedgerWriter
from grv.runtime.live_search import LiveSearch
from grv.runtime.loop import Loop
from grv.runtime.solution import Solution
from grv.testing.fakes import ScriptedGenerator, TableScorer, TableVerifier, world_key
from grv.testing.strategies import worlds
from grv.testing.worlds import World, needle
from support.live import one_generator

PROBLEM = Problem("p", "prompt")
POLICIES: tuple[Policy, ...] = (Adaptive(), Alternate(), Fixed(4, 2), Fixed(1, 1), VerifyAll())


def config_of(world: World, policy: Policy, pace: Pace, **more: object) -> SearchConfig:
    backends = Backends(
        ScriptedGenerator(world), TableScorer(world), TableVerifier(world), world_key(world)
    )
    return one_generator(backends, policy=policy, pace=pace, **more)  # type: ignore[arg-type]


def live(config: SearchConfig, ledger: Ledger, total: float = math.inf) -> LiveSearch:
    writer = LedgerWriter(ledger)
    return LiveSearch(PROBLEM, config, writer, Caller(), RunBudget(total, writer))


async def both(search: LiveSearch) -> tuple[Solution | None, Solution]:
    """What is read from the end of a search, and what its whole course gives."""
    quick = await Loop(search, search.config, search.read(live=False)).recorded_end()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "recorded_end", never)
        return quick, await search.find()


async def never(loop: Loop) -> None:
    """No solution from the last entry."""
    return


@given(
    world=worlds(most_broken=2),
    policy=st.sampled_from(POLICIES),
    again=st.sampled_from(POLICIES),
    pace=st.sampled_from([Pace(overlap=False), Pace(), Pace(ramp=False)]),
    total=st.sampled_from([math.inf, math.inf, 30.0]),
)
@example(World.of("0- -inf+"), Adaptive(), Adaptive(), Pace(overlap=False), 30.0)
def test_the_end_of_a_search_says_what_its_course_gives(
    world: World, policy: Policy, again: Policy, pace: Pace, total: float
) -> None:
    async def main() -> None:
        ledger = MemoryLedger()
        config = config_of(world, policy, pace)
        solution = await live(config, ledger, total).find()
        for other in (policy, again):
            search = live(config_of(world, other, pace), ledger, total)
            quick, slow = await both(search)
            if quick is not None and (slow.outcome, total) == ("out of budget", 30.0):
                # The generator had ended. The course asks it again, and the rest of the money may
                # not pay for that. The answer on record stands.
                assert quick.outcome == "solved"
                assert (quick.text, quick.bill) == (solution.text, solution.bill)
                return  # the course has written another end
            elif quick is not None:
                assert replace(quick, policy=slow.policy) == slow
            elif other == policy and not pace.overlap:
                assert solution.outcome != "solved"

    anyio.run(main)


def test_more_that_was_recorded_after_the_end_is_not_overlooked() -> None:
    async def main() -> None:
        ledger = MemoryLedger()
        search = live(config_of(needle(4, at=2), VerifyAll(), Pace(overlap=False)), ledger)
        solved = await search.find()
        ledger.append(search.id, [Charged(5.0, "for what was lost")])
        quick, slow = await both(search)
        assert quick is None or quick.bill == slow.bill
        failed = Found(int(solved.text), Verdict.FAILED, "a person says so", reviewer="r")
        ledger.append(search.id, [failed])
        quick, slow = await both(search)
        assert quick is None
        assert slow.outcome != "solved"

    anyio.run(main)


def test_no_step_is_taken_again_for_an_answer_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        ledger = MemoryLedger()
        search = live(config_of(needle(4, at=2), VerifyAll(), Pace(overlap=False)), ledger)
        solved = await search.find()
        monkeypatch.setattr(SearchConfig, "portfolio", None)
        assert await search.find() == solved

    anyio.run(main)
