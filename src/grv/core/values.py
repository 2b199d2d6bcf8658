"""The values of a search: actions, events, costs and outcomes."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NewType

from .errors import UsageError

CandidateId = NewType("CandidateId", int)  # order of arrival: 0, 1, 2, ...
REFUTED = "grv:refuted"  # the key of candidates that certainly fail: refuted from the start
DROPPED = "grv:dropped"  # the key of candidates without a text: never verified, without a verdict
LEAST_RATIO = 1e-250  # between two costs: sums and products of them are still numbers
REFUTED_CODE = 2**31 - 1  # the same where keys are numbers


class Verdict(enum.Enum):
    """A verifier's result for a candidate.

    Examples:
        >>> import grv
        >>> grv.Verdict("passed") is grv.Verdict.PASSED
        True
    """

    PASSED = "passed"
    FAILED = "failed"
    BROKEN = "broken"  # the verifier could not decide; it is billed and proves nothing


class Reason(enum.Enum):
    """Why a search ended."""

    SOLVED = "solved"
    FINISHED = "finished"  # the policy's plan ended, or continuing was not worth its cost
    EXHAUSTED = "exhausted"  # nothing left to generate or to verify
    OUT_OF_BUDGET = "out of budget"


@dataclass(frozen=True, slots=True)
class Generate:
    """Generate and score `n` candidates. `why` is the policy's reason, for people.

    `ahead(k)` is how many more candidates the plan generates before its k-th verification from
    here, if none passes. It is a hint for searches that look ahead; None if the plan cannot say.
    Then they request more and more at a time: after k candidates, k + 2.

    Examples:
        >>> import grv
        >>> grv.Generate(8).n
        8
    """

    n: int
    why: str = field(default="", compare=False)
    ahead: Callable[[int], int] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Verify:
    """Verify these candidates, best first. `why` is the policy's reason, for people.

    `meanwhile` is the number of candidates to generate and score at the same time. Policies do not
    set it; the search does, if it looks ahead. A policy sets `exactly` if it needs the verdicts of
    these candidates: then second scores choose no others.

    Examples:
        >>> import grv
        >>> grv.Verify((3, 1), "the best two").ids
        (3, 1)
    """

    ids: tuple[CandidateId, ...]
    why: str = field(default="", compare=False)
    meanwhile: int = 0
    exactly: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Rescore:
    """Give these candidates their second, more expensive score. `why` is the policy's reason.

    Policies do not yield this step. The search asks for it before it verifies; see `Cascade`.
    """

    ids: tuple[CandidateId, ...]
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Stop:
    """The search has ended. `why` is an optional explanation, for people.

    Examples:
        >>> import grv
        >>> search = grv.Search(grv.policies.VerifyAll(), grv.Costs(), grv.Limits(budget=0))
        >>> search.ask().reason.value
        'out of budget'
    """

    reason: Reason
    answer: CandidateId | None = None
    why: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Generated:
    """Candidates arrived. Fewer than requested means that the generator has no more.

    Attributes:
        scores: one per candidate, in order of arrival; -inf ranks last, NaN is an error.
        keys: one per candidate, or empty. If one candidate fails, all with the same key are taken
            to fail. None means that the candidate has no key. `REFUTED` means that the candidate
            certainly fails, `DROPPED` that it is broken: both are never verified.
        paid: the real payment; if None, the price list is used.
        alike: one number per candidate, or empty: then it is the score. A failure is evidence
            against other candidates with the same number. It does not rank.
        seconds: how long it took, if it was measured.

    Examples:
        >>> import grv
        >>> len(grv.Generated((0.2, 0.9)).scores)
        2
    """

    scores: tuple[float, ...]
    keys: tuple[str | None, ...] = ()
    paid: float | None = None
    alike: tuple[float, ...] = ()
    seconds: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Verified:
    """Verdicts arrived.

    Attributes:
        verdicts: one per candidate of the action. Verifications that were cancelled because another
            candidate of the same action passed may be missing; they are still billed.
        paid: the real payment; if None, the price list is used.
        meanwhile: the candidates that were generated at the same time, if the action asked for
            some. It may be missing if a candidate passed; they are still billed.
        seconds: how long it took, if it was measured.
        shared: the candidates whose verdict was known, so that nothing was run for it. They cost
            nothing and are counted apart.
        repeated: the calls of a verifier that errs, beyond one for each candidate. Each is billed
            as a verification.

    Examples:
        >>> import grv
        >>> event = grv.Verified({0: grv.Verdict.FAILED, 2: grv.Verdict.PASSED})
        >>> grv.Verdict.PASSED in event.verdicts.values()
        True
    """

    verdicts: Mapping[CandidateId, Verdict]
    paid: float | None = None
    meanwhile: Generated | None = None
    seconds: float | None = field(default=None, compare=False)
    shared: frozenset[CandidateId] = frozenset()
    repeated: int = 0


@dataclass(frozen=True, slots=True)
class Rescored:
    """Second scores arrived.

    Attributes:
        scores: one per candidate of the action; -inf ranks last, NaN is an error.
        paid: the real payment; if None, the cascade's cost is used.
        seconds: how long it took, if it was measured.
    """

    scores: Mapping[CandidateId, float]
    paid: float | None = None
    seconds: float | None = field(default=None, compare=False)


What = Literal["generate", "verify"]  # the kinds of step that a policy pays for
Step = Generate | Verify  # what a policy may yield
Task = Step | Rescore  # what a driver may be asked to do
Action = Task | Stop  # what a search may ask of its driver
Event = Generated | Verified | Rescored  # what a driver may tell a search


def arrivals(event: Event) -> tuple[Generated, ...]:
    """The candidates that an event brings: as asked for, or generated during a verification."""
    batch = event.meanwhile if isinstance(event, Verified) else event
    return (batch,) if isinstance(batch, Generated) else ()


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a search: the action and its result."""

    action: Task
    event: Event

    def __str__(self) -> str:
        """The result and the policy's reason for the action, for people."""
        match self.event:
            case Generated(scores, keys):
                line = f"generated {len(scores)}"
                if refuted := keys.count(REFUTED):
                    line += f", {refuted} of them refuted without verification"
            case Rescored(rescored):
                line = f"rescored {', '.join(map(str, rescored))}"
            case Verified(verdicts):
                told = [f"{id} {verdict.value}" for id, verdict in verdicts.items()]
                line = f"verified {', '.join(told)}"
                if self.event.shared:
                    line += f", {len(self.event.shared)} of them shared"
                if self.event.meanwhile is not None:
                    line += f", generated {len(self.event.meanwhile.scores)} meanwhile"
        return f"{line} ({self.action.why})" if self.action.why else line


@dataclass(frozen=True, slots=True, init=False)
class Costs:
    """The price list of a search, in any unit.

    A verification may end at the first test that fails. Then a failure costs less than a pass, and
    its price is what decides: a policy plans with `planning`, and the bill has both prices.

    Attributes:
        generate: the cost to generate one candidate.
        verify: the cost to verify one candidate: the most that a verification costs.
        failure: the cost of a verification that fails; by default as `verify`, and never more.
        score: the cost to score one candidate, if `generate` does not include it.

    Examples:
        >>> import grv
        >>> costs = grv.Costs(generate=1, verify=10)
        >>> costs.ratio, costs.of(generated=4, verified=2)
        (10.0, 24.0)
        >>> tests = grv.Costs(1, 10, failure=2)
        >>> tests.planning.ratio, tests.of(generated=4, verified=2, failed=1)
        (2.0, 16.0)
    """

    generate: float
    verify: float
    failure: float
    score: float

    def __init__(
        self,
        generate: float = 1.0,
        verify: float = 10.0,
        *,
        failure: float | None = None,
        score: float = 0.0,
    ) -> None:
        object.__setattr__(self, "generate", generate)
        object.__setattr__(self, "verify", verify)
        object.__setattr__(self, "failure", verify if failure is None else failure)
        object.__setattr__(self, "score", score)
        self._check()

    def _check(self) -> None:
        for name, value in (("generate", self.generate), ("verify", self.verify)):
            if not (math.isfinite(value) and value > 0):
                raise UsageError(f"the cost to {name} must be positive and finite, not {value}")
        if not (math.isfinite(self.failure) and self.failure > 0):
            raise UsageError(
                "the cost of a verification that fails must be positive and finite, not"
                f" {self.failure}"
            )
        if self.failure > self.verify:
            raise UsageError(
                f"a verification that fails cannot cost {self.failure:g}, more than one that"
                f" passes, {self.verify:g}: give the most that a verification costs as the second"
                " number"
            )
        if not (math.isfinite(self.score) and self.score >= 0):
            raise UsageError(f"the cost to score must be finite and not negative, not {self.score}")
        for price in (self.verify, self.failure):
            ratio = price / self.candidate if math.isfinite(self.candidate) else math.inf
            if not LEAST_RATIO <= ratio <= 1 / LEAST_RATIO:
                raise UsageError(
                    f"the costs of a candidate and of a verification, {self.candidate:g} and"
                    f" {price:g}, are too far apart: the ratio must be below {1 / LEAST_RATIO:g}"
                )

    @property
    def candidate(self) -> float:
        """The cost to generate and score one candidate: the paper's c_rew."""
        return self.generate + self.score

    @property
    def ratio(self) -> float:
        """The cost of one verification, in candidates: rho = c_ver / c_rew."""
        return self.verify / self.candidate

    @property
    def has_failure(self) -> bool:
        """Whether a verification that fails has a price of its own."""
        return self.failure != self.verify

    @property
    def planning(self) -> Costs:
        """The price list that a policy plans with: every verification costs what a failure costs.

        A search pays for failures until it ends, and once for a pass, whatever it does. So the best
        plan is that of the failure's price; see docs/theory/failure-price.md.
        """
        if not self.has_failure:
            return self
        return type(self)(self.generate, self.failure, score=self.score)

    def asked(self, calls: int) -> Costs:
        """The most that a candidate costs if its verifier is asked up to `calls` times.

        >>> Costs(1, 10).asked(3).verify
        30
        """
        return Costs(self.generate, calls * self.verify, failure=self.failure, score=self.score)

    def price(self, what: What) -> float:
        """The cost of one candidate (generated and scored), or the most of one verification."""
        return self.candidate if what == "generate" else self.verify

    def of(self, generated: int, verified: int, failed: int = 0) -> float:
        """The cost of `generated` candidates and `verified` verifications, of which some failed.

        This is the one definition of what a verification costs: `failure` if it failed. One that
        passed, is broken or was cancelled costs `verify`. Arrays of counts give arrays of costs.
        """
        cost = generated * (self.generate + self.score)
        if not self.has_failure:
            return cost + verified * self.verify
        return cost + ((verified - failed) * self.verify + failed * self.failure)


class Measured(Costs):
    """A first guess of the costs, for searches whose real payments are measured.

    Drivers then report the payment with each event, and `Pool.costs` is the current estimate.

    Examples:
        >>> import grv
        >>> grv.core.Measured(0.001, 0.02).ratio
        20.0
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Cascade:
    """A second, more expensive score, only for candidates that could be verified next.

    When a policy verifies the best candidates, the `top` best by the first score get a second
    score, and the best by their second score are verified.

    Attributes:
        top: the number of candidates to choose from.
        cost: the cost of a second score; its maximum, if payments are measured.

    Examples:
        >>> import grv
        >>> grv.core.Cascade(top=4, cost=0.5)
        Cascade(top=4, cost=0.5)
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
    """The cost of a search: the counts, and the total in the unit of its `Costs`.

    `refuted` counts the generated candidates that were refuted without verification. `unneeded`
    counts those that were requested ahead and that the plan has not used. `shared` counts the
    verdicts that cost nothing because they were known; they are not in `verified`. `repeated`
    counts the calls of a verifier that errs, beyond one for each candidate.
    """

    generated: int
    verified: int
    total: float
    rescored: int = 0
    refuted: int = 0
    unneeded: int = 0
    shared: int = 0
    repeated: int = 0


@dataclass(frozen=True, slots=True)
class Rounds:
    """How often a search waited for results. Each action is one round, whatever its size.

    One round is a batch generated and scored together, the verifications in flight together, or the
    second scores that a cascade requests together. A request to a generator that has no more
    candidates counts too, because the search waited for it. `overlapped` counts the rounds of
    verification during which candidates were generated; that generation is no round of its own.
    """

    generate: int
    verify: int
    rescore: int = 0
    overlapped: int = 0

    @classmethod
    def of(cls, trace: Sequence[Turn]) -> Rounds:
        """The rounds of a search."""
        actions = [turn.action for turn in trace]
        kinds = [type(action) for action in actions]
        both = sum(isinstance(action, Verify) and action.meanwhile > 0 for action in actions)
        return cls(kinds.count(Generate), kinds.count(Verify), kinds.count(Rescore), both)

    @property
    def total(self) -> int:
        """The number of rounds of all kinds."""
        return self.generate + self.verify + self.rescore


@dataclass(frozen=True, slots=True)
class Latency:
    """The duration of a round of each kind, in seconds."""

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
                    f"the seconds of a round of {name} must be finite and not negative, not {value}"
                )

    def of(self, rounds: Rounds) -> float:
        """The duration of these rounds in seconds, one after the other."""
        seconds = rounds.generate * self.generate + rounds.verify * self.verify
        seconds += rounds.overlapped * self.excess
        return seconds + rounds.rescore * self.rescore

    @property
    def excess(self) -> float:
        """How much longer an overlapped round takes than one of verification."""
        return max(0.0, self.generate - self.verify)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a search ended. `answer` is set if and only if it is solved; `why` is for people."""

    reason: Reason
    answer: CandidateId | None
    bill: Bill
    why: str = field(default="", compare=False)

    @property
    def solved(self) -> bool:
        """Whether as many candidates passed as were asked for."""
        return self.reason is Reason.SOLVED
