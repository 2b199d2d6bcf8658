"""A table is checked when it is made, and comes back as it was saved."""

from __future__ import annotations

import json

import pytest

from grv.core.errors import UsageError
from grv.report.table import Cell, Column, Table, significant

COLUMNS = (
    Column("log", "log", "text", "which log"),
    Column("policy", "policy", "text", "which policy"),
    Column("cost", "cost", "cost", "mean cost", digits=1),
    Column("solved", "solved", "percent", "share", digits=1),
)
ROWS: tuple[tuple[Cell, ...], ...] = (
    ("a_1", "x|y", 12.34, 1.0),
    ("a_1", "z & w", 0.1 + 0.2, None),
    ("b", "x|y", 7, 0.5),
)
TABLE = Table("t", "T", "A caption: 100 %.", "Bars.", COLUMNS, ROWS, ("A note.",))


def test_what_was_saved_comes_back_in_full() -> None:
    assert Table.from_json(json.loads(json.dumps(TABLE.to_json()))) == TABLE


@pytest.mark.parametrize(
    "row",
    [("a", "b", 1.0), ("a", 1.0, 1.0, 1.0), ("a", "b", "c", 1.0), ("a", "b", 1.0, float("nan"))],
)
def test_a_row_that_does_not_fit_its_columns_is_refused(row: tuple[Cell, ...]) -> None:
    with pytest.raises(UsageError, match="table t"):
        Table("t", "T", "", "", COLUMNS, (row,))


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="different names"):
        Table("t", "T", "", "", (COLUMNS[0], COLUMNS[0]))


def test_csv_is_in_full_precision() -> None:
    lines = TABLE.to_csv().splitlines()
    assert lines[0] == "log,policy,cost,solved"
    assert lines[2] == "a_1,z & w,0.30000000000000004,"


def test_text_is_aligned_and_has_the_notes() -> None:
    assert TABLE.to_text().splitlines() == [
        "log  policy  cost   solved",
        "a_1  x|y     12.3  100.0 %",
        "a_1  z & w    0.3",
        "b    x|y     7.00   50.0 %",
        "A note.",
    ]


def test_small_costs_keep_their_digits() -> None:
    cost = COLUMNS[2]
    assert [cost.shown(value) for value in (0, 0.00123456, 5, 12.34, 1234.5)] == [
        "0.0",
        "0.00123",
        "5.00",
        "12.3",
        "1234.5",
    ]
    assert [cost.brief(value) for value in (12.34, 123456.7)] == ["12.3", "123,457"]


def test_markdown_escapes_pipes() -> None:
    lines = TABLE.to_markdown().splitlines()
    assert lines[1] == "| --- | --- | ---: | ---: |"
    assert lines[2] == r"| a_1 | x\|y | 12.3 | 100.0 % |"
    assert lines[-1] == "A note."


def test_latex_escapes_what_latex_would_read() -> None:
    text = TABLE.to_latex()
    assert r"a\_1 & z \& w & 0.3 &  \\" in text
    assert r"\caption{A caption: 100 \%.}" in text
    assert text.startswith("% A note.\n")
    assert text.count(r"\toprule") == text.count(r"\midrule") == text.count(r"\bottomrule") == 1


def test_side_by_side_rows_that_agree_become_one() -> None:
    wide = TABLE.across("log", ("cost", "solved"))
    assert [c.name for c in wide.columns] == [
        "policy",
        "cost a_1",
        "solved a_1",
        "cost b",
        "solved b",
    ]
    assert wide.rows == (("x|y", 12.34, 1.0, 7, 0.5), ("z & w", 0.1 + 0.2, None, None, None))
    text = wide.to_latex()
    assert r" & \multicolumn{2}{c}{a\_1} & \multicolumn{2}{c}{b} \\" in text
    assert r"\cmidrule(lr){2-3}\cmidrule(lr){4-5}" in text


def test_rows_are_found_by_value() -> None:
    assert TABLE.only(log="b").column("cost") == [7]
    assert TABLE.without("log", "solved").rows[2] == ("x|y", 7)
    assert TABLE.records()[2] == {"log": "b", "policy": "x|y", "cost": 7, "solved": 0.5}


def test_points_have_few_digits() -> None:
    assert significant(123456.789) == 123460.0
    assert significant(0.000123456) == 0.00012346
