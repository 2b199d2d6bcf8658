"""Parquet files that unpack to much more than they are, and files that take much memory."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grv import memory, parquet
from grv.core.errors import LogError
from grv.logs.readers import read_log
from support.commands import grv, limited, refuses

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")


def constant(text: str, rows: int) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int8)), [text])


@pytest.mark.slow
def test_a_tiny_file_with_millions_of_rows_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path, rows = tmp_path / "log.parquet", 8_000_000
    columns = {
        "problem": constant("p", rows),
        "passed": pa.array(np.zeros(rows, dtype=bool)),
        "score": pa.array(np.zeros(rows)),
        "key": constant("k", rows),
    }
    pq.write_table(pa.table(columns), path, compression="zstd", row_group_size=rows)
    assert path.stat().st_size < 200_000
    for command in (("compare", path), ("convert", path, "-o", tmp_path / "out.csv")):
        refuses(command, "bytes that unpack to 1.2 GB")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["compare", pytest.param("convert", marks=pytest.mark.soak)])
def test_a_text_of_many_rows_is_in_memory_once(tmp_path: Path, command: str) -> None:
    """Written out, the keys of this file would take 20 GB."""
    path, rows = tmp_path / "log.parquet", 20_000
    columns = {
        "problem": [f"p{number // 100}" for number in range(rows)],
        "candidate": [number % 100 for number in range(rows)],
        "passed": [number % 7 == 0 for number in range(rows)],
        "score": [float(number % 13) for number in range(rows)],
        "text": constant("long " * 200_000, rows),
    }
    pq.write_table(pa.table(columns), path, row_group_size=5000)
    more = ("-o", tmp_path / "out.csv", "--score", "score") if command == "convert" else ()
    fast = ("--policy", "verify-all", "--jobs", 1) if command == "compare" else ()
    ran = grv(command, path, *more, *fast, before=limited(resource.RLIMIT_AS, 6 << 30))
    assert (ran.code, ran.err) == (0, ""), ran


def test_a_text_of_many_list_items_is_in_memory_once(tmp_path: Path) -> None:
    path, items = tmp_path / "samples.parquet", 20_000
    text = "long " * 200_000
    samples = pa.ListArray.from_arrays(
        pa.array([0, items], pa.int32()),
        pa.StructArray.from_arrays(
            [constant(text, items), pa.array([1.0] * items)], names=["text", "score"]
        ),
    )
    pq.write_table(pa.table({"problem": ["p"], "samples": samples}), path)
    (row,) = parquet.read_rows(str(path))
    assert row["problem"] == "p"
    assert len({id(sample["text"]) for sample in row["samples"]}) == 1
    assert row["samples"][-1] == {"text": text, "score": 1.0}


@pytest.mark.slow
def test_nested_values_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "nested.parquet"
    rows = [
        {"a": "x", "list": ["x", None, "y"], "record": {"b": 1, "c": ["z"]}, "empty": []},
        {"a": None, "list": None, "record": None, "empty": []},
        {"a": "x", "list": [], "record": {"b": None, "c": None}, "empty": []},
    ]
    pq.write_table(pa.Table.from_pylist(rows * 3000), path)
    assert list(parquet.read_rows(str(path))) == rows * 3000


@pytest.mark.slow
def test_what_is_unpacked_is_measured_because_the_account_of_a_file_may_be_false(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"x": np.random.default_rng(0).random(200_000)}), path)
    file = pq.ParquetFile(path)
    monkeypatch.setattr(parquet, "_limit", lambda path: 100_000)
    with pytest.raises(LogError, match="unpacks to more than"):
        list(parquet.batches(file, str(path)))


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_a_file_that_does_not_fit_into_memory_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    path = log(tmp_path / f"log.{ending}")
    monkeypatch.setattr(memory, "free_memory", lambda: 1000)
    monkeypatch.setattr("grv.logs.tables._LARGE", 100)
    refuses(["compare", path], "rows: reading them needs about", "divide the file by problems")


def test_files_whose_rows_fill_the_memory_are_not_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = log(tmp_path / "log.jsonl")
    monkeypatch.setattr(memory, "free_memory", lambda: 10_000)
    monkeypatch.setattr("grv.logs.converting._LOOK", 100)
    command = ["convert", path, "-o", tmp_path / "out.csv"]
    refuses(command, "100 rows so far take most of the memory", "divide the file by problems")


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_what_a_large_file_takes_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    path = log(tmp_path / f"log.{ending}")
    monkeypatch.setattr(memory, "_NOTICED", 1000)
    monkeypatch.setattr("grv.logs.tables._LARGE", 100)
    with pytest.warns(UserWarning, match=r"rows; reading them takes about .* GB of memory and \d"):
        read_log(str(path))


def log(path: Path) -> Path:
    """A small log."""
    from grv.logs.converting import write_log

    columns: dict[str, list[Any]] = {
        "problem": [f"p{number // 10}" for number in range(200)],
        "candidate": [number % 10 for number in range(200)],
        "passed": [number % 3 == 0 for number in range(200)],
        "score": [float(number % 5) for number in range(200)],
    }
    write_log(columns, str(path))
    return path


@pytest.mark.timeout(60)
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_a_pipe_is_no_log_and_is_not_waited_for(tmp_path: Path, ending: str) -> None:
    """A log is read more than once."""
    pipe = tmp_path / f"pipe.{ending}"
    os.mkfifo(pipe)
    refuses(["compare", pipe], "not a file: save a pipe's content in one first")


WIDE = 20_000


def _write_wide(path: Path) -> None:
    names = ["problem", "candidate", "passed", *(f"score_{number}" for number in range(WIDE))]
    values = ["p", 0, True, *([1.0] * WIDE)]
    if path.suffix == ".parquet":
        columns = {name: [value] for name, value in zip(names, values, strict=True)}
        pq.write_table(pa.table(columns), path)
    elif path.suffix == ".csv":
        path.write_text(",".join(names) + "\n" + ",".join(map(str, values)) + "\n")
    else:
        path.write_text(json.dumps(dict(zip(names, values, strict=True))) + "\n")


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_a_table_with_thousands_of_columns_is_refused_at_once(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"log.{ending}"
    _write_wide(path)
    with pytest.raises(LogError, match=r" columns; the limit is 1,000: keep those that the log"):
        read_log(str(path))
    refuses(["convert", path, "-o", tmp_path / "out.csv"], "columns; the limit is 1,000")


def test_a_file_of_many_tiny_row_groups_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"problem": [1, 2, 3], "score": [1, 2, 3]}), path, row_group_size=1)
    monkeypatch.setattr(parquet, "MOST_PARTS", 5)
    with pytest.raises(LogError, match=r"3 row groups; the limit for 2 columns is 2: write it"):
        read_log(str(path))
