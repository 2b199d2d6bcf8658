"""The protocols of generators, scorers and verifiers, with one method each.

Backends raise `BackendError` and never retry: the runtime handles retries, timeouts and limits.
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
    """What a call used, as far as it is known. `Costs` are prices; this is a measurement."""

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
        """The inverse of `as_data`; values that are not numbers count as 0."""
        return cls(**{n: data[n] for n in cls.__slots__ if is_number(data.get(n))})

    def as_data(self) -> dict[str, float]:
        """The fields by name."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Problem:
    """A prompt, and how an answer is verified.

    Attributes:
        id: the problem's name, unique in a run.
        prompt: the text for the generator.
        check: the record that says how answers are verified, as in a file of problems. It is
            untrusted JSON data; the verifier parses it.
        question: the problem alone, without instructions and examples; empty if unknown.
        code: the beginning of the program, if the problem gives one.
        messages: a chat in place of the prompt, as OpenAI's endpoints take it. `prompt` then is
            the same as one text, for scorers and verifiers.
    """

    id: str
    prompt: str = ""
    check: Mapping[str, Any] = field(default_factory=dict)
    question: str = ""
    code: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A candidate's text, the log-probabilities of its tokens if known, and what it used."""

    text: str
    logprobs: tuple[float, ...] | None = None
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Score:
    """A candidate's score; None if there is none, with the reason.

    `alike` is a number that suggests equal verdicts where it is equal; None if the score does.
    """

    value: float | None
    usage: Usage = Usage()
    reason: str = ""
    alike: float | None = None


def scored(value: object, usage: Usage = Usage()) -> Score:
    """A score from any value; only a finite number is a score.

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
        reason: a few words, such as "wrong answer", "timeout", "worker died".
        evidence: JSON data that shows why: the first failing test, the two answers compared.
        usage: what it used.
    """

    verdict: Verdict
    reason: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = Usage()


class ParkedCall(Exception):
    """A verifier raises it if the verdict comes from outside, at any later time.

    The search waits without holding a slot, also in a later process, until a `Found` entry for the
    candidate is appended to its ledger.
    """


class Generator(Protocol):
    """Makes candidates.

    An attribute `batch: int | None` may limit the candidates per call; then the runtime makes
    several calls at once.
    """

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """Up to `n` drafts; an empty list means that there are no more.

        `first` is the number of drafts made before, so that a seeded generator can continue.
        """
        ...


class Scorer(Protocol):
    """Gives each candidate a score, a cheap number that ranks it."""

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """One score per draft."""
        ...


@dataclass(frozen=True, slots=True)
class Arrived:
    """A candidate that has arrived: its draft and its key."""

    draft: Draft
    key: str | None = None


class ArrivalScorer(Scorer, Protocol):
    """A scorer that compares candidates with those that arrived before."""

    async def score_arrivals(
        self, problem: Problem, earlier: Sequence[Arrived], new: Sequence[Arrived]
    ) -> Sequence[Score]:
        """One score per new candidate; each may depend on those before it, never on later ones."""
        ...


class Verifier(Protocol):
    """Gives a candidate its verdict."""

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """The finding, with its evidence."""
        ...
