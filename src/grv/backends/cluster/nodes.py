"""The nodes of a cluster: which are alive, and how much each has in flight.

One thread looks at the cluster every second: it starts a pool on a node that joined, and drops the
pools of nodes that are gone. Pools that lack the isolation are ended, and their node is named once.

Another thread looks whether the head is there. Without it Ray does not answer any more, not even
with an error, so all work stops after some seconds.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from ...core.errors import UsageError
from ...files import error_line
from ..sandbox.limits import InForce
from ..verifiers.engine import Job, NoWorkers, fault
from .connection import is_reachable
from .node_pool import KEPT, Hello, NodePool, NodeReply, NodeRequest, NodeSettings, installed

_LOOK_SECONDS = 1.0  # between two looks at the cluster
_START_SECONDS = 60.0  # for a pool to start; it may still come later
_HEAD_SECONDS = 10.0  # without an answer from the head until it counts as lost
_PATIENCE = 2.0  # seconds without any node until calls fail
_CLOSE_SECONDS = 20.0
_AHEAD = 2  # requests per worker of a node: one runs, one waits, so that no worker is ever idle
_MOST_STARTS = 3  # pools that may end on one node before they are ready
HOW_TO_ADD = "add one with ray start --address=HOST:PORT"


class NodeLost(Exception):
    """The node, or the pool on it, is gone. This says nothing about the candidate."""


@dataclass(eq=False)
class Node:
    """A node with its pool.

    Attributes:
        id: Ray's name of the node.
        name: its address and the beginning of its id, for messages.
        workers: the number of candidates that run at once.
        pool: Ray's handle of the actor.
        since: when the pool was started.
        in_force: how programs are confined; None until it is known.
        refused: why it is not used; empty if it is, or is not ready yet.
    """

    id: str
    name: str
    workers: int
    pool: Any
    since: float
    in_force: InForce | None = None
    refused: str = ""
    in_flight: int = 0
    is_gone: bool = False
    head_lost: threading.Event = field(default_factory=threading.Event)
    _has: dict[str, None] = field(default_factory=dict)  # the problems it was sent

    @property
    def slots(self) -> int:
        """The requests that may be in flight on it."""
        return _AHEAD * self.workers

    @property
    def ready(self) -> bool:
        """Whether it takes requests."""
        return self.in_force is not None and not self.is_gone

    @property
    def starting(self) -> bool:
        """Whether it will soon take requests."""
        waits = self.in_force is None and not self.refused and not self.is_gone
        return waits and time.monotonic() - self.since < _START_SECONDS

    def ask(self, request: NodeRequest) -> NodeReply:
        """The reply to a request. The problem is sent only if the node does not have it.

        Raises:
            NodeLost: there is no reply, or it is not the reply to this request.
        """
        known = request.check in self._has
        reply = self._call(replace(request, problem=None) if known else request)
        if reply.finding is None and reply.error is None:  # it has dropped the problem since
            reply = self._call(request)
        self._has[request.check] = None
        while len(self._has) > KEPT:
            with contextlib.suppress(KeyError, RuntimeError):  # another thread changed it
                del self._has[next(iter(self._has))]
        if reply.seal != request.seal:
            raise NodeLost
        return reply

    def _call(self, request: NodeRequest) -> NodeReply:
        from ray.exceptions import RayError, RayTaskError

        try:
            reply: Future[NodeReply] = self.pool.judge.remote(request).future()
            while not self.head_lost.is_set():
                with contextlib.suppress(TimeoutError):
                    return reply.result(_LOOK_SECONDS)
            raise NodeLost
        except RayTaskError as exc:  # an error with one candidate must not affect others
            return NodeReply(request.seal, fault(exc))
        except RayError as exc:
            raise NodeLost from exc


class Nodes:
    """The nodes of the cluster that `ray` is connected to.

    Args:
        ray: the module, connected.
        workers: the candidates that run at once on a node; None is one per CPU.
        settings: how candidates are verified.
        tell: reports one line.
    """

    def __init__(
        self, ray: Any, workers: int | None, settings: NodeSettings, tell: Callable[[str], None]
    ) -> None:
        self._ray = ray
        self._workers = workers
        self._settings = settings
        self._tell = tell
        self._nodes: dict[str, Node] = {}
        self._failed_starts: dict[str, int] = {}
        self._greetings: queue.SimpleQueue[tuple[Node, Future[Hello]]] = queue.SimpleQueue()
        self._pool_class = ray.remote(NodePool)
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._head: str = ray.get_runtime_context().gcs_address
        self._head_lost = threading.Event()
        self._look()
        threading.Thread(target=self._watch_head, name="ray head", daemon=True).start()
        self._watch = threading.Thread(target=self._keep_looking, name="ray nodes", daemon=True)
        self._watch.start()

    def wait_until_started(self) -> list[Node]:
        """The nodes, when none is starting any more."""
        with self._changed:
            while any(node.starting for node in self._nodes.values()):
                self._changed.wait(0.5)
            return list(self._nodes.values())

    @property
    def ready(self) -> list[Node]:
        """The nodes that take requests."""
        with self._changed:
            return [node for node in self._nodes.values() if node.ready]

    @contextlib.contextmanager
    def node(self, job: Job) -> Iterator[Node | None]:
        """The node with the most room, for one request; None if the job is called off.

        Waits while all nodes are full.

        Raises:
            NoWorkers: there is no node, or the head is lost.
        """
        node = self._take(job)
        try:
            yield node
        except NodeLost:
            assert node is not None
            self._drop(node)
            raise
        finally:
            if node is not None:
                with self._changed:
                    node.in_flight -= 1
                    self._changed.notify()

    def _take(self, job: Job) -> Node | None:
        hope = time.monotonic()  # when there last was a node, or one that was starting
        with self._changed:
            while not (job.called_off or self._closed.is_set()):
                if self._head_lost.is_set():
                    raise _without_head(self._head)
                ready = [node for node in self._nodes.values() if node.ready]
                free = [node for node in ready if node.in_flight < node.slots]
                if free:
                    best = min(free, key=lambda node: node.in_flight / node.slots)
                    best.in_flight += 1
                    return best
                if ready or any(node.starting for node in self._nodes.values()):
                    hope = time.monotonic()
                elif time.monotonic() - hope >= _PATIENCE:
                    raise _no_workers()
                self._changed.wait(0.1)
            return None

    def _watch_head(self) -> None:
        """Notice if the head is lost. Ray would try to reach it for a minute, then end us."""
        answered = time.monotonic()
        while not self._closed.wait(_LOOK_SECONDS):
            if is_reachable(self._head):
                answered = time.monotonic()
            elif time.monotonic() - answered >= _HEAD_SECONDS:
                self._head_lost.set()
                with self._changed:
                    self._changed.notify_all()
                return

    def _keep_looking(self) -> None:
        looked = time.monotonic()
        while not self._closed.is_set():
            try:
                with contextlib.suppress(queue.Empty):
                    self._greet(*self._greetings.get(timeout=_LOOK_SECONDS / 4))
                if time.monotonic() - looked >= _LOOK_SECONDS:
                    looked = time.monotonic()
                    self._look()
            except Exception as exc:  # Ray raises whatever its parts raise; the next look may work
                if not self._closed.is_set():
                    self._lose_all(error_line(exc))

    def _lose_all(self, why: str) -> None:
        """The cluster itself does not answer."""
        with self._changed:
            had = any(node.ready for node in self._nodes.values())
            for node in self._nodes.values():
                node.is_gone = True
            self._nodes.clear()
            self._changed.notify_all()
        if had and not self._head_lost.is_set():
            self._tell(f"the Ray cluster does not answer: {why}")

    def _look(self) -> None:
        """Compare the nodes with those of the cluster."""
        alive = {each["NodeID"]: each for each in self._ray.nodes() if each["Alive"]}
        with self._changed:
            lost = [node for id, node in self._nodes.items() if id not in alive]
            new = [each for id, each in alive.items() if id not in self._nodes]
        for node in lost:
            self._drop(node)
        for each in new:
            workers = min(int(each["Resources"].get("CPU", 0)), self._workers or 1 << 16)
            if workers > 0:  # nodes without CPUs do other work
                self._start(each["NodeID"], str(each["NodeManagerAddress"]), workers)

    def _start(self, id: str, address: str, workers: int) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(id, soft=False)
        pool = self._pool_class.options(
            num_cpus=workers,
            max_restarts=0,
            max_task_retries=0,
            enable_task_events=False,  # the head would keep a record of every request
            max_concurrency=_AHEAD * workers + 100,  # more than are ever in flight
            scheduling_strategy=here,
        ).remote(workers, self._settings)
        name = f"{address} ({id[:8]})"
        node = Node(id, name, workers, pool, time.monotonic(), head_lost=self._head_lost)
        with self._changed:
            self._nodes[id] = node
        # Ray runs the callback in a thread of its own, which must not wait for Ray.
        said = pool.hello.remote().future()
        said.add_done_callback(lambda said: self._greetings.put((node, said)))

    def _greet(self, node: Node, said: Future[Hello]) -> None:
        """Take a node into use, or refuse it."""
        from ray.exceptions import RayActorError

        error = said.exception()
        if isinstance(error, RayActorError) and "__init__" not in str(error):
            starts = self._failed_starts[node.id] = self._failed_starts.get(node.id, 0) + 1
            if starts < _MOST_STARTS or self._closed.is_set():
                self._drop(node)  # the next look finds out whether the node is alive
                return
        if error is not None:
            last = (str(error).strip().splitlines() or [""])[-1]  # of a traceback: the error
            self._refuse(node, f"grv cannot start there: {last[:300] or error_line(error)}")
            return
        hello = said.result()
        if hello.in_force is None:
            self._refuse(node, hello.weakness)
        elif hello.version != installed():
            self._refuse(node, f"it has {hello.version}; install {installed()} there")
        else:
            with self._changed:
                node.in_force = hello.in_force
                self._changed.notify_all()

    def _refuse(self, node: Node, why: str) -> None:
        with self._changed:
            node.refused = why
            self._changed.notify_all()
        self._end(node)
        if not self._closed.is_set():
            self._tell(f"node {node.name} is not used: {why}")

    def _drop(self, node: Node) -> None:
        """Forget a node. If it is alive, the next look starts a new pool on it."""
        with self._changed:
            ending = self._closed.is_set() or self._head_lost.is_set()
            news = node.ready and not ending
            node.is_gone = True
            if self._nodes.get(node.id) is node:
                del self._nodes[node.id]
            self._changed.notify_all()
        self._end(node)
        if news:
            self._tell(f"node {node.name} is lost; its candidates are verified elsewhere")

    def _end(self, node: Node) -> None:
        if self._head_lost.is_set():
            return  # Ray does not answer
        with contextlib.suppress(Exception):  # it may be gone, and Ray with it
            self._ray.kill(node.pool, no_restart=True)

    def close(self) -> None:
        """End all pools, also those that are busy."""
        self._closed.set()
        with self._changed:
            nodes = list(self._nodes.values())
            self._changed.notify_all()
        if self._head_lost.is_set():
            return  # Ray does not answer, and the pools end with it
        self._watch.join(_LOOK_SECONDS * 5)  # Ray may not answer
        with contextlib.suppress(Exception):  # it may be gone, and Ray with it
            ends = [node.pool.close.remote() for node in nodes if node.ready]
            self._ray.wait(ends, num_returns=len(ends), timeout=_CLOSE_SECONDS)
        for node in nodes:
            self._end(node)


def _no_workers() -> NoWorkers:
    return NoWorkers(
        "no node is left that can verify",
        backend="ray",
        place="the Ray cluster",
        fault="wait",
        unpaid=True,
        hint=HOW_TO_ADD,
    )


def _without_head(address: str) -> NoWorkers:
    return NoWorkers(
        f"the head of the Ray cluster at {address} does not answer",
        backend="ray",
        place="the Ray cluster",
        fault="stop",
        unpaid=True,
        hint="start it again or choose --engine local",
    )


def none_usable(nodes: list[Node]) -> UsageError:
    """What to say if no node can verify."""
    if not nodes:
        return UsageError(f"the Ray cluster has no node with CPUs: {HOW_TO_ADD}")
    first = next((node for node in nodes if node.refused), None)
    if first is None:
        return UsageError(
            f"no node of the Ray cluster has free CPUs (the first is {nodes[0].name}): end other"
            " jobs there, or lower --workers, which are per node"
        )
    more = f" (and {len(nodes) - 1} more nodes)" if len(nodes) > 1 else ""
    return UsageError(f"node {first.name} cannot verify: {first.refused}{more}")
