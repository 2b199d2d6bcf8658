"""The rows of a comparison: policies, and baselines that use the logged verdicts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..core.errors import UsageError
from ..core.search import Policy
from ..learning.prior_file import parse_policy
from ..own_code import is_code
from ..policies import POLICIES, spec

DEFAULT_ROWS = (
    "hindsight",
    "adaptive",
    "adaptive-all",
    "verify-all",
    "uniform-matched",
    "difficulty-1",
    "difficulty-2",
    "difficulty-3",
    "difficulty-5",
    "difficulty-10",
)

REFERENCE = "adaptive"  # the row that ratios are relative to

_DIFFICULTY = re.compile(r"difficulty-([0-9]+)")


@dataclass(frozen=True)
class PolicyRow:
    """A policy that can run live. `whole_steps` pays for whole steps, whatever the width."""

    policy: Policy
    whole_steps: bool = False


@dataclass(frozen=True)
class HindsightRow:
    """The cheapest pair that would have found a pass, for each order (SampleAware)."""


@dataclass(frozen=True)
class UniformRow:
    """The best single pair within the mean cost of adaptive."""


@dataclass(frozen=True)
class DifficultyRow:
    """The best pair for each of `groups` groups of difficulty (DAP_k)."""

    groups: int


RowKind = PolicyRow | HindsightRow | UniformRow | DifficultyRow


def parse_row(text: str) -> RowKind:
    """The row that a text describes."""
    if is_code(text):
        return PolicyRow(parse_policy(text))
    name, positional, named = spec.split(text)
    if name == "adaptive-all":
        policy = parse_policy(text.replace("adaptive-all", "adaptive", 1))
        return PolicyRow(policy, whole_steps=True)
    if name == "default" or name in POLICIES:
        return PolicyRow(parse_policy(text))
    row = _baseline(name)
    if row is None:
        known = ("default", "adaptive-all", "hindsight", "uniform-matched", "difficulty-K")
        raise UsageError(spec.unknown("policy", name, [*POLICIES, *known]))
    if positional or named:
        raise UsageError(f"{name} takes no parameters: {text!r}")
    return row


def _baseline(name: str) -> RowKind | None:
    """The baseline with this name; None if there is none."""
    if name == "hindsight":
        return HindsightRow()
    if name == "uniform-matched":
        return UniformRow()
    if match := _DIFFICULTY.fullmatch(name):
        groups = int(match[1])
        if groups < 1:
            raise UsageError(f"{name}: there must be at least one group")
        return DifficultyRow(groups)
    return None
