"""Fits types of problems to what several generators passed and failed.

A candidate in bin b of its generator's score passes with the chance

    1 / (1 + exp(-(z + strength place[b]))),    z = level + spread theta + effect eps,

where the place of a bin is its rank, and level and strength are those of the generator. theta is
how easy the problem is, for all generators; eps is that of this generator on this problem. Both are
normal. The fit is by expectation and maximisation over a grid of z. Few verdicts say little about
the effect, so it is pulled to a large one: else a search stays with a generator that fails.

One search may mislead: it may have failed thousands of times, or be unlike all others. So a search
counts for few candidates and few labels of each generator, and in the regression of z it counts
the less, the farther its z is from what is expected.

Problems need not be normal. So the prior has a type for each past problem too: what its labels say
about z for each generator, which is much where there are many and little where there are few.

Labels may be censored: a search stops at its first pass, tries some generators only, and leaves
candidates unverified. This needs no correction: given z and the scores, each verdict is a fair
draw, and the decision to verify depends on scores and earlier verdicts only. A generator that was
not tried adds no evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..core.errors import UsageError
from ..policies.portfolio import JointPrior, ProblemType
from .history import PastProblem

Numbers = NDArray[np.float64]
PastAttempts = Mapping[str, PastProblem]  # one past problem, by generator

GRID = np.arange(-9.0, 8.0)  # values of z: chances from 1e-4 to .999
BINS = 5  # of equal size, as far as scores differ
# Before any label: the spread of problems and of the effect, and the labels that they count for.
SPREAD = 2.0
EFFECT = 3.0
SPREADS = 6.0
LEAST_EFFECT = 0.6  # the grid shows no smaller one
LEVELS = 2.0  # the standard deviation of the levels of generators
RAISED = 0.5  # standard errors that are added to a level: what was hardly tried may be good
GENERAL = 20.0  # problems that the types of the normal distribution count for
# per problem and generator: the most labels and candidates that count, and the residual of z, in
# units of the effect, beyond which a problem counts less
MOST_LABELS = 10.0
MOST_CANDIDATES = 10.0
NEAR = 1.0
STEEP = 1.0  # what a problem may add to the slope of a strength, either way
STILL = 4.0  # how strongly the strength of a generator's score is pulled to 0
SHARES = 3.0  # candidates that the mean shares count for
TRUSTS = (0.0, 0.25, 0.5, 1.0)
# per problem and generator, by which the trust is judged
_SCORES = 2.0
_LABELS = 5.0
DIGITS = 4
ROUNDS = 15  # of expectation and maximisation
# values of theta and their weights
_THETA, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_WEIGHTS /= _WEIGHTS.sum()


@dataclass(frozen=True, eq=False)
class _Counts:
    """`[problems, generators, bins]`: passes, failures, and candidates with or without label.

    Each problem counts for at most `MOST_LABELS` and `MOST_CANDIDATES` of a generator.
    """

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
        counts[:2] *= _at_most(MOST_LABELS, counts[0] + counts[1])
        counts[2] *= _at_most(MOST_CANDIDATES, counts[2])
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
class _Model:
    """`[generators]` levels and strengths; how problems and effects vary."""

    levels: Numbers
    strengths: Numbers
    spread: float = SPREAD
    effect: float = EFFECT

    def types(self) -> Numbers:
        """`[thetas, generators, grid]`: the probabilities of z given theta."""
        means = self.levels[None, :, None] + self.spread * _THETA[:, None, None]
        between = (GRID[1:] + GRID[:-1]) / 2
        below = _chances(1.702 * (between - means) / self.effect)  # nearly normal
        ends = np.zeros((*below.shape[:2], 1)), np.ones((*below.shape[:2], 1))
        probabilities: Numbers = np.diff(np.concatenate([ends[0], below, ends[1]], -1), axis=-1)
        return np.maximum(probabilities, 1e-12)

    def chances(self, places: Numbers) -> Numbers:
        """`[generators, grid, bins]`: the chances to pass."""
        return _chances(GRID[:, None] + (self.strengths[:, None] * places)[:, None, :])


@dataclass(frozen=True, eq=False)
class _Types:
    """Types of problems: first one for each problem, then those of the normal distribution.

    Attributes:
        levels: `[types, generators, grid]`, the probabilities of z.
        weights: `[types]`.
        chances: `[generators, grid, bins]`, the chances to pass.
    """

    levels: Numbers
    weights: Numbers
    chances: Numbers


def fit_joint(past: Sequence[PastAttempts], names: Sequence[str]) -> JointPrior:
    """The prior for these generators, by empirical Bayes.

    Args:
        past: for each past problem, the candidates of the generators that were tried.
        names: the generators.
    """
    if not past:
        raise UsageError("there are no past problems to learn from")
    edges = {name: _edges(past, name) for name in names}
    counts = _Counts.of(past, edges)
    types = _types(counts)
    shares = _shares(counts, len(types.weights))
    trust = _trust(counts, types, shares)
    listed, chances = _listed(types, shares, edges)
    return JointPrior(listed, chances, edges, trust, len(past))


def prior_of(past: Sequence[PastAttempts], names: Sequence[str]) -> JointPrior | None:
    """The prior of these problems; None if no candidate of theirs passed."""
    passed = any(each.passed.any() for problem in past for each in problem.values())
    return fit_joint(past, names) if passed else None


def _edges(past: Sequence[PastAttempts], name: str) -> tuple[float, ...]:
    """The lowest scores of all bins but the first; bins have about equally many candidates."""
    found = [each[name].scores for each in past if name in each]
    if not sum(map(len, found)):
        return ()
    scores = np.concatenate(found)
    ones = [np.ones(len(own)) for own in found]
    used = np.concatenate([each * _at_most(MOST_CANDIDATES, each) for each in ones])
    order = np.argsort(scores, kind="stable")
    scores = scores[order]
    before = np.cumsum(used[order]) - used[order]
    quantiles = np.arange(1, BINS) * used.sum() / BINS
    lowest = np.unique(scores[np.searchsorted(before, quantiles, side="right") - 1])
    return tuple(lowest[lowest > scores[0]].tolist())


def _types(counts: _Counts) -> _Types:
    """The types of all problems, by expectation and maximisation."""
    labels = counts.passed + counts.failed
    tried = labels.sum(-1) > 0
    passed = (counts.passed.sum((0, 2)) + 0.5) / (labels.sum((0, 2)) + 1)
    model = _Model(np.log(passed / (1 - passed)), np.zeros(len(passed)))
    own = np.zeros(0)
    for _ in range(ROUNDS):
        model, own = _better(model, counts, tried)
    number = tried.sum(0)
    model = replace(model, levels=np.where(number, model.levels, model.levels[number > 0].mean()))
    each = 1 / (model.spread**2 + model.effect**2 + 4)  # 4: a label says little about z
    errors = 1 / np.sqrt(1 / LEVELS**2 + number * each)
    general = replace(model, levels=model.levels + RAISED * errors).types()
    return _Types(
        np.concatenate([own, general]),
        np.concatenate([np.ones(len(own)), GENERAL * _WEIGHTS]),
        model.chances(counts.places),
    )


def _better(model: _Model, counts: _Counts, tried: NDArray[np.bool_]) -> tuple[_Model, Numbers]:
    """A model that fits better, and `[problems, generators, grid]`: z given all labels."""
    chances = model.chances(counts.places)
    fits = _fits(counts, chances)
    types = model.types()
    by_type = np.einsum("tgk,igk->igt", types, fits)
    thetas = _normal(np.log(by_type).sum(1) + np.log(_WEIGHTS))
    joint = thetas[:, None, :] / by_type
    own = np.einsum("igt,tgk->igk", joint, types) * fits
    # The means of z, theta and their products, given the labels.
    mean = (own * GRID).sum(-1)
    theta = (thetas @ _THETA)[:, None]
    squares = (thetas @ _THETA**2)[:, None]
    product = (np.einsum("tgk,igk->igt", types * GRID, fits) * joint) @ _THETA
    residual = np.abs(mean - model.levels - model.spread * theta) / model.effect
    used = tried * np.minimum(1, NEAR / np.maximum(residual, NEAR))
    # A normal regression of z on theta, pulled to what was there before any label.
    precision = 1 / model.effect**2
    number = used.sum(0)
    about = model.levels[number > 0].mean() / LEVELS**2
    levels = (used * (mean - model.spread * theta)).sum(0) * precision + about
    levels /= number * precision + 1 / LEVELS**2
    spread = (used * (product - levels * theta)).sum() + SPREADS * SPREAD
    spread = max(0.0, float(spread / ((used * squares).sum() + SPREADS)))
    rest = (own * GRID**2).sum(-1) - 2 * levels * mean + levels**2
    rest += spread**2 * squares - 2 * spread * (product - levels * theta)
    effect = (used * rest).sum() + SPREADS * EFFECT**2
    effect = max(LEAST_EFFECT, float(np.sqrt(effect / (used.sum() + SPREADS))))
    # A step of Newton for what the scores say.
    labels = counts.passed + counts.failed
    surprise = counts.passed - labels * np.einsum("igk,gkb->igb", own, chances)
    slopes = np.clip((surprise * counts.places).sum(-1), -STEEP, STEEP)
    slope = slopes.sum(0) - STILL * model.strengths
    labels = np.einsum("igk,igb->gkb", own, labels)
    places = counts.places[:, None, :]
    bend = (labels * chances * (1 - chances) * places**2).sum((1, 2)) + STILL
    strengths = model.strengths + np.clip(slope / bend, -1, 1)
    return _Model(levels, strengths, spread, effect), own


def _shares(counts: _Counts, types: int) -> Numbers:
    """`[types, generators, bins]`: those of each problem, pulled to the mean; then the mean."""
    mean = counts.shares
    total = counts.seen.sum(-1, keepdims=True)
    own = (counts.seen + SHARES * mean) / (total + SHARES)
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
    fits = np.einsum("ygk,igk->iyg", types.levels, _fits(used, types.chances))
    by_labels = np.log(np.maximum(fits, 1e-300)).sum(-1)
    start = np.tile(np.log(types.weights), (len(by_scores), 1))
    np.fill_diagonal(start, -np.inf)
    by_trust = [
        (
            _log_sum(start + trust * by_scores + by_labels) - _log_sum(start + trust * by_scores)
        ).sum()
        for trust in TRUSTS
    ]
    return TRUSTS[int(np.argmax(by_trust))]


def _listed(
    types: _Types, shares: Numbers, edges: Mapping[str, Sequence[float]]
) -> tuple[tuple[ProblemType, ...], dict[str, list[list[float]]]]:
    """Types, and chances at each level, as plain numbers with few digits: a ledger stores them."""
    bins = [len(own) + 1 for own in edges.values()]

    def by_name(row: list[list[float]], lengths: Sequence[int]) -> dict[str, tuple[float, ...]]:
        return {
            name: tuple(round(value, DIGITS) for value in values[:n])
            for name, n, values in zip(edges, lengths, row, strict=True)
        }

    rows = zip(types.weights.tolist(), types.levels.tolist(), shares.tolist(), strict=True)
    listed = tuple(
        ProblemType(round(weight, DIGITS), by_name(own, [len(GRID)] * len(bins)), by_name(q, bins))
        for weight, own, q in rows
    )
    chances = {
        name: [[float(f"{chance:.{DIGITS}g}") for chance in row[:n]] for row in levels]
        for name, n, levels in zip(edges, bins, types.chances.tolist(), strict=True)
    }
    return listed, chances


def _fits(counts: _Counts, chances: Numbers) -> Numbers:
    """`[problems, generators, grid]`: the probability of the labels given z, up to a factor."""
    logs = np.einsum("igb,gkb->igk", counts.passed, np.log(chances))
    logs += np.einsum("igb,gkb->igk", counts.failed, np.log1p(-chances))
    fits: Numbers = np.exp(logs - logs.max(-1, keepdims=True))
    return fits


def _at_most(most: float, counts: Numbers) -> Numbers:
    """`[..., 1]`: the factor that reduces the sum of the counts to at most this."""
    factor: Numbers = np.minimum(1, most / np.maximum(counts.sum(-1, keepdims=True), 1))
    return factor


def _chances(log_odds: Numbers) -> Numbers:
    chances: Numbers = 1 / (1 + np.exp(-np.clip(log_odds, -20, 20)))
    return chances


def _log_sum(logs: Numbers) -> Numbers:
    """`[rows]`: the logarithm of the sum of exponentials."""
    top = logs.max(axis=1, keepdims=True)
    found: Numbers = top[:, 0] + np.log(np.exp(logs - top).sum(axis=1))
    return found


def _normal(logs: Numbers) -> Numbers:
    """Probabilities with these logarithms, up to a factor per row."""
    found: Numbers = np.exp(logs - _log_sum(logs)[:, None])
    return found
