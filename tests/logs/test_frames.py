"""Data frames as logs, and comparisons as data frames."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import grv
from grv.core.errors import LogError, UsageError
from grv.logs.log import Log

COLUMNS: dict[str, list[Any]] = {
    "problem": ["a", "a", "b", "b"],
    "candidate": [0, 1, 0, 1],
    "passed": [True, False, False, True],
    "score": [0.5, None, 2.0, 1.0],
    "key": ["x", None, "y", "z"],
    "text": ["four", "five", None, ""],
}
MAKERS = {
    "pandas": pd.DataFrame,
    "pandas with nullable types": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas with categories": lambda columns: pd.DataFrame(columns).astype({"problem": "category"}),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "columns": dict,
}


def facts(log: Log) -> list[Any]:
    return [
        (p.id, p.scores.tolist(), p.passed.tolist(), None if p.keys is None else p.keys.tolist())
        for p in log.problems
    ]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_every_kind_of_frame_is_the_same_log(make: Any) -> None:
    log = Log.from_frame(make(COLUMNS))

    assert facts(log) == [
        ("a", [0.5, -np.inf], [True, False], [0, -1]),
        ("b", [2.0, 1.0], [False, True], [0, 1]),
    ]
    assert log.problems[0].unscored == 1
    assert log.path == "the data frame"


def test_a_frame_gives_the_log_of_its_file(tmp_path: Any) -> None:
    frame = pd.DataFrame(COLUMNS).drop(columns="text")
    frame.to_parquet(tmp_path / "log.parquet")

    assert facts(Log.from_frame(frame)) == facts(Log.load(tmp_path / "log.parquet"))


def test_a_score_and_missing_labels_are_chosen_as_for_files() -> None:
    frame = pd.DataFrame({**COLUMNS, "score_b": [1, 2, 3, 4], "passed": [True, None, False, True]})

    with pytest.raises(LogError, match="several scores: 'score', 'score_b'"):
        Log.from_frame(frame)
    with pytest.raises(LogError, match="the data frame:2: no label for candidate 1 of 'a'"):
        Log.from_frame(frame, score="score_b")
    assert Log.from_frame(frame, score="score_b", unlabelled="drop").candidates == 3
    assert Log.from_frame(frame, score="score_b", unlabelled="bound").is_bounded
    frame["censored"] = True
    assert Log.from_frame(frame, score="score_b").is_bounded


def test_whole_numbers_of_numpy_are_names() -> None:
    columns = {**COLUMNS, "problem": np.array([1, 1, 2, 2]), "passed": np.array([1, 0, 0, 1])}

    assert [p.id for p in Log.from_frame(pd.DataFrame(columns)).problems] == ["1", "2"]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame(COLUMNS).set_index(["problem", "candidate"]), "reset_index"),
        (pl.DataFrame(COLUMNS).lazy(), "collect"),
        (pd.DataFrame(COLUMNS).drop(columns="passed"), "no column 'passed'"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "the same name"),
        (pd.DataFrame(), "the log is empty"),
        ({"problem": ["a"], "candidate": []}, "differ in length"),
        ([1, 2], "not a list; pandas.DataFrame makes"),
        ("log.csv", "not a str; grv.Log.load reads a file"),
        (Path("log.csv"), "grv.Log.load reads a file"),
        (pd.DataFrame(COLUMNS)["score"], "not a Series"),
        (pd.DataFrame(COLUMNS).groupby("problem"), "give a pandas or polars data frame"),
        (pl.DataFrame(COLUMNS)["score"], "not a Series"),
        (pa.array([1, 2]), "not a Int64Array"),
        (pd.DataFrame(COLUMNS).rename(columns={"passed": "good"}), "rename the columns of the fr"),
        (pl.DataFrame({**COLUMNS, "score": [float("nan")] * 4}), "finite number, or null"),
    ],
)
def test_what_is_no_log_is_refused_in_one_line(frame: Any, message: str) -> None:
    with pytest.raises((UsageError, LogError), match=message) as caught:
        Log.from_frame(frame)
    assert "\n" not in str(caught.value)


def test_a_comparison_is_a_pandas_frame() -> None:
    comparison = grv.compare(["adaptive", "verify-all"], Log.from_frame(pd.DataFrame(COLUMNS)))
    frame = comparison.to_frame()

    assert isinstance(frame, pd.DataFrame)
    assert frame["policy"].tolist() == ["adaptive", "verify-all"]
    assert frame["cost"].tolist() == [row.cost for row in comparison.rows]
    assert frame["ratio"].tolist()[0] == 1


def test_without_pandas_it_is_a_polars_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    comparison = grv.compare(["adaptive", "verify-all"], Log.from_frame(COLUMNS))
    monkeypatch.setitem(sys.modules, "pandas", None)
    frame = comparison.to_frame()

    assert isinstance(frame, pl.DataFrame)
    assert frame["policy"].to_list() == ["adaptive", "verify-all"]
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UsageError, match="pip install pandas"):
        comparison.to_frame()


@pytest.mark.slow
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_pyarrow_is_not_needed(library: str) -> None:
    code = f"""
import sys
sys.modules["pyarrow"] = None
import grv, {library}
log = grv.Log.from_frame({library}.DataFrame({COLUMNS!r}))
print(len(grv.compare(["default"], log).to_frame()))
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.stdout == "1\n", ran.stderr
