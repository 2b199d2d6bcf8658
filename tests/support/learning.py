"""Problems with candidates of their own, to run jobs of the policy `learning` with fakes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio.lowlevel
import numpy as np

from grv.backends.protocols import Draft, Finding, Problem, Score
from grv.core.values import Verdict
from grv.ledger.entries import Ended, Entry, Started, Told
from grv.ledger.ledger import Ledger
from grv.testing.fakes import Crash


@dataclass(frozen=True)
class Made:
    """One candidate of a problem."""

    score: float
    passes: bool


@dataclass
class Problems:
    """Generator, scorer and verifier of made-up problems.

    Attributes:
        separation: how much higher the scores of right candidates are, on average.
        chance: the pass rate; None draws one per problem.
        shift: added to the scores of the problems from number `shift_from` on.
        crash_at: the number of the verification at which the process dies.
    """

    separation: float = 2.0
    chance: float | None = None
    shift: float = 0.0
    shift_from: int = 10**9
    crash_at: int = 0
    verified: int = field(default=0, init=False)

    def problems(self, n: int) -> list[Problem]:
        return [Problem(f"p{i}", f"prompt {i}") for i in range(n)]

    def candidate(self, problem: Problem, number: int) -> Made:
        seed = hashlib.blake2b(problem.id.encode(), digest_size=8).digest()
        own = np.random.default_rng(int.from_bytes(seed, "big"))
        rate = own.choice([0.03, 0.1, 0.3]) if self.chance is None else self.chance
        draw = np.random.default_rng([int.from_bytes(seed, "big"), number])
        passes = bool(draw.random() < rate)
        late = self.shift if int(problem.id[1:]) >= self.shift_from else 0.0
        return Made(float(draw.standard_normal() + self.separation * passes + late), passes)

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        await anyio.lowlevel.checkpoint()
        return [Draft(str(first + i)) for i in range(n)]

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        await anyio.lowlevel.checkpoint()
        return [Score(self.candidate(problem, int(each.text)).score) for each in drafts]

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        await anyio.lowlevel.checkpoint()
        self.verified += 1
        if self.verified == self.crash_at:
            raise Crash
        passes = self.candidate(problem, int(draft.text)).passes
        return Finding(Verdict.PASSED if passes else Verdict.FAILED)


def course(ledger: Ledger, search: str) -> list[Entry]:
    """What a search did: its start, all that it was told, its end."""
    kinds = (Started, Told, Ended)
    return [entry for entry in ledger.read(search) if isinstance(entry, kinds)]
