"""The statements of docs/theory/erring.md, checked exactly on small laws."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from grv.theory.confirmations import (
    CallCounts,
    Confirm,
    Earlier,
    Errors,
    RightShares,
    passes_needed,
)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.2])
@pytest.mark.parametrize(
    ("false_pass", "false_fail", "wrong"), [(0.05, 0.05, 0.05), (0.2, 0.1, 0.05), (0.5, 0.3, 0.01)]
)
def test_the_cold_rule_returns_a_wrong_candidate_with_at_most_the_probability_it_states(
    share: float, false_pass: float, false_fail: float, wrong: float
) -> None:
    """The exact probability, for candidates that are right with some probability."""
    open_ = 1.0  # the probability that the search still runs
    bad = 0.0
    for number in range(1, 5000):
        needed = passes_needed(number, Errors(false_pass, false_fail), wrong)
        bad_now = (1 - share) * false_pass**needed
        good_now = share * (1 - false_fail) ** needed
        bad += open_ * bad_now
        open_ *= 1 - bad_now - good_now
    assert bad <= wrong
    if share == 0.0:
        assert bad > wrong / 50  # the bound is not far from what happens if all are wrong


def _outcomes(
    shares: RightShares, errors: Errors, wrong: float, true_share: float, candidates: int
) -> tuple[float, float]:
    """The probabilities that a right and that a wrong candidate is returned, over all outcomes."""
    if candidates == 0:
        return 0.0, 0.0
    rule = Confirm.BAYES.rule(errors, wrong, Earlier(shares=shares))
    returned = [0.0, 0.0]
    # For each tally that is still open: the probability with a right and with a wrong candidate.
    open_ = {CallCounts(): (true_share, 1 - true_share)}
    while open_:
        after: dict[CallCounts, tuple[float, float]] = {}
        for counts, (right, wrong_one) in open_.items():
            for passed in (True, False):
                of_right = 1 - errors.false_fail if passed else errors.false_fail
                of_wrong = errors.false_pass if passed else 1 - errors.false_pass
                new = counts.plus(passed=passed)
                both = (right * of_right, wrong_one * of_wrong)
                decision = rule.decide(new)
                if decision == "return":
                    returned[0] += both[0]
                    returned[1] += both[1]
                elif decision == "again":
                    before = after.get(new, (0.0, 0.0))
                    after[new] = (before[0] + both[0], before[1] + both[1])
                else:
                    later = _outcomes(
                        shares.given(new, errors), errors, wrong, true_share, candidates - 1
                    )
                    chance = both[0] + both[1]
                    returned[0] += chance * later[0]
                    returned[1] += chance * later[1]
        open_ = after
    return returned[0], returned[1]


@pytest.mark.slow
@pytest.mark.parametrize("errors", [Errors(0.1, 0.05), Errors(0.2, 0.2)])
@pytest.mark.parametrize("wrong", [0.05, 0.2])
def test_under_its_prior_the_bayes_rule_returns_at_most_the_share_of_wrong_candidates(
    errors: Errors, wrong: float
) -> None:
    """Every outcome of a search for up to three candidates, weighted by the prior."""
    prior = RightShares({0.0: 0.4, 0.1: 0.3, 0.6: 0.3})
    right = bad = 0.0
    for share, weight in prior.weights.items():
        good_part, bad_part = _outcomes(prior, errors, wrong, share, 3)
        right += weight * good_part
        bad += weight * bad_part
    assert right > 0.1
    assert bad <= wrong * (right + bad) * (1 + 1e-9)


def _optimum(law: list[tuple[Fraction, Fraction]], rho: Fraction) -> Fraction:
    """J*: the least (1 + rho q) / (q p) over thresholds; a law has shares and pass rates."""
    best = None
    share = passing = Fraction(0)
    for part, rate in law:
        share += part
        passing += part * rate
        if passing:
            cost = (1 + rho * share) / passing
            best = cost if best is None else min(best, cost)
    assert best is not None
    return best


@pytest.mark.parametrize("seed", range(40))
def test_false_failures_divide_the_optimum_by_the_share_that_passes(seed: int) -> None:
    generator = random.Random(seed)
    size = generator.randrange(1, 8)
    weights = [generator.randrange(1, 100) for _ in range(size)]
    rates = sorted((Fraction(generator.randrange(0, 50), 50) for _ in weights), reverse=True)
    rates[0] = rates[0] or Fraction(1, 50)
    law = [
        (Fraction(weight, sum(weights)), rate) for weight, rate in zip(weights, rates, strict=True)
    ]
    rho = Fraction(generator.randrange(1, 100), 4)
    false_fail = Fraction(generator.randrange(0, 10), 20)
    erring = [(share, rate * (1 - false_fail)) for share, rate in law]
    assert _optimum(law, rho) <= _optimum(erring, rho) == _optimum(law, rho) / (1 - false_fail)


def test_errors_that_persist_are_returned_by_every_rule() -> None:
    """If some wrong candidates pass every call, more calls do not help."""
    stays = 0.1
    met = 20
    chance = 1 - (1 - stays) ** met
    assert chance > 0.8
    for confirm in Confirm:
        rule = confirm.rule(Errors(0.1, 0.05), 0.01, Earlier(number=1))
        counts = CallCounts()
        while rule.decide(counts) == "again":
            counts = counts.plus(passed=True)
        assert rule.decide(counts) == "return"


def test_a_prior_that_is_flat_knows_that_all_may_be_wrong() -> None:
    assert RightShares.flat().weights[0.0] > 0
    after = RightShares.flat()
    for _ in range(200):
        after = after.given(CallCounts(0, 1), Errors(0.05, 0.05))
    assert max(after.weights, key=lambda share: after.weights[share]) == 0.0
    assert after.mean < 0.01
