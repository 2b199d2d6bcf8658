"""Verifiers that err: how many passes a candidate needs before it is returned.

A call of such a verifier passes a wrong candidate with probability `false_pass`, and fails a right
one with probability `false_fail`. Calls on one candidate are independent given the candidate. Two
rules bound the probability that a search returns a wrong candidate by `wrong`:

- cold, which knows nothing else. The i-th candidate of a search is returned after k_i passes in a
  row, with false_pass^k_i <= wrong / (i (i + 1)), and dropped at its first failure. The sum of
  these bounds over all i is at most `wrong`, for any candidates and any order.
- bayes, which has a prior of the share of right candidates (`RightShares`): from earlier problems,
  or flat. It returns a candidate when its probability of being wrong is at most `wrong`. That holds
  on average over problems that follow the prior.

A rule is a function of what a search knows when it verifies a candidate (`Earlier`). So live
searches, resumed ones and replays decide alike.
"""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from ..core.errors import UsageError
from ..core.values import Costs

Decision = Literal["return", "drop", "again"]
_GRID = (0.0, *(10 ** (-3 + 3 * step / 20) for step in range(20)), 0.999)
_ROUNDS = 200  # of the fit
_CLOSE = 1e-9  # the fit ends when no weight changes by more
_NUMBERED = 10_000  # candidates of a search, for what one of them may need


@dataclass(frozen=True, slots=True)
class Errors:
    """How often one call of a verifier is wrong.

    Attributes:
        false_pass: the probability that it passes a wrong candidate.
        false_fail: the probability that it fails a right one.

    Examples:
        >>> Errors(0.05, 0.05).says_something
        True
    """

    false_pass: float = 0.0
    false_fail: float = 0.0

    def __post_init__(self) -> None:
        for name in ("false_pass", "false_fail"):
            value = getattr(self, name)
            if not 0 <= value < 1:
                raise UsageError(f"{name} must be from 0 up to 1, not {value}")
        if not self.says_something:
            raise UsageError(
                f"false_pass {self.false_pass:g} and false_fail {self.false_fail:g} add up to 1 or"
                " more: such a verdict says nothing"
            )

    @property
    def says_something(self) -> bool:
        """Whether a pass is likelier for a right candidate than for a wrong one."""
        return self.false_pass + self.false_fail < 1

    def likelihoods(self, passes: int, failures: int) -> tuple[float, float]:
        """The probability of these verdicts for a right and for a wrong candidate."""
        right = (1 - self.false_fail) ** passes * self.false_fail**failures
        wrong = self.false_pass**passes * (1 - self.false_pass) ** failures
        return right, wrong


def check_wrong(wrong: float) -> None:
    """Refuse a probability of a wrong answer that is not between 0 and 1."""
    if not 0 < wrong < 1:
        raise UsageError(f"the probability of a wrong answer must be between 0 and 1, not {wrong}")


class CallCounts(NamedTuple):
    """How many calls passed a candidate, and how many failed it."""

    passes: int = 0
    failures: int = 0

    def plus(self, *, passed: bool) -> CallCounts:
        """The same after one more call."""
        return CallCounts(self.passes + passed, self.failures + (not passed))


def passes_needed(number: int, errors: Errors, wrong: float) -> int:
    """How many passes in a row the candidate with this number needs; the first one has number 1.

    >>> [passes_needed(number, Errors(0.05), 0.05) for number in (1, 2, 10, 100)]
    [2, 2, 3, 5]
    """
    check_wrong(wrong)
    if number < 1:
        raise ValueError(f"candidates are numbered from 1, not {number}")
    if errors.false_pass == 0:
        return 1
    ratio = (math.log(number) + math.log(number + 1) - math.log(wrong)) / -math.log(
        errors.false_pass
    )
    return max(1, math.ceil(ratio - 1e-12))


@dataclass(frozen=True)
class RightShares:
    """What is known about the share of right candidates of a problem.

    Attributes:
        weights: the probability of each share.

    Examples:
        >>> flat = RightShares.flat()
        >>> RightShares.of(flat.to_text()) == flat
        True
    """

    weights: Mapping[float, float]

    def to_text(self) -> str:
        """The shares and their weights as JSON, exactly."""
        return json.dumps([list(pair) for pair in self.weights.items()])

    @classmethod
    def of(cls, text: str) -> RightShares:
        """The inverse of `to_text`; a ValueError if the text is something else."""
        pairs = json.loads(text)
        weights = {float(rate): float(weight) for rate, weight in pairs}
        if not weights or not all(0 <= rate <= 1 for rate in weights):
            raise ValueError("shares are from 0 to 1")
        if not math.isclose(math.fsum(weights.values()), 1.0, abs_tol=1e-6):
            raise ValueError("the weights of shares add up to 1")
        return cls(weights)

    @classmethod
    def flat(cls) -> RightShares:
        """Every share of the grid is as likely as every other."""
        return cls({rate: 1 / len(_GRID) for rate in _GRID})

    @classmethod
    def fitted(
        cls, problems: Iterable[Sequence[CallCounts]], errors: Errors, strength: float = 1.0
    ) -> RightShares:
        """The shares that explain earlier problems best.

        Args:
            problems: for each earlier problem, the calls on each of its candidates.
            errors: those of the verifier that gave them.
            strength: how many problems the flat prior counts for.
        """
        rows = [_rates(candidates, errors) for candidates in problems]
        weights = [1 / len(_GRID)] * len(_GRID)
        for _ in range(_ROUNDS):
            totals = [strength / len(_GRID)] * len(_GRID)
            for row in rows:
                joint = [weight * likely for weight, likely in zip(weights, row, strict=True)]
                whole = math.fsum(joint)
                totals = [total + part / whole for total, part in zip(totals, joint, strict=True)]
            sum_of_totals = math.fsum(totals)
            new = [total / sum_of_totals for total in totals]
            change = max(abs(a - b) for a, b in zip(new, weights, strict=True))
            weights = new
            if change < _CLOSE:
                break
        return cls(dict(zip(_GRID, weights, strict=True)))

    def given(self, counts: CallCounts, errors: Errors) -> RightShares:
        """The same after the calls on one candidate."""
        right, wrong = errors.likelihoods(*counts)
        joint = {
            rate: weight * (rate * right + (1 - rate) * wrong)
            for rate, weight in self.weights.items()
        }
        whole = math.fsum(joint.values())
        if whole == 0:
            return self
        return RightShares({rate: part / whole for rate, part in joint.items()})

    @property
    def mean(self) -> float:
        """The probability that a new candidate is right."""
        return math.fsum(rate * weight for rate, weight in self.weights.items())

    def right(self, counts: CallCounts, errors: Errors) -> float:
        """The probability that a candidate with these calls is right."""
        right, wrong = errors.likelihoods(*counts)
        good = self.mean * right
        bad = (1 - self.mean) * wrong
        return good / (good + bad) if good + bad > 0 else 0.0


class ConfirmationRule(Protocol):
    """Decides about one candidate, call by call."""

    def decide(self, counts: CallCounts) -> Decision:
        """Whether to return the candidate, to drop it, or to call the verifier again."""
        ...

    def wrong(self, counts: CallCounts) -> float:
        """The probability of a wrong answer that is stated if the candidate is returned."""
        ...


@dataclass(frozen=True, slots=True)
class PassesInARow:
    """Returns a candidate after some passes in a row, and drops it at its first failure.

    Attributes:
        needed: how many passes.
        bound: the probability of a wrong answer.
    """

    needed: int
    bound: float = 1.0

    def decide(self, counts: CallCounts) -> Decision:
        """What to do after these calls."""
        if counts.failures:
            return "drop"
        return "return" if counts.passes >= self.needed else "again"

    def wrong(self, counts: CallCounts) -> float:
        """The bound, which is that of the whole search."""
        return self.bound


@dataclass(frozen=True, slots=True)
class ProbablyRight:
    """Returns a candidate once it is right with probability 1 - `bound`.

    A candidate that is no likelier to be right than a new one is dropped.

    Attributes:
        shares: what is known about the share of right candidates, before this one.
        errors: those of the verifier.
        bound: the probability of a wrong answer that is accepted.
        most: the number of calls after which a candidate is dropped in any case.
    """

    shares: RightShares
    errors: Errors
    bound: float
    most: int

    def decide(self, counts: CallCounts) -> Decision:
        """What to do after these calls."""
        chance = self.shares.right(counts, self.errors)
        if counts.passes and chance >= 1 - self.bound:
            return "return"
        calls = counts.passes + counts.failures
        if calls >= self.most:
            return "drop"
        if calls and chance <= self.shares.given(counts, self.errors).mean:
            return "drop"
        return "again"

    def wrong(self, counts: CallCounts) -> float:
        """The probability that this candidate is wrong."""
        return 1 - self.shares.right(counts, self.errors)


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a search knows when it verifies a candidate.

    Attributes:
        number: the how manieth candidate it is that the search verifies, from 1.
        counts: the calls on each candidate of earlier steps, ordered by the candidates' numbers.
        shares: what earlier problems say about the share of right candidates; None without any.
    """

    number: int = 1
    counts: tuple[CallCounts, ...] = ()
    shares: RightShares | None = None


class Confirm(enum.StrEnum):
    """The rule by which a check that errs decides."""

    COLD = "cold"
    BAYES = "bayes"

    def rule(self, errors: Errors, wrong: float, earlier: Earlier) -> ConfirmationRule:
        """The rule for the candidate that is verified now.

        >>> Confirm.COLD.rule(Errors(0.05), 0.05, Earlier(number=10))
        PassesInARow(needed=3, bound=0.05)
        """
        check_wrong(wrong)
        if self is Confirm.COLD:
            return PassesInARow(passes_needed(earlier.number, errors, wrong), wrong)
        shares = earlier.shares or RightShares.flat()
        for counts in earlier.counts:
            shares = shares.given(counts, errors)
        return ProbablyRight(shares, errors, wrong, self.most_calls(errors, wrong))

    def most_calls(self, errors: Errors, wrong: float, verified: int = _NUMBERED) -> int:
        """The most calls on one candidate, in a search that verifies at most this many of them.

        >>> (
        ...     Confirm.COLD.most_calls(Errors(0.05), 0.05),
        ...     Confirm.BAYES.most_calls(Errors(0.05), 0.05),
        ... )
        (8, 32)
        """
        if self is Confirm.COLD:
            return passes_needed(verified, errors, wrong)
        return 4 * passes_needed(_NUMBERED, errors, wrong)


@dataclass(frozen=True, slots=True)
class ErringRule:
    """How candidates are confirmed.

    Attributes:
        confirm: the rule, or the number of passes in a row, whatever is returned.
        errors: those that the rule assumes.
        wrong: the probability of a wrong answer that it accepts.
    """

    confirm: Confirm | int
    errors: Errors
    wrong: float = 0.05

    @property
    def learns(self) -> bool:
        """Whether it uses what earlier problems have shown."""
        return self.confirm is Confirm.BAYES

    def of(self, earlier: Earlier) -> ConfirmationRule:
        """The rule for one candidate."""
        if isinstance(self.confirm, Confirm):
            return self.confirm.rule(self.errors, self.wrong, earlier)
        return PassesInARow(self.confirm)

    def most(self, costs: Costs, budget: float) -> Costs:
        """The most that a candidate costs, with all calls, in a search with this budget.

        A search of budget B verifies at most B / F candidates, where F is the least price of a
        verification. The rule `cold` asks most often about the last of them.

        >>> rule = ErringRule(Confirm.COLD, Errors(0.05), 0.05)
        >>> rule.most(Costs(1, 10), budget=100).verify, rule.most(Costs(1, 10), math.inf).verify
        (30, 80)
        """
        if not isinstance(self.confirm, Confirm):
            return costs.asked(self.confirm)
        verified = max(1, int(min(budget / costs.failure, _NUMBERED)))
        return costs.asked(self.confirm.most_calls(self.errors, self.wrong, verified))


def _rates(candidates: Sequence[CallCounts], errors: Errors) -> list[float]:
    """For each share of the grid, how likely the verdicts on a problem's candidates are."""
    logs = []
    for rate in _GRID:
        total = 0.0
        for counts in candidates:
            right, wrong = errors.likelihoods(*counts)
            chance = rate * right + (1 - rate) * wrong
            total += math.log(chance) if chance > 0 else -math.inf
        logs.append(total)
    top = max(logs)
    return [math.exp(each - top) if top > -math.inf else 1.0 for each in logs]
