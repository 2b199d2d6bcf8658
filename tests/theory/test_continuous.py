from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable

import pytest

from grv.core.errors import UsageError
from grv.core.values import Costs
from grv.theory import optimum
from grv.theory.optimum import Law
from grv.theory.proofs import continuous
from grv.theory.proofs.continuous import ContinuousLaw

ACCURACY = 1e-8  # what the module promises

RATIOS = [1e-6, 0.1, 1, 10, 1e3, 1e6]
normal = statistics.NormalDist()


def uniform(passing: Callable[[float], float], *breaks: float) -> ContinuousLaw:
    """Scores uniform in (0, 1)."""
    return ContinuousLaw(lambda u: u, passing, breaks)


def logistic(score: float) -> float:
    return 1 / (1 + math.exp(-2 * (score - 3)))


def bump(score: float) -> float:
    return math.exp(-(((score - 0.4) / 0.05) ** 2))


@pytest.mark.parametrize("verify", RATIOS)
def test_uniform_scores_that_are_their_own_chances(verify: float) -> None:
    # E[(R - tau)+] = (1 - tau)^2 / 2, so tau solves verify (1 - tau)^2 = 2 tau.
    law, costs = uniform(lambda r: r), Costs(generate=1, verify=verify)
    b = 1 + 1 / verify
    tau = 1 / (b + math.sqrt(b * b - 1))
    assert continuous.optimum(law, costs) == pytest.approx((tau, verify / tau), rel=ACCURACY)
    best = continuous.best_threshold(law, costs)
    assert best == pytest.approx((tau, verify / tau), rel=ACCURACY)
    assert law.pass_rate == pytest.approx(0.5, rel=ACCURACY)


@pytest.mark.parametrize("t", [0.0, 0.25, 0.9, 0.999])
def test_a_threshold_on_uniform_scores(t: float) -> None:
    law, costs = uniform(lambda r: r), Costs(generate=1, verify=10)
    q, s = 1 - t, (1 - t * t) / 2
    assert continuous.tail(law, t) == pytest.approx((q, s), rel=ACCURACY)
    cost = continuous.threshold_cost(law, t, costs)
    assert cost == pytest.approx((1 + 10 * q) / s, rel=ACCURACY)


@pytest.mark.parametrize("verify", RATIOS)
def test_the_score_does_not_matter_where_h_is_constant(verify: float) -> None:
    law, costs = uniform(lambda _: 0.3), Costs(generate=1, verify=verify)
    expected = (1 + verify) / 0.3
    assert continuous.optimum(law, costs).cost == pytest.approx(expected, rel=ACCURACY)
    assert continuous.best_threshold(law, costs).cost == pytest.approx(expected, rel=ACCURACY)


@pytest.mark.parametrize("breaks", [(), (0.97, 0.2)])
@pytest.mark.parametrize("verify", RATIOS)
def test_a_step_law_is_a_discrete_law(verify: float, breaks: tuple[float, ...]) -> None:
    law = uniform(lambda r: 0.8 if r >= 0.97 else 0.1 if r >= 0.2 else 0.0, *breaks)
    steps, costs = Law((0, 0.2, 0.97), (0.2, 0.77, 0.03), (0, 0.1, 0.8)), Costs(1, verify)
    expected = optimum.optimum(steps, costs)
    assert continuous.optimum(law, costs) == pytest.approx(expected, rel=ACCURACY)
    best = continuous.best_threshold(law, costs)
    assert best == pytest.approx(optimum.best_threshold(steps, costs), rel=ACCURACY)


@pytest.mark.slow
@pytest.mark.parametrize("verify", [0.1, 1, 10])
def test_it_agrees_with_a_fine_discretisation(verify: float) -> None:
    costs = Costs(generate=1, verify=verify)
    for law in (ContinuousLaw(normal.inv_cdf, logistic), uniform(bump)):
        fine, cost = law.discretised(2000), continuous.optimum(law, costs).cost
        known = optimum.optimum(fine, costs).cost
        assert cost * (1 - ACCURACY) <= known <= cost * (1 + 2e-5)  # knowing less is never cheaper
        threshold = optimum.best_threshold(fine, costs).cost
        found = continuous.best_threshold(law, costs).cost
        assert found * (1 - ACCURACY) <= threshold <= found * (1 + 2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("verify", RATIOS)
def test_the_best_threshold_is_optimal_where_higher_scores_pass_more(verify: float) -> None:
    law, costs = ContinuousLaw(normal.inv_cdf, logistic), Costs(generate=1, verify=verify)
    best = continuous.best_threshold(law, costs)
    assert best.cost == pytest.approx(continuous.optimum(law, costs).cost, rel=ACCURACY)


@pytest.mark.slow
def test_no_threshold_is_optimal_where_the_best_are_in_the_middle() -> None:
    law, costs = uniform(bump), Costs(generate=1, verify=10)
    cost = continuous.best_threshold(law, costs).cost
    assert cost > 2 * continuous.optimum(law, costs).cost
    assert cost <= min(continuous.threshold_cost(law, i / 100, costs) for i in range(100))


@pytest.mark.parametrize("share", [1e-3, 1e-6, 1e-9])
def test_a_rare_good_tail_is_seen(share: float) -> None:
    edge = 1 - share
    q = 1 - edge  # what is left of the share in floating point
    law = uniform(lambda r: 0.9 if r >= edge else 0.0, edge)
    cost = continuous.optimum(law, Costs(generate=1, verify=10)).cost
    assert cost == pytest.approx((1 + 10 * q) / (0.9 * q), rel=max(ACCURACY, 2e-16 / share))


@pytest.mark.parametrize("seed", range(20))
def test_a_bump_of_a_five_hundredth_is_seen_wherever_it_is(seed: int) -> None:
    at = random.Random(seed).uniform(0.02, 0.98)
    law = uniform(lambda r: 0.9 if abs(r - at) <= 0.001 else 0.05)
    assert law.pass_rate == pytest.approx(0.05 + 0.85 * 0.002, rel=ACCURACY)


def test_a_step_that_is_not_among_the_breaks_is_found_all_the_same() -> None:
    # Close to the end of a panel, where rules without a node at the end do not see it.
    for step in (0.5 + 1e-6, 0.25 - 1e-9, 1 - 1e-4 / 256):
        law = uniform(lambda r, step=step: 0.9 if r >= step else 0.2)  # type: ignore[misc]
        assert law.pass_rate == pytest.approx(0.9 - 0.7 * step, rel=ACCURACY)


@pytest.mark.slow
def test_a_law_too_uneven_to_be_integrated_is_refused() -> None:
    with pytest.raises(UsageError, match="too uneven"):
        uniform(lambda r: (1 + math.sin(1e7 * r)) / 2)


def test_a_law_that_never_passes_is_refused() -> None:
    with pytest.raises(UsageError, match="ever passes"):
        uniform(lambda _: 0.0)


def test_a_threshold_above_every_score_never_ends() -> None:
    assert continuous.threshold_cost(uniform(lambda r: r), 1.5, Costs()) == math.inf


def test_scores_that_are_equal_become_one_atom() -> None:
    law = ContinuousLaw(lambda u: float(u >= 0.75), lambda r: 0.4 * r + 0.1, breaks=(1.0,))
    assert law.share_below(1.0) == pytest.approx(0.75)
    discrete = law.discretised(8)
    assert discrete.scores == (0.0, 1.0)
    assert discrete.masses == pytest.approx((0.75, 0.25))
    assert discrete.passes == pytest.approx((0.1, 0.5))
    expected = optimum.optimum(discrete, Costs()).cost
    assert continuous.optimum(law, Costs()).cost == pytest.approx(expected, rel=ACCURACY)


def test_a_discretisation_keeps_the_pass_rate() -> None:
    law = ContinuousLaw(normal.inv_cdf, logistic)
    discrete = law.discretised(10)
    assert len(discrete.scores) == 10
    assert discrete.pass_rate == pytest.approx(law.pass_rate, rel=ACCURACY)


def test_an_invalid_law_is_refused() -> None:
    with pytest.raises(UsageError, match="must not decrease"):
        ContinuousLaw(lambda u: -u, lambda _: 0.5)
    with pytest.raises(UsageError, match="must not decrease"):
        ContinuousLaw(lambda _: math.nan, lambda _: 0.5)
    with pytest.raises(UsageError, match="not between 0 and 1"):
        uniform(lambda r: 2 * r)
    with pytest.raises(UsageError, match="at least one atom"):
        uniform(lambda r: r).discretised(0)
