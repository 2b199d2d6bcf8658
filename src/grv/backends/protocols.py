"""The protocols of generators, scorers and verifiers, with one method each.

Backends raise `BackendError` and never retry: the runtime handles retries, timeouts and limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..conditions import Conditions
from ..core.errors import UsageError
from ..core.values import Verdict
from ..files import is_number
from ..theory.confirmations import CallCounts, Errors
from ..usage import NOTHING as NOTHING
from ..usage import UNUSED
from ..usage import Usage as Usage


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
        weight: how much an answer is worth, compared with those to the other problems of a run
            with one budget.
        expected_cost: what the search is predicted to cost, in the unit of the costs; None if
            nothing is known. The schedule `cheapest-predicted` uses it.

    Examples:
        >>> import grv
        >>> problem = grv.Problem("sum", "What is 2 + 2?", {"kind": "math", "answer": "4"})
        >>> problem.check["answer"]
        '4'
    """

    id: str
    prompt: str = ""
    check: Mapping[str, Any] = field(default_factory=dict)
    question: str = ""
    code: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()
    weight: float = 1.0
    expected_cost: float | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A candidate's text, the log-probabilities of its tokens if known, and what it used.

    `broken` says why the text cannot be kept; then it is empty. Such a candidate is paid for, and
    neither scored, verified nor returned. `reasoning` is what the model thought before its answer,
    where its server says it apart; it is neither scored, verified nor recorded. `is_cut` says that
    the text ends where its tokens ran out. `log` is the log of the run that made it, if a program
    did: it is recorded, and scorers may read it.

    Examples:
        >>> import grv
        >>> grv.Draft("It is 4.", usage=grv.prices.Usage(completion_tokens=5)).text
        'It is 4.'
    """

    text: str
    logprobs: tuple[float, ...] | None = None
    usage: Usage = UNUSED
    broken: str = ""
    reasoning: str = field(default="", repr=False, compare=False)
    is_cut: bool = field(default=False, repr=False, compare=False)
    log: str = field(default="", repr=False, compare=False)


LARGEST_SCORE = 1e100


@dataclass(frozen=True, slots=True)
class Score:
    """A candidate's score; None if there is none, with the reason.

    `alike` is a number that suggests equal verdicts where it is equal; None if the score does.

    Examples:
        >>> import grv
        >>> grv.scorers.Score(None, reason="the text is empty").reason
        'the text is empty'
    """

    value: float | None
    usage: Usage = UNUSED
    reason: str = ""
    alike: float | None = None


def is_score(value: float) -> bool:
    """Whether a number is a score: differences and squares of larger ones are not finite."""
    return abs(value) <= LARGEST_SCORE  # not so for NaN


def checked_score(score: Score) -> Score:
    """The score, or why it is none: what enters a ledger can be learned from."""
    for value in (score.value, score.alike):
        if value is not None and not abs(value) <= LARGEST_SCORE:
            return Score(None, score.usage, f"the scorer returned {value}")
    return score


def scored(value: object, usage: Usage = UNUSED) -> Score:
    """A score from any value; only a finite number up to `LARGEST_SCORE` is a score.

    >>> scored(float("nan")).reason
    'the score is nan'
    """
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if is_score(number):
        return Score(number, usage)
    return Score(None, usage, f"the score is {value!r}"[:80])


@dataclass(frozen=True, slots=True)
class Stage:
    """One check of several that a verification ran, and what it cost.

    Attributes:
        name: which check it is.
        verdict: what it said.
        seconds: how long it took.
        cost: what it cost, in dollars; None if nobody says.
    """

    name: str
    verdict: Verdict
    seconds: float = 0.0
    cost: float | None = None

    def as_data(self) -> dict[str, Any]:
        """The stage as evidence."""
        data = {"check": self.name, "verdict": self.verdict.value, "seconds": self.seconds}
        return data if self.cost is None else {**data, "cost": self.cost}

    @classmethod
    def of(cls, data: object) -> Stage | None:
        """The inverse of `as_data`; None if it is not one."""
        if not isinstance(data, Mapping):
            return None
        match data:
            case {"check": str(name), "verdict": str(verdict), "seconds": int() | float() as spent}:
                cost = data.get("cost")
                known = cost if is_number(cost) else None
                if verdict in {each.value for each in Verdict}:
                    return cls(name, Verdict(verdict), spent, known)
        return None


@dataclass(frozen=True, slots=True)
class Finding:
    """A verifier's answer.

    Attributes:
        verdict: passed, failed or broken.
        reason: a few words, such as "wrong answer", "timeout", "worker died".
        evidence: JSON data that shows why: the first failing test, the two answers compared.
        usage: what it used.
        conditions: those under which it was found, if it depends on any.
        shared: whether nothing was run for it, because the verdict was known. It costs nothing.

    Examples:
        >>> import grv
        >>> grv.verifiers.Finding(grv.Verdict.FAILED, "wrong answer", {"got": 5}).evidence
        {'got': 5}
    """

    verdict: Verdict
    reason: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = UNUSED
    conditions: Conditions | None = field(default=None, compare=False)
    shared: bool = False

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The checks that were run, if there are several, each with what it cost.

        They are the field `stages` of the evidence, so that every record of a finding has them.
        """
        listed = self.evidence.get("stages")
        found = map(Stage.of, listed if isinstance(listed, list) else ())
        return tuple(stage for stage in found if stage is not None)

    @property
    def wrong_probability(self) -> float | None:
        """If a check that errs has passed it: the probability of a wrong answer of its search."""
        judged = self.evidence.get(JUDGED)
        if self.verdict is not Verdict.PASSED or not isinstance(judged, Mapping):
            return None
        wrong = judged.get("wrong_probability")
        return float(wrong) if is_number(wrong) else 1.0

    @property
    def call_counts(self) -> tuple[CallCounts, Errors] | None:
        """If the check errs: the calls on the candidate, and the errors they were taken to have."""
        match self.evidence.get(JUDGED):
            case {"passes": int(passes), "failures": int(failures), "errors": [a, b]}:
                if _are_calls(passes, failures) and is_number(a) and is_number(b):
                    with suppress(UsageError):  # of a ledger that was edited
                        return CallCounts(passes, failures), Errors(a, b)
        return None

    @property
    def repeated(self) -> int:
        """If the check errs: the calls on the candidate, beyond the first; else 0."""
        match self.evidence.get(JUDGED):
            case {"passes": int(passes), "failures": int(failures)} if _are_calls(passes, failures):
                broken = int(self.verdict is Verdict.BROKEN)
                return max(0, passes + failures + broken - 1)
        return 0

    @property
    def answer_program(self) -> str | None:
        """The program that passed, if the check runs programs: it may be a part of the text."""
        program = self.evidence.get("answer_program")
        is_certified = self.verdict is Verdict.PASSED and isinstance(program, str)
        return program if is_certified else None


JUDGED = "judged"  # the field of the evidence that a check which errs adds to a pass
VERIFIED_FIELDS = ("answer_value",)
_OWN_FIELDS = (JUDGED, "stages", "answer_program", *VERIFIED_FIELDS)
_MOST_CALLS = 1_000_000  # on one candidate


def _are_calls(passes: int, failures: int) -> bool:
    """Whether these can be the calls on one candidate."""
    return 0 <= passes <= _MOST_CALLS and 0 <= failures <= _MOST_CALLS


def foreign_evidence(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """The evidence of a server, without fields that only grv adds: bills and answers rest on them.

    >>> foreign_evidence({"got": 5, "judged": {"passes": 10**9, "failures": 0}})
    {'got': 5}
    """
    return {name: value for name, value in evidence.items() if name not in _OWN_FIELDS}


def verified_part(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a candidate's text that its verdict is about, if the verifier says which.

    These fields of the evidence stand beside the text wherever an answer is written.
    """
    return {name: evidence[name] for name in VERIFIED_FIELDS if evidence.get(name) is not None}


class ParkedCall(Exception):
    """A verifier raises it if the verdict comes from outside, at any later time.

    The search waits without holding a slot, also in a later process, until a `Found` entry for the
    candidate is appended to its ledger.
    """


class Generator(Protocol):
    """Makes candidates.

    An attribute `batch: int | None` may limit the candidates per call; then the runtime makes
    several calls at once. An attribute `notices: Sequence[str]` may say what its server cannot do,
    one line each; a run shows each line once. An attribute `server: str` may name the server that
    it calls. If that refuses calls, with a `BackendError` whose `limit` is "calls", the runtime
    finds out how many calls at once it takes; without it, 16 calls at once are made.

    Examples:
        >>> import grv
        >>> class Echo:
        ...     async def generate(self, problem, n, *, first=0):
        ...         return [grv.Draft(problem.prompt)] * n
        >>> solution = grv.solve_now(
        ...     "4",
        ...     generator=Echo(),
        ...     scorer=lambda p, t: 0.0,
        ...     verifier=lambda p, t: t == "4",
        ...     budget=50,
        ... )
        >>> solution.text
        '4'
    """

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """Up to `n` drafts; an empty list means that there are no more.

        `first` is the number of drafts made before, so that a seeded generator can continue.
        """
        ...


class Scorer(Protocol):
    """Gives each candidate a score, a cheap number that ranks it.

    An attribute `reads_logprobs: bool` may say whether it needs the log-probabilities of tokens.
    Otherwise the scorers of grv do not get them, and others do.
    An attribute `is_repeatable: bool` may say that scores follow from the drafts alone, and that
    making them costs nothing: they are made again if the process dies before the next write.

    Examples:
        >>> import grv
        >>> class Shorter:
        ...     async def score(self, problem, drafts):
        ...         return [grv.scorers.Score(-len(draft.text)) for draft in drafts]
        >>> solution = grv.solve_now(
        ...     "4",
        ...     generator=lambda p: "4",
        ...     scorer=Shorter(),
        ...     verifier=lambda p, t: t == "4",
        ...     budget=50,
        ... )
        >>> solution.text
        '4'
    """

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
    """Gives a candidate its verdict.

    An attribute `reads_earlier: bool` may say that `verify` takes the keyword `earlier`, a
    `grv.theory.confirmations.Earlier`: what the search knows before it verifies the candidate.
    A method `confirms(problem) -> ErringRule | None` may say how its candidates are confirmed, if
    the problem's check errs: budgets reserve all calls that a candidate may need.
    A method `learns_shares(problem) -> Errors | None` may say that the problem's check errs, and
    that `earlier.shares` are wanted, which come from earlier problems.
    An attribute `reads_memory: bool` may say that `verify` takes the keyword `memory`, a
    `StageMemory`: the stages that the candidate has passed before, which cost nothing now.
    A method `recall(problem, findings)` may take the recorded findings of a problem, from which the
    verifier learns which test to run first.
    A method `conditions(problem) -> Conditions` may say what verdicts depend on besides the text.
    A search then uses recorded verdicts only if they answer for these conditions.

    Examples:
        >>> import grv
        >>> class Exact:
        ...     async def verify(self, problem, draft):
        ...         right = draft.text == problem.check["answer"]
        ...         return grv.verifiers.Finding(
        ...             grv.Verdict.PASSED if right else grv.Verdict.FAILED
        ...         )
        >>> problem = grv.Problem("sum", "What is 2 + 2?", {"answer": "4"})
        >>> solution = grv.solve_now(
        ...     problem,
        ...     generator=lambda p: "4",
        ...     scorer=lambda p, t: 0.0,
        ...     verifier=Exact(),
        ...     budget=50,
        ... )
        >>> solution.verified
        True
    """

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """The finding, with its evidence."""
        ...
