"""What the outside world looks like from inside: three protocols of one method each.

Backends raise `BackendError`s and never retry: retries, timeouts and limits are the runtime's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..core.values import Verdict
from ..files import is_number


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call really used, where known; different from `Costs` on purpose."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    dollars: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.seconds + other.seconds,
            self.dollars + other.dollars,
        )

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Usage:
        """From what `as_data` gives, as a ledger kept it; what is no number counts for nothing."""
        return cls(**{n: data[n] for n in cls.__slots__ if is_number(data.get(n))})

    def as_data(self) -> dict[str, float]:
        """The same by name."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Problem:
    """A prompt, with what is needed to verify an answer.

    Attributes:
        id: the problem's name, unique in a run.
        prompt: what the generator is given.
        check: the record that says how an answer is verified, as in a file of problems. JSON data
            from the user, hence `Any`; parsed where a verifier is made from it.
    """

    id: str
    prompt: str = ""
    check: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Draft:
    """A candidate's text, its token log-probabilities where known, and what it used."""

    text: str
    logprobs: tuple[float, ...] | None = None
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Score:
    """A candidate's score; None where it could not be had, with the reason."""

    value: float | None
    usage: Usage = Usage()
    reason: str = ""


def scored(value: object, usage: Usage = Usage()) -> Score:  # noqa: B008 (a frozen value)
    """A score from whatever a scorer was given; anything but a finite number is none.

    >>> scored(float("nan")).reason
    'the score is nan'
    """
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isfinite(number):
        return Score(number, usage)
    return Score(None, usage, f"the score is {value!r}"[:80])


@dataclass(frozen=True, slots=True)
class Finding:
    """A verifier's answer.

    Attributes:
        verdict: passed, failed or broken.
        reason: in a few words: "wrong answer", "timeout", "worker died".
        evidence: what shows it: the first failing test, the two answers compared. JSON data.
        usage: what it used.
    """

    verdict: Verdict
    reason: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = Usage()


class Generator(Protocol):
    """Makes candidates.

    One that gives only so many at a time may say so with an attribute `batch: int | None`, so that
    several calls are made at once instead of one after the other.
    """

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """Up to `n` drafts; none at all means that there are no more.

        `first` is how many there are already, so that a seeded generator goes on where it stopped.
        """
        ...


class Scorer(Protocol):
    """Gives each candidate the cheap number that ranks it."""

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """One score a draft."""
        ...


class Verifier(Protocol):
    """Gives a candidate its verdict."""

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """The finding, with its evidence."""
        ...
