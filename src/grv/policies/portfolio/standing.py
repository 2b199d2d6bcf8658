"""How the search of a generator stands, as the learned portfolio sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.values import CandidateId, Verdict
from .joint import GeneratorEvidence, JointPrior
from .portfolio import Member


@dataclass(frozen=True)
class Standing:
    """A search and what is known of its candidates.

    Attributes:
        member: the generator and its search.
        evidence: candidates and failures by bin.
        open: the open candidates, the oldest first.
        bins: the bin of each candidate.
        done: what the candidates up to the oldest open one have cost, if their costs are those of
            the price list. Verifications out of turn count when their turn comes.
        to_verdict: the same when the oldest open candidate, or else the next one, has a verdict.
        fresh: the share of new candidates that will need a verification, by those so far.
    """

    member: Member
    evidence: GeneratorEvidence
    open: Sequence[CandidateId]
    bins: Sequence[int]
    done: float
    to_verdict: float
    fresh: float

    @classmethod
    def of(cls, member: Member, prior: JointPrior) -> Standing:
        """How a search stands."""
        pool = member.search.pool
        costs = pool.costs
        bins = [prior.bin(member.name, score) for score in pool.scores]
        seen = [0] * (len(prior.edges.get(member.name, ())) + 1)
        failed = seen.copy()
        waiting: list[CandidateId] = []
        done = 0.0
        for number, bin in enumerate(bins):
            id = CandidateId(number)
            verdict = pool.verdicts.get(id)
            seen[bin] += 1
            if not waiting:
                done += costs.candidate + (verdict is not None) * costs.verify
            if pool.is_open(id):
                waiting.append(id)
            elif verdict in (None, Verdict.FAILED):
                failed[bin] += 1  # it failed, or its key did
        left = costs.verify if waiting else costs.candidate + costs.verify
        fresh = (1 + len(pool.verdicts) + len(waiting)) / (1 + len(pool))
        return cls(member, GeneratorEvidence(seen, failed), waiting, bins, done, done + left, fresh)
