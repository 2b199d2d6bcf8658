"""Joint priors of which each type knows the chances of every generator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from grv.policies.portfolio import JointPrior, ProblemType

Chances = Mapping[str, Sequence[float]]  # by generator, the chance to pass in each bin


@dataclass(frozen=True)
class KnownType:
    """A type with these chances: a level of its own for each generator."""

    weight: float
    chances: Chances
    shares: Mapping[str, Sequence[float]] = field(default_factory=dict)


def known(
    types: Sequence[KnownType],
    edges: Mapping[str, Sequence[float]] | None = None,
    trust: float = 0.0,
) -> JointPrior:
    """The prior with these types."""
    names = list(types[0].chances)

    def only(at: int) -> list[float]:
        return [float(other == at) for other in range(len(types))]

    return JointPrior(
        tuple(
            ProblemType(each.weight, {name: only(at) for name in names}, each.shares)
            for at, each in enumerate(types)
        ),
        {name: [each.chances[name] for each in types] for name in names},
        edges or {},
        trust,
    )
