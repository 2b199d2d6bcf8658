"""One hostile problem in the history does not make later problems dear."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from grv.core.values import Costs
from grv.learning.history import PastProblem, Payments
from grv.learning.online import fitted_prior
from grv.logs.log import LoggedProblem
from grv.policies import Learned, VerifyAll
from grv.replay.engine import replay
from grv.theory.guard import FACTOR

SIZE = 5000  # the candidates of the hostile problem: all failed
COSTS = Costs(1, 10)


def ordinary(number: int, seed: int) -> list[LoggedProblem]:
    """Problems with a useful score."""
    chance = np.random.default_rng(seed)
    problems = []
    for place in range(number):
        passed = chance.random(200) < chance.uniform(0.02, 0.1)
        passed[int(chance.integers(200))] = True
        scores = chance.normal(0, 1, 200) + 1.8 * passed
        problems.append(LoggedProblem(f"p{place}", scores, passed))
    return problems


def searched(problem: LoggedProblem) -> PastProblem:
    """The best candidates have a label, up to the first that passed."""
    ranked = np.argsort(-problem.scores)
    checked = ranked[: int(np.argmax(problem.passed[ranked])) + 1]
    labelled = np.zeros(len(problem), dtype=np.bool_)
    labelled[checked] = True
    return PastProblem(problem.id, problem.scores, problem.passed & labelled, labelled)


NOISE = np.random.default_rng(1).normal(0, 1, SIZE)
TURNS = np.arange(SIZE) % 3
HOSTILE = {
    "huge": np.full(SIZE, 1e308),
    "huge and negative": np.full(SIZE, -1e308),
    "from -1e308 to 1e308": np.linspace(-1, 1, SIZE) * 1e308,
    "some huge": np.where(TURNS == 0, 1e308, np.where(TURNS == 1, -1e308, NOISE)),
    "inf": np.full(SIZE, math.inf),
    "-inf": np.full(SIZE, -math.inf),
    "nan": np.full(SIZE, math.nan),
    "some nan": np.where(TURNS == 0, math.nan, NOISE),
    "higher than all others": 50 + NOISE,
    "lower than all others": -50 + NOISE,
    "like the others": NOISE,
    "all about equal": 0.5 + 1e-6 * NOISE,
    "all equal": np.zeros(SIZE),
}


def spent(history: list[PastProblem], problems: list[LoggedProblem]) -> float:
    prior = fitted_prior(history, "score")
    assert prior is not None
    return sum(replay(Learned(prior), each, COSTS).bill.total for each in problems)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::grv.policies.learned.policy.UnlikeHistoryWarning")
@pytest.mark.parametrize("kind", HOSTILE)
def test_later_problems_cost_hardly_more(kind: str) -> None:
    history = [searched(problem) for problem in ordinary(20, seed=2)]
    later = ordinary(60, seed=3)
    failed = np.zeros(SIZE, dtype=np.bool_)
    hostile = PastProblem("hostile", HOSTILE[kind], failed, ~failed)

    ours = spent([*history, hostile], later)

    assert ours <= 1.25 * spent(history, later)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::grv.policies.learned.policy.UnlikeHistoryWarning")
@pytest.mark.parametrize("kind", HOSTILE)
def test_the_guards_hold_with_a_prior_of_hostile_problems_only(kind: str) -> None:
    """Every problem of the history is hostile; in each of them one candidate passed."""
    passed = np.arange(SIZE) == 7
    history = [PastProblem(f"h{i}", HOSTILE[kind], passed, passed | (TURNS == 0)) for i in range(6)]
    prior = fitted_prior(history, "score")
    assert prior is not None
    for problem in ordinary(10, seed=4):
        theirs = replay(VerifyAll(), problem, COSTS).bill.total
        assert replay(Learned(prior), problem, COSTS).bill.total <= FACTOR * theirs


@pytest.mark.parametrize("paid", [1.7e308, 5e-324, math.inf, 0.0])
@pytest.mark.parametrize("count", [5, 0])
def test_payments_that_cannot_be_do_not_end_what_is_learned(paid: float, count: int) -> None:
    history = [searched(problem) for problem in ordinary(8, seed=2)]
    payments = Payments(count, paid, count, paid, count, paid)
    edited = [replace(problem, payments=payments) for problem in history]

    prior = fitted_prior(edited, "score")

    assert prior is not None
    assert prior.prices == ()


def test_if_only_a_stranger_passed_there_is_no_prior() -> None:
    history = [searched(problem) for problem in ordinary(6, seed=5)]
    failed = [PastProblem(p.id, p.scores, p.passed & False, p.labelled) for p in history]
    passed = np.arange(SIZE) == 0
    stranger = PastProblem("stranger", 1e6 + NOISE, passed, ~passed | passed)

    assert fitted_prior([*failed, stranger], "score") is None
