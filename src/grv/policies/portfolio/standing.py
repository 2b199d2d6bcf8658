"""How the search of a generator stands, as the learned portfolio sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.pool import Pool
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
        tally = _tally_of(member, prior)
        tally.update(pool)
        waiting = tuple(tally.open)
        done = (tally.passed_by + bool(waiting)) * costs.candidate + tally.verified * costs.verify
        left = costs.verify if waiting else costs.candidate + costs.verify
        fresh = (1 + len(pool.verdicts) + len(waiting)) / (1 + len(pool))
        evidence = GeneratorEvidence(tuple(tally.seen), tuple(tally.failed))
        return cls(member, evidence, waiting, tally.bins, done, done + left, fresh)


class _Tally:
    """What the candidates of a search have shown, so that each is counted once.

    Nothing is taken back: a candidate that is not open any more stays so.
    """

    def __init__(self, name: str, prior: JointPrior) -> None:
        self.prior = prior
        self.bins: list[int] = []
        self.seen = [0] * (len(prior.edges.get(name, ())) + 1)
        self.failed = self.seen.copy()
        self.open: list[CandidateId] = []
        self.passed_by = 0  # the candidates before the oldest open one
        self.verified = 0  # those of them that were verified
        self._name = name

    def update(self, pool: Pool) -> None:
        """Count what is new."""
        for number in range(len(self.bins), len(pool)):
            bin = self.prior.bin(self._name, pool.scores[number])
            self.bins.append(bin)
            self.seen[bin] += 1
            self.open.append(CandidateId(number))
        still_open = []
        for id in self.open:
            if pool.is_open(id):
                still_open.append(id)
            elif pool.verdicts.get(id) in (None, Verdict.FAILED):
                self.failed[self.bins[id]] += 1  # it failed, or its key did
        self.open = still_open
        first = self.open[0] if self.open else len(pool)
        for number in range(self.passed_by, first):
            self.verified += CandidateId(number) in pool.verdicts
        self.passed_by = first


def _tally_of(member: Member, prior: JointPrior) -> _Tally:
    """That of this search and prior; it is kept with the search's steps."""
    steered = member.steered
    if steered is None:
        return _Tally(member.name, prior)
    if not (isinstance(steered.memory, _Tally) and steered.memory.prior is prior):
        steered.memory = _Tally(member.name, prior)
    return steered.memory
