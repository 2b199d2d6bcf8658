"""What earlier problems say about the generators: a few types of problems, hard and easy ones.

A type has, for each generator, the chance to pass in each *bin* of its score, and the share of
candidates in each bin. Difficulty is shared: a type that is hard for one generator tends to be hard
for the others, so a failure of one lowers the chances of all. Scores may raise or lower a chance,
or say nothing: the history decides, for each generator. With one bin no score is used.
"""

from __future__ import annotations

import bisect
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import mul

from ...core.errors import UsageError

FORMAT = "grv joint prior 1"
_LEAST = 1e-9  # no chance is 0 or 1: evidence could not change it
OWN_SHARES = 5.0  # candidates of this problem that the expected shares of the bins count for


@dataclass(frozen=True)
class ProblemType:
    """A type of problem.

    Attributes:
        weight: how frequent it is.
        chances: for each generator, the chance to pass in each bin of its score.
        shares: for each generator, the share of its candidates in each bin; if it is missing, the
            bins have equal shares.
    """

    weight: float
    chances: Mapping[str, Sequence[float]]
    shares: Mapping[str, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class GeneratorEvidence:
    """What a problem has shown of a generator: candidates and failures in each bin."""

    seen: Sequence[int]
    failed: Sequence[int]


@dataclass(frozen=True)
class Outlook:
    """What to expect of a generator's next candidate: chance and share of each bin."""

    chances: Sequence[float]
    shares: Sequence[float]


@dataclass(frozen=True)
class JointPrior:
    """A mixture of types of problems, as fitted to earlier problems.

    Attributes:
        types: the types; their weights need not add up to 1.
        edges: for each generator, the lowest score of each bin but the first; none means one bin.
        trust: how much the scores of a problem say about its type, from 0 (nothing) to 1.
        problems: how many problems it was fitted to.
    """

    types: tuple[ProblemType, ...]
    edges: Mapping[str, Sequence[float]] = field(default_factory=dict)
    trust: float = 0.0
    problems: int = 0

    def __post_init__(self) -> None:
        if not self.types or not sum(each.weight for each in self.types) > 0:
            raise UsageError("a joint prior needs at least one type with a positive weight")
        for each in self.types:
            for name, chances in each.chances.items():
                bins = len(self.edges.get(name, ())) + 1
                if not len(chances) == len(each.shares.get(name, chances)) == bins:
                    raise UsageError(f"a joint prior needs {bins} bins for {name!r}")

    @cached_property
    def hash(self) -> str:
        """A checksum of the content, for the ledger."""
        return hashlib.blake2b(self.to_text().encode(), digest_size=6).hexdigest()

    def to_text(self) -> str:
        """The content, for the ledger."""
        return self._text

    @cached_property
    def _text(self) -> str:
        """The same: the numbers of a type are in the order of the names. It may be 64 kB long."""
        names = self.names
        rows = [
            [each.weight, [each.chances[n] for n in names], [each.shares.get(n) for n in names]]
            for each in self.types
        ]
        content = {"format": FORMAT, "names": names, "edges": self.edges, "trust": self.trust}
        content |= {"problems": self.problems, "types": rows}
        return json.dumps(content, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> JointPrior:
        """The prior with this content."""
        try:
            content = json.loads(text)
            if content["format"] == FORMAT:
                names = content["names"]
                types = tuple(
                    ProblemType(
                        weight,
                        dict(zip(names, chances, strict=True)),
                        {n: own for n, own in zip(names, shares, strict=True) if own},
                    )
                    for weight, chances, shares in content["types"]
                )
                return cls(types, content["edges"], content["trust"], content["problems"])
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        raise UsageError("this is no joint prior of this version of grv")

    @property
    def names(self) -> Sequence[str]:
        """The generators that it knows."""
        return list(self.types[0].chances)

    def bin(self, name: str, score: float) -> int:
        """The bin of a generator's score."""
        return bisect.bisect_right(self.edges.get(name, ()), score)

    def outlook(self, shown: Mapping[str, GeneratorEvidence]) -> dict[str, Outlook]:
        """For each of these generators, what to expect after this evidence."""
        logs = self._logs
        for name, evidence in shown.items():
            table = self._tables[name]
            for column, n in zip(table.failing, evidence.failed, strict=True):
                if n:
                    logs = [log + n * each for log, each in zip(logs, column, strict=True)]
            for column, n in zip(table.seeing, evidence.seen, strict=True):
                if n and self.trust and len(table.seeing) > 1:
                    weight = n * self.trust
                    logs = [log + weight * each for log, each in zip(logs, column, strict=True)]
        top = max(logs)
        weights = [math.exp(log - top) for log in logs]
        total = sum(weights)
        return {
            name: Outlook(
                [sum(map(mul, weights, column)) / total for column in self._tables[name].chances],
                _mixed(
                    [sum(map(mul, weights, col)) / total for col in self._tables[name].shares],
                    evidence.seen,
                ),
            )
            for name, evidence in shown.items()
        }

    @cached_property
    def _logs(self) -> list[float]:
        return [math.log(max(each.weight, _LEAST)) for each in self.types]

    @cached_property
    def _tables(self) -> dict[str, _Table]:
        return {name: _Table.of(name, self.types) for name in self.names}


@dataclass(frozen=True)
class _Table:
    """The numbers of one generator by bin; each column has a number per type."""

    chances: Sequence[Sequence[float]]
    shares: Sequence[Sequence[float]]
    failing: Sequence[Sequence[float]]  # logarithms of the chance to fail
    seeing: Sequence[Sequence[float]]  # logarithms of the shares

    @classmethod
    def of(cls, name: str, types: Sequence[ProblemType]) -> _Table:
        bins = len(types[0].chances[name])
        even = [1 / bins] * bins
        chances = [[_inside(each.chances[name][bin]) for each in types] for bin in range(bins)]
        shares = [[each.shares.get(name, even)[bin] for each in types] for bin in range(bins)]
        return cls(
            chances,
            shares,
            [[math.log1p(-chance) for chance in column] for column in chances],
            [[math.log(max(share, _LEAST)) for share in column] for column in shares],
        )


def _inside(chance: float) -> float:
    return min(max(chance, _LEAST), 1 - _LEAST)


def _mixed(expected: Sequence[float], seen: Sequence[int]) -> list[float]:
    """The shares of the bins: as expected at first, as on this problem in the end."""
    total = OWN_SHARES + sum(seen)
    return [(OWN_SHARES * each + n) / total for each, n in zip(expected, seen, strict=True)]
