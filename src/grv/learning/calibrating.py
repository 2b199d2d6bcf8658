"""Measures the errors of a check, from gold labels or from repeated calls.

Candidates of one problem are alike: a judge with a blind spot passes many wrong answers to one
problem, and none to another. So intervals count problems, not candidates: the number of candidates
is reduced to the number of independent ones that would give the same variance (Korn and Graubard,
1998), and the interval is that of Clopper and Pearson for this number.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..backends.verifiers.calibration import Bias, Rate
from ..theory.confirmations import CallCounts, Errors

LEVEL = 0.95
_ROUNDS = 500  # of the fit without gold labels
_MOST_LABELS = 1_000_000
_RESAMPLES = 200
_NO_CALLS = CallCounts()


@dataclass(frozen=True, slots=True)
class JudgedCandidate:
    """A candidate and the verdicts of the check on it.

    Attributes:
        problem: its problem.
        right: the gold label; None if there is none.
        passes: how many calls passed it.
        calls: how many calls gave a verdict.
        length: the length of its text.
        swapped: of these, the calls that named the verdicts in the other order.
    """

    problem: str
    right: bool | None
    passes: int
    calls: int
    length: int = 0
    swapped: CallCounts = _NO_CALLS

    @property
    def mistakes(self) -> int:
        """How many calls were wrong."""
        return self.calls - self.passes if self.right else self.passes


def false_passes(candidates: Iterable[JudgedCandidate]) -> Rate:
    """How often one call passes a wrong candidate."""
    return _rate([each for each in candidates if each.right is False])


def false_failures(candidates: Iterable[JudgedCandidate]) -> Rate:
    """How often one call fails a right candidate."""
    return _rate([each for each in candidates if each.right is True])


def agreement(candidates: Iterable[JudgedCandidate]) -> Rate:
    """How often one call agrees with the gold label."""
    error = _rate([each for each in candidates if each.right is not None])
    return Rate(1 - error.mean, 1 - error.high, 1 - error.low, error.n)


def _rate(candidates: Sequence[JudgedCandidate]) -> Rate:
    """The share of mistakes, each candidate counting once, with its interval."""
    shares: defaultdict[str, list[float]] = defaultdict(list)
    for candidate in candidates:
        if candidate.calls:
            shares[candidate.problem].append(candidate.mistakes / candidate.calls)
    return clustered_rate(list(shares.values()))


def clustered_rate(groups: Sequence[Sequence[float]]) -> Rate:
    """The mean of all values, with its interval; those of one group, a problem, are alike."""
    n = sum(map(len, groups))
    if n == 0:
        return Rate(0.5, 0.0, 1.0, 0)
    mean = math.fsum(map(math.fsum, groups)) / n
    low, high = _interval(mean, n, groups)
    return Rate(mean, min(low, mean), max(high, mean), n)


def _interval(mean: float, n: int, groups: Sequence[Sequence[float]]) -> tuple[float, float]:
    from scipy.stats import beta, t

    m = len(groups)
    spread = math.fsum((math.fsum(group) - mean * len(group)) ** 2 for group in groups)
    if m > 1 and spread > 0:
        variance = m / (m - 1) * spread / n**2
        independent = mean * (1 - mean) / variance
        tail = (1 + LEVEL) / 2
        if n > 1:
            independent *= (t.ppf(tail, n - 1) / t.ppf(tail, m - 1)) ** 2
        size = min(float(n), independent)
    else:
        size = float(m)  # no spread is seen: the candidates of a problem may all be alike
    size = max(size, 1.0)
    count = mean * size
    outside = (1 - LEVEL) / 2
    low = float(beta.ppf(outside, count, size - count + 1)) if count > 0 else 0.0
    high = float(beta.ppf(1 - outside, count + 1, size - count)) if count < size else 1.0
    return low, high


def persistence(candidates: Iterable[JudgedCandidate]) -> float | None:
    """The correlation of the errors of two calls on one candidate; None if nobody knows.

    It is 1 if the same candidates are judged wrong every time, and 0 if errors are independent.
    """
    wrong_pairs = pairs = 0
    mistakes = calls = 0
    for candidate in candidates:
        if candidate.right is None or candidate.calls < 2:
            continue
        pairs += candidate.calls * (candidate.calls - 1)
        wrong_pairs += candidate.mistakes * (candidate.mistakes - 1)
        mistakes += candidate.mistakes
        calls += candidate.calls
    if not pairs:
        return None
    mean = mistakes / calls
    if mean in (0.0, 1.0):
        return 0.0 if mean == 0 else 1.0
    return min(1.0, max(0.0, (wrong_pairs / pairs - mean**2) / (mean - mean**2)))


def position_bias(candidates: Iterable[JudgedCandidate]) -> Bias | None:
    """How much more often a candidate passes if "pass" is named before "fail"; None if unknown.

    The same candidates are judged in both orders, so their quality does not matter.
    """
    from scipy.stats import t

    groups: defaultdict[str, list[float]] = defaultdict(list)
    for candidate in candidates:
        swapped = candidate.swapped.passes + candidate.swapped.failures
        plain = candidate.calls - swapped
        if swapped and plain:
            first = (candidate.passes - candidate.swapped.passes) / plain
            groups[candidate.problem].append(first - candidate.swapped.passes / swapped)
    n = sum(map(len, groups.values()))
    m = len(groups)
    if m < 2:
        return None
    mean = math.fsum(map(math.fsum, groups.values())) / n
    spread = math.fsum((math.fsum(each) - mean * len(each)) ** 2 for each in groups.values())
    error = math.sqrt(m / (m - 1) * spread) / n
    reach = float(t.ppf((1 + LEVEL) / 2, m - 1)) * error
    return Bias(mean, mean - reach, mean + reach, n)


def length_bias(candidates: Iterable[JudgedCandidate]) -> float | None:
    """How much longer wrong candidates that pass are than those that fail, in deviations."""
    known = [each for each in candidates if each.right is False and each.calls]
    passed = [float(each.length) for each in known if 2 * each.passes > each.calls]
    failed = [float(each.length) for each in known if 2 * each.passes <= each.calls]
    if len(passed) < 5 or len(failed) < 5:
        return None
    everything = passed + failed
    mean = math.fsum(everything) / len(everything)
    deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in everything) / len(everything))
    if deviation == 0:
        return 0.0
    return (math.fsum(passed) / len(passed) - math.fsum(failed) / len(failed)) / deviation


@dataclass(frozen=True, slots=True)
class FlakyRates:
    """The errors of a flaky check, found without labels."""

    false_pass: Rate
    false_fail: Rate


def flaky_rates(candidates: Sequence[JudgedCandidate], seed: int = 0) -> FlakyRates | None:
    """The errors of a flaky check with intervals, by resampling problems; None if unknown."""
    errors = errors_without_labels(candidates)
    if errors is None:
        return None
    by_problem: defaultdict[str, list[JudgedCandidate]] = defaultdict(list)
    for candidate in candidates:
        by_problem[candidate.problem].append(candidate)
    groups = list(by_problem.values())
    generator = random.Random(seed)
    found = [errors]
    for _ in range(_RESAMPLES):
        drawn = generator.choices(groups, k=len(groups))
        again = errors_without_labels([each for group in drawn for each in group])
        found.append(again or Errors(0.5, 0.49))  # it may be anything
    n = sum(each.calls >= 3 for each in candidates)
    return FlakyRates(
        _between(errors.false_pass, [each.false_pass for each in found], n),
        _between(errors.false_fail, [each.false_fail for each in found], n),
    )


def _between(mean: float, values: Sequence[float], n: int) -> Rate:
    """The rate with the interval that most of the resampled values are in.

    With few problems no error may be seen at all: then the interval is that of Clopper and Pearson.
    """
    from scipy.stats import beta

    ordered = sorted(values)
    outside = round((1 - LEVEL) / 2 * len(ordered))
    unseen = float(beta.ppf((1 + LEVEL) / 2, 1, max(1, n)))
    high = max(ordered[-1 - outside], mean, unseen)
    return Rate(mean, min(ordered[outside], mean), min(1.0, high), n)


def errors_without_labels(candidates: Iterable[JudgedCandidate]) -> Errors | None:
    """The errors of a flaky check, from at least three calls on each candidate; None if unknown.

    A call on a right candidate passes with probability 1 - false_fail, on a wrong one with
    false_pass, independently: a mixture of two binomial laws. It is identified because a right
    candidate passes more often. Errors that persist cannot be seen in this way.
    """
    rows = Counter((each.passes, each.calls) for each in candidates if each.calls >= 3)
    if not rows:
        return None
    number = rows.total()
    share = 0.5
    passing = 0.9
    mistaken = 0.1
    for _ in range(_ROUNDS):
        right = right_passes = right_calls = 0.0
        wrong_passes = wrong_calls = 0.0
        for (passes, calls), count in rows.items():
            good = share * passing**passes * (1 - passing) ** (calls - passes)
            bad = (1 - share) * mistaken**passes * (1 - mistaken) ** (calls - passes)
            chance = good / (good + bad) if good + bad > 0 else 0.5
            right += count * chance
            right_passes += count * chance * passes
            right_calls += count * chance * calls
            wrong_passes += count * (1 - chance) * passes
            wrong_calls += count * (1 - chance) * calls
        before = (share, passing, mistaken)
        share = right / number
        passing = _inside(right_passes / right_calls if right_calls else passing)
        mistaken = _inside(wrong_passes / wrong_calls if wrong_calls else mistaken)
        if max(abs(a - b) for a, b in zip(before, (share, passing, mistaken), strict=True)) < 1e-9:
            break
    if passing <= mistaken:
        return None
    return Errors(mistaken, 1 - passing)


def _inside(value: float) -> float:
    """A probability that is neither 0 nor 1, so that the fit can leave it again."""
    return min(1 - 1e-9, max(1e-9, value))


def as_a_panel(rates: Sequence[float], votes: int) -> float:
    """How often at least `votes` of some models err, if each errs independently of the others.

    >>> round(as_a_panel([0.1, 0.1, 0.1], 2), 6)
    0.028
    """
    chances = [1.0]  # of 0, 1, 2 ... errors so far
    for rate in rates:
        before = [*chances, 0.0]
        one_more = [0.0, *chances]
        pairs = zip(before, one_more, strict=True)
        chances = [(1 - rate) * stays + rate * errs for stays, errs in pairs]
    return math.fsum(chances[votes:])


def labels_needed(rate: Rate, most: float) -> int | None:
    """How many more labels would show that a rate is at most `most`, if its mean stays.

    0 if it is shown already; None if no number would.
    """
    if rate.high <= most:
        return 0
    if rate.mean >= most:
        return None
    from scipy.stats import beta

    alike = _alike(rate)
    labels = max(rate.n, 1)
    while labels < _MOST_LABELS:
        size = labels / alike
        count = rate.mean * size
        if float(beta.ppf((1 + LEVEL) / 2, count + 1, size - count)) <= most:
            return max(1, labels - rate.n)
        labels = math.ceil(labels * 1.1) + 1
    return None


def _alike(rate: Rate) -> float:
    """How many labels count as much as one independent label, as the interval says."""
    from scipy.stats import beta

    low = 1.0
    high = float(max(rate.n, 1))
    for _ in range(60):
        middle = math.sqrt(low * high)
        size = max(rate.n, 1) / middle
        count = rate.mean * size
        if float(beta.ppf((1 + LEVEL) / 2, count + 1, size - count)) < rate.high:
            low = middle
        else:
            high = middle
    return low
