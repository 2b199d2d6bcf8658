"""Priors from history: what is there is found, also where labels are missing."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from grv.comparing.tune import TIES, TILTS, costs_of, learn, tilted_at
from grv.core.errors import LogError, UsageError
from grv.core.values import CandidateId, Costs, Verdict
from grv.learning.fit import completed, prior_of, scale_of
from grv.learning.history import History, PastProblem, past, read_past
from grv.learning.prior_file import from_text
from grv.learning.score_combination import combine, combined_name, read_scored
from grv.logs.log import Log, LoggedProblem
from grv.logs.reading_options import Reading, Unlabelled
from grv.policies import Balanced
from grv.policies.learned.prior import Prior
from grv.replay.engine import replayed
from grv.replay.orders import batches
from grv.testing.worlds import population
from grv.theory.scales import on_scale


def made_up(
    rate: float, separation: float, *, problems: int = 60, candidates: int = 80, seed: int = 0
) -> list[LoggedProblem]:
    """Problems of one pass rate; passes score higher by the separation."""
    chance = np.random.default_rng(seed)
    found = []
    for at in range(problems):
        passed = chance.random(candidates) < rate
        scores = chance.standard_normal(candidates) + separation * passed
        found.append(LoggedProblem(f"p{at}", scores, passed))
    return found


def history_of(problems: list[LoggedProblem]) -> History:
    return History.of(past(Log(tuple(problems))), "score", ["made-up"])


def censored(problems: list[LoggedProblem], costs: Costs) -> list[PastProblem]:
    """What searches of the problems leave behind: all scores, and labels up to the first pass."""
    found = []
    for problem in problems:
        search = replayed(Balanced(), problem, costs)
        n = len(search.pool)
        labelled = np.zeros(n, dtype=np.bool_)
        labelled[list(search.pool.verdicts)] = True
        passed = np.array(
            [search.pool.verdicts.get(CandidateId(i)) is Verdict.PASSED for i in range(n)]
        )
        found.append(PastProblem(problem.id, problem.scores[:n], passed, labelled))
    return found


def mean_chances(prior: Prior) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Of passing, a number a bin: the mean over the prior's prompts."""
    weights = np.array(prior.weights) / sum(prior.weights)
    found: np.ndarray[tuple[int], np.dtype[np.float64]] = weights @ np.array(prior.chances)
    return found


def test_where_the_score_says_nothing_all_bins_pass_alike() -> None:
    prior = prior_of(history_of(made_up(0.2, 0.0)))

    assert mean_chances(prior) == pytest.approx(0.2, abs=0.05)


def test_where_the_score_tells_the_upper_bins_pass_more_often() -> None:
    problems = made_up(0.2, 1.5)
    prior = prior_of(history_of(problems))
    chances = mean_chances(prior)

    assert np.all(np.diff(chances) > 0)
    normals = [on_scale(prior.scale.values, prior.scale.normals, p.scores) for p in problems]
    scores = np.concatenate([each - each.mean() for each in normals])
    passed = np.concatenate([p.passed for p in problems])
    for bin in range(2, 10):  # those with many candidates
        low, high = prior.edges[bin - 1], prior.edges[bin]
        inside = (scores >= low) & (scores < high)
        assert chances[bin] == pytest.approx(float(passed[inside].mean()), abs=0.08)


def test_a_misleading_score_has_its_shape_the_other_way_round() -> None:
    chances = mean_chances(prior_of(history_of(made_up(0.2, -1.5))))

    assert chances[0] > 2 * chances[-1]


@pytest.mark.slow
def test_missing_labels_do_not_mislead() -> None:
    """Searches verify the best and stop at a pass: no fair sample, and yet the same prior."""
    problems = made_up(0.1, 1.5, problems=400)
    full = mean_chances(prior_of(history_of(problems)))
    stopped = censored(problems, Costs(1, 3))
    seen = mean_chances(prior_of(History.of(stopped, "score", [])))

    labels = sum(int(p.labelled.sum()) for p in stopped)
    assert labels < 0.06 * sum(len(p) for p in problems)
    upper = slice(7, 12)  # where most of the labels are
    assert seen[upper] == pytest.approx(full[upper], rel=0.35)


def test_a_missing_label_is_not_a_failure() -> None:
    """Of three candidates the best is verified, and half of the searches are over."""
    stopped = censored(made_up(0.5, 0.0, problems=300), Costs(1, 10))
    as_failed = [dataclasses.replace(p, labelled=np.ones_like(p.labelled)) for p in stopped]
    seen, naive = (prior_of(History.of(each, "score", [])) for each in (stopped, as_failed))

    assert mean_chances(seen) @ np.array(seen.shares) == pytest.approx(0.5, abs=0.12)
    assert mean_chances(naive) @ np.array(naive.shares) < 0.3


def test_a_refuted_candidate_says_nothing_about_those_that_can_be_verified() -> None:
    problems = made_up(0.1, 1.0)
    refuted = [
        dataclasses.replace(p, refuted=~p.passed & (np.arange(len(p)) % 3 > 0)) for p in problems
    ]

    few, many = (prior_of(history_of(each)) for each in (problems, refuted))
    left = completed(history_of(refuted), many)

    rates = [float(np.array(p.weights) @ np.array(p.chances) @ p.shares) for p in (few, many)]
    assert rates[1] > 1.7 * rates[0]
    assert many.evidence.effective == sum(int(p.verified.sum()) for p in left)
    assert not any(p.passed[~p.verified].any() for p in left)


def test_missing_labels_are_drawn_given_those_that_are_there() -> None:
    problems = made_up(0.2, 1.0, problems=200)
    stopped = History.of(censored(problems, Costs(1, 10)), "score", [])
    whole = completed(stopped, prior_of(stopped))

    assert all(p.labelled.all() and p.passed.any() for p in whole)
    by_id = {p.id: p for p in whole}
    for before in stopped.problems:
        after = by_id[before.id]
        assert np.array_equal(after.passed[before.labelled], before.passed[before.labelled])
    drawn = np.concatenate(
        [by_id[p.id].passed[~p.labelled] for p in stopped.problems if p.id in by_id]
    )
    assert 0.1 < drawn.mean() < 0.3


@pytest.mark.slow
def test_labels_of_tied_scores_count_for_less() -> None:
    chance = np.random.default_rng(3)
    problems = []
    for at in range(30):  # ten classes of equal candidates, any of which may be the right one
        group = chance.integers(0, 10, 90)
        problems.append(LoggedProblem(f"p{at}", group.astype(float), group == at % 10))
    history = history_of(problems)

    assert prior_of(history, 1.0).evidence.effective == 2700
    assert prior_of(history, 0.1).evidence.effective == pytest.approx(300 / 0.9, rel=0.01)
    assert learn(history).tie < 1  # another one at a score that failed is not worth it


def answers(problems: int, *, seed: int = 0) -> list[LoggedProblem]:
    """Each candidate gives one of many answers; the right one is given more often than others."""
    chance = np.random.default_rng(seed)
    found = []
    for at in range(problems):
        keys = np.where(chance.random(60) < 0.15, 0, 1 + chance.integers(0, 40, 60))
        scores = chance.standard_normal(60)
        found.append(LoggedProblem(f"p{at}", scores, keys == 0, keys.astype(np.int32)))
    return [problem for problem in found if problem.solvable]


@pytest.mark.slow
def test_where_right_answers_are_given_more_often_votes_count() -> None:
    prior = learn(history_of(answers(20)))

    assert prior.votes > 0
    assert len(prior.keyed_tilts) == len(prior.ratios)


def test_without_keys_in_the_history_votes_do_not_count() -> None:
    prior = learn(history_of(made_up(0.3, 1.0, problems=5, candidates=20)))

    assert prior.votes == 0
    assert prior.keyed_tilts == prior.tilts


def test_labels_that_are_drawn_agree_within_a_class() -> None:
    partly = []
    for problem in answers(20):
        labelled = np.zeros(len(problem), dtype=np.bool_)
        labelled[:5] = True
        passed = problem.passed & labelled
        partly.append(PastProblem(problem.id, problem.scores, passed, labelled, problem.keys))
    history = History.of(partly, "score", [])

    before = {problem.id: problem for problem in partly}
    for drawn in completed(history, prior_of(history)):
        assert drawn.keys is not None
        for key in np.unique(drawn.keys):
            assert len(set(drawn.passed[drawn.keys == key].tolist())) == 1
        known = before[drawn.id].labelled
        assert np.array_equal(drawn.passed[known], before[drawn.id].passed[known])


@pytest.mark.slow
def test_the_learned_tilts_are_cheaper_than_others() -> None:
    history = history_of(made_up(0.1, 0.3, problems=15, candidates=40))
    prior = learn(history)

    assert prior.tie in TIES
    problems = [LoggedProblem(p.id, p.scores, p.passed) for p in completed(history, prior)]
    for ratio, tilt in zip(prior.ratios, prior.tilts, strict=True):
        tilted = [(tilted_at(prior, ratio, each), ratio) for each in TILTS]
        costs = costs_of(tilted, list(batches(problems, 4, seed=1)))
        means = np.log(costs.reshape(len(TILTS), -1, 4).mean(axis=2)).mean(axis=1)
        assert means[TILTS.index(tilt)] == min(means)


def test_a_prior_is_the_same_after_writing_and_reading() -> None:
    prior = prior_of(history_of(made_up(0.2, 1.0, problems=10)))

    assert from_text(prior.to_text()) == prior


def test_it_says_what_it_was_fitted_on() -> None:
    problems = made_up(0.2, 1.0, problems=10)
    hopeless = LoggedProblem("vain", np.zeros(5), np.zeros(5, dtype=np.bool_))
    evidence = prior_of(history_of([*problems, hopeless])).evidence

    assert (evidence.problems, evidence.passed, evidence.left_out) == (10, 10, 1)
    assert (evidence.candidates, evidence.labels, evidence.effective) == (800, 800, 800)
    assert evidence.sources == ("made-up",)


def test_nothing_can_be_learned_where_nothing_passed() -> None:
    hopeless = LoggedProblem("vain", np.zeros(5), np.zeros(5, dtype=np.bool_))

    with pytest.raises(UsageError, match="made-up: no candidate passed"):
        history_of([hopeless])


@pytest.mark.parametrize(
    "scores",
    [[1.0] * 6, [-math.inf] * 6, [1.0, -math.inf, 2.0, 1.0, 1.0, 3.0], [0.5]],
    ids=str,
)
def test_odd_histories_make_priors_all_the_same(scores: list[float]) -> None:
    passed = np.array([at == 0 for at in range(len(scores))])
    prior = prior_of(history_of([LoggedProblem("p", np.array(scores), passed)]))

    assert from_text(prior.to_text()) == prior
    assert all(map(math.isfinite, prior.shape))


def test_a_scale_has_the_ends_and_few_knots() -> None:
    scores = np.random.default_rng(0).standard_normal(5000)
    scale = scale_of(scores)

    assert len(scale.values) <= 64
    assert (scale.values[0], scale.values[-1]) == (scores.min(), scores.max())
    assert scale.normal(float(np.median(scores))) == pytest.approx(0, abs=0.02)


LOG = """problem,candidate,passed,a,b
x,1,,0.5,1
x,0,true,0.25,2
y,0,false,1,3
y,1,true,2,4
y,2,,3,
"""


def test_a_log_without_some_labels_keeps_their_candidates(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(LOG)

    (x, y), name = read_past(str(path), "a")

    assert name == "a"
    assert x.scores.tolist() == [0.25, 0.5]
    assert x.labelled.tolist() == [True, False]
    assert y.passed.tolist() == [False, True, False]
    assert y.labelled.tolist() == [True, True, False]
    with pytest.raises(LogError, match="no score 'c'"):
        read_past(str(path), "c")


def test_a_combination_gives_the_better_score_the_greater_weight() -> None:
    rng = np.random.default_rng(1)
    good = made_up(0.2, 1.5)
    noise = [dataclasses.replace(p, scores=rng.standard_normal(len(p))) for p in good]
    pasts = [past(Log(tuple(problems))) for problems in (good, noise)]
    parts, together = combine(["good", "noise"], pasts)

    assert [part.score for part in parts] == ["good", "noise"]
    assert parts[0].weight > 1
    assert abs(parts[1].weight) < 0.15
    assert len(together) == len(good)


def test_two_scores_together_say_more_than_each() -> None:
    rng = np.random.default_rng(1)
    one = made_up(0.2, 1.0)
    two = [dataclasses.replace(p, scores=rng.standard_normal(len(p)) + p.passed) for p in one]
    pasts = [past(Log(tuple(problems))) for problems in (one, two)]
    _, together = combine(["one", "two"], pasts)

    def above(problems: list[PastProblem]) -> float:
        """How often a pass scores above a failure."""
        found = []
        for p in problems:
            passes, fails = p.scores[p.passed], p.scores[~p.passed]
            if len(passes):
                found.append(float(np.mean(passes[:, None] > fails[None, :])))
        return float(np.mean(found))

    assert above(together) > max(above(each) for each in pasts) + 0.04


def test_a_log_is_read_by_the_combination_of_a_prior(tmp_path: Path) -> None:
    log, file = tmp_path / "log.csv", tmp_path / "both.json"
    log.write_text(LOG)
    pasts = [read_past(str(log), name)[0] for name in ("a", "b")]
    parts, together = combine(["a", "b"], pasts)
    name = combined_name(["a", "b"])
    prior = dataclasses.replace(prior_of(History.of(together, name, [])), parts=parts)
    file.write_text(prior.to_text())

    found = read_scored(str(log), str(file), reading=Reading(unlabelled=Unlabelled.FAIL))

    assert found.score == "combined(a, b)" == prior.score
    for problem, before in zip(found.problems, together, strict=True):
        assert problem.scores == pytest.approx(before.scores)
    file.write_text(dataclasses.replace(prior, parts=()).to_text())
    with pytest.raises(UsageError, match="does not combine scores; use --score combined"):
        read_scored(str(log), str(file))


def test_populations_can_be_learned_from() -> None:
    log = population("math", problems=20, candidates=64)
    prior = prior_of(History.of(past(log), log.score, [log.path]))

    assert prior.evidence.passed == 20
