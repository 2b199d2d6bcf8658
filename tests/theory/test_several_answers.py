"""What several answers cost: between k J* and k times the bound for one answer."""

from __future__ import annotations

import itertools
import random
import statistics
from fractions import Fraction

import pytest

from grv.core.limits import Limits
from grv.core.search import Policy, Search
from grv.core.values import Costs, Generate, Generated, Stop, Verdict, Verified, Verify
from grv.policies import Alternate, Balanced, VerifyAll
from grv.theory.constants import (
    alternate_constant,
    balanced_constant,
    several_answers_excess,
)
from grv.theory.decimals import exact_ratio
from grv.theory.proofs.several_answers import (
    answers_bound,
    answers_cost,
    balanced_drift,
    middle_of_first_round,
    needs_no_excess,
    shares,
)

RHO, TOP, RATE = 10.0, 0.2, 0.5  # the best 20 % pass with probability .5, the others never
BEST = (1 + RHO * TOP) / (RATE * TOP)  # J*: verify the best 20 %
RATIOS = [0.02, 0.1, 0.21, 0.34, 0.5, 0.66, 0.9, 1, 1.01, 1.5, 1.75, 2, 2.5, 3.3, 7.9, 10, 30.4]
LAWS = list(itertools.product((1.0, 0.9, 0.5, 0.1), (1.0, 0.9, 0.5, 0.2, 0.05, 0.01)))


def cost(policy: Policy, answers: int, seed: int) -> float:
    chance = random.Random(seed)
    search = Search(policy, Costs(1, RHO), Limits(answers=answers))
    while not isinstance(action := search.ask(), Stop):
        match action:
            case Generate(n):
                search.tell(Generated(tuple(chance.random() for _ in range(n))))
            case Verify((id,)):
                right = search.pool.scores[id] > 1 - TOP and chance.random() < RATE
                search.tell(Verified({id: Verdict.PASSED if right else Verdict.FAILED}))
    assert len(search.answers) == answers
    return search.bill.total


@pytest.mark.slow
@pytest.mark.parametrize("answers", [1, 3])
@pytest.mark.parametrize(
    ("policy", "constant"), [(Balanced(), 2.0), (Alternate(), 3.0), (VerifyAll(), 1 + RHO)]
)
def test_k_answers_cost_at_most_k_times_the_bound(
    policy: Policy, constant: float, answers: int
) -> None:
    spent = [cost(policy, answers, seed) for seed in range(150)]
    mean = statistics.fmean(spent)
    error = statistics.stdev(spent) / len(spent) ** 0.5
    assert answers * BEST - 4 * error <= mean <= constant * answers * BEST + 4 * error


def where_all_pass(policy: Policy, rho: float, answers: int) -> float:
    search = Search(policy, Costs(1, rho), Limits(answers=answers))
    while not isinstance(action := search.ask(), Stop):
        match action:
            case Generate(n):
                search.tell(Generated((0.5,) * n))
            case Verify(ids):
                search.tell(Verified(dict.fromkeys(ids, Verdict.PASSED)))
    return search.bill.total


def test_where_all_pass_balanced_needs_the_excess() -> None:
    """So k times the bound for one answer is too little for rho below 1."""
    assert where_all_pass(Balanced(), 0.34, 2) == pytest.approx(3.68)
    assert 2 * balanced_constant(0.34) * 1.34 == pytest.approx(3.36)
    assert 3.36 + several_answers_excess(0.34) >= 3.68


@pytest.mark.parametrize("rho", [each / 20 for each in range(1, 101)])
def test_where_all_pass_the_bounds_hold(rho: float) -> None:
    for answers in (1, 2, 3, 6, 20):
        most = answers * balanced_constant(rho) * (1 + rho) + max(0, 1 - rho) / 2
        assert where_all_pass(Balanced(), rho, answers) <= most + 1e-9
        most = answers * alternate_constant(rho) * (1 + rho)
        assert where_all_pass(Alternate(), rho, answers) <= most + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("rho", RATIOS)
@pytest.mark.parametrize("answers", [1, 2, 3, 5])
def test_k_answers_of_balanced_cost_at_most_the_bound_and_the_excess(
    rho: float, answers: int
) -> None:
    """Exactly, for step laws. From rho = 1 on the excess is not needed."""
    slots = list(itertools.islice(Balanced().slots(Costs(1, rho)), 60_000))
    excess = max(0.0, 1 - rho) / 2
    assert excess <= several_answers_excess(rho)
    for p, q in LAWS:
        if p * q * (1 + rho) > 2e-3:
            most = answers_bound(rho, p, q, answers) + excess
            assert answers_cost(slots, rho, p, q, answers) <= most * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("rho", [1.2, 1.5, 1.6, 2, 2.4, 2.5, 3.3, 3.5, 7.9, 10, 10.5, 30.4, 100])
@pytest.mark.parametrize("answers", [1, 2, 3, 5])
def test_k_answers_of_alternate_cost_at_most_k_times_the_bound(rho: float, answers: int) -> None:
    slots = list(itertools.islice(Alternate().slots(Costs(1, rho)), 60_000))
    for p, q in LAWS:
        if p * q * (1 + rho) > 2e-3:
            most = answers * alternate_constant(rho) * (1 + rho * q) / (p * q)
            assert answers_cost(slots, rho, p, q, answers) <= most * (1 + 1e-9)


@pytest.mark.parametrize("rho", ["1.01", "1.5", "2.3", "7.75", "30.4"])
@pytest.mark.parametrize("q", ["1/1000", "1/7", "1/2", "9/10", "1"])
def test_the_drift_is_that_of_the_sizes(rho: str, q: str) -> None:
    """The mean is what the rounds of one cycle add up to, in fractions; and it is not positive."""
    ratio, share = Fraction(rho), Fraction(q)
    drift = balanced_drift(ratio, share)
    constant = (1 + 2 * ratio) / (1 + ratio)
    gain = constant * (1 + ratio * share) / share

    def added(size: int) -> Fraction:
        return size + ratio - gain * (1 - (1 - share) ** size)

    cycle = list(
        itertools.islice(Balanced().slots(Costs(1, float(ratio))), 1, 1 + ratio.denominator)
    )
    assert exact_ratio(Costs(1, float(ratio))) == ratio
    assert sum(added(slot.draws) for slot in cycle) == len(cycle) * drift.mean
    assert drift.mean <= 0
    sizes = {slot.draws for slot in cycle}
    assert added(max(sizes)) - added(min(sizes)) == drift.step
    assert abs(drift.step) <= 1


@pytest.mark.slow
def test_from_one_on_no_excess_is_needed_at_any_ratio_of_the_grid() -> None:
    for at in range(1, 600):
        rho = 1 + at / 37 if at < 400 else 11 + (at - 400) ** 1.5
        if rho != int(rho):
            assert all(needs_no_excess(rho, q) for q in shares(150))


@pytest.mark.parametrize("n", [*range(2, 40), 100, 1001])
def test_from_the_middle_of_the_first_round_alternate_keeps_its_bound(n: int) -> None:
    none, one, two = middle_of_first_round(n)
    assert none > 0
    assert one**2 <= 4 * none * two
