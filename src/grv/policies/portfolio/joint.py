"""What earlier problems say about the generators: types of problems, hard and easy ones.

A generator has *levels*: each is a chance to pass in each *bin* of its score. A type has, for each
generator, the probability of each level, and the share of candidates in each bin. Difficulty is
shared: a type that is hard for one generator tends to be hard for the others, so a failure of one
lowers the chances of all. A generator may also fail on a problem that is easy for the others: that
is why a type does not fix the level. Scores may raise or lower a chance, or say nothing: the
history decides, for each generator. With one bin no score is used.
"""

from __future__ import annotations

import bisect
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import add, mul, truediv

from ...core.errors import UsageError

FORMAT = "grv joint prior 2"
_LEAST = 1e-9  # no chance is 0 or 1: evidence could not change it
_MOST_KNOWN = 4096  # pieces of evidence per generator that are remembered
OWN_SHARES = 5.0  # candidates of this problem that the expected shares of the bins count for


@dataclass(frozen=True)
class ProblemType:
    """A type of problem.

    Attributes:
        weight: how frequent it is.
        levels: for each generator, the probability of each of its levels.
        shares: for each generator, the share of its candidates in each bin; if it is missing, the
            bins have equal shares.
    """

    weight: float
    levels: Mapping[str, Sequence[float]]
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
        chances: for each generator and each of its levels, the chance to pass in each bin.
        edges: for each generator, the lowest score of each bin but the first; none means one bin.
        trust: how much the scores of a problem say about its type, from 0 (nothing) to 1.
        problems: how many problems it was fitted to.
    """

    types: tuple[ProblemType, ...]
    chances: Mapping[str, Sequence[Sequence[float]]]
    edges: Mapping[str, Sequence[float]] = field(default_factory=dict)
    trust: float = 0.0
    problems: int = 0

    def __post_init__(self) -> None:
        if not self.types or not sum(each.weight for each in self.types) > 0:
            raise UsageError("a joint prior needs at least one type with a positive weight")
        for name, levels in self.chances.items():
            bins = len(self.edges.get(name, ())) + 1
            shares = [each.shares[name] for each in self.types if name in each.shares]
            if any(len(each) != bins for each in (*levels, *shares)):
                raise UsageError(f"a joint prior needs {bins} bins for {name!r}")
            if any(len(each.levels.get(name, ())) != len(levels) for each in self.types):
                raise UsageError(f"a joint prior needs {len(levels)} levels for {name!r}")

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
            [each.weight, [each.levels[n] for n in names], [each.shares.get(n) for n in names]]
            for each in self.types
        ]
        content = {"format": FORMAT, "names": names, "edges": self.edges, "trust": self.trust}
        content |= {"chances": [self.chances[n] for n in names], "problems": self.problems}
        return json.dumps({**content, "types": rows}, separators=(",", ":"))

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
                        dict(zip(names, levels, strict=True)),
                        {n: own for n, own in zip(names, shares, strict=True) if own},
                    )
                    for weight, levels, shares in content["types"]
                )
                chances = dict(zip(names, content["chances"], strict=True))
                return cls(types, chances, content["edges"], content["trust"], content["problems"])
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        raise UsageError("this is no joint prior of this version of grv")

    @property
    def names(self) -> Sequence[str]:
        """The generators that it knows."""
        return list(self.chances)

    def bin(self, name: str, score: float) -> int:
        """The bin of a generator's score."""
        return bisect.bisect_right(self.edges.get(name, ()), score)

    def outlook(self, shown: Mapping[str, GeneratorEvidence]) -> dict[str, Outlook]:
        """For each of these generators, what to expect after this evidence."""
        logs = self._logs
        chances: dict[str, Sequence[Sequence[float]]] = {}
        for name, evidence in shown.items():
            table = self._tables[name]
            by_labels, chances[name] = table.after(tuple(evidence.failed))
            logs = list(map(add, logs, by_labels))
            for column, n in zip(table.seeing, evidence.seen, strict=True):
                if n and self.trust and len(table.seeing) > 1:
                    weight = n * self.trust
                    logs = [log + weight * each for log, each in zip(logs, column, strict=True)]
        top = max(logs)
        weights = [math.exp(log - top) for log in logs]
        total = sum(weights)
        return {
            name: Outlook(
                [sum(map(mul, weights, column)) / total for column in chances[name]],
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
        return {name: _Table.of(name, self) for name in self.names}


@dataclass(frozen=True)
class _Table:
    """The numbers of one generator.

    Attributes:
        levels: for each type, the probability of each level.
        chances: for each bin, the chance to pass at each level.
        failing: for each bin, the logarithm of the chance to fail at each level.
        shares: for each bin, its share in each type.
        seeing: for each bin, the logarithm of its share in each type.
    """

    levels: Sequence[Sequence[float]]
    chances: Sequence[Sequence[float]]
    failing: Sequence[Sequence[float]]
    shares: Sequence[Sequence[float]]
    seeing: Sequence[Sequence[float]]
    _known: dict[tuple[int, ...], _After] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, prior: JointPrior) -> _Table:
        types = prior.types
        columns = zip(*prior.chances[name], strict=True)
        chances = [[_inside(each) for each in column] for column in columns]
        even = [1 / len(chances)] * len(chances)
        shares = [[each.shares.get(name, even)[b] for each in types] for b in range(len(chances))]
        levels = [each.levels[name] for each in types]
        return cls(
            [[each / max(sum(own), _LEAST) for each in own] for own in levels],
            chances,
            [[math.log1p(-chance) for chance in column] for column in chances],
            shares,
            [[math.log(max(share, _LEAST)) for share in column] for column in shares],
        )

    def after(self, failed: tuple[int, ...]) -> _After:
        """For each type, the logarithm of the probability of these failures by bin.

        And for each bin and type, the chance of a pass after them.
        """
        if failed not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[failed] = self._computed(failed)
        return self._known[failed]

    def _computed(self, failed: tuple[int, ...]) -> _After:
        logs = [0.0] * len(self.failing[0])
        for column, n in zip(self.failing, failed, strict=True):
            if n:
                logs = [log + n * each for log, each in zip(logs, column, strict=True)]
        top = max(logs)
        fits = [math.exp(log - top) for log in logs]
        totals = [max(sum(map(mul, own, fits)), _LEAST**9) for own in self.levels]
        chances = []
        for column in self.chances:
            passing = list(map(mul, fits, column))
            passes = [sum(map(mul, own, passing)) for own in self.levels]
            chances.append(list(map(truediv, passes, totals)))
        return [math.log(total) + top for total in totals], chances


_After = tuple[Sequence[float], Sequence[Sequence[float]]]


def _inside(chance: float) -> float:
    return min(max(chance, _LEAST), 1 - _LEAST)


def _mixed(expected: Sequence[float], seen: Sequence[int]) -> list[float]:
    """The shares of the bins: as expected at first, as on this problem in the end."""
    total = OWN_SHARES + sum(seen)
    return [(OWN_SHARES * each + n) / total for each, n in zip(expected, seen, strict=True)]
