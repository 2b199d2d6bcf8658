"""What a comparison can be asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grv.comparing.rows import (
    DEFAULT_ROWS,
    DifficultyRow,
    HindsightRow,
    PolicyRow,
    RowKind,
    UniformRow,
    kind_of,
    parse_row,
)
from grv.core.errors import UsageError
from grv.policies import DEFAULT, Adaptive, Fixed, Hedged, VerifyAll


def test_the_default_rows_are_those_of_the_paper_and_the_default_policy() -> None:
    assert list(DEFAULT_ROWS) == [
        "hindsight",
        "varied",
        "adaptive",
        "adaptive-all",
        "verify-all",
        "uniform-matched",
        "difficulty-1",
        "difficulty-2",
        "difficulty-3",
        "difficulty-5",
        "difficulty-10",
    ]


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("hindsight", HindsightRow()),
        ("adaptive", PolicyRow(Adaptive())),
        ("adaptive-all", PolicyRow(Adaptive(), whole_steps=True)),
        ("adaptive-all(checks=2)", PolicyRow(Adaptive(checks=2), whole_steps=True)),
        (" adaptive( draws = 3 ) ", PolicyRow(Adaptive(draws=3))),
        ("fixed(8, k=2)", PolicyRow(Fixed(8, 2))),
        ("verify-all", PolicyRow(VerifyAll())),
        ("hedged(every=3)", PolicyRow(Hedged(every=3))),
        ("default", PolicyRow(DEFAULT)),
        ("uniform-matched", UniformRow()),
        ("difficulty-1", DifficultyRow(1)),
        ("difficulty-7", DifficultyRow(7)),
        ("difficulty-1000", DifficultyRow(1000)),
    ],
)
def test_a_row_is_asked_for_by_name(text: str, row: RowKind) -> None:
    assert parse_row(text) == row


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("adaptiv", "unknown policy 'adaptiv'; did you mean 'adaptive'"),
        ("dificulty-3", "unknown policy 'dificulty-3'; did you mean 'difficulty-K'"),
        ("difficulty-0", "difficulty-0: there must be at least one group"),
        ("difficulty--1", "unknown policy"),
        ("difficulty-K", "unknown policy"),
        ("difficulty-3(2)", "difficulty-3 takes no parameters"),
        ("default(1)", "default takes no parameters"),
        ("hindsight(1)", "hindsight takes no parameters"),
        ("hindsigt(1)", "unknown policy 'hindsigt'; did you mean 'hindsight'"),
        ("adaptive-all(chekcs=2)", "unknown parameter of adaptive 'chekcs'; did you mean 'checks'"),
        ("fixed", "fixed needs m and k"),
        ("fixed(2, 3)", "1 <= k <= m, not m=2, k=3"),
        ("", "not a policy: ''"),
        ("fixed(1, 1", "not a policy: 'fixed"),
    ],
)
def test_what_cannot_be_asked_for_is_said(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_row(text)

    assert message in str(caught.value)


def test_the_name_of_a_saved_row_opens_no_file(tmp_path: Path) -> None:
    """A saved comparison may come from anywhere. A pipe would be waited for, for ever."""
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    for name in (f"learned('{pipe}')", f"centered-star('{pipe}')", f"learning('{pipe}')"):
        assert kind_of(name) is None
    assert kind_of("my.py:Policy") is None
    assert kind_of("fixed(8, k=2)") == PolicyRow(Fixed(8, 2))


def test_a_row_that_the_operator_named_is_known_by_its_name() -> None:
    row = parse_row("learning('some.ledger')")
    assert kind_of("learning('some.ledger')") == row
