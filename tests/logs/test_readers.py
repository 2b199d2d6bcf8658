"""Logs from files: the same in every format, and nothing lost without a word."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grv.comparing.compare import compare
from grv.core.errors import LogError, UsageError
from grv.core.values import REFUTED, Costs, Measured
from grv.logs.log import Log
from grv.text import csv_text
from support.examples import examples

Row = Mapping[str, Any]


def write_parquet(path: Path, rows: Sequence[Row]) -> None:
    pq.write_table(pa.Table.from_pylist(list(rows)), path)


def write_jsonl(path: Path, rows: Sequence[Row]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    text = csv_text(list(rows[0]), [list(row.values()) for row in rows])
    path.write_text(text, encoding="utf-8", newline="")


FORMATS: dict[str, Callable[[Path, Sequence[Row]], None]] = {
    "parquet": write_parquet,
    "jsonl": write_jsonl,
    "csv": write_csv,
}


def saved(folder: Path, rows: Sequence[Row], ending: str = "jsonl") -> Path:
    path = folder / f"log.{ending}"
    FORMATS[ending](path, rows)
    return path


def loaded(folder: Path, rows: Sequence[Row], **options: Any) -> Log:
    return Log.load(saved(folder, rows), **options)


def contents(log: Log) -> list[Any]:
    return [
        (
            problem.id,
            problem.scores.tolist(),
            problem.passed.tolist(),
            None if problem.keys is None else problem.keys.tolist(),
            problem.unscored,
            problem.contradictory,
            None if problem.verify_costs is None else problem.verify_costs.tolist(),
        )
        for problem in log.problems
    ]


def row(problem: Any, candidate: int, passed: bool | None, score: float | None, **more: Any) -> Row:
    return {
        "problem": problem,
        "candidate": candidate,
        "passed": passed,
        "score": score,
        **more,
    }


SMALL = [
    row("b", 1, True, 0.25, key="y", verify_cost=2.5),
    row("a", 0, False, None, key="x", verify_cost=1.0),
    row("b", 0, False, -1e-300, key="y'", verify_cost=0.0),
    row("a", 2, True, 3.0, key=None, verify_cost=1.0),
    row("a", 1, False, 1 / 3, key="x", verify_cost=1.0),
]

ids = st.one_of(
    st.lists(st.text("abz é,\"'07-_", min_size=1, max_size=4), min_size=1, max_size=4),
    st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=4),
)


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    """Any rows that a log may have, in any order."""
    problems = draw(ids)
    # Texts that are all whole numbers read as numbers from a CSV, which knows no types.
    if isinstance(problems[0], str) and all(str(id).lstrip("-").isdigit() for id in problems):
        problems = [f"{id}x" for id in problems]
    names = sorted({(id, n) for id in problems for n in range(draw(st.integers(1, 4)))})
    scores = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False))
    keys = st.sampled_from([None, "x", "7", "é,\n"])
    drawn = [
        row(
            id,
            n,
            draw(st.booleans()),
            draw(scores),
            key=draw(keys),
            verify_cost=draw(st.floats(0, 9)),
        )
        for id, n in names
    ]
    return draw(st.permutations(drawn))


@settings(max_examples=examples(60))
@given(rows=tables())
def test_a_log_is_the_same_in_every_format(
    rows: list[Row], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("formats")

    logs = [Log.load(saved(folder, rows, ending)) for ending in FORMATS]

    assert contents(logs[0]) == contents(logs[1]) == contents(logs[2])


@pytest.mark.parametrize("ending", FORMATS)
def test_rows_become_problems_sorted_by_id_with_candidates_in_order(
    ending: str, tmp_path: Path
) -> None:
    log = Log.load(saved(tmp_path, SMALL, ending))

    assert contents(log) == [
        ("a", [-math.inf, 1 / 3, 3.0], [False, False, True], [0, 0, -1], 1, (), [1.0, 1.0, 1.0]),
        ("b", [-1e-300, 0.25], [False, True], [0, 1], 0, (), [0.0, 2.5]),
    ]
    assert (log.score, log.unlabelled, log.candidates) == ("score", 0, 5)
    assert log.path == str(tmp_path / f"log.{ending}")


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_gives_the_same_comparison(ending: str, tmp_path: Path) -> None:
    rows = [row(i % 12, i // 12, i % 5 == 0, (i * 7919) % 13) for i in range(12 * 15)]

    found = compare(["adaptive", "difficulty-3"], Log.load(saved(tmp_path, rows, ending)),
                    order_scheme="paper")  # fmt: skip

    expected = compare(["adaptive", "difficulty-3"], loaded(tmp_path, rows), order_scheme="paper")
    assert found.to_json()["rows"] == expected.to_json()["rows"]


@pytest.mark.parametrize("ending", FORMATS)
def test_numbers_sort_as_numbers_and_names_as_text(ending: str, tmp_path: Path) -> None:
    numbers = Log.load(saved(tmp_path, [row(id, 0, True, 1) for id in (10, 9, -2)], ending))
    names = Log.load(saved(tmp_path, [row(id, 0, True, 1) for id in ("p10", "p9")], ending))

    assert [problem.id for problem in numbers.problems] == ["-2", "9", "10"]
    assert [problem.id for problem in names.problems] == ["p10", "p9"]


def test_a_name_that_looks_like_a_number_stays_as_it_is_written(tmp_path: Path) -> None:
    log = Log.load(saved(tmp_path, [row(id, 0, True, 1) for id in ("007", "7", "10")], "csv"))

    assert [problem.id for problem in log.problems] == ["007", "10", "7"]


@pytest.mark.parametrize(
    ("text", "label"),
    [("true", True), ("False", False), ("1", True), ("0", False), ("1.0", True), ("passed", True),
     ("FAILED", False)],
)  # fmt: skip
def test_labels_are_read_in_the_ways_they_are_written(
    text: str, label: bool, tmp_path: Path
) -> None:
    (tmp_path / "log.csv").write_text(f"problem,candidate,passed,score\na,0,{text},1\n")

    assert Log.load(tmp_path / "log.csv")["a"].passed.tolist() == [label]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.csv", "\ufeffproblem,candidate,passed,score\r\na,0,1,2\r\n\r\na,1,0,3\r\n"),
        ("log.tsv", "problem\tcandidate\tpassed\tscore\na\t0\t1\t2\na\t1\t0\t3"),
        ("LOG.TSV", "problem\tcandidate\tpassed\tscore\na\t0\t1\t2\na\t1\t0\t3"),
        (
            "log.jsonl",
            '\ufeff{"problem": "a", "candidate": 0, "passed": 1, "score": 2}\n\n  \n'
            '{"score": 3, "passed": 0, "problem": "a", "candidate": 1.0}',
        ),
    ],
)
def test_text_is_read_as_tools_write_it(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text.encode())

    log = Log.load(tmp_path / name)

    assert log["a"].scores.tolist() == [2.0, 3.0]
    assert log["a"].passed.tolist() == [True, False]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.5, 2.5], pa.float32()),
        pa.array([1, 2], pa.uint8()),
        pa.array([1, None], pa.int32()),
        pa.array([None, None], pa.null()),
    ],
)
def test_scores_may_have_any_numeric_type(column: Any, tmp_path: Path) -> None:
    table = pa.table({"problem": ["a", "a"], "candidate": [0, 1], "passed": [True, False]})
    pq.write_table(table.append_column("score", column), tmp_path / "log.parquet")

    log = Log.load(tmp_path / "log.parquet")

    values = [-math.inf if value is None else float(value) for value in column.to_pylist()]
    assert log["a"].scores.tolist() == values
    assert log["a"].unscored == column.null_count


def test_problems_and_keys_may_be_dictionaries_of_parquet(tmp_path: Path) -> None:
    table = pa.table(
        {
            "problem": pa.array(["a", "a"]).dictionary_encode(),
            "candidate": [0, 1],
            "passed": [1, 0],
            "rm": [0.5, 0.5],
            "key": pa.array(["x", None]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "log.parquet")

    log = Log.load(tmp_path / "log.parquet")

    assert log.score == "rm"
    assert log["a"].keys is not None
    assert log["a"].keys.tolist() == [0, -1]


def test_the_score_may_be_chosen_among_several(tmp_path: Path) -> None:
    rows = [row("a", 0, True, 1, score_b=2, note="good")]

    assert loaded(tmp_path, rows, score="score_b").score == "score_b"
    with pytest.raises(LogError, match=r"several scores: 'score', 'score_b'; choose one with"):
        loaded(tmp_path, rows)
    with pytest.raises(LogError, match="no score 'scor'; there are 'score', 'score_b', 'note'"):
        loaded(tmp_path, rows, score="scor")


def test_a_column_called_score_is_preferred_to_others(tmp_path: Path) -> None:
    assert loaded(tmp_path, [row("a", 0, True, 1, note="good", length=3)]).score == "score"


class TestLabelsThatAreMissing:
    ROWS = (
        row("a", 0, True, 1.0),
        row("a", 1, None, 2.0),
        row("b", 0, None, 1.0),
        row("c", 0, False, 1.0),
    )

    def test_are_an_error_by_default(self, tmp_path: Path) -> None:
        with pytest.raises(
            LogError, match=r"log.jsonl:2: no label for candidate 1 of 'a' \(2 have"
        ):
            loaded(tmp_path, self.ROWS)

    def test_count_as_failed_if_asked_to(self, tmp_path: Path) -> None:
        log = loaded(tmp_path, self.ROWS, unlabelled="fail")

        assert (log.unlabelled, log.candidates, len(log.problems)) == (2, 4, 3)
        assert log["a"].passed.tolist() == [True, False]
        assert [problem.id for problem in log.unsolvable] == ["b", "c"]

    def test_are_dropped_if_asked_to_and_who_has_none_left_is_named(self, tmp_path: Path) -> None:
        log = loaded(tmp_path, self.ROWS, unlabelled="drop")

        assert (log.unlabelled, log.candidates) == (2, 2)
        assert log["a"].scores.tolist() == [1.0]
        assert log.bare == ("b",)
        summary = compare(["adaptive"], log).log
        assert (summary.problems, summary.solvable) == (3, 1)
        assert summary.excluded == ("c", "b")

    def test_cannot_all_be_dropped(self, tmp_path: Path) -> None:
        with pytest.raises(LogError, match="no candidate has a label"):
            loaded(tmp_path, [row("a", 0, None, 1)], unlabelled="drop")

    def test_have_no_other_remedy(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="unlabelled must be one of error, fail, drop"):
            loaded(tmp_path, self.ROWS, unlabelled="keep")

    def test_broken_is_no_label(self, tmp_path: Path) -> None:
        rows = [row("a", 0, True, 1), {**row("a", 1, None, 1), "passed": "broken"}]

        assert loaded(tmp_path, rows, unlabelled="drop").unlabelled == 1


class TestKeys:
    def test_with_both_labels_are_named_and_are_no_classes(self, tmp_path: Path) -> None:
        rows = [
            row("a", 0, True, 1, key="x"),
            row("a", 1, False, 1, key="x"),
            row("a", 2, False, 1, key="y"),
            row("a", 3, False, 1, key="y"),
            row("b", 0, True, 1, key="x"),
        ]
        log = loaded(tmp_path, rows)

        assert log["a"].contradictory == ("x",)
        assert log["a"].keys is not None
        assert log["a"].keys[:2].tolist() == [-1, -1]
        assert log["a"].keys[2] == log["a"].keys[3] >= 0
        assert log["b"].contradictory == ()
        summary = compare(["adaptive"], log, keys=True).log
        assert summary.contradictory == {"a": ("x",)}

    @pytest.mark.parametrize("ending", FORMATS)
    def test_that_are_empty_are_no_classes(self, ending: str, tmp_path: Path) -> None:
        rows = [row("a", n, n == 2, 1, key=key) for n, key in enumerate(["", "", None, "x"])]

        problem = Log.load(saved(tmp_path, rows, ending))["a"]

        assert problem.keys is not None
        assert problem.keys.tolist() == [-1, -1, -1, 0]

    def test_may_be_numbers(self, tmp_path: Path) -> None:
        problem = loaded(tmp_path, [row("a", n, True, 1, key=n // 2) for n in range(4)])["a"]

        assert problem.keys is not None
        assert problem.keys.tolist() == [0, 0, 1, 1]

    def test_that_are_lists_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(LogError, match=r"log.jsonl:1: key must be text, .* not \[1\]"):
            loaded(tmp_path, [row("a", 0, True, 1, key=[1])])


class TestRefuted:
    ROWS = (
        row("a", 0, False, 1, refuted=True, key="x"),
        row("a", 1, None, 2, refuted=True, key="x"),
        row("a", 2, True, 3, refuted=False, key="x"),
        row("a", 3, False, 3, refuted=None, key=REFUTED),
        row("b", 0, True, 3, refuted=None, key=None),
    )

    @pytest.mark.parametrize("ending", FORMATS)
    def test_candidates_have_failed_and_are_in_no_class(self, ending: str, tmp_path: Path) -> None:
        log = Log.load(saved(tmp_path, list(self.ROWS), ending))

        a = log["a"]
        assert a.refuted is not None
        assert a.refuted.tolist() == [True, True, False, True]
        assert a.passed.tolist() == [False, False, True, False]
        assert a.keys is not None
        assert a.keys.tolist() == [-1, -1, 0, -1]
        assert a.contradictory == ()
        assert (log.refuted, log.unlabelled) == (3, 0)
        assert compare(["adaptive"], log).log.refuted == 3

    def test_candidates_must_not_have_passed(self, tmp_path: Path) -> None:
        with pytest.raises(LogError, match=r"log.jsonl:2: this candidate passed although it is re"):
            loaded(tmp_path, [row("a", 0, True, 1), row("a", 1, True, 1, refuted=True)])

    def test_must_be_true_or_false(self, tmp_path: Path) -> None:
        with pytest.raises(LogError, match="refuted must be true or false, not 'does not parse'"):
            loaded(tmp_path, [row("a", 0, False, 1, refuted="does not parse")])

    def test_candidates_need_no_cost_of_verifying(self, tmp_path: Path) -> None:
        rows = [
            row("a", 0, True, 1, generate_cost=1, verify_cost=2.0),
            row("a", 1, False, 1, generate_cost=1, verify_cost=None, refuted=True),
            row("a", 2, False, 1, generate_cost=1, verify_cost=0.0, refuted=True),
        ]
        log = loaded(tmp_path, rows)

        assert log.unpriced == 0
        assert log.mean_costs == (1.0, 2.0)


def test_missing_scores_are_counted_and_rank_last(tmp_path: Path) -> None:
    rows = [row("a", 0, False, None), row("a", 1, True, -1e9), row("b", 0, True, None)]

    log = loaded(tmp_path, rows)
    comparison = compare(["fixed(2, 1)"], log, Costs(1, 10))

    assert comparison.log.unscored == 2
    assert comparison.rows[0].solved == 1.0


def test_prices_may_be_whole_or_not(tmp_path: Path) -> None:
    prices = [1, 2.5]
    rows = [row("a", n, True, 1, generate_cost=price) for n, price in enumerate(prices)]

    problem = loaded(tmp_path, rows)["a"]

    assert problem.generate_costs is not None
    assert problem.generate_costs.tolist() == prices


def test_a_price_that_is_not_known_is_the_mean_of_the_others(tmp_path: Path) -> None:
    rows = [
        row("a", 0, True, 1, generate_cost=1, verify_cost=2.0),
        row("a", 1, False, 1, generate_cost=1, verify_cost=None),
        row("b", 0, True, 1, generate_cost=1, verify_cost=5.0),
        row("b", 1, None, 1, generate_cost=1, verify_cost=11.0),
    ]

    log = loaded(tmp_path, rows, unlabelled="drop")

    assert log["a"].verify_costs is not None
    assert log["a"].verify_costs.tolist() == [2.0, 3.5]
    assert log.unpriced == 1
    assert compare(["adaptive"], log, Measured(1, 3)).log.unpriced == 1


def test_prices_of_which_none_is_known_are_none(tmp_path: Path) -> None:
    log = loaded(tmp_path, [row("a", 0, True, 1, verify_cost=None)])

    assert log["a"].verify_costs is None
    assert log.unpriced == 0


def test_prices_must_not_be_negative(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"verify_cost must be finite and not negative, .* not -1"):
        loaded(tmp_path, [row("a", 0, True, 1, verify_cost=-1)])


def test_prices_are_small_enough_to_be_added(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"generate_cost must be .* at most 1e\+100, .* not 1e\+308"):
        loaded(tmp_path, [row("a", 0, True, 1, generate_cost=1e308)])


def test_a_cell_of_a_csv_file_may_be_as_long_as_a_candidate(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text(f"problem,candidate,passed,score,text\np,0,1,0.5,{'x' * 1_000_000}\n")
    assert Log.load(path)["p"].pass_rate == 1


def test_a_log_knows_its_problems_by_name(tmp_path: Path) -> None:
    log = loaded(tmp_path, SMALL)

    assert log["b"].pass_rate == 0.5
    assert log.has_keys
    with pytest.raises(KeyError):
        log["c"]


def test_a_log_remembers_how_it_was_read(tmp_path: Path) -> None:
    settings = compare(["adaptive"], loaded(tmp_path, SMALL, unlabelled="fail")).settings

    assert settings["unlabelled"] == "fail"
    assert settings["log"].endswith("log.jsonl")
    assert settings["rewards"] is None


def test_without_pyarrow_parquet_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, SMALL, "parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not there

    with pytest.raises(
        UsageError, match=r"log.parquet: reading Parquet needs pyarrow: pip install"
    ):
        Log.load(path)
    assert loaded(tmp_path, SMALL).candidates == 5


def test_reading_gives_arrays_that_are_ready_for_work(tmp_path: Path) -> None:
    problem = loaded(tmp_path, SMALL)["a"]

    assert problem.scores.dtype == np.float64
    assert problem.passed.dtype == np.bool_
    assert problem.levels.tolist() == [2, 1, 0]
