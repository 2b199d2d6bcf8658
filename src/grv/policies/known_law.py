"""The optimum, if the law is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..core.pool import Pool
from ..core.values import CandidateId, Costs, Generate, Step, Verify
from ..theory.optimum import Law, optimum
from .promises import promises_of, sentence


@dataclass(frozen=True)
class KnownLaw:
    """Verify each new candidate whose chance of passing is worth the cost.

    This is the distribution-aware optimum (Theorem 3.2). It needs the law: which scores occur, and
    how often each passes. Its expected cost J* is the reference for other policies. Choose it in
    simulations.

    Attributes:
        scores: the scores that occur, increasing.
        passes: the chance of passing at each score.
        masses: the probability of each score; equal if not given.

    Examples:
        >>> import grv
        >>> policy = grv.policies.KnownLaw(scores=(0, 1, 2), passes=(0, 0.1, 0.9))
        >>> from grv.testing import World, dialogue
        >>> print(*dialogue(policy, grv.Costs(1, 3), World.of("0- 1- 2+")), sep=", ")
        generate 1, generate 1, generate 1, verify 1, solved by 2
    """

    scores: tuple[float, ...]
    passes: tuple[float, ...]
    masses: tuple[float, ...] = ()
    example: ClassVar[str] = "known-law((0, 1, 2, 3, 4, 5, 6, 7), (0, 0, 0, 0, 0, 0, 0, 1))"
    rank_only: ClassVar[bool] = False
    relies_on: ClassVar[str] = "the distribution it was given"
    proven: ClassVar[str] = sentence(promises_of("known-law"))

    def __post_init__(self) -> None:
        _ = self.law  # checks the parameters

    @property
    def law(self) -> Law:
        """The law that the parameters describe."""
        return Law(self.scores, self.masses or (1.0,) * len(self.scores), self.passes)

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        """Yield one candidate after another, and the verifications of the good ones."""
        law = self.law
        tau = optimum(law, costs).tau
        while not pool.exhausted:
            yield Generate(1, "the next candidate")
            if pool.costs != costs:
                costs = pool.costs
                tau = optimum(law, costs).tau
            newest = CandidateId(len(pool) - 1)
            if newest >= 0 and pool.is_open(newest):
                passing = law.passing(pool.scores[newest])
                if passing >= tau:
                    why = f"chance of passing {passing:.3g}, at least the break-even {tau:.3g}"
                    yield Verify((newest,), why)
