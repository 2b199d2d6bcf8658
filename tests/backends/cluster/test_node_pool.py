"""What runs on a node, without Ray: replies, missing problems, programs that are called off."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from grv.backends.cluster.node_pool import NodePool, NodeReply, NodeRequest, NodeSettings
from grv.backends.protocols import Problem
from grv.backends.sandbox.limits import RunLimits
from grv.core.values import Verdict

CHECK = {"kind": "function", "entry_point": "f", "tests": [{"args": [1], "expected": 2}]}
PROBLEM = Problem("p", check=CHECK)
RIGHT = NodeRequest(7, "name", "def f(x): return x + 1", PROBLEM)


def test_a_node_keeps_a_problem_and_says_if_it_does_not_have_it() -> None:
    async def main() -> list[NodeReply]:
        pool = NodePool(1, NodeSettings())
        bare = replace(RIGHT, number=8, problem=None)
        replies = [await pool.judge(each) for each in (bare, RIGHT, bare)]
        await pool.close()
        return replies

    missing, first, again = asyncio.run(main())
    assert (missing.finding, missing.error) == (None, None)
    for reply in (first, again):
        assert reply.finding is not None
        assert reply.finding.verdict is Verdict.PASSED
    assert first.seal == RIGHT.seal
    assert again.seal != RIGHT.seal


@pytest.mark.parametrize(
    "other",
    [
        replace(RIGHT, number=8),
        replace(RIGHT, check="another"),
        replace(RIGHT, text="def f(x): return x"),
    ],
)
def test_a_reply_belongs_to_one_request(other: NodeRequest) -> None:
    assert other.seal != RIGHT.seal


@pytest.mark.alone
def test_a_program_that_is_called_off_ends_at_once() -> None:
    async def main() -> tuple[NodeReply, float]:
        pool = NodePool(1, NodeSettings(limits=RunLimits(seconds=60)))
        endless = replace(RIGHT, text="def f(x):\n    while True: pass")
        running = asyncio.create_task(pool.judge(endless))
        await asyncio.sleep(1)
        started = time.monotonic()
        await pool.call_off(endless.number)
        reply = await running
        took = time.monotonic() - started
        await pool.close()
        return reply, took

    reply, took = asyncio.run(main())
    assert reply.finding is not None
    assert reply.finding.verdict is not Verdict.PASSED
    assert took < 20


def test_a_node_says_how_it_confines_programs() -> None:
    async def main() -> None:
        pool = NodePool(1, NodeSettings())
        hello = await pool.hello()
        assert hello.in_force is not None
        assert hello.in_force.landlock
        await pool.close()

    asyncio.run(main())
