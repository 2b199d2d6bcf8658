from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.core.values import Costs
from grv.theory.shells import shell_number, shells


def schedule(costs: Costs, n: int) -> list[str]:
    return [
        f"shell {shell.s}: generate {shell.draws()}, verify {shell.checks()}"
        for shell in itertools.islice(shells(costs), n)
    ]


def exponents(costs: Costs, n: int) -> list[tuple[int, int, int]]:
    return [(shell.s, shell.b, shell.j) for shell in itertools.islice(shells(costs), n)]


def test_the_schedule_when_a_verification_costs_ten_candidates() -> None:
    # A pair costs 2^b + 10 2^j with j <= b. The smallest is 1 + 10 = 11: shells 0 to 2 are empty.
    assert schedule(Costs(generate=1, verify=10), 4) == [
        "shell 3: generate 8, verify 6",  #     [8, 16):   4 + 10 = 14; two verifications cost 20
        "shell 4: generate 32, verify 12",  #   [16, 32):  16 + 10 = 26; 2 + 20 = 22
        "shell 5: generate 64, verify 24",  #   [32, 64):  32 + 10 = 42; 4 + 40 = 44
        "shell 6: generate 128, verify 48",  #  [64, 128): 64 + 10 = 74; 8 + 80 = 88
    ]


def test_the_schedule_when_both_cost_the_same() -> None:
    # A pair costs 2^b + 2^j. As many verifications as candidates make a power of two, and open the
    # next shell: 1 + 1 = 2, 2 + 2 = 4, 4 + 4 = 8.
    assert schedule(Costs(generate=1, verify=1), 3) == [
        "shell 1: generate 4, verify 6",  #    [2, 4):  2 + 1 = 3; 1 + 1 = 2
        "shell 2: generate 8, verify 12",  #   [4, 8):  4 + 1 = 5; 2 + 2 = 4
        "shell 3: generate 16, verify 24",  #  [8, 16): 8 + 1 = 9; 4 + 4 = 8
    ]


def test_the_schedule_when_verifying_is_the_cheaper_part() -> None:
    # A pair costs 10 2^b + 2^j; there can be no more verifications than candidates.
    assert schedule(Costs(generate=10, verify=1), 3) == [
        "shell 3: generate 2, verify 6",  #   [8, 16):  10 + 1 = 11
        "shell 4: generate 4, verify 12",  #  [16, 32): 20 + 2 = 22
        "shell 5: generate 8, verify 24",  #  [32, 64): 40 + 4 = 44
    ]


def in_shell(s: int, generate: int | Fraction, verify: int | Fraction) -> list[tuple[int, int]]:
    """S_s by its definition in Algorithm 1. Beyond b = s + 1 the candidates alone cost more."""
    unit = min(generate, verify)
    return [
        (a, b)
        for b in range(s + 2)
        for a in range(b + 1)
        if 2**s * unit <= generate * 2**b + verify * 2 ** (b - a) < 2 ** (s + 1) * unit
    ]


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(-6, 6))
def test_the_shells_are_those_of_the_definition(p: int, q: int, e: int) -> None:
    costs = Costs(generate=float(f"{p}e{e}"), verify=float(f"{q}e{e}"))
    found = {s: (b, j) for s, b, j in exponents(costs, 24)}
    for s in range(24):
        pairs = in_shell(s, p, q)
        largest = max(b for _, b in pairs) if pairs else None
        deepest = max(b - a for a, b in pairs) if pairs else None
        assert found.get(s, (None, None)) == (largest, deepest)


@given(st.integers(0, 12), st.integers(0, 12), st.integers(1, 10**6), st.integers(1, 10**6))
def test_every_pair_is_in_the_shell_of_its_number(b: int, j: int, p: int, q: int) -> None:
    b, j = max(b, j), min(b, j)
    number = shell_number(b, j, Costs(generate=p, verify=q))
    assert (b - j, b) in in_shell(number, p, q)


@pytest.mark.parametrize("ratio", ["1e-6", "1e6"])
def test_an_extreme_ratio_has_the_shells_of_the_definition(ratio: str) -> None:
    found = exponents(Costs(generate=1, verify=float(ratio)), 3)
    for s, b, j in found:
        pairs = in_shell(s, 1, Fraction(ratio))
        assert (b, j) == (max(b for _, b in pairs), max(b - a for a, b in pairs))
    assert [s for s, _, _ in found] == [19, 20, 21]


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(-12, 12))
def test_the_unit_of_the_costs_does_not_matter(p: int, q: int, e: int) -> None:
    scaled = Costs(generate=float(f"{p}e{e}"), verify=float(f"{q}e{e}"))
    assert exponents(scaled, 20) == exponents(Costs(generate=p, verify=q), 20)


def test_costs_are_read_as_the_decimals_they_are_written_as() -> None:
    assert exponents(Costs(0.1, 0.7), 20) == exponents(Costs(1, 7), 20)
    # 0.1 + 0.2 is a little more than 0.3 as a float, and 2 candidates and a verification of twice
    # their price are exactly on the edge of a shell.
    assert exponents(Costs(0.1, 0.6, score=0.2), 20) == exponents(Costs(1, 2), 20)


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_no_shell_is_skipped_and_the_first_is_never_shell_zero(p: float, q: float) -> None:
    numbers = [s for s, _, _ in exponents(Costs(generate=p, verify=q), 10)]
    assert numbers[0] >= 1
    assert numbers == list(range(numbers[0], numbers[0] + 10))


def test_a_shell_says_what_it_costs() -> None:
    shell = next(shells(Costs(generate=1, verify=10)))
    assert (shell.low, shell.high) == (8.0, 16.0)


def test_other_factors_are_rounded_up() -> None:
    shell = next(shells(Costs(generate=1, verify=10)))
    assert (shell.draws(0.3), shell.checks(1.5)) == (2, 2)


@pytest.mark.parametrize(
    "costs", [Costs(1e-120, 1e120), Costs(1e120, 1e-120), Costs(1e300, 1e300), Costs(1e-249, 1.0)]
)
def test_nothing_overflows(costs: Costs) -> None:
    for shell in itertools.islice(shells(costs), 40):
        assert shell.draws(2.5) >= 2**shell.b
        assert shell.low <= shell.high
        assert not math.isnan(shell.high)
