from __future__ import annotations

import contextlib
import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.backends.sandbox import plain

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(2**300), max_value=2**300)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=20)
    | st.complex_numbers(allow_nan=False)
    | st.fractions()
    | st.decimals(allow_nan=False, min_value=-(10**9), max_value=10**9)
)
hashable = st.recursive(scalars, lambda inner: st.tuples(inner, inner), max_leaves=5)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(hashable, inner, max_size=4)
        | st.sets(hashable, max_size=4)
        | st.frozensets(hashable, max_size=4)
    ),
    max_leaves=20,
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=20,
)
tags = st.sampled_from([*"lntfdszbBucrFDiao", "?"])


def round_trip(value: Any) -> Any:
    return plain.decode(json.loads(json.dumps(plain.encode(value))))


@pytest.mark.slow
@given(values)
def test_values_come_back_equal_and_of_the_same_type(value: Any) -> None:
    back = round_trip(value)
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value) or isinstance(value, set | frozenset | dict | list | tuple)


@pytest.mark.parametrize("text", ["\ud83d\ude00", "\ud800", "a\ud83d\ude00é😀"])
def test_surrogates_are_not_joined(text: str) -> None:
    assert round_trip({text: [text]}) == {text: [text]}


@given(st.lists(tags | json_values, max_size=6).map(lambda parts: [*parts]) | json_values)
def test_any_message_is_a_value_or_a_plain_error(node: Any) -> None:
    with contextlib.suppress(plain.PlainError):
        plain.decode(node)


@pytest.mark.parametrize(
    "node",
    [
        [],
        {},
        1.5,
        ["l", 2.5],
        ["?"],
        [1],
        ["n", 3],
        ["n", "x"],
        ["n"],
        ["f", "x"],
        ["d", 1],
        ["d", ["l"], 1],
        ["s", ["l"]],
        ["b", "x"],
        ["r", 1, 2, 0],
        ["F", 1, 0],
        ["D", "1e999999"],
        ["D", "x"],
        ["o", 1],
        ["c", "0x1p0"],
        ["l", {"a": 1}],
    ],
)
def test_a_bad_node_is_refused(node: Any) -> None:
    with pytest.raises(plain.PlainError):
        plain.decode(node)


def test_a_value_too_deep_or_too_large_is_refused() -> None:
    deep: Any = []
    for _ in range(plain.DEEPEST + 2):
        deep = [deep]
    with pytest.raises(plain.PlainError, match="too deep"):
        plain.encode(deep)
    node: Any = ["l"]
    for _ in range(plain.DEEPEST + 2):
        node = ["l", node]
    with pytest.raises(plain.PlainError, match="too deep"):
        plain.decode(node)
    for large in ("x" * 2000, list(range(2000)), 1 << 20000, b"x" * 2000, {1: "y" * 2000}):
        with pytest.raises(plain.PlainError, match="too large"):
            plain.encode(large, room=1000)


def test_subclasses_are_sent_as_their_built_in_type() -> None:
    class Count(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    class Liar(list[int]):
        def __iter__(self) -> Any:
            return iter(["lie"])

    assert type(round_trip(Count(3))) is int
    assert round_trip(Liar([1, 2])) == [1, 2]
    assert round_trip(True) is True


def test_iterators_are_consumed_and_stay_iterators() -> None:
    back = round_trip(map(str, range(3)))
    assert back != ["0", "1", "2"]
    assert list(back) == ["0", "1", "2"]
    assert list(round_trip(i * i for i in range(3))) == [0, 1, 4]
    with pytest.raises(plain.PlainError, match="too large"):
        plain.encode((0 for _ in iter(int, 1)), room=10_000)


def test_other_objects_are_opaque_and_equal_nothing() -> None:
    class Same:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    back = round_trip(Same())
    assert back != 3
    assert back != round_trip(Same())
    assert isinstance(back, plain.Opaque)
    assert "Same" in repr(back)


def test_other_numbers_are_sent() -> None:
    assert round_trip(Decimal("1.50")) == Decimal("1.50")
    assert round_trip(Fraction(2, 6)) == Fraction(1, 3)
    assert round_trip(range(1, 9, 3)) == range(1, 9, 3)
    assert str(round_trip(float("nan"))) == "nan"
    assert round_trip(bytearray(b"ab")) == bytearray(b"ab")


def test_numpy_scalars_and_arrays_are_sent() -> None:
    numpy = pytest.importorskip("numpy")
    assert plain.encode(numpy.int64(3)) == 3
    assert plain.encode(numpy.float32(0.5)) == ["f", (0.5).hex()]
    assert plain.encode(numpy.array([[1, 2]])) == ["a", ["l", ["l", 1, 2]]]
    assert isinstance(round_trip(numpy.array([1])), plain.Opaque)
