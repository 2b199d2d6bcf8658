"""Belief, merit ranking and drift, compared with a direct computation."""

from __future__ import annotations

import dataclasses
import math
import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist

import pytest

from grv.core.limits import Limits
from grv.core.pool import Pool
from grv.core.search import Search
from grv.core.values import (
    CandidateId,
    Costs,
    Generate,
    Generated,
    Step,
    Stop,
    Verdict,
    Verified,
    Verify,
)
from grv.learning.prior_file import from_text, load_prior
from grv.policies import VerifyAll
from grv.policies.learned.belief import Belief
from grv.policies.learned.drift import FALSE_ALARM, Drift, distance, outside
from grv.policies.learned.merit_ranking import MeritRanking
from grv.policies.learned.prior import Prior, Scale
from grv.testing import World, run
from grv.theory.optimum import Law, optimum

PRIOR = load_prior(str(Path(__file__).parent.parent / "assets" / "prior-1.json"))


def plain_merits(prior: Prior, ratio: float, failures: list[float]) -> list[float]:
    """By the definition: the mean of chance times best cost, over what is left of the prior."""
    weights, merits = [], []
    for weight, chances in zip(prior.weights, prior.chances, strict=True):
        for chance, count in zip(chances, failures, strict=True):
            weight *= (1 - chance) ** count
        weights.append(weight)
    atoms = tuple(range(len(prior.shares)))
    best = [
        optimum(Law(atoms, prior.shares, chances), Costs(1, ratio)).cost / ratio
        for chances in prior.chances
    ]
    for bin in atoms:
        worth = sum(w * h[bin] * j for w, h, j in zip(weights, prior.chances, best, strict=True))
        merits.append(worth / sum(weights))
    return merits


@pytest.mark.parametrize("ratio", [0.5, 10.0, 100.0])
def test_a_belief_is_the_prior_given_the_failures(ratio: float) -> None:
    chance = random.Random(1)
    belief, failures = Belief(PRIOR, ratio), [0.0] * len(PRIOR.shares)
    assert belief.merits == pytest.approx(plain_merits(PRIOR, ratio, failures))
    for _ in range(30):
        bin, count = chance.randrange(len(failures)), chance.choice([1.0, 0.5])
        failures[bin] += count
        belief.fail(bin, count)
        assert belief.merits == pytest.approx(plain_merits(PRIOR, ratio, failures))
    again = Belief(PRIOR, ratio)
    again.restart(failures)
    assert again.merits == pytest.approx(belief.merits)


def test_a_merit_of_one_is_the_break_even_where_the_prompt_is_known() -> None:
    only = [1.0 if at == 20 else 1e-300 for at in range(len(PRIOR.weights))]
    known = from_text(
        PRIOR.to_text().replace('"weights"', '"old"').replace('"tie"', f'"weights": {only}, "tie"')
    )
    law = Law(tuple(range(len(known.shares))), known.shares, known.chances[20])
    tau = optimum(law, Costs(1, 10)).tau

    merits = Belief(known, 10).merits

    assert merits == pytest.approx([chance / tau for chance in known.chances[20]])


@pytest.mark.parametrize("tie", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("levels", [3, 40, 10_000])
@pytest.mark.parametrize("candidates", [7, 40, 140])
def test_the_ranking_offers_the_candidate_with_the_highest_merit(
    tie: float, levels: int, candidates: int
) -> None:
    """Compared with a computation over all candidates, each time from the start."""
    chance = random.Random(candidates * levels)
    prior = from_text(PRIOR.to_text().replace(f'"tie": {PRIOR.tie}', f'"tie": {tie}'))
    search = Search(VerifyAll(), Costs(1, 10))
    belief = Belief(prior, 10.0)
    ranking = MeritRanking(search.pool, prior, belief)
    asked: list[CandidateId] = []
    weights: dict[CandidateId, float] = {}
    mean, placed = prior.centre, 1
    while len(search.pool) < candidates:
        match search.ask():
            case Generate(n):
                score = round(chance.gauss(0, 1) * levels) / levels
                search.tell(Generated((score,) * n))
            case Stop():
                raise AssertionError
            case action:
                asked.extend(action.ids)
                verdict = chance.choice([Verdict.FAILED, Verdict.FAILED, Verdict.BROKEN])
                same = [
                    i for i in weights if search.pool.scores[i] == search.pool.scores[asked[-1]]
                ]
                if verdict is Verdict.FAILED:
                    weights[asked[-1]] = tie ** min(len(same), 6)
                search.tell(Verified(dict.fromkeys(action.ids, verdict)))
        ranking.update(asked)
        normals = [prior.scale.normal(score) for score in search.pool.scores]
        if len(normals) >= placed <= 512:
            total = sum(normals) + prior.anchor * prior.centre
            mean, placed = total / (len(normals) + prior.anchor), 2 * len(normals)
        failures = [0.0] * len(prior.shares)
        for id, weight in weights.items():
            failures[bisect_right(prior.edges, normals[id] - mean)] += weight
        merits = plain_merits(prior, 10.0, failures) if len(normals) % 9 == 0 else belief.merits
        best = None
        for id in map(CandidateId, range(len(normals))):
            if search.pool.is_open(id):
                score = search.pool.scores[id]
                failed = sum(search.pool.scores[i] == score for i in weights)
                merit = merits[bisect_right(prior.edges, normals[id] - mean)]
                best = max(best or (-1, 0, 0), (merit * tie ** min(failed, 6), score, -id))
        found = ranking.best()
        assert (found is None) == (best is None)
        if found is not None and best is not None:
            assert found.merit == pytest.approx(best[0])
            assert search.pool.is_open(found.id)


def test_a_scale_is_linear_in_between_and_flat_outside() -> None:
    scale = Scale((0.0, 1.0, 3.0), (-1.0, 0.0, 2.0))

    assert [scale.normal(x) for x in (-math.inf, -5, 0, 0.5, 2, 3, 9)] == [
        -1,
        -1,
        -1,
        -0.5,
        1,
        2,
        2,
    ]


def test_the_tilt_is_that_of_the_nearest_ratios() -> None:
    low, high = PRIOR.ratios[0], PRIOR.ratios[-1]

    assert PRIOR.tilt(low / 10) == PRIOR.tilts[0]
    assert PRIOR.tilt(high * 10) == PRIOR.tilts[-1]
    assert PRIOR.tilt(PRIOR.ratios[2]) == pytest.approx(PRIOR.tilts[2])
    between = PRIOR.tilt(math.sqrt(PRIOR.ratios[2] * PRIOR.ratios[3]))
    assert between == pytest.approx((PRIOR.tilts[2] + PRIOR.tilts[3]) / 2)


def test_the_distance_is_kolmogorovs() -> None:
    normals = tuple(NormalDist().inv_cdf((2 * i + 1) / 200) for i in range(100))
    scale = Scale(tuple(float(i) for i in range(100)), normals)

    assert distance(scale, range(100)) == pytest.approx(0, abs=1e-9)
    assert distance(scale, [99.0] * 10) == pytest.approx(0.495)
    assert distance(scale, [1e9] * 10) == pytest.approx(0.495)
    assert distance(scale, range(50, 100)) == pytest.approx(0.495, abs=0.01)
    assert outside(scale, [-1, 0, 50, 99, 100]) == 0.4


def complaint_about(scores: list[float]) -> str | None:
    drift = Drift(PRIOR)
    for n in range(1, len(scores) + 1):
        if complaint := drift.complaint(scores[:n]):
            return f"{n}: {complaint}"
    return None


def test_prompts_of_the_history_are_refused_more_rarely_than_said() -> None:
    """As extreme as the history: shifted as far as `looks.distance` allows."""
    shift = 2 * NormalDist().inv_cdf(0.5 + PRIOR.looks.distance / 2)
    chance = random.Random(5)
    refused = 0
    for _ in range(300):
        scores = [chance.gauss(shift, 1) for _ in range(128)]
        inside = [min(max(s, PRIOR.scale.values[0]), PRIOR.scale.values[-1]) for s in scores]
        refused += complaint_about(inside) is not None
    assert refused <= 3  # expected are at most 0.3
    assert FALSE_ALARM == 0.001


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([1000.0 + i for i in range(64)], "8: 100% of 8 scores are outside"),
        ([0.0001 * i for i in range(256)], "scores is 0."),
        ([-50.0] * 8 + [0.1, -0.3, 1.0, 0.2, -1.0] * 20, "outside the range"),
    ],
    ids=["another scale", "too narrow", "half of them"],
)
def test_scores_of_another_kind_are_noticed_soon(scores: list[float], said: str) -> None:
    assert said in (complaint_about(scores) or "")


def test_candidates_without_a_score_are_not_held_against_a_prompt() -> None:
    assert complaint_about([-math.inf] * 600) is None


@pytest.mark.parametrize("votes", [0.0, 1.0])
@pytest.mark.parametrize("tie", [1.0, 0.5])
@pytest.mark.parametrize("levels", [10, 100_000])
def test_the_ranking_counts_candidates_with_the_same_key(
    tie: float, votes: float, levels: int
) -> None:
    """Compared with all candidates; some have no key, and some verdicts are broken."""
    chance = random.Random(7)
    prior = dataclasses.replace(PRIOR, tie=tie, votes=votes)
    search = Search(VerifyAll(), Costs(1, 10))
    belief = Belief(prior, 10.0)
    ranking = MeritRanking(search.pool, prior, belief)
    asked: list[CandidateId] = []
    failed: dict[float, int] = {}
    mean, placed = prior.centre, 1
    while len(search.pool) < 150:
        match search.ask():
            case Generate():
                key = chance.choice([None, *"aaaabbbccd", *map(str, range(20))])
                score = round(chance.gauss(0, 1) * levels) / levels
                search.tell(Generated((score,), (key,)))
            case Stop():
                raise AssertionError
            case action:
                asked.extend(action.ids)
                verdict = chance.choice([Verdict.FAILED, Verdict.BROKEN, Verdict.BROKEN])
                search.tell(Verified(dict.fromkeys(action.ids, verdict)))
                if verdict is Verdict.FAILED:
                    score = search.pool.scores[asked[-1]]
                    failed[score] = min(failed.get(score, 0) + (tie < 1), 6)
        ranking.update(asked)
        pool = search.pool
        normals = [prior.scale.normal(score) for score in pool.scores]
        if len(normals) >= placed:
            total = sum(normals) + prior.anchor * prior.centre
            mean, placed = total / (len(normals) + prior.anchor), 2 * len(normals)
        sizes = Counter(pool.key(CandidateId(i)) for i in range(len(pool)))
        leaders = pool.best(len(pool))  # of a key only the best counts
        best = None
        for id in leaders:
            size = sizes[pool.key(id)] if pool.key(id) is not None else 1
            merit = belief.merits[bisect_right(prior.edges, normals[id] - mean)]
            merit *= tie ** failed.get(pool.scores[id], 0) * 2 ** (
                votes * math.floor(math.log2(size))
            )
            best = max(best or (-1.0, 0.0, 0), (merit, pool.scores[id], -id))
        found = ranking.best()
        assert (found is None) == (best is None)
        if found is not None and best is not None:
            assert found.merit == pytest.approx(best[0])


def test_a_failure_need_not_be_of_the_best_of_its_key() -> None:
    class Second:
        def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
            yield Generate(3)
            yield Verify((CandidateId(1),))

    search = run(Second(), Costs(), World.of("2.5-a 2-a 1-"), Limits(width=None))
    ranking = MeritRanking(search.pool, dataclasses.replace(PRIOR, tie=0.5), Belief(PRIOR, 10.0))

    ranking.update([CandidateId(1)])

    found = ranking.best()
    assert found is not None
    assert found.id == 2
