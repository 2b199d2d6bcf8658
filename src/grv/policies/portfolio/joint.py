"""What earlier problems say about the generators: a few types of problems, hard and easy ones.

A type has a chance to pass for each generator. Difficulty is shared: a type that is hard for one
generator tends to be hard for the others, so a failure of one lowers the chances of all.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass

from ...core.errors import UsageError
from ...core.pool import Pool
from ...core.values import Verdict

_LEAST = 1e-9  # no chance is 0 or 1: evidence could not change it


@dataclass(frozen=True)
class ProblemType:
    """A type of problem: how frequent it is, and the chance to pass for each generator."""

    weight: float
    chances: Mapping[str, float]


@dataclass(frozen=True)
class JointPrior:
    """A mixture of types of problems, as fitted to earlier problems.

    Attributes:
        types: the types; their weights need not add up to 1.
        problems: how many problems it was fitted to.
    """

    types: tuple[ProblemType, ...]
    problems: int = 0

    def __post_init__(self) -> None:
        if not self.types or not sum(each.weight for each in self.types) > 0:
            raise UsageError("a joint prior needs at least one type with a positive weight")

    @property
    def hash(self) -> str:
        """A checksum of the content, for the ledger."""
        content = [(each.weight, sorted(each.chances.items())) for each in self.types]
        return hashlib.blake2b(repr(content).encode(), digest_size=6).hexdigest()

    def chances(self, failed: Mapping[str, float]) -> dict[str, float]:
        """For each of these generators, the chance of its next candidate after these failures."""
        logs = [
            math.log(max(each.weight, _LEAST))
            + sum(n * math.log1p(-_inside(each.chances[g])) for g, n in failed.items() if n)
            for each in self.types
        ]
        top = max(logs)
        weights = [math.exp(log - top) for log in logs]
        total = sum(weights)
        return {
            name: sum(w * t.chances[name] for w, t in zip(weights, self.types, strict=True)) / total
            for name in failed
        }


def _inside(chance: float) -> float:
    return min(max(chance, _LEAST), 1 - _LEAST)


def failures(pool: Pool) -> int:
    """The candidates that failed, or have the key of one that failed."""
    kept = sum(verdict is not Verdict.FAILED for verdict in pool.verdicts.values())
    return len(pool) - pool.waiting - kept


def fresh_share(pool: Pool) -> float:
    """The share of new candidates that will need a verification, by those so far."""
    return (1 + len(pool.verdicts) + pool.waiting) / (1 + len(pool))
