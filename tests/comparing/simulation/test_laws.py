"""Laws whose optimum is known: what is drawn has the law, and the optimum is the optimum."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from grv.comparing.simulation.laws import Binormal, Pieces
from grv.core.errors import UsageError
from grv.core.values import Costs
from grv.theory.optimum import Law, optimum
from grv.theory.proofs.continuous import ContinuousLaw
from grv.theory.proofs.continuous import optimum as continuous_optimum

COSTS = Costs(generate=1, verify=10)
NORMAL = NormalDist()


@pytest.mark.parametrize("tied", [False, True])
def test_pieces_are_drawn_with_their_shares_and_chances(tied: bool) -> None:
    law = Pieces((0.5, 0.3, 0.2), (0.0, 0.1, 0.8), tied=tied)
    scores, passed = law.sample(np.random.default_rng(1), 200_000)
    pieces = scores if tied else np.searchsorted([0.5, 0.8], scores, side="right")

    for piece, (share, chance) in enumerate(zip(law.shares, law.passes, strict=True)):
        here = pieces == piece
        assert here.mean() == pytest.approx(share, abs=0.005)  # five standard errors
        assert passed[here].mean() == pytest.approx(chance, abs=0.01)
    assert law.pass_rate == pytest.approx(0.19)
    assert len(np.unique(scores)) == (3 if tied else len(scores))


def test_the_optimum_of_pieces_is_that_of_atoms() -> None:
    law = Pieces((0.5, 0.3, 0.2), (0.0, 0.1, 0.8))

    assert law.optimum(COSTS) == optimum(Law((0, 1, 2), law.shares, law.passes), COSTS).cost
    assert law.optimum(COSTS) == pytest.approx((1 + 10 * 0.2) / 0.16)


def test_pieces_must_be_a_law() -> None:
    with pytest.raises(UsageError, match="no candidate of this law ever passes"):
        Pieces((1.0,), (0.0,))


def test_a_binormal_law_is_drawn_as_it_says() -> None:
    law = Binormal(pass_rate=0.2, separation=-1.5, width=0.5, deceptive=0.3)
    scores, passed = law.sample(np.random.default_rng(2), 300_000)

    assert passed.mean() == pytest.approx(0.2, abs=0.004)
    assert scores[passed].mean() == pytest.approx(-1.5, abs=0.02)
    assert scores[passed].std() == pytest.approx(0.5, abs=0.02)
    assert scores[~passed].mean() == pytest.approx(0.3 * 1.5, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    "law",
    [
        Binormal(0.2, 1.0),
        Binormal(0.01, 2.0, 1.07),
        Binormal(0.0005, 3.0, 0.9),
        Binormal(0.3, 0.0),
        Binormal(0.1, 0.0, 1.5),
    ],
    ids=str,
)
@pytest.mark.parametrize("verify", [1, 10, 100])
def test_the_binormal_optimum_is_that_of_the_continuous_law(law: Binormal, verify: float) -> None:
    """In the scale of failures: h at x, and a mass of candidates between two quantiles."""
    costs = Costs(generate=1, verify=verify)
    found = law.optimum(costs)

    assert found == pytest.approx(closed_form(law, costs), rel=1e-5)
    assert found >= closed_form(law, costs) * (1 - 1e-9)
    assert found <= (costs.candidate + costs.verify) / law.pass_rate * (1 + 1e-9)


def closed_form(law: Binormal, costs: Costs) -> float:
    """J* over sets {x: f1(x) / f0(x) > c}, which are half-lines, or outside or inside of two roots.

    log f1/f0 is a quadratic; the best set is sought over its level.
    """
    passes = NormalDist(law.separation, law.width)

    def cost(level: float) -> float:
        a, b = (1 - 1 / law.width**2) / 2, law.separation / law.width**2
        c = -(law.separation**2) / (2 * law.width**2) - math.log(law.width) - level
        if abs(a) < 1e-12:
            pieces = [(-c / b, math.inf)] if b > 0 else [(-math.inf, math.inf)]
        else:
            disc = b * b - 4 * a * c
            if disc <= 0:
                pieces = [(-math.inf, math.inf)] if a > 0 else []
            else:
                low, high = sorted((-b + s * math.sqrt(disc)) / (2 * a) for s in (-1, 1))
                pieces = [(-math.inf, low), (high, math.inf)] if a > 0 else [(low, high)]
        s = law.pass_rate * sum(_mass(passes, *piece) for piece in pieces)
        q = s + (1 - law.pass_rate) * sum(_mass(NORMAL, *piece) for piece in pieces)
        return (costs.candidate + costs.verify * q) / s if s > 0 else math.inf

    levels = np.linspace(-30, 30, 6001)
    best = min(levels.tolist(), key=cost)
    return min(cost(level) for level in np.linspace(best - 0.02, best + 0.02, 4001).tolist())


def _mass(law: NormalDist, low: float, high: float) -> float:
    return (0.0 if low == -math.inf else -law.cdf(low)) + (
        1.0 if high == math.inf else law.cdf(high)
    )


@pytest.mark.slow
def test_the_binormal_optimum_with_deceptive_failures() -> None:
    """By the general programme for continuous laws, from a table of quantiles."""
    law = Binormal(0.1, 1.2, 0.9, 0.2)
    parts = [
        (0.1, NormalDist(1.2, 0.9)),
        (0.9 * 0.8, NORMAL),
        (0.9 * 0.2, NormalDist(1.2, 0.9)),
    ]
    xs = np.linspace(-7, 9, 40001)
    cdf = np.array([sum(w * d.cdf(x) for w, d in parts) for x in xs.tolist()])

    def passing(x: float) -> float:
        densities = [w * d.pdf(x) for w, d in parts]
        return densities[0] / sum(densities)

    general = ContinuousLaw(lambda u: float(np.interp(u, cdf, xs)), passing)
    assert law.optimum(COSTS) == pytest.approx(continuous_optimum(general, COSTS).cost, rel=1e-4)
