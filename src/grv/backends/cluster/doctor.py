"""Tries out the sandbox on every node of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...files import error_line
from ..sandbox.limits import Isolation
from .connection import connected
from .node_pool import NodeSettings
from .nodes import Node, Nodes, none_usable


def examine_nodes(
    isolation: Isolation, workers: int | None, tell: Callable[[str], None], verbose: bool
) -> bool:
    """Run right programs and attacks on every node, on all at once; whether all is well.

    Args:
        isolation: the isolation to examine.
        workers: programs that run at once on a node; None is one per CPU.
        tell: reports one line.
        verbose: whether to report each program.

    Raises:
        UsageError: there is no Ray, or it has no nodes.
    """
    with connected() as ray:
        nodes = Nodes(ray, workers, NodeSettings(isolation), tell=lambda line: None)
        try:
            found = sorted(nodes.wait_until_started(), key=lambda node: node.name)
            if not found:
                raise none_usable(found)
            asked = {node.id: node.pool.examine.remote(verbose) for node in found if node.ready}
            weak = [node for node in found if not _examined(ray, node, asked, tell)]
        finally:
            nodes.close()
    for node in weak:
        tell(f"node {node.name} is weaker than {isolation.value}")
    return not weak


def _examined(ray: Any, node: Node, asked: dict[str, Any], tell: Callable[[str], None]) -> bool:
    """Report on one node; whether all is well there."""
    tell(f"node {node.name}, {node.workers} at once")
    lines: Sequence[str] = [node.refused or "it does not answer, or has no free CPUs"]
    well = False
    if node.id in asked:
        try:
            well, lines = ray.get(asked[node.id])
        except ray.exceptions.RayError as exc:
            lines = [f"it was lost: {error_line(exc)}"]
    for line in lines:
        tell(f"  {line}")
    return well
