"""How the errors of a check are measured."""

from __future__ import annotations

import random

import pytest

from grv.backends.verifiers.calibration import Rate
from grv.learning.calibrating import (
    JudgedCandidate,
    agreement,
    errors_without_labels,
    false_failures,
    false_passes,
    labels_needed,
    length_bias,
    persistence,
)


def judged(
    seed: int,
    problems: int,
    each: int,
    false_pass: float,
    spread: float = 0.0,
    calls: int = 1,
    false_fail: float = 0.1,
    share: float = 0.4,
    sticky: bool = False,
) -> list[JudgedCandidate]:
    """Candidates whose problems have rates of errors of their own, `false_pass` in the mean."""
    generator = random.Random(seed)
    made = []
    for number in range(problems):
        if spread:
            rate = generator.betavariate(false_pass / spread, (1 - false_pass) / spread)
        else:
            rate = false_pass
        for _ in range(each):
            right = generator.random() < share
            passing = 1 - false_fail if right else rate
            if sticky:
                passes = calls * (generator.random() < passing)
            else:
                passes = sum(generator.random() < passing for _ in range(calls))
            made.append(JudgedCandidate(f"p{number}", right, passes, calls))
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problems", "each", "false_pass", "spread"),
    [(60, 8, 0.1, 0.0), (60, 8, 0.1, 0.5), (30, 20, 0.3, 1.0), (20, 4, 0.03, 0.2)],
)
def test_the_interval_of_a_rate_contains_it_in_nine_of_ten_repeats(
    problems: int, each: int, false_pass: float, spread: float
) -> None:
    repeats = 100
    covered = 0
    for seed in range(repeats):
        rate = false_passes(judged(seed, problems, each, false_pass, spread))
        covered += rate.low <= false_pass <= rate.high
    assert covered >= 0.9 * repeats


def test_few_problems_give_a_wide_interval_however_many_candidates() -> None:
    rate = false_passes(judged(1, 2, 400, 0.0))
    assert rate.mean == 0
    assert rate.high > 0.6
    assert rate.n > 300


def test_without_labels_of_a_kind_nothing_is_known() -> None:
    assert false_failures(judged(1, 5, 5, 0.1, share=0.0)) == Rate(0.5, 0.0, 1.0, 0)


def test_agreement_is_one_minus_all_mistakes() -> None:
    rows = judged(3, 80, 10, 0.2, false_fail=0.2)
    assert agreement(rows).mean == pytest.approx(0.8, abs=0.05)


def test_errors_that_repeat_are_told_from_errors_that_vary() -> None:
    varying = persistence(judged(4, 80, 10, 0.2, calls=3))
    repeating = persistence(judged(4, 80, 10, 0.2, calls=3, sticky=True))
    assert varying is not None
    assert varying < 0.1
    assert repeating == pytest.approx(1.0)
    assert persistence(judged(4, 5, 5, 0.2)) is None


def test_flaky_errors_are_found_without_labels() -> None:
    rows = judged(5, 100, 3, 0.05, calls=3, false_fail=0.1)
    blind = [JudgedCandidate(each.problem, None, each.passes, each.calls) for each in rows]
    errors = errors_without_labels(blind)
    assert errors is not None
    assert errors.false_pass == pytest.approx(0.05, abs=0.03)
    assert errors.false_fail == pytest.approx(0.1, abs=0.04)
    assert errors_without_labels(judged(5, 100, 3, 0.05, calls=2)) is None


def test_the_number_of_missing_labels() -> None:
    few = false_passes(judged(6, 20, 5, 0.02))
    missing = labels_needed(few, 0.1)
    assert missing is not None
    assert missing > 0
    assert labels_needed(Rate(0.2, 0.1, 0.3, 100), 0.1) is None
    assert labels_needed(Rate(0.01, 0.0, 0.04, 500), 0.05) == 0


def test_a_judge_that_prefers_long_answers_is_noticed() -> None:
    generator = random.Random(7)
    rows = []
    for number in range(200):
        length = generator.randrange(100, 1000)
        rows.append(JudgedCandidate(f"p{number}", False, int(length > 700), 1, length))
    bias = length_bias(rows)
    assert bias is not None
    assert bias > 1
    assert length_bias(rows[:4]) is None
