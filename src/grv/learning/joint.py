"""Fits types of problems to what several generators passed and failed.

A candidate in bin b of its generator's score passes with the chance

    1 / (1 + exp(-(level + strength place[b]))),

where the place of a bin is its rank. A type has a level and a strength for each generator. Labels
may be censored: a search stops at its first pass, tries some generators only, and leaves candidates
unverified. This needs no correction: given the type and the scores, each verdict is a fair draw,
and the decision to verify depends on scores and earlier verdicts only. A generator that was not
tried adds no evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.errors import UsageError
from ..policies.portfolio import JointPrior, ProblemType
from .history import PastProblem

Numbers = NDArray[np.float64]
PastAttempts = Mapping[str, PastProblem]  # one past problem, by generator

EXPONENTS = tuple(2.0**power for power in (-6, -4, -2, -1, 0, 1, 2, 3, 5))  # from easy to hard
BINS = 5  # of equal size, as far as scores differ
PULL = 2.0  # verdicts per type and generator that the first guess counts for
OWN = 1.0  # verdicts per problem and generator that similar problems count for
STILL = 4.0  # how strongly the strength of a generator's score is pulled to 0
ALIKE = 0.3  # how strongly the strength on a problem is pulled to that of its generator
# candidates: that the mean shares count for, and used at most
SHARES = 3.0
MOST_SHARES = 10.0
TRUSTS = (0.0, 0.25, 0.5, 1.0)
# per problem and generator, by which the trust is judged
_SCORES = 2.0
_LABELS = 5.0
DIGITS = 4
# of expectation and maximisation; it has settled long before
ROUNDS = 40
OWN_ROUNDS = 12


@dataclass(frozen=True, eq=False)
class _Counts:
    """`[problems, generators, bins]`: passes, failures, and candidates with or without label."""

    passed: Numbers
    failed: Numbers
    seen: Numbers

    @classmethod
    def of(cls, past: Sequence[PastAttempts], edges: Mapping[str, Sequence[float]]) -> _Counts:
        size = 1 + max(map(len, edges.values()))
        counts = np.zeros((3, len(past), len(edges), size))
        for row, problem in enumerate(past):
            for column, (name, own) in enumerate(edges.items()):
                if name in problem:
                    tried = problem[name]
                    bins = np.searchsorted(np.array(own), tried.scores, side="right")
                    failed = tried.labelled & ~tried.passed
                    every = np.ones_like(failed)
                    for at, kept in enumerate((tried.passed, failed, every)):
                        counts[at, row, column] = np.bincount(bins[kept], minlength=size)
        return cls(*counts)

    @property
    def shares(self) -> Numbers:
        """`[generators, bins]`: the share of candidates in each bin."""
        total = self.seen.sum(0)
        shares: Numbers = total / np.maximum(total.sum(-1, keepdims=True), 1)
        return shares

    @property
    def places(self) -> Numbers:
        """`[generators, bins]`: the mean rank of a bin, with mean 0 and about variance 1."""
        shares = self.shares
        ranks = np.cumsum(shares, -1) - shares / 2 - 0.5
        places: Numbers = np.where(shares > 0, ranks * np.sqrt(12), 0.0)
        return places


@dataclass(frozen=True, eq=False)
class _Types:
    """Types of problems: `[types, generators]` levels and strengths, `[types]` weights."""

    levels: Numbers
    strengths: Numbers
    weights: Numbers

    def chances(self, places: Numbers) -> Numbers:
        """`[types, generators, bins]`: the chances to pass."""
        return _chances(self.levels[..., None] + self.strengths[..., None] * places)

    def likely(self, counts: _Counts) -> Numbers:
        """`[problems, types]`: the probability of each type, given the labels."""
        return _normal(_fits(counts, self.chances(counts.places)) + np.log(self.weights))


def fit_joint(past: Sequence[PastAttempts], names: Sequence[str]) -> JointPrior:
    """The prior for these generators, by empirical Bayes.

    First guess: a type of exponent e passes with the mean rate of the generator to the power e, for
    every generator, and scores say nothing. So difficulty is shared at first, and the labels decide
    how far it is. Then each problem adds a type: its own labels, completed by those of similar
    problems.

    Args:
        past: for each past problem, the candidates of the generators that were tried.
        names: the generators.
    """
    if not past:
        raise UsageError("there are no past problems to learn from")
    edges = {name: _edges(past, name) for name in names}
    counts = _Counts.of(past, edges)
    general = _general(counts)
    types = _with_own(counts, general)
    shares = _shares(counts, len(types.weights))
    trust = _trust(counts, types, shares)
    return JointPrior(_listed(counts, types, shares, edges), edges, trust, len(past))


def prior_of(past: Sequence[PastAttempts], names: Sequence[str]) -> JointPrior | None:
    """The prior of these problems; None if no candidate of theirs passed."""
    passed = any(each.passed.any() for problem in past for each in problem.values())
    return fit_joint(past, names) if passed else None


def _edges(past: Sequence[PastAttempts], name: str) -> tuple[float, ...]:
    """The lowest scores of all bins but the first; bins have about equally many candidates."""
    found = [each[name].scores for each in past if name in each]
    scores = np.sort(np.concatenate(found)) if found else np.zeros(0)
    if not len(scores):
        return ()
    lowest = np.unique(scores[np.arange(1, BINS) * len(scores) // BINS])
    return tuple(lowest[lowest > scores[0]].tolist())


def _general(counts: _Counts) -> _Types:
    """A few types, from easy to hard, by expectation and maximisation."""
    passed = counts.passed.sum((0, 2))
    tried = (counts.passed + counts.failed).sum((0, 2))
    guess = ((passed + 1) / (tried + 2))[None, :] ** np.array(EXPONENTS)[:, None]
    levels = _log_odds(guess)
    strengths = np.zeros(len(passed))
    weights = np.full(len(guess), 1 / len(guess))
    places = counts.places
    for _ in range(ROUNDS):
        likely = _Types(levels, np.tile(strengths, (len(guess), 1)), weights).likely(counts)
        good, bad = (np.tensordot(likely.T, each, 1) for each in (counts.passed, counts.failed))
        each = np.tile(strengths, (len(guess), 1))
        levels = _better_levels(levels, each, good, bad, places, PULL, guess)
        slope, bend = _slopes(levels, each, good, bad, places)
        strengths = strengths + _short((slope.sum(0) - STILL * strengths) / (bend.sum(0) + STILL))
        weights = (likely.sum(0) + 1 / len(guess)) / (len(likely) + 1)
    return _Types(levels, np.tile(strengths, (len(guess), 1)), weights)


def _with_own(counts: _Counts, general: _Types) -> _Types:
    """One type per problem, and the general types.

    A type of its own has as much weight as the problem has shown: the share of the generators that
    were tried. The rest goes to the general types that are likely, because they know how much the
    other generators vary.
    """
    likely = general.likely(counts)
    expected = likely @ _chances(general.levels)
    levels = _log_odds(expected)
    mean = general.strengths[0]
    strengths = np.tile(mean, (len(levels), 1))
    places = counts.places
    for _ in range(OWN_ROUNDS):
        both = counts.passed, counts.failed
        levels = _better_levels(levels, strengths, *both, places, OWN, expected)
        slope, bend = _slopes(levels, strengths, *both, places)
        strengths = strengths + _short((slope - ALIKE * (strengths - mean)) / (bend + ALIKE))
        mean = ALIKE * strengths.sum(0) / (ALIKE * len(levels) + STILL)
    own = ((counts.passed + counts.failed).sum(-1) > 0).mean(-1)
    return _Types(
        np.concatenate([levels, general.levels]),
        np.concatenate([strengths, np.tile(mean, (len(general.levels), 1))]),
        np.concatenate([own, general.weights + (1 - own) @ likely]),
    )


def _better_levels(
    levels: Numbers,
    strengths: Numbers,
    passed: Numbers,
    failed: Numbers,
    places: Numbers,
    pull: float,
    guess: Numbers,
) -> Numbers:
    """Levels that fit better, by two steps of Newton; `pull` labels speak for the guess."""
    for _ in range(2):
        chances = _chances(levels[..., None] + strengths[..., None] * places)
        own = _chances(levels)
        slope = (passed - (passed + failed) * chances).sum(-1) + pull * (guess - own)
        bend = ((passed + failed) * chances * (1 - chances)).sum(-1)
        bend += pull * np.maximum(own * (1 - own), 1e-4)
        levels = np.clip(levels + 2 * _short(slope / bend / 2), -14, 14)
    return levels


def _slopes(
    levels: Numbers, strengths: Numbers, passed: Numbers, failed: Numbers, places: Numbers
) -> tuple[Numbers, Numbers]:
    """First derivative, and minus the second, of the fit by the strengths."""
    chances = _chances(levels[..., None] + strengths[..., None] * places)
    slope = ((passed - (passed + failed) * chances) * places).sum(-1)
    bend = ((passed + failed) * chances * (1 - chances) * places**2).sum(-1)
    return slope, bend


def _shares(counts: _Counts, types: int) -> Numbers:
    """`[types, generators, bins]`: those of each problem, pulled to the mean; then the mean."""
    mean = counts.shares
    total = counts.seen.sum(-1, keepdims=True)
    used = counts.seen * np.minimum(1, MOST_SHARES / np.maximum(total, 1))
    own = (used + SHARES * mean) / (used.sum(-1, keepdims=True) + SHARES)
    rest = np.broadcast_to(mean, (types - len(own), *mean.shape))
    return np.concatenate([own, rest])


def _trust(counts: _Counts, types: _Types, shares: Numbers) -> float:
    """How far the scores of a problem should decide which type it is.

    Types are problems, and no two problems are equal, so scores often say less than they seem to.
    The trust is the one with which the scores of each problem predict its labels best, without its
    own type.
    """
    scores = counts.seen * _at_most(_SCORES, counts.seen)
    by_scores = np.tensordot(scores, np.log(np.maximum(shares, 1e-9)), ((1, 2), (1, 2)))
    enough = _at_most(_LABELS, counts.passed + counts.failed)
    used = _Counts(counts.passed * enough, counts.failed * enough, counts.seen)
    by_labels = _fits(used, types.chances(counts.places))
    start = np.tile(np.log(types.weights), (len(by_scores), 1))
    np.fill_diagonal(start, -np.inf)
    fits = [
        (
            _log_sum(start + trust * by_scores + by_labels) - _log_sum(start + trust * by_scores)
        ).sum()
        for trust in TRUSTS
    ]
    return TRUSTS[int(np.argmax(fits))]


def _listed(
    counts: _Counts, types: _Types, shares: Numbers, edges: Mapping[str, Sequence[float]]
) -> tuple[ProblemType, ...]:
    """The types as plain numbers, with few digits: each search of a ledger stores them."""
    bins = [len(own) + 1 for own in edges.values()]

    def by_name(row: list[list[float]]) -> dict[str, tuple[float, ...]]:
        return {
            name: tuple(round(value, DIGITS) for value in values[:n])
            for name, n, values in zip(edges, bins, row, strict=True)
        }

    rows = zip(
        types.weights.tolist(), types.chances(counts.places).tolist(), shares.tolist(), strict=True
    )
    return tuple(
        ProblemType(round(weight, DIGITS), by_name(h), by_name(share)) for weight, h, share in rows
    )


def _fits(counts: _Counts, chances: Numbers) -> Numbers:
    """`[problems, types]`: the logarithm of the probability of the labels."""
    passing = np.tensordot(counts.passed, np.log(chances), ((1, 2), (1, 2)))
    fits: Numbers = passing + np.tensordot(counts.failed, np.log1p(-chances), ((1, 2), (1, 2)))
    return fits


def _at_most(most: float, counts: Numbers) -> Numbers:
    """`[..., 1]`: the factor that reduces the sum of the counts to at most this."""
    factor: Numbers = np.minimum(1, most / np.maximum(counts.sum(-1, keepdims=True), 1))
    return factor


def _chances(log_odds: Numbers) -> Numbers:
    chances: Numbers = 1 / (1 + np.exp(-np.clip(log_odds, -20, 20)))
    return chances


def _log_odds(chances: Numbers) -> Numbers:
    inside = np.clip(chances, 1e-6, 1 - 1e-6)
    found: Numbers = np.log(inside) - np.log1p(-inside)
    return found


def _short(steps: Numbers) -> Numbers:
    """Steps of Newton, not too far."""
    clipped: Numbers = np.clip(steps, -1, 1)
    return clipped


def _log_sum(logs: Numbers) -> Numbers:
    """`[rows]`: the logarithm of the sum of exponentials."""
    top = logs.max(axis=1, keepdims=True)
    found: Numbers = top[:, 0] + np.log(np.exp(logs - top).sum(axis=1))
    return found


def _normal(logs: Numbers) -> Numbers:
    """Probabilities with these logarithms, up to a factor per row."""
    found: Numbers = np.exp(logs - _log_sum(logs)[:, None])
    return found
