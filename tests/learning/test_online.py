"""Priors fitted to what searches leave behind: when, from which problems, and how well."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from grv.learning.history import PastProblem
from grv.learning.online import LEARNING, fitted_prior, last_refit, next_refit, prior_after, window
from grv.learning.online_fit import TIE, censored_prior


def searched(
    number: int, *, rate: float = 0.1, separation: float = 1.5, most: int = 12, seed: int = 0
) -> PastProblem:
    """A problem searched in turns: any candidate, the best one, and so on up to the first pass."""
    chance = np.random.default_rng([seed, number])
    passes = chance.random(40) < rate
    scores = chance.standard_normal(40) + separation * passes
    best, any_ = np.argsort(-scores, kind="stable"), chance.permutation(40)
    order = list(dict.fromkeys(np.stack([any_, best], axis=1).ravel().tolist()))[:most]
    first = next((i + 1 for i, at in enumerate(order) if passes[at]), most)
    known = np.zeros(40, dtype=np.bool_)
    known[order[:first]] = True
    return PastProblem(f"p{number}", scores, passes & known, known)


def clustered(number: int, *, same: bool) -> PastProblem:
    """Scores of five values. If `same`, candidates with the same score pass or fail together."""
    chance = np.random.default_rng([7, number])
    values = np.sort(chance.random(5))
    level = chance.integers(0, 5, 40)
    right = chance.random(5) < 0.25
    passes = right[level] if same else chance.random(40) < 0.25
    known, order = np.zeros(40, dtype=np.bool_), chance.permutation(40)
    first = next((i + 1 for i, at in enumerate(order) if passes[at]), 40)
    known[order[:first]] = True
    return PastProblem(f"c{number}", values[level], passes & known, known)


def test_a_fit_is_due_after_half_as_many_problems_more() -> None:
    fits = [n for n in range(1, 800) if last_refit(n) == n]
    assert fits == [6, 10, 15, 22, 33, 50, 75, 112, 168, 252, 378, 567]
    assert all(next_refit(n) > n >= last_refit(n) for n in range(800))


@pytest.mark.parametrize("finished", [0, 5, 6, 100, 567, 3000])
def test_a_prior_is_fitted_to_the_last_problems_before_the_fit(finished: int) -> None:
    used = range(finished)[window(finished)]
    assert len(used) == min(LEARNING.most, last_refit(finished))
    assert not used or used[-1] == last_refit(finished) - 1


def test_until_the_next_fit_the_prior_stays() -> None:
    problems = [searched(i) for i in range(15)]
    hashes = [prior and prior.hash for n in range(16) for prior in [prior_after(problems[:n], "s")]]
    runs = [(hash is None, len(list(run))) for hash, run in itertools.groupby(hashes)]
    assert runs == [(True, 6), (False, 4), (False, 5), (False, 1)]


def test_without_a_pass_there_is_no_prior() -> None:
    failed = [searched(i, rate=0.0) for i in range(6)]
    assert prior_after(failed, "s") is None
    unlabelled = [
        PastProblem(each.id, each.scores, each.passed & False, each.labelled & False)
        for each in failed
    ]
    assert prior_after(unlabelled, "s") is None
    assert fitted_prior([*failed, searched(0, rate=1.0)], "s") is not None


def mean_chance(problems: list[PastProblem]) -> float:
    """The pass rate that a prior expects of the next problem."""
    prior = censored_prior(problems, "s")
    weights = np.array(prior.weights) / sum(prior.weights)
    return float(weights @ np.array(prior.chances) @ np.array(prior.shares))


@pytest.mark.parametrize("rate", [0.03, 0.1, 0.4])
def test_the_pass_rate_is_found_although_labels_are_censored(rate: float) -> None:
    """The verified candidates are the best, so they pass far more often than the others."""
    problems = [searched(i, rate=rate) for i in range(120)]
    labels = np.concatenate([p.passed[p.labelled] for p in problems])
    assert labels.mean() > 1.2 * rate
    assert rate / 1.6 < mean_chance(problems) < rate * 1.6


def test_it_is_found_whether_the_score_says_anything() -> None:
    def strength(separation: float) -> float:
        prior = censored_prior([searched(i, separation=separation) for i in range(120)], "s")
        best = np.array(prior.chances)[:, -1] / np.array(prior.chances)[:, 0]
        return float(np.array(prior.weights) @ np.log(best) / sum(prior.weights))

    assert strength(0.0) < 1.5 < strength(2.0)


def test_equal_scores_count_as_evidence_only_if_they_agree() -> None:
    same = censored_prior([clustered(i, same=True) for i in range(60)], "s").tie
    not_same = censored_prior([clustered(i, same=False) for i in range(60)], "s").tie
    assert same < TIE < not_same


def test_without_equal_scores_nothing_is_discounted() -> None:
    assert censored_prior([searched(i) for i in range(30)], "s").tie == 1


def marks_of(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """0 for the lowest score, 1 for the next, and so on."""
    return np.unique(scores, return_inverse=True)[1].astype(np.float64)


def test_marks_are_not_evidence_without_a_reason() -> None:
    """Of few problems with scores from 1 to 5, nothing can be said; their looks decide."""
    marks = [clustered(i, same=False) for i in range(6)]
    steps = [PastProblem(p.id, marks_of(p.scores), p.passed, p.labelled) for p in marks]
    assert censored_prior(steps, "s").tie > censored_prior(marks, "s").tie


def test_a_problem_without_a_score_is_no_obstacle() -> None:
    blank = PastProblem(
        "blank", np.full(3, -np.inf), np.zeros(3, dtype=np.bool_), np.ones(3, dtype=np.bool_)
    )
    assert censored_prior([blank, *(searched(i) for i in range(6))], "s").evidence.problems == 7
