"""Lemma S, and with it Theorem 4, on the clocks of our own policies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable

import numpy as np
import pytest

from grv.core.errors import UsageError
from grv.core.values import Costs
from grv.policies import Alternate, Balanced, Hedged
from grv.theory.constants import least_constant
from grv.theory.proofs.clocks import (
    Occupation,
    first_pass,
    generations,
    least_occupation,
    occupation,
    verifications,
)
from grv.theory.slots import BLIND, Path, Slot, SlotSchedule

Clock = Callable[[], Iterable[float]]
RHO = 10.0


def clocks(path: Path) -> tuple[Clock, Clock]:
    """Of generations and of verifications."""
    slots = path.slots(Costs(1, RHO))
    return lambda: generations(slots, RHO), lambda: verifications(slots, RHO)


def gamma_of(clock: Clock, extra: float) -> float:
    """The least Gamma with `pi E s(kappa) <= Gamma + c pi`, over many pi."""
    chances: list[float] = np.geomspace(1e-3, 1, 25).tolist()
    return max(pi * (first_pass(clock, pi) - extra) for pi in chances)


def test_the_clocks_of_a_path() -> None:
    slots = SlotSchedule((Slot(2),), (BLIND, Slot(3)))

    assert list(itertools.islice(generations(slots, 10), 7)) == [1, 2, 13, 24, 25, 26, 37]
    assert list(itertools.islice(verifications(slots, 10), 3)) == [12, 23, 36]


def test_the_occupation_is_the_integral() -> None:
    ticks = [1.0, 2.0, 2.0, 5.0, 100.0]
    grid = np.linspace(1e-6, 10, 1_000_001)
    counts = np.searchsorted(np.array(ticks), grid, side="right")

    assert occupation(ticks, 10) == pytest.approx(np.trapezoid(counts / grid**2, grid), rel=1e-3)


def test_the_mean_spend_at_the_first_pass() -> None:
    assert first_pass(lambda: itertools.count(1.0), 0.01) == pytest.approx(100)
    assert first_pass(lambda: itertools.count(11.0, 11.0), 0.2) == pytest.approx(55)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.1, 1e-2, 1e-3])
@pytest.mark.parametrize("path", [Balanced(), Alternate(), Hedged()], ids=repr)
def test_lemma_s_holds_for_the_clocks_of_our_policies(path: Path, delta: float) -> None:
    for clock in clocks(path):
        for extra in (0.0, 30.0):
            spend, least = least_occupation(delta, gamma_of(clock, extra), extra)
            assert occupation(clock(), spend) >= least


@pytest.mark.parametrize("path", [Balanced(), Alternate(), Hedged()], ids=repr)
def test_the_two_clocks_share_the_spend(path: Path) -> None:
    """The last step of Theorem 4: m + rho k <= s, integrated against 1/s^2."""
    for spend in (10.0, 1e3, 1e5):
        m, k = (occupation(clock(), spend) for clock in clocks(path))
        assert m + RHO * k <= math.log(spend)


def test_in_the_limit_the_lemma_gives_the_logarithm_over_gamma() -> None:
    far = [least_occupation(delta, 2.0, 20.0) for delta in (1e-10, 1e-100, 1e-300)]
    shares = [2.0 * least / math.log(spend) for spend, least in far]

    assert shares == sorted(shares)
    assert 0.9 < shares[-1] < 1


def test_so_the_least_constant_follows() -> None:
    """If a policy had C below 2 - 1/(1+rho), its clocks would need more spend than there is."""
    rho = 10.0
    for c, possible in ((least_constant(rho) - 0.02, False), (least_constant(rho) + 0.02, True)):
        needed = 1 / c + rho / (c * (1 + rho))
        assert (needed <= 1) == possible


def test_delta_is_small() -> None:
    assert isinstance(least_occupation(0.29, 1, 0), Occupation)
    with pytest.raises(UsageError, match=r"delta must be between 0 and 0\.3, not 0\.5"):
        least_occupation(0.5, 1, 0)
