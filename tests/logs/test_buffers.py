"""Columns read in blocks are those read at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grv.logs import buffers
from grv.logs.buffers import CellBuffer, ValueBuffer, column

values = st.one_of(
    st.lists(st.integers(-9, 2**64), max_size=12),
    st.lists(st.floats(allow_nan=False), max_size=12),
    st.lists(st.booleans(), max_size=12),
    st.lists(st.sampled_from([None, True, 1, 2.5, "a", "b", [1]]), max_size=12),
)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "_BLOCK", 3)
    monkeypatch.setattr(buffers, "_MOST_TEXTS", 2)


@given(given_values=values, absent=st.integers(0, 4))
def test_values_in_blocks_are_the_column_of_all_values(
    given_values: list[Any], absent: int
) -> None:
    buffer = ValueBuffer(absent)
    for value in given_values:
        buffer.add(value)

    found, expected = buffer.column(), column([None] * absent + given_values)

    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()
    assert [type(each) for each in found.tolist()] == [type(each) for each in expected.tolist()]


@given(blocks=st.lists(st.lists(st.text("ab\0", max_size=3), min_size=1, max_size=4), max_size=4))
def test_cells_come_back_whatever_they_contain(blocks: list[list[str]]) -> None:
    buffer = CellBuffer()
    for block in blocks:
        buffer.extend(block)

    assert buffer.cells() == [cell for block in blocks for cell in block]
