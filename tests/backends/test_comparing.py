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
        *(
            ("3", "3.0"),
            ("3", "3."),
            ("3", "3e0"),
            ("-2", "-2.000"),
            ("0.5", ".5"),
            ("0.5", "5e-1"),
        ),
        *(("0.333333", "0.3333333333"), ("1e9", "1000000000.5"), ("2.0", "2"), ("abc", "abc")),
        *(("nan", "nan"), ("007", "007"), ("1000000000000", "1000000000000.0")),
    ],
)
def test_tokens_that_agree(expected: str, got: str) -> None:
    assert same_token(expected, got, 1e-6)


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        *(("3", "4"), ("3", "3.0000001"), ("007", "7"), ("7", "007"), ("10", "010"), ("0", "-0")),
        *(("12345678901234567890", "12345678901234567891"), ("1000000000000", "1000000000000.4")),
        *(("0.5", "0.51"), ("abc", "ABC"), ("nan", "1"), ("1.5", "nan"), ("1.5", "inf")),
        *(("1.0", "1_0"), ("1.0", "١"), ("0011", "11"), ("1.0", "1e99999"), ("3", "+3")),
        *(("1." + "0" * 2000, "1.0"), ("YES", "Yes")),
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
        *((3, 3.0), (3.0, 3), (True, 1), (1, True), ([1, [2]], (1, (2,))), (0.1 + 0.2, 0.3)),
        *(({"1": 2}, {1: 2}), (0.5, Fraction(1, 2)), (0.5, Decimal("0.5")), (10**30, 10**30)),
        *((float("inf"), float("inf")), (float("nan"), float("nan")), (None, None), ([], ())),
    ],
)
def test_values_that_agree(expected: Any, value: Any) -> None:
    assert same(expected, value)


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        *(
            (3, 3.0000000001),
            (3, "3"),
            ("3", 3),
            ([1], 1),
            ([1], [1, 2]),
            ([1, 2], {1, 2}),
            ([], None),
        ),
        *(({"a": 1}, {"a": 1, "b": 2}), ({"a": 1, "b": 2}, {"a": 1}), ({"a": 1}, {"b": 1})),
        *((None, False), (False, None), ("", None), ([1, 2], iter([1, 2])), (1.5, 10**400)),
        *((10**30, 10**30 + 1), (10**400, 1e300), ("ab", ["a", "b"]), ([0], range(1)), ("a", b"a")),
        *((float("nan"), 1.0), (1.0, float("nan")), ([1], {0: 1}), ({}, []), (1.0, 1 + 0j)),
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
