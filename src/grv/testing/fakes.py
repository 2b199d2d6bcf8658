"""Backends scripted from a world: what they answer is known, and they fail when told to.

A draft's text is its number, so scorer and verifier can look up what the world says of it. Each
counts its calls; `faults` says what happens at which call instead of an answer.
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

# At the n-th call, from 1: an exception to raise, or something to wait for first.
Fault = Exception | Callable[[], object]


class Crash(BaseException):
    """The process dies here: nothing may catch it, and nothing after it happens."""


@dataclass
class _Counted:
    world: World
    faults: Mapping[int, Fault] = field(default_factory=dict)
    calls: int = 0

    async def _fault(self) -> None:
        """Count a call, and do what is said of it."""
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
    """Generates the world's candidates in order, and then no more."""

    made: list[int] = field(default_factory=list)

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """The candidates from `first` on."""
        await self._fault()
        ids = range(first, min(first + n, len(self.world)))
        self.made += ids
        return [Draft(str(id), usage=Usage(completion_tokens=1)) for id in ids]


@dataclass
class TableScorer(_Counted):
    """Looks up what the world scores a candidate."""

    scored: list[int] = field(default_factory=list)

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """One score a draft."""
        await self._fault()
        ids = [int(draft.text) for draft in drafts]
        self.scored += ids
        return [Score(self.world.scores[id]) for id in ids]


@dataclass
class TableVerifier(_Counted):
    """Looks up what the world says of a candidate."""

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
    """What makes two drafts of a world equivalent, if it has keys."""
    if not world.keys:
        return None
    return lambda problem, draft: world.keys[int(draft.text)]


def rate_limited(retry_after: float | None = None) -> GeneratorError:
    """What a server says that has had enough."""
    return GeneratorError("429: too many requests", backend="scripted", retry_after=retry_after)


def scorer_down() -> ScorerError:
    """A scorer that has died."""
    return ScorerError("connection refused", backend="scripted")


def verifier_down() -> VerifierError:
    """A verifier that has died."""
    return VerifierError("connection refused", backend="scripted")
