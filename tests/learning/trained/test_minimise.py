"""The minimum of smooth convex functions."""

from __future__ import annotations

import numpy as np
import pytest

from grv.learning.trained.minimise import Numbers, minimise


@pytest.mark.parametrize("size", [1, 5, 200])
def test_a_quadratic_with_very_different_curvatures(size: int) -> None:
    chance = np.random.default_rng(size)
    bends, lowest = 10.0 ** chance.uniform(-2, 2, size), chance.normal(size=size)

    def loss(at: Numbers) -> tuple[float, Numbers]:
        return float((bends * (at - lowest) ** 2).sum() / 2), bends * (at - lowest)

    found = minimise(loss, np.zeros(size), steps=2000, precision=1e-14)
    assert found == pytest.approx(lowest, abs=1e-3)


def test_a_logistic_regression_has_no_slope_left() -> None:
    chance = np.random.default_rng(0)
    x, y = chance.normal(size=(200, 30)), chance.random(200) < 0.3

    def loss(at: Numbers) -> tuple[float, Numbers]:
        logits = x @ at
        error = 1 / (1 + np.exp(-logits)) - y
        return float((np.logaddexp(0, logits) - y * logits).sum() + at @ at / 2), x.T @ error + at

    found = minimise(loss, np.full(30, 5.0), precision=1e-12)
    assert np.abs(loss(found)[1]).max() < 1e-3


def test_at_the_minimum_it_stays() -> None:
    found = minimise(lambda at: (float(at @ at), 2 * at), np.zeros(3))
    assert found.tolist() == [0, 0, 0]
