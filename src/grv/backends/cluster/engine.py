"""The engine that runs candidates on a Ray cluster.

Ray distributes the work and nothing else. Searches, ledger, retries, deadlines and money stay in
this process. A request goes to a live node with room. If its node is lost, it goes to another one:
that is no attempt, and nothing is paid.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...core.values import Verdict
from ...text import checksum
from ..callables import processors
from ..protocols import Finding, Problem
from ..sandbox.limits import InForce, Isolation, RunLimits
from ..verifiers.checks import KINDS, Check, kinds_in
from ..verifiers.engine import CALLED_OFF, Job, LocalEngine
from ..verifiers.suite import TestOrder
from .connection import connected
from .node_pool import NodeRequest, NodeSettings
from .nodes import Node, NodeLost, Nodes, none_usable

_HERE = frozenset({"gym", "http", "human", "judge"})
_MOST_LOST = 10  # nodes that one candidate may lose before its verdict is broken
_MOST_SLOTS = 4096  # requests in flight from one process, each in a thread of its own


@dataclass(frozen=True, slots=True)
class _Flight:
    """A request that a node has."""

    node: Node
    number: int

    def resume(self) -> None:
        """Nothing to clear: each request is new."""

    def interrupt(self) -> None:
        """Have the node stop the program."""
        with contextlib.suppress(Exception):  # the node is gone, and so is the program
            self.node.pool.call_off.remote(self.number)


class RayEngine:
    """Runs candidates on the nodes of a Ray cluster, each with its own sandbox.

    Connects to the cluster at RAY_ADDRESS, or starts one on this machine. Checks of kind "http" are
    asked from this process, which has the key, and people too.

    Args:
        workers: the number of candidates that run at once per node; by default one per CPU.
        isolation: how strictly programs are confined. Nodes that cannot do it are not used.
        limits: the limits of programs whose check sets none.
        attempts: the number of attempts until a verdict is broken. A lost node is not an attempt.
        order_tests: in which order the tests of a check run; each node learns its own.
        tell: reports one line: a node that is lost or not used. By default to standard error.

    Raises:
        UsageError: there is no Ray, or no node that can verify.
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        isolation: Isolation = Isolation.JAIL,
        limits: RunLimits | None = None,
        attempts: int = 3,
        order_tests: TestOrder = TestOrder.LEARNED,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        settings = NodeSettings(
            isolation, limits or RunLimits(), attempts, os.getcwd(), order_tests
        )
        self.isolation = isolation.of_processes
        self._numbers = itertools.count()
        self._here = LocalEngine(processors(), isolation, attempts)
        with contextlib.ExitStack() as opening:
            opening.callback(self._here.close)
            ray = opening.enter_context(connected())
            self._nodes = Nodes(ray, workers, settings, tell or _to_stderr)
            opening.callback(self._nodes.close)
            nodes = self._nodes.wait_until_started()
            ready = [node.in_force for node in nodes if node.in_force is not None]
            if not ready:
                raise none_usable(nodes)
            self.in_force: InForce = max(ready, key=lambda force: len(force.missing))
            self._open = opening.pop_all()

    @property
    def workers(self) -> int:
        """The number of candidates that run at once, on all nodes."""
        return max(1, sum(node.workers for node in self._nodes.ready))

    @property
    def slots(self) -> int:
        """The number of requests that may be in flight."""
        return min(_MOST_SLOTS, max(1, sum(node.slots for node in self._nodes.ready)))

    def judge(self, job: Job, problem: Problem, check: Check, text: str, seed: int = 0) -> Finding:
        """The finding on a text, from any node. Servers and plugins are called from here."""
        if any(kind in _HERE or kind not in KINDS for kind in kinds_in(problem.check)):
            return self._here.judge(job, problem, check, text, seed)
        name = checksum(f"{check.digest} {problem.id} {problem.prompt}")
        for _ in range(_MOST_LOST):
            request = NodeRequest(next(self._numbers), name, text, problem, seed)
            with contextlib.suppress(NodeLost), self._nodes.node(job) as node:
                if node is None:
                    return CALLED_OFF
                job.start(_Flight(node, request.number))
                try:
                    reply = node.ask(request)
                finally:
                    job.stop()
                if reply.error is not None:
                    raise reply.error
                assert reply.finding is not None
                return reply.finding
        return Finding(Verdict.BROKEN, f"{_MOST_LOST} nodes were lost while they verified it")

    def folders(self) -> list[Path]:
        """None: the workers are elsewhere."""
        return []

    def close(self) -> None:
        """End the pools on all nodes, and a cluster of our own."""
        self._open.close()


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr)
