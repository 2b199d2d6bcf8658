"""The bounds of rounds, by simulation of the policies themselves on endless streams.

Allowed is the bound and four standard errors of the mean: a true bound fails such a test with a
chance of about 1 in 30,000. The streams are drawn from fixed seeds, so a test that has passed will
pass again. What it could find: a policy that does not do what the proofs are about.
"""

from __future__ import annotations

import math
import random
from typing import NamedTuple

import numpy as np
import pytest

from grv.comparing.simulation.laws import Pieces
from grv.comparing.simulation.populations import (
    flat_law,
    inverted_law,
    needle_law,
    star_law,
    tied_law,
)
from grv.comparing.simulation.streams import CandidateStream
from grv.core.search import Policy
from grv.core.values import Costs
from grv.policies import Alternate, Balanced, Hedged
from grv.theory.constants import (
    alternate_against_verify_all,
    alternate_against_verify_all_monotone,
    alternate_constant,
    balanced_constant,
    hedged_against_verify_all,
)
from grv.theory.optimum import tail
from grv.theory.proofs.steps import step_cost
from grv.theory.rounds import StepLaw

RATIOS = (1.0, 3.0, 9.5, 40.0)
STREAMS = 160
POLICIES: tuple[Balanced | Alternate | Hedged, ...] = (Balanced(), Alternate(), Hedged())


class Measured(NamedTuple):
    """A mean cost and its standard error."""

    mean: float
    error: float

    @property
    def low(self) -> float:
        """What the expected cost is not below, by four standard errors."""
        return self.mean - 4 * self.error


def measured(law: Pieces, rho: float, seed: int, *policies: Policy) -> list[Measured]:
    """Of each policy, on the same streams."""
    costs = Costs(generate=1, verify=rho)
    streams = (CandidateStream(law, (seed, i)) for i in range(STREAMS))
    spent = np.array([[stream.run(each, costs).cost for each in policies] for stream in streams])
    errors = spent.std(axis=0, ddof=1) / math.sqrt(STREAMS)
    return [Measured(*map(float, each)) for each in zip(spent.mean(axis=0), errors, strict=True)]


def random_law(seed: int, *, monotone: bool) -> Pieces:
    """Two to six pieces, some with ties, with pass rates from a thousandth to nearly one."""
    chance = random.Random(seed)
    pieces = chance.randint(2, 6)
    shares = [chance.random() ** 3 + 0.002 for _ in range(pieces)]
    passes = [10 ** -chance.uniform(0, 2.5) * chance.choice((0, 1, 1)) for _ in range(pieces)]
    passes[-1] = max(passes) or 0.1
    chance.shuffle(passes)
    sizes = tuple(share / sum(shares) for share in shares)
    rates = tuple(sorted(passes) if monotone else passes)
    return Pieces(sizes, rates, tied=chance.random() < 0.5)


MONOTONE = {
    "needle": needle_law(0.02),
    "needle, rarer": needle_law(0.004),
    "flat": flat_law(0.1),
    "flat, easy": flat_law(0.9),
    "ties": tied_law(0.05, 0.5),
    "two scores": tied_law(0.2, 0.0),
    "one score for all": Pieces((1.0,), (0.05,), tied=True),
    **{f"random {seed}": random_law(seed, monotone=True) for seed in range(20)},
}
NAMED = [name for name in MONOTONE if not name.startswith("random")]
OTHERS = {
    "inverted": inverted_law(0.05),
    "inverted, easier": inverted_law(0.4),
    "star": star_law(0.1, 0.3),
    "star, lowest": star_law(0.05, 0.0),
    "the middle": Pieces((0.45, 0.1, 0.45), (0.0, 0.5, 0.0)),
    "all but the best": Pieces((0.9, 0.1), (0.1, 0.0)),
    **{f"random {seed}": random_law(100 + seed, monotone=False) for seed in range(10)},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MONOTONE)
def test_where_higher_scores_pass_no_less_often_the_constants_hold(name: str) -> None:
    law = MONOTONE[name]
    rho = RATIOS[list(MONOTONE).index(name) % len(RATIOS)]
    best = law.optimum(Costs(1, rho))
    balanced, alternate = measured(law, rho, 1, Balanced(), Alternate())

    assert balanced.low <= balanced_constant(rho) * best
    assert alternate.low <= alternate_constant(rho) * best
    everything = (1 + rho) / law.pass_rate
    assert alternate.low <= alternate_against_verify_all_monotone(rho, law.pass_rate) * everything
    assert min(balanced.mean, alternate.mean) >= best * 0.8  # no policy beats the optimum


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS | {name: MONOTONE[name] for name in NAMED})
def test_whatever_the_score_is_worth_alternate_is_within_three_of_verifying_all(name: str) -> None:
    law = OTHERS[name] if name in OTHERS else MONOTONE[name]
    rho = RATIOS[len(name) % len(RATIOS)]
    everything = (1 + rho) / law.pass_rate

    alternate, hedged = measured(law, rho, 2, Alternate(), Hedged())

    assert alternate.low <= alternate_against_verify_all(rho, law.pass_rate) * everything
    assert alternate.low <= 3 * everything
    assert hedged.low <= hedged_against_verify_all(rho) * everything


@pytest.mark.parametrize("name", ["inverted", "star, lowest"])
def test_balanced_has_no_such_bound(name: str) -> None:
    """So the test above can fail."""
    law, costs = OTHERS[name], Costs(generate=1, verify=3)
    spent = [CandidateStream(law, (3, i)).run(Balanced(), costs, most=4096).cost for i in range(20)]

    assert np.mean(spent) > 10 * 4 / law.pass_rate


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_law_costs_no_more_than_each_of_its_step_laws(seed: int) -> None:
    """Theorem 6, for paths with blind slots and without: E[J] under h is at most that of a step."""
    law, rho = random_law(50 + seed, monotone=True), RATIOS[seed % len(RATIOS)]
    for policy, found in zip(POLICIES, measured(law, rho, 4, *POLICIES), strict=True):
        for t in law.law.scores:
            q, s = tail(law.law, t)
            if s:
                step = step_cost(policy.slots(Costs(1, rho)), StepLaw(q, min(s / q, 1.0)), rho)
                assert found.low <= step.high


@pytest.mark.slow
@pytest.mark.parametrize("q", [0.01, 0.2, 1.0])
@pytest.mark.parametrize("p", [0.1, 1.0])
def test_the_programme_is_what_the_policy_costs(q: float, p: float) -> None:
    """Both ways: the exact cost under a step law is within four standard errors of the mean."""
    law = Pieces((1 - q, q), (0.0, p)) if q < 1 else Pieces((1.0,), (p,))
    for policy, found in zip(POLICIES, measured(law, 7.0, 5, *POLICIES), strict=True):
        exact = step_cost(policy.slots(Costs(1, 7.0)), StepLaw(q, p), 7.0)

        assert exact.low - 4 * found.error <= found.mean <= exact.high + 4 * found.error
