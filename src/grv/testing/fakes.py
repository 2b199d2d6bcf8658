"""Fake backends that take their results from a world, and fail as scripted.

The text of a draft is the candidate's number, so scorer and verifier can look up the candidate in
the world. Each counts its calls; `faults` maps the number of a call to what happens instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel

from ..backends.protocols import Draft, Finding, Problem, Score, Usage
from ..core.errors import GeneratorError, ScorerError, VerifierError
from ..core.values import CandidateId, Verdict
from .worlds import World

# What happens at a call: raise an exception, or wait for something before the result.
Fault = Exception | Callable[[], object]


class Crash(BaseException):
    """Simulates the death of the process. No code may catch it."""


@dataclass
class _Counted:
    world: World
    faults: Mapping[int, Fault] = field(default_factory=dict)
    calls: int = 0

    async def _fault(self) -> None:
        """Count a call, and apply its fault."""
        self.calls += 1
        fault = self.faults.get(self.calls)
        await anyio.lowlevel.checkpoint()
        match fault:
            case None:
                return
            case Exception() as error:
                raise error
            case wait:
                await wait()  # type: ignore[misc]


@dataclass
class ScriptedGenerator(_Counted):
    """Generates the world's candidates in order; after the last one, none."""

    made: list[int] = field(default_factory=list)

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """The candidates from `first` on."""
        await self._fault()
        ids = range(first, min(first + n, len(self.world)))
        self.made += ids
        return [Draft(str(id), usage=Usage(completion_tokens=1)) for id in ids]


@dataclass
class TableScorer(_Counted):
    """Looks up the score of a candidate in the world."""

    scored: list[int] = field(default_factory=list)

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """One score per draft."""
        await self._fault()
        ids = [int(draft.text) for draft in drafts]
        self.scored += ids
        return [Score(self.world.scores[id]) for id in ids]


@dataclass
class TableVerifier(_Counted):
    """Looks up the verdict on a candidate in the world."""

    verified: list[int] = field(default_factory=list)

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """The world's verdict."""
        await self._fault()
        id = CandidateId(int(draft.text))
        self.verified.append(id)
        verdict = self.world.verdicts[id]
        reason = "could not tell" if verdict is Verdict.BROKEN else ""
        return Finding(verdict, reason, usage=Usage(seconds=0.25))


def world_key(world: World) -> Callable[[Problem, Draft], str | None] | None:
    """The key function of a world; None if it has no keys."""
    if not world.keys:
        return None
    return lambda problem, draft: world.keys[int(draft.text)]


def rate_limited(retry_after: float | None = None) -> GeneratorError:
    """The error of a server that limits the rate of requests."""
    return GeneratorError("429: too many requests", backend="scripted", retry_after=retry_after)


def scorer_down() -> ScorerError:
    """The error of a scorer that does not respond."""
    return ScorerError("connection refused", backend="scripted")


def verifier_down() -> VerifierError:
    """The error of a verifier that does not respond."""
    return VerifierError("connection refused", backend="scripted")
