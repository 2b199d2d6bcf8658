"""A real Ray cluster on loopback: a head without CPUs, and nodes that come and go.

It runs in a process of its own, because Ray changes the process that it is in.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SETTINGS = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # off: every address is that of loopback
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
_CLUSTER = """
import json, os, sys
answers = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
from ray.cluster_utils import Cluster
small = {"include_dashboard": False, "object_store_memory": 80 << 20}
def patient(start):
    # A node has 30 seconds to start, which is little on a very busy machine.
    for left in (2, 1, 0):
        try:
            return start()
        except Exception:
            if not left:
                raise
cluster = patient(lambda: Cluster(True, head_node_args={"num_cpus": 0, **small}))
nodes = []
def answer(value):
    print(json.dumps(value), file=answers, flush=True)
answer(cluster.address)
for line in sys.stdin:
    what, value = json.loads(line)
    if what == "add":
        nodes.append(patient(lambda: cluster.add_node(num_cpus=value, **small)))
        answer(nodes[-1].unique_id)
    elif what == "alive":
        answer([node["NodeID"] for node in cluster.global_state.node_table() if node["Alive"]])
    else:
        cluster.remove_node(nodes.pop(value), allow_graceful=False)
        answer(None)
cluster.shutdown()
"""
# A node on which the system call that makes Landlock's rules fails, as on an old kernel.
_WEAK = """
import struct, sys
from grv.backends.sandbox.isolation import kernel, seccomp
from grv.backends.sandbox.isolation.seccomp import Instruction as I
program = [I(seccomp.LOAD, 0, 0, 0), I(seccomp.EQUAL, 0, 1, 444),
           I(seccomp.RETURN, 0, 0, seccomp.ERRNO | 38), I(seccomp.RETURN, 0, 0, seccomp.ALLOW)]
kernel.no_new_privileges()
kernel.install_filter(b"".join(struct.pack("<HBBI", *step) for step in program))
from ray._private.node import Node
from ray._private.parameter import RayParams
parameters = RayParams(
    gcs_address=sys.argv[1], redis_address=sys.argv[1], num_cpus=1, num_gpus=0, node_manager_port=0,
    min_worker_port=0, max_worker_port=0, include_log_monitor=False, object_store_memory=80 << 20)
parameters.dashboard_agent_listen_port = None
node = Node(parameters, head=False, shutdown_at_exit=True, spawn_reaper=False)
sys.stdin.read()
node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)
"""


class RayCluster:
    """A running cluster.

    Attributes:
        address: its address.
        env: the environment of a `grv` that uses it.
        folder: where its files are.
        nodes: the number of nodes besides the head.
    """

    def __init__(self, process: subprocess.Popen[str], folder: str) -> None:
        self._process, self.folder = process, folder
        self.address = str(self._answer())
        self.env = {**SETTINGS, "RAY_ADDRESS": self.address}
        self.nodes = 0

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the cluster has ended"
        return json.loads(line)

    def _ask(self, what: str, value: int) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([what, value]) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def add(self, cpus: int = 1) -> str:
        """Add a node; its id."""
        self.nodes += 1
        return str(self._ask("add", cpus))

    def remove(self, which: int = -1) -> None:
        """Kill all processes of a node, without a warning."""
        self.nodes -= 1
        self._ask("remove", which)

    def lose_head(self) -> None:
        """Kill the server that the head is. The cluster is of no use afterwards."""
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended
                words = (process / "cmdline").read_text().split("\0")
                if words[0].endswith("gcs_server") and self.folder in " ".join(words):
                    os.kill(int(process.name), signal.SIGKILL)

    @contextlib.contextmanager
    def weak_node(self) -> Iterator[None]:
        """One more node, without Landlock, until the end of the block."""
        before = set(self._ask("alive", 0))  # some may be dead already, and not known to be
        process = subprocess.Popen(
            [sys.executable, "-c", _WEAK, self.address],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **SETTINGS},
        )
        try:
            until = time.monotonic() + 120
            while set(self._ask("alive", 0)) <= before:
                assert process.poll() is None, "the node has ended"
                assert time.monotonic() < until, "the node does not start"
                time.sleep(0.1)
            yield
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(b"", timeout=30)
            process.kill()
            process.wait()

    def keep(self, nodes: int) -> None:
        """Have this number of nodes besides the head."""
        while self.nodes < nodes:
            self.add()
        while self.nodes > nodes:
            self.remove()


@contextlib.contextmanager
def running(nodes: int = 2) -> Iterator[RayCluster]:
    """A cluster with a head and other nodes, until the end of the block."""
    folder = tempfile.mkdtemp(prefix="grv-test-ray-")
    process = subprocess.Popen(
        [sys.executable, "-c", _CLUSTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **SETTINGS, "RAY_TMPDIR": folder},
    )
    try:
        cluster = RayCluster(process, folder)
        cluster.keep(nodes)
        yield cluster
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate("", timeout=30)
        process.kill()
        process.communicate()
        shutil.rmtree(folder, ignore_errors=True)
