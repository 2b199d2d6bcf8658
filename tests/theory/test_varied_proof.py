"""The proof by computer of Theorem 7: that it holds, and that what is false is not proved."""

from __future__ import annotations

import math

import pytest

from grv.theory.proofs import varied_proof
from grv.theory.proofs.varied_proof import BY_HAND, prove, prove_at
from grv.theory.varied_bound import period, varied_ratio

SHARES = [10 ** (-7 * i / 300) for i in range(301)]  # from 1 down to 1e-7


@pytest.mark.parametrize("n", [*range(2, 20), 36, 37, 100, 250, BY_HAND - 1])
def test_three_is_proved(n: int) -> None:
    """A sample; `docs/prove_varied.py` does all of them."""
    assert prove(n).holds


@pytest.mark.parametrize("n", [BY_HAND, 1000, 10_001])
def test_where_the_page_has_a_proof_by_hand_the_computer_agrees(n: int) -> None:
    assert prove(n).holds


@pytest.mark.parametrize("n", [3, 10, 17, 100])
def test_it_is_sharp(n: int) -> None:
    """As q goes to 0 the ratio is 3 - 1 / (1 + n), where rho is as large as it rounds to n."""
    least = 3 - 1 / (1 + n)

    assert prove(n, constant=least + 1e-6).holds
    assert not prove(n, constant=least - 1e-6).holds


@pytest.mark.parametrize(("n", "e"), [(10, 2), (30, 3), (200, 6)])
def test_with_more_variety_the_inequality_is_false_and_is_not_proved(n: int, e: int) -> None:
    found = prove(n, e=e)

    assert e < period(n)
    assert not found.holds
    assert found.violated is not None
    rho, q = found.violated
    assert abs(rho - n) == 0.5
    assert varied_ratio(math.nextafter(rho, n), q, e) > 3  # just below an edge it still rounds to n


@pytest.mark.parametrize("e", [3, 6])
@pytest.mark.parametrize("rho", [2, 4.5, 10.25, 64])
def test_it_is_about_the_bound_that_is_computed_elsewhere(rho: float, e: int) -> None:
    """The least constant that is proved is the largest ratio on a grid."""
    n = math.floor(rho + 0.5)
    worst = max(varied_ratio(rho, q, e) for q in SHARES)

    assert prove_at(rho, n, worst + 1e-3, e).holds
    assert not prove_at(rho, n, worst - 1e-3, e).holds


def test_what_is_neither_proved_nor_seen_to_be_false_counts_as_not_proved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At this constant the two sides meet as q goes to 0."""
    monkeypatch.setattr(varied_proof, "_CUTS", 20)
    found = prove_at(10.5, 10, 3 - 1 / 11)

    assert not found.holds
