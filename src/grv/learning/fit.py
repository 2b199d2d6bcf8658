"""Fits a prior to history: `grv learn`.

Labels are missing after a search had stopped. Which candidates have a label depends only on scores
and on earlier labels, so the likelihood of the known labels, given all scores, needs no correction
(docs/theory/guard.md). Labels of tied scores may agree more often than by chance. So they count for
less than their number: by `tie`, the same factor by which the policy discounts a score that has
failed.

The weights of levels and strengths are found by the EM algorithm, with some smoothing; the shape by
Newton's method within each iteration, with a penalty on its roughness; then the tie and the tilts
by replaying the history.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ..parallel import divided
from ..policies.learned.prior import Evidence, Looks, Prior, Scale
from ..theory.scales import distances, on_scale, pooled_shares
from .history import History, PastProblem, mean_prices

Numbers = NDArray[np.float64]

LEVELS = tuple(float(u) for u in np.linspace(-8, 3, 12))
STRENGTHS = (-0.7, -0.3, 0.0, 0.4, 1.0, 1.6)
_CUTS = (0.01, 0.03, 0.08, 0.16, 0.3, 0.5, 0.7, 0.84, 0.92, 0.97, 0.99)  # quantiles at the edges
_KNOTS = 64  # the maximum number of knots of a scale
_UNIFORM = 0.05  # the share of the weight that is spread evenly, for problems unlike the history
_SMOOTHING = 0.1  # the share of a weight that goes to each neighbour
# penalties on the shape
_ROUGHNESS = 20.0
_RIDGE = 0.05
_MOST_LABELS = 60  # the maximum weight of one problem for the shape, in labels
_ROUNDS = 40
_TOGETHER = 65_536  # candidates of the problems that are compared with the history together
_LEAST_SPREAD = 1e-3  # the minimum variance of the problems' means, on the common scale

# A problem counts as at most this many candidates where candidates are pooled: a multiple of the
# median, and no fewer than some. Otherwise one endless search would decide the scale of all.
_TIMES_MEDIAN = 8
_SOME = 256

# scores of a stranger, and the share of them that others do not have
_MANY = 64
_MOSTLY = 0.5

_normal = np.vectorize(NormalDist().inv_cdf, otypes=[float])


def sampled(problems: Sequence[PastProblem]) -> list[NDArray[np.intp]]:
    """For each problem, the candidates that count where those of all problems are pooled.

    These are all of them, unless the problem is far larger than most; then evenly spaced ones.
    """
    sizes = [len(problem.scores) for problem in problems]
    most = max(_SOME, int(_TIMES_MEDIAN * np.median(sizes)))
    counts = [min(size, most) for size in sizes]
    return [
        np.linspace(0, size - 1, count).astype(np.intp)
        for size, count in zip(sizes, counts, strict=True)
    ]


def pooled_scale(problems: Sequence[PastProblem]) -> Scale:
    """The scale of the score of these problems."""
    pairs = zip(problems, sampled(problems), strict=True)
    return scale_of(np.concatenate([problem.scores[some] for problem, some in pairs]))


def scale_of(scores: Numbers) -> Scale:
    """The scale of a score, from all its values."""
    values, counts = np.unique(scores[np.isfinite(scores)], return_counts=True)
    if not len(values):
        return Scale((0.0,), (0.0,))
    shares = (np.cumsum(counts) - counts / 2) / counts.sum()
    if len(values) > _KNOTS:
        normal = NormalDist().inv_cdf
        wanted = np.linspace(normal(shares[0]), normal(shares[-1]), _KNOTS)
        # Quantiles increase, so few of them have to be computed.
        places = [bisect.bisect_left(shares, x, key=normal) for x in wanted.tolist()]
        chosen = np.unique(np.clip(places, 0, len(values) - 1))
        values = values[chosen]
        shares = shares[chosen]
    return Scale(tuple(values.tolist()), tuple(_normal(shares).tolist()))


@dataclass(frozen=True, eq=False)
class Placed:
    """The history on the common scale.

    Attributes:
        bins: for each problem, the bins of its candidates.
        shares: `[bins]`, the share of candidates in each bin.
        edges: `[bins - 1]`, the limits between the bins.
        centre: the mean of the problems' means.
        anchor: the weight of the centre in a problem's mean, in candidates.
        centres: `[bins]`, the middle of each bin, as a distance from the problem's mean.
    """

    bins: tuple[NDArray[np.intp], ...]
    shares: Numbers
    edges: Numbers
    centre: float
    anchor: float
    centres: Numbers

    @classmethod
    def of(cls, problems: Sequence[PastProblem], scale: Scale) -> Placed:
        """Place every candidate relative to its problem's mean."""
        ends = np.cumsum([len(problem.scores) for problem in problems])
        together = np.concatenate([problem.scores for problem in problems])
        normals = np.split(on_scale(scale.values, scale.normals, together), ends[:-1])
        means = np.array([each.mean() for each in normals])
        within = float(np.mean([each.var() for each in normals]))
        chance = float(np.mean([each.var() / len(each) for each in normals]))
        anchor = within / max(float(means.var()) - chance, _LEAST_SPREAD)
        centre = float(means.mean())
        relative = [
            each - (each.sum() + anchor * centre) / (len(each) + anchor) for each in normals
        ]
        every = np.concatenate(relative)
        pairs = zip(relative, sampled(problems), strict=True)
        pooled = np.concatenate([each[some] for each, some in pairs])
        edges = np.quantile(pooled, _CUTS)
        placed = np.searchsorted(edges, every, side="right")
        shares = np.searchsorted(edges, pooled, side="right")
        counts = np.bincount(shares, minlength=len(edges) + 1) + 1.0
        limits = np.concatenate([[every.min()], edges, [every.max()]])
        centres = (limits[:-1] + limits[1:]) / 2
        bins = tuple(np.split(placed, ends[:-1]))
        return cls(bins, counts / counts.sum(), edges, centre, anchor, centres)


@dataclass(frozen=True, eq=False)
class TiedLabels:
    """All labels, one after the other, with the number of labels at the same score.

    Attributes:
        cells: the problem and the bin of each label, as one number.
        sizes: the number of labels of its problem at exactly its score.
        passed: whether the candidate passed.
        shape: the number of problems and of bins.
    """

    cells: NDArray[np.intp]
    sizes: NDArray[np.intp]
    passed: NDArray[np.bool_]
    shape: tuple[int, int]

    @classmethod
    def of(cls, problems: Sequence[PastProblem], placed: Placed) -> TiedLabels:
        """The labels that a verification gave."""
        bins = len(placed.shares)
        known = [problem.verified for problem in problems]
        owners = np.repeat(np.arange(len(problems)), [each.sum() for each in known])
        scores = np.concatenate([p.ties[k] for p, k in zip(problems, known, strict=True)])
        passed = np.concatenate([p.passed[k] for p, k in zip(problems, known, strict=True)])
        own = np.concatenate([b[k] for b, k in zip(placed.bins, known, strict=True)])
        order = np.lexsort((scores, owners))
        new = np.ones(len(order), dtype=np.bool_)
        ordered = scores[order]  # a difference of infinite scores would be NaN
        new[1:] = (ordered[1:] != ordered[:-1]) | (np.diff(owners[order]) != 0)
        group = np.cumsum(new) - 1
        sizes = np.empty(len(order), dtype=np.intp)
        sizes[order] = np.bincount(group)[group]
        return cls(owners * bins + own, sizes, passed, (len(problems), bins))

    def counts(self, tie: float) -> tuple[Numbers, Numbers]:
        """`[problems, bins]`: the weighted numbers of verified candidates and of passes."""
        worth = np.ones(len(self.sizes))
        if tie < 1:
            worth = (1 - tie**self.sizes) / ((1 - tie) * self.sizes)
        length = self.shape[0] * self.shape[1]
        labels: Numbers = np.bincount(self.cells, weights=worth, minlength=length).astype(float)
        passes: Numbers = np.bincount(self.cells, worth * self.passed, length).astype(float)
        return labels.reshape(self.shape), passes.reshape(self.shape)


def counts_of(
    problems: Sequence[PastProblem], placed: Placed, tie: float
) -> tuple[Numbers, Numbers]:
    """`[problems, bins]`: the weighted numbers of verified candidates and of passes."""
    return TiedLabels.of(problems, placed).counts(tie)


@dataclass(frozen=True, eq=False)
class Fitted:
    """The result of the EM algorithm.

    Attributes:
        shape: `[bins]`.
        weights: `[pairs]`, before a share is spread evenly.
        posterior: `[problems, pairs]`.
    """

    shape: Numbers
    weights: Numbers
    posterior: Numbers


_U, _S = (grid.ravel() for grid in np.meshgrid(LEVELS, STRENGTHS, indexing="ij"))


def chances_of(shape: Numbers) -> Numbers:
    """`[pairs, bins]`: the chance of passing of each pair of level and strength."""
    found: Numbers = 1 / (1 + np.exp(-(_U[:, None] + _S[:, None] * shape)))
    return found


def maximised(
    labels: Numbers,
    passes: Numbers,
    shares: Numbers,
    expected_shape: Numbers | None = None,
    even: float = 0.0,
) -> Fitted:
    """The shape and weights with the highest penalised likelihood of the counts.

    Args:
        labels: `[problems, bins]`, the weighted numbers of labels.
        passes: `[problems, bins]`, those of passes.
        shares: `[bins]`, the share of candidates in each bin.
        expected_shape: `[bins]`, the shape without any label; flat if None.
        even: the number of additional problems whose weight is spread evenly. If 0, weights are
            smoothed instead.
    """
    size = len(shares)
    goal = np.zeros(size) if expected_shape is None else expected_shape
    shape = goal
    weights = np.full(len(_U), 1 / len(_U))
    bends = np.diff(np.eye(size), 2, axis=0)
    penalty = _ROUGHNESS * bends.T @ bends + _RIDGE * np.eye(size)
    capped = np.minimum(1, _MOST_LABELS / np.maximum(labels.sum(axis=1), 1))
    posterior = np.zeros((len(labels), len(_U)))
    for _ in range(_ROUNDS):
        logits = _U[:, None] + _S[:, None] * shape
        logs = passes @ -np.logaddexp(0, -logits).T + (labels - passes) @ -np.logaddexp(0, logits).T
        posterior = np.exp(logs - logs.max(axis=1, keepdims=True)) * weights
        posterior /= posterior.sum(axis=1, keepdims=True)
        weights = _smoothed(posterior.mean(axis=0)) if not even else _evened(posterior, even)
        chances = 1 / (1 + np.exp(-logits))
        shared = (posterior * capped[:, None]).T
        expected = shared @ labels * chances
        slope = (_S[:, None] * (shared @ passes - expected)).sum(axis=0) - penalty @ (shape - goal)
        bend = np.diag((_S[:, None] ** 2 * expected * (1 - chances)).sum(axis=0)) + penalty
        shape = shape + np.clip(np.linalg.solve(bend, slope), -1, 1)
        shape -= shares @ shape
    return Fitted(shape, weights, posterior)


def _evened(posterior: Numbers, even: float) -> Numbers:
    """The mean of the posteriors, with `even` additional problems of which nothing is known."""
    problems, pairs = posterior.shape
    mixed: Numbers = (posterior.sum(axis=0) + even / pairs) / (problems + even)
    return mixed


def _smoothed(weights: Numbers) -> Numbers:
    """Move a share of each weight to its neighbours, in level and in strength."""
    grid = weights.reshape(len(LEVELS), len(STRENGTHS))
    for axis in (0, 1):
        low = np.concatenate([grid.take([0], axis), np.delete(grid, -1, axis)], axis)
        high = np.concatenate([np.delete(grid, 0, axis), grid.take([-1], axis)], axis)
        grid = (1 - 2 * _SMOOTHING) * grid + _SMOOTHING * (low + high)
    flat: Numbers = grid.ravel() / grid.sum()
    return flat


def looks_of(problems: Sequence[PastProblem], scale: Scale) -> Looks:
    """The extremes of the history."""
    scored = [p.scores[np.isfinite(p.scores)] for p in problems]
    scored = [each for each in scored if len(each)]
    if len(scored) < 2:
        return Looks(1.0 if not scored else float(_distances(scale, scored)[0]), 0.0)
    return Looks(float(_distances(scale, scored).max()), max(outside_others(scored)))


def outside_others(scored: Sequence[Numbers]) -> list[float]:
    """For each of several problems, the share of its scores outside the range of all others."""
    lows, highs = np.array([(each.min(), each.max()) for each in scored]).T
    # The range of all other problems: the second lowest is needed for the problem of the lowest.
    low, next_low = np.partition(lows, 1)[:2]
    next_high, high = np.partition(highs, -2)[-2:]
    out = []
    for each, lowest, highest in zip(scored, lows, highs, strict=True):
        bottom = next_low if lowest == low else low
        top = next_high if highest == high else high
        out.append(float(np.mean((each < bottom) | (each > top))))
    return out


def without_strangers(problems: Sequence[PastProblem]) -> list[PastProblem]:
    """Without problems that have many scores, most of them outside the range of all others.

    Such scores say nothing about the others, and would decide the common scale.
    """
    scored = [problem.scores[np.isfinite(problem.scores)] for problem in problems]
    many = [at for at, each in enumerate(scored) if len(each)]
    if len(many) < 2:
        return list(problems)
    shares = dict(zip(many, outside_others([scored[at] for at in many]), strict=True))
    return [
        problem
        for at, problem in enumerate(problems)
        if len(scored[at]) < _MANY or shares[at] <= _MOSTLY
    ]


def _distances(scale: Scale, scored: Sequence[Numbers]) -> Numbers:
    """`[problems]`: as `policies.learned.drift.distance`, for problems of about equal sizes."""
    order = np.argsort([len(each) for each in scored], kind="stable").tolist()
    found = np.zeros(len(scored))
    for start, stop in divided([len(scored[at]) for at in order], _TOGETHER):
        places = order[start:stop]
        padded = np.full((len(places), len(scored[places[-1]])), -np.inf)
        for row, at in enumerate(places):
            padded[row, : len(scored[at])] = scored[at]
        values, inverse = np.unique(padded, return_inverse=True)
        pooled = pooled_shares(on_scale(scale.values, scale.normals, values))
        found[places] = distances(padded, pooled[inverse].reshape(padded.shape))
    return found


def prior_of(history: History, tie: float = 1.0) -> Prior:
    """The prior that fits the history best, with a tilt of 0."""
    problems = history.problems
    scale = pooled_scale(problems)
    placed = Placed.of(problems, scale)
    labels, passes = counts_of(problems, placed, tie)
    fitted = maximised(labels, passes, placed.shares)
    even = 1 / len(fitted.weights)
    mixed = dataclasses.replace(fitted, weights=(1 - _UNIFORM) * fitted.weights + _UNIFORM * even)
    effective = float(labels.sum())
    prior = prior_from(problems, history.score, scale, placed, mixed, tie, effective)
    evidence = dataclasses.replace(
        prior.evidence, sources=history.sources, left_out=history.left_out
    )
    return dataclasses.replace(prior, evidence=evidence, alike=history.alike)


def prior_from(
    problems: Sequence[PastProblem],
    score: str,
    scale: Scale,
    placed: Placed,
    fitted: Fitted,
    tie: float,
    effective: float,
) -> Prior:
    """The prior with these weights and this shape, with a tilt of 0."""
    return Prior(
        score=score,
        scale=scale,
        centre=placed.centre,
        anchor=placed.anchor,
        edges=_listed(placed.edges),
        shares=_listed(placed.shares),
        shape=_listed(fitted.shape),
        levels=LEVELS,
        strengths=STRENGTHS,
        weights=_listed(fitted.weights),
        tie=tie,
        votes=0.0,
        ratios=(10.0,),
        tilts=(0.0,),
        keyed_tilts=(0.0,),
        looks=looks_of(problems, scale),
        evidence=Evidence(
            problems=len(problems),
            passed=sum(bool(problem.passed.any()) for problem in problems),
            candidates=sum(len(problem.scores) for problem in problems),
            labels=int(sum(problem.labelled.sum() for problem in problems)),
            effective=effective,
            censored=sum(not problem.labelled.all() for problem in problems),
        ),
        prices=mean_prices(problems),
    )


def completed(history: History, prior: Prior, seed: int = 0) -> list[PastProblem]:
    """The history with a label for every candidate: missing labels are drawn from the prior.

    Each problem's level and strength are drawn from their distribution given its labels. Problems
    in which nothing passes after that are left out.
    """
    chance = np.random.default_rng(seed)
    problems = history.problems
    placed = Placed.of(problems, prior.scale)
    labels, passes = counts_of(problems, placed, prior.tie)
    chances = np.array(prior.chances)
    logs = passes @ np.log(chances).T + (labels - passes) @ np.log1p(-chances).T
    logs += np.log(np.array(prior.weights))
    found = []
    for problem, bins, log in zip(problems, placed.bins, logs, strict=True):
        weights = np.exp(log - log.max())
        pair = chance.choice(len(weights), p=weights / weights.sum())
        drawn = chance.random(len(bins)) < chances[pair][bins]
        passed = _of_classes(problem, np.where(problem.labelled, problem.passed, drawn))
        if passed.any():
            found.append(dataclasses.replace(problem, passed=passed, labelled=passed | True))
    return found


def _of_classes(problem: PastProblem, passed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Make the labels of each key equal: to a known label, or else to the best candidate's."""
    if problem.keys is None:
        return passed
    found = passed.copy()
    # Candidates with a label come first, then by score; the first one of a key decides.
    order = np.lexsort((-problem.scores, ~problem.labelled))
    order = order[problem.keys[order] >= 0]
    classes, first = np.unique(problem.keys[order], return_index=True)
    for number, at in zip(classes, order[first], strict=True):
        found[problem.keys == number] = passed[at]
    return found


def _listed(numbers: Numbers) -> tuple[float, ...]:
    return tuple(float(f"{number:.6g}") for number in numbers)
