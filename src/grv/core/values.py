"""The words of the project: what is asked, what is told, what it costs."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NewType

from .errors import UsageError

CandidateId = NewType("CandidateId", int)  # order of arrival: 0, 1, 2, ...


class Verdict(enum.Enum):
    """What a verifier says of a candidate."""

    PASSED = "passed"
    FAILED = "failed"
    BROKEN = "broken"  # the verifier could not tell; paid for, proves nothing


class Reason(enum.Enum):
    """Why a search ended."""

    SOLVED = "solved"
    FINISHED = "finished"  # the policy's plan came to its end, or it was not worth going on
    EXHAUSTED = "exhausted"  # nothing left to generate or to verify
    OUT_OF_BUDGET = "out of budget"


@dataclass(frozen=True, slots=True)
class Generate:
    """Make and score `n` candidates. `why` is the policy's reason, for people."""

    n: int
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Verify:
    """Verify these candidates, best first. `why` is the policy's reason, for people."""

    ids: tuple[CandidateId, ...]
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Rescore:
    """Give these candidates their second, dearer score. `why` is the policy's reason, for people.

    Policies do not ask for this: the search does, before it verifies the best; see `Cascade`.
    """

    ids: tuple[CandidateId, ...]
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Stop:
    """The search is over. `why` says more, for people, where there is more to say."""

    reason: Reason
    answer: CandidateId | None = None
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Generated:
    """Candidates arrived. Fewer than asked for means that there are no more.

    Attributes:
        scores: one a candidate, in order of arrival; -inf ranks last, NaN is refused.
        keys: one a candidate, or none at all. Equal keys have equal verdicts; a null key is in no
            class.
        paid: what was really paid, where that is known; the price list is used otherwise.
    """

    scores: tuple[float, ...]
    keys: tuple[str | None, ...] = ()
    paid: float | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    """Verdicts arrived.

    Attributes:
        verdicts: one for each candidate asked about. Those cancelled because another one of the
            same action passed may be left out; they are billed all the same.
        paid: what was really paid, where that is known; the price list is used otherwise.
    """

    verdicts: Mapping[CandidateId, Verdict]
    paid: float | None = None


@dataclass(frozen=True, slots=True)
class Rescored:
    """Second scores arrived.

    Attributes:
        scores: one for each candidate asked about; -inf ranks last, NaN is refused.
        paid: what was really paid, where that is known; the cascade's cost is used otherwise.
    """

    scores: Mapping[CandidateId, float]
    paid: float | None = None


What = Literal["generate", "verify"]  # what a policy can buy
Step = Generate | Verify  # what a policy may yield
Task = Step | Rescore  # what a driver may be asked to do
Action = Task | Stop  # what a search may ask of its driver
Event = Generated | Verified | Rescored  # what a driver may tell a search


@dataclass(frozen=True, slots=True)
class Turn:
    """One exchange of a search: what was asked, and what was told."""

    action: Task
    event: Event

    def __str__(self) -> str:
        """The exchange and the policy's reason for it, for people."""
        match self.event:
            case Generated(scores):
                line = f"generated {len(scores)}"
            case Rescored(rescored):
                line = f"rescored {', '.join(map(str, rescored))}"
            case Verified(verdicts):
                told = [f"{id} {verdict.value}" for id, verdict in verdicts.items()]
                line = f"verified {', '.join(told)}"
        return f"{line} ({self.action.why})" if self.action.why else line


@dataclass(frozen=True, slots=True)
class Costs:
    """The price list that a policy plans with, in any one unit.

    Attributes:
        generate: one candidate generated.
        verify: one candidate verified.
        score: one candidate scored, where that is not part of `generate`.
    """

    generate: float = 1.0
    verify: float = 10.0
    score: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("generate", self.generate), ("verify", self.verify)):
            if not (math.isfinite(value) and value > 0):
                raise UsageError(f"the cost to {name} must be positive and finite, not {value}")
        if not (math.isfinite(self.score) and self.score >= 0):
            raise UsageError(f"the cost to score must be finite and not negative, not {self.score}")

    @property
    def candidate(self) -> float:
        """One candidate, generated and scored: the paper's c_rew."""
        return self.generate + self.score

    @property
    def ratio(self) -> float:
        """How many candidates one verification is worth: c_ver / c_rew."""
        return self.verify / self.candidate

    def price(self, what: What) -> float:
        """One candidate, generated and scored, or one verification."""
        return self.candidate if what == "generate" else self.verify

    def of(self, generated: int, verified: int) -> float:
        """What so many candidates and verifications cost."""
        return generated * self.candidate + verified * self.verify


@dataclass(frozen=True, slots=True)
class Measured(Costs):
    """A first guess of the costs, where what is really paid is measured.

    Drivers then tell with each event what was paid for it, and policies find the costs as they are
    estimated by now in `Pool.costs`.
    """


@dataclass(frozen=True, slots=True)
class Cascade:
    """A second, dearer score, only for candidates that could be verified next.

    When the best are to be verified, the `top` best by the first score get their second one, and
    the best by that are verified.

    Attributes:
        top: how many stand for choice.
        cost: what a second score costs; the most it can, where that is measured.
    """

    top: int
    cost: float = 0.0

    def __post_init__(self) -> None:
        if self.top < 1:
            raise UsageError(f"a cascade needs at least one candidate to score, not {self.top}")
        if not (math.isfinite(self.cost) and self.cost >= 0):
            raise UsageError(
                f"the cost of a second score must be finite and not negative, not {self.cost}"
            )


@dataclass(frozen=True, slots=True)
class Bill:
    """What a search has spent: counts, and the total in the unit of its `Costs`."""

    generated: int
    verified: int
    total: float
    rescored: int = 0


@dataclass(frozen=True, slots=True)
class Rounds:
    """How often a search waited for results: each action asked for is a round, whatever its size.

    A batch generated (and scored) is one, and so are the verifications in flight together, and the
    second scores that a cascade asks for together. Asking for candidates where there are no more is
    one too: that had to be waited for.
    """

    generate: int
    verify: int
    rescore: int = 0

    @property
    def total(self) -> int:
        """Rounds of all kinds."""
        return self.generate + self.verify + self.rescore


@dataclass(frozen=True, slots=True)
class Latency:
    """How many seconds a round of each kind takes."""

    generate: float
    verify: float
    rescore: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (
            ("generation", self.generate),
            ("verification", self.verify),
            ("second scores", self.rescore),
        ):
            if not (math.isfinite(value) and value >= 0):
                raise UsageError(
                    f"a round of {name} must take a finite time, not negative, not {value}"
                )

    def of(self, rounds: Rounds) -> float:
        """How many seconds so many rounds take, one after the other."""
        seconds = rounds.generate * self.generate + rounds.verify * self.verify
        return seconds + rounds.rescore * self.rescore


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a search ended. `answer` is set exactly when it is solved; `why` is for people."""

    reason: Reason
    answer: CandidateId | None
    bill: Bill
    why: str = field(default="", compare=False)

    @property
    def solved(self) -> bool:
        """Whether a candidate passed."""
        return self.reason is Reason.SOLVED
