"""Verifiers that err: the two rules keep wrong answers within their bound."""

from __future__ import annotations

import math
import random

import pytest

from grv.core.errors import UsageError
from grv.theory.confirmations import (
    CallCounts,
    Confirm,
    Earlier,
    Errors,
    ProbablyRight,
    RightShares,
    passes_needed,
)

ERRORS = [Errors(0.05, 0.05), Errors(0.2, 0.1), Errors(0.01, 0.3), Errors(0.6, 0.2)]


@pytest.mark.parametrize("errors", ERRORS)
@pytest.mark.parametrize("wrong", [0.05, 0.01, 0.2])
def test_wrong_answers_of_any_number_of_candidates_add_up_to_the_bound(
    errors: Errors, wrong: float
) -> None:
    total = 0.0
    for number in range(1, 20_000):
        needed = passes_needed(number, errors, wrong)
        total += errors.false_pass**needed
        assert errors.false_pass**needed <= wrong / (number * (number + 1)) * (1 + 1e-9)
        assert needed == 1 or errors.false_pass ** (needed - 1) > wrong / (number * (number + 1))
    assert total <= wrong


def test_a_verifier_without_false_passes_needs_one_pass() -> None:
    assert passes_needed(1000, Errors(0.0, 0.5), 1e-9) == 1


@pytest.mark.parametrize(
    ("false_pass", "false_fail"), [(0.5, 0.5), (1.0, 0.0), (-0.1, 0.0), (0.0, math.nan)]
)
def test_errors_that_make_no_sense_are_refused(false_pass: float, false_fail: float) -> None:
    with pytest.raises(UsageError):
        Errors(false_pass, false_fail)


def _search(
    rates: RightShares, errors: Errors, wrong: float, share: float, generator: random.Random
) -> bool | None:
    """Whether the candidate that the rule returns is right; None if it returns none of 200."""
    for _ in range(200):
        is_right = generator.random() < share
        rule = Confirm.BAYES.rule(errors, wrong, Earlier(shares=rates))
        counts = CallCounts()
        while True:
            passing = 1 - errors.false_fail if is_right else errors.false_pass
            counts = counts.plus(passed=generator.random() < passing)
            decision = rule.decide(counts)
            if decision == "return":
                return is_right
            if decision == "drop":
                rates = rates.given(counts, errors)
                break
    return None


@pytest.mark.slow
@pytest.mark.parametrize("errors", ERRORS[:3])
def test_under_its_prior_the_second_rule_returns_few_wrong_candidates(errors: Errors) -> None:
    wrong = 0.05
    generator = random.Random(1)
    shares = {0.0: 0.3, 0.02: 0.3, 0.3: 0.4}
    prior = RightShares(shares)
    returned = bad = 0
    for _ in range(1500):
        share = generator.choices(list(shares), list(shares.values()))[0]
        result = _search(prior, errors, wrong, share, generator)
        returned += result is not None
        bad += result is False
    assert returned > 500
    # Six standard errors above the bound.
    assert bad / returned <= wrong + 6 * math.sqrt(wrong / returned)


@pytest.mark.slow
def test_the_fit_finds_the_shares_of_earlier_problems() -> None:
    errors = Errors(0.05, 0.1)
    generator = random.Random(2)
    problems = []
    for number in range(200):
        share = 0.5 if number % 2 else 0.0
        candidates = []
        for _ in range(12):
            is_right = generator.random() < share
            passing = 0.9 if is_right else 0.05
            passes = sum(generator.random() < passing for _ in range(3))
            candidates.append(CallCounts(passes, 3 - passes))
        problems.append(candidates)
    fitted = RightShares.fitted(problems, errors)
    low = sum(weight for share, weight in fitted.weights.items() if share < 0.03)
    middle = sum(weight for share, weight in fitted.weights.items() if 0.3 < share < 0.8)
    assert low == pytest.approx(0.5, abs=0.08)
    assert middle == pytest.approx(0.5, abs=0.08)
    assert fitted.mean == pytest.approx(0.25, abs=0.04)


def test_nothing_is_returned_before_a_pass() -> None:
    certain = RightShares({1.0: 1.0})
    rule = ProbablyRight(certain, Errors(0.1, 0.1), 0.05, most=10)
    assert rule.decide(CallCounts()) == "again"
