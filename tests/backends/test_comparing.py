from __future__ import annotations

import time
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.backends.sandbox import plain
from grv.backends.verifiers.programs.comparing import (
    first_difference,
    same_token,
    same_value,
    show_node,
)


def same(expected: Any, value: Any, tolerance: float = 1e-9) -> bool:
    return same_value(expected, plain.encode(value), tolerance)


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ("3", "3.0"),
        ("3", "3."),
        ("3", "3e0"),
        ("-2", "-2.000"),
        ("0.5", ".5"),
        ("0.5", "5e-1"),
        ("0.333333", "0.3333333333"),
        ("1e9", "1000000000.5"),
        ("2.0", "2"),
        ("abc", "abc"),
        ("nan", "nan"),
        ("007", "007"),
        ("1000000000000", "1000000000000.0"),
    ],
)
def test_tokens_that_agree(expected: str, got: str) -> None:
    assert same_token(expected, got, 1e-6)


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ("3", "4"),
        ("3", "3.0000001"),
        ("007", "7"),
        ("7", "007"),
        ("10", "010"),
        ("0", "-0"),
        ("12345678901234567890", "12345678901234567891"),
        ("1000000000000", "1000000000000.4"),
        ("0.5", "0.51"),
        ("abc", "ABC"),
        ("nan", "1"),
        ("1.5", "nan"),
        ("1.5", "inf"),
        ("1.0", "1_0"),
        ("1.0", "١"),
        ("0011", "11"),
        ("1.0", "1e99999"),
        ("3", "+3"),
        ("1." + "0" * 2000, "1.0"),
        ("YES", "Yes"),
    ],
)
def test_tokens_that_differ(expected: str, got: str) -> None:
    assert not same_token(expected, got, 1e-6)


def test_outputs_are_compared_token_by_token() -> None:
    assert first_difference("1 2\n3\n", "1\n2   3", 1e-6) is None
    assert first_difference("", "\n\n", 1e-6) is None
    assert first_difference("1 2", "1 3", 1e-6) == "token 2: expected '2', got '3'"
    assert first_difference("1 2", "1", 1e-6) == "expected 2 tokens, got 1"
    assert first_difference("1", "1 2", 1e-6) == "expected 1 tokens, got 2"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)


@given(json_values)
def test_a_value_is_the_same_as_itself(value: Any) -> None:
    assert same(value, value)


@given(json_values, json_values)
def test_without_tolerance_and_tuples_it_is_pythons_equality(one: Any, other: Any) -> None:
    assert same(one, other, 0.0) == (one == other)


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        (3, 3.0),
        (3.0, 3),
        (True, 1),
        (1, True),
        ([1, [2]], (1, (2,))),
        (0.1 + 0.2, 0.3),
        ({"1": 2}, {1: 2}),
        (0.5, Fraction(1, 2)),
        (0.5, Decimal("0.5")),
        (10**30, 10**30),
        (float("inf"), float("inf")),
        (float("nan"), float("nan")),
        (None, None),
        ([], ()),
    ],
)
def test_values_that_agree(expected: Any, value: Any) -> None:
    assert same(expected, value)


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        (3, 3.0000000001),
        (3, "3"),
        ("3", 3),
        ([1], 1),
        ([1], [1, 2]),
        ([1, 2], {1, 2}),
        ([], None),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1, "b": 2}, {"a": 1}),
        ({"a": 1}, {"b": 1}),
        (None, False),
        (False, None),
        ("", None),
        ([1, 2], iter([1, 2])),
        (1.5, 10**400),
        (10**30, 10**30 + 1),
        (10**400, 1e300),
        ("ab", ["a", "b"]),
        ([0], range(1)),
        ("a", b"a"),
        (float("nan"), 1.0),
        (1.0, float("nan")),
        ([1], {0: 1}),
        ({}, []),
        (1.0, 1 + 0j),
    ],
)
def test_values_that_differ(expected: Any, value: Any) -> None:
    assert not same(expected, value)


@pytest.mark.parametrize("node", [["n"], ["n", 1], ["f", "x"], ["D", []], ["F", 1], [], {}, [[]]])
@pytest.mark.parametrize("expected", [1, 1.5, "a", None, [1], {"a": 1}, True])
def test_what_is_no_value_equals_nothing(expected: Any, node: Any) -> None:
    assert not same_value(expected, node, 1e-9)


def test_a_repeated_key_does_not_stand_for_a_missing_one() -> None:
    assert not same_value({"a": 1, "b": 1}, ["d", "a", 1, "a", 1], 0)


def test_numbers_are_compared_exactly_where_the_expected_one_is_an_integer() -> None:
    big = 2**53
    for expected, near in (
        (1, Fraction(10**20 + 1, 10**20)),
        (1, Fraction(10**400 + 1, 10**400)),
        (big, Decimal(big + 1)),
        (big, Fraction(2 * big + 1, 2)),
        (10**40, Decimal(f"{10**40}.000001")),
        (10**40, float(10**40)),
        (0, Decimal("1E-5000")),
        (0, Fraction(1, 10**400)),
        (3, complex(3, 0)),
    ):
        assert not same(expected, near), (expected, near)
    for expected, equal in (
        (big + 1, Decimal(big + 1)),
        (3, Decimal("3.000")),
        (3000, Decimal("3E+3")),
        (-7, Fraction(-7)),
        (10**40, Fraction(10**40)),
        (True, Fraction(1)),
    ):
        assert same(expected, equal), (expected, equal)


@given(st.fractions(), st.integers() | st.floats(allow_nan=False))
def test_without_tolerance_fractions_are_compared_as_python_does(
    value: Fraction, expected: float
) -> None:
    assert same(expected, value, 0.0) == (expected == value)
    whole = Fraction(expected) if abs(expected) < 1e300 else Fraction(1)
    assert same_value(float(whole), plain.encode(whole), 0.0) == (float(whole) == whole)


@given(st.decimals(allow_nan=False), st.integers() | st.floats(allow_nan=False))
def test_without_tolerance_decimals_are_compared_as_python_does(
    value: Decimal, expected: float
) -> None:
    assert same(expected, value, 0.0) == (expected == value)
    if value.is_finite() and value == int(value):
        assert same(int(value), value)


def test_a_float_is_compared_with_the_float_nearest_to_what_was_returned() -> None:
    for value in (Fraction(1, 3), Decimal("0.333333333333333333333333333333333"), 1 / 3):
        assert same(1 / 3, value, 1e-15)
        assert not same(0.33334, value)
    assert same(0.1, Fraction(1, 10), 1e-17)
    assert not same(0.1, Fraction(1, 10), 0.0)  # 0.1 is not a tenth
    assert not same(float("inf"), Decimal("1E+999"))
    assert not same(1e308, Fraction(10**5000))
    assert same(0.0, Fraction(1, 10**5000))


@pytest.mark.slow
@pytest.mark.parametrize("expected", [0, 1, 10**300, 0.1, 1e308, float("inf"), float("nan"), -2])
def test_numbers_of_any_size_take_little_time(expected: float) -> None:
    long, other = "0x" + "f" * 4_000_000, "0x" + "e" * 3_999_999 + "1"
    started = time.thread_time()
    for node in (
        ["F", ["n", long], ["n", other]],
        ["F", 3, ["n", long]],
        ["F", ["n", long], 3],
        ["n", long],
        ["f", f"{long}p5"],
        ["D", "7" * 4_000_000],
        ["D", "1" + "0" * 4_000_000],
        ["D", f"0.{'0' * 4_000_000}1"],
        ["D", f"1.5{'0' * 4_000_000}1"],
        ["D", "1e999999999"],
        ["F", ["F", 1, ["n", long]], 3],
        ["r", 0, ["n", long], 1],
        ["b", "00" * 2_000_000],
    ):
        assert not same_value(expected, node, 1e-9) or expected == 0.1
        show_node(node)
    assert time.thread_time() - started < 5


def test_large_integers_as_keys_equal_their_digits() -> None:
    assert same({str(2**60): 1}, {2**60: 1})
    assert not same({str(2**60): 1}, {2**60 + 1: 1})
    assert not same({"1": 1}, {True: 1})
    assert not same_value({"1": 1}, ["d", ["n", "f" * 10_000], 1], 0)


@pytest.mark.alone
def test_keys_that_collide_take_no_time() -> None:
    keys = [["n", hex(i * ((1 << 61) - 1))] for i in range(100_000)]
    node = ["d", *(part for key in keys for part in (key, 1))]
    started = time.monotonic()
    assert not same_value({str(i): 1 for i in range(100_000)}, node, 0)
    assert not same_value([1] * 100_000, ["s", *keys], 0)
    assert time.monotonic() - started < 5


def test_values_are_shown_in_a_few_characters() -> None:
    assert show_node(plain.encode([1, (2.5, "x"), {"a": None}])) == "[1, (2.5, 'x'), {'a': None}]"
    assert len(show_node(plain.encode(list(range(10_000))))) <= 300
    assert len(show_node(plain.encode(1 << 100_000))) <= 300
    assert show_node(["?", []]) == "<...>"


@pytest.mark.parametrize(
    ("expected", "got"), [(6.67e-11, 0), (6.67e-11, 6.6e-11), (1e-7, 2e-7), (0.0, 1e-10)]
)
def test_tolerance_is_relative(expected: float, got: float) -> None:
    assert not same(expected, got)
    assert not same_token(repr(expected), repr(float(got)), 1e-6)
    assert same_value(expected, plain.encode(got), 1e-9, 1e-6)
    assert same_token(repr(expected), repr(float(got)), 1e-6, 1e-6)


def test_what_rounding_leaves_of_zero_is_zero() -> None:
    assert same(0.0, 0.1 + 0.2 - 0.3)
    assert same_token("0.0", "5.5e-17", 1e-6)
    assert not same(0.0, 1e-17, 0.0)
    assert same(6.67e-11, 6.67e-11 * (1 + 1e-12))
