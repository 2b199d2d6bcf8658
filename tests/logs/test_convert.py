"""One log out of several files: whatever their shape, each candidate once."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from grv.core.errors import GrvError, LogError, UsageError
from grv.logs.converting import ENDINGS, Joined, join, write_log
from grv.logs.entries import Fields
from grv.logs.log import Log

FLAT = [
    {"problem": "a", "candidate": 0, "passed": True, "score": 1.5},
    {"problem": "a", "candidate": 1, "passed": False, "score": 2},
    {"problem": "b", "candidate": 0, "passed": False, "score": None},
]
COLUMNS = {
    "problem": ["a", "a", "b"],
    "candidate": [0, 1, 0],
    "passed": [True, False, False],
    "score": [1.5, 2.0, None],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, records: list[Any]) -> str:
    Path(name).write_text("".join(json.dumps(record) + "\n" for record in records))
    return name


def joined(*files: list[Any], **fields: Any) -> Joined:
    names = [write(f"{number}.jsonl", records) for number, records in enumerate(files, 1)]
    return join(names, Fields(**fields))


pytestmark = pytest.mark.usefixtures("folder")


def test_one_line_a_candidate() -> None:
    assert joined(FLAT).columns == COLUMNS


def test_one_line_a_problem_with_a_list_of_candidates() -> None:
    nested = [
        {
            "id": "a",
            "prompt": "?",
            "samples": [{"correct": 1, "score": 1.5}, {"correct": 0, "score": 2}],
        },
        {"id": "b", "samples": [{"correct": False}]},
    ]

    assert joined(nested).columns == COLUMNS


def test_the_name_of_a_problem_stands_outside_and_its_labels_inside() -> None:
    nested = [
        {"id": "a", "passed": 0.5, "score": 9, "samples": [
            {"id": "s1", "correct": 1, "score": 1.5}, {"id": "s2", "correct": 0, "score": 2}]},
        {"samples": [{"id": "b", "correct": False}]},
    ]  # fmt: skip

    assert joined(nested).columns == COLUMNS


def test_one_line_a_problem_with_lists_side_by_side() -> None:
    beside = [
        {"task_id": "a", "passed": [True, False], "score": [1.5, 2], "tags": ["x", "y", "z"]},
        {"task_id": "b", "passed": [False], "score": [None]},
    ]

    assert joined(beside).columns == COLUMNS


def test_numbers_in_a_list_count_more_than_places() -> None:
    nested = [
        {"id": "a", "rewards": [{"idx": 1, "score": 2}, {"idx": 0, "score": 1.5}]},
    ]
    labels = [{"id": "a", "passed": [True, False]}, {"id": "b", "passed": [False]}]

    found = joined(labels, nested)

    assert found.columns == COLUMNS


def test_labels_scores_and_keys_are_joined_whatever_the_order_of_lines() -> None:
    labels = [
        {"id": "b", "idx": 0, "verdict": "failed"},
        {"id": "a", "idx": 1, "verdict": "failed"},
        {"id": "a", "idx": 0, "verdict": "passed"},
    ]
    scores = [
        {"problem": "a", "candidate": 0, "score": 1.5, "key": "x"},
        {"problem": "a", "candidate": 1, "score": 2, "key": 7},
    ]

    found = joined(labels, scores)

    rows = zip(*found.columns.values(), strict=True)
    assert sorted(rows) == [
        ("a", 0, True, 1.5, "x"),
        ("a", 1, False, 2.0, "7"),
        ("b", 0, False, None, None),
    ]
    assert (len(found), found.unlabelled, found.unscored) == (3, 0, 1)
    assert found.score_names == ["score"]


def test_ids_join_whether_they_are_numbers_or_text_and_numbers_stay_numbers() -> None:
    labels = [{"id": 10, "idx": 0, "passed": True}, {"id": 9, "idx": 0, "passed": False}]
    scores = [{"id": "10", "idx": 0, "score": 1}, {"id": "9", "idx": 0, "score": 2}]

    assert joined(labels, scores).columns["problem"] == [10, 9]


def test_fields_may_have_any_names() -> None:
    runs = [{"task": "a", "try": 0, "ok": "true", "rm": 3, "judge": 4, "answer": "42"}]

    found = joined(
        runs,
        problem=("task",),
        candidate=("try",),
        passed=("ok",),
        scores=(("rm", "score_rm"), ("judge", "judge")),
        key=("answer",),
    )

    assert found.columns == {
        "problem": ["a"],
        "candidate": [0],
        "passed": [True],
        "score_rm": [3.0],
        "judge": [4.0],
        "key": ["42"],
    }


def test_two_fields_may_fill_one_column() -> None:
    first = [{"id": "a", "idx": 0, "passed": True, "rm": 1}]
    second = [{"id": "a", "idx": 1, "passed": False, "reward": 2}]

    found = joined(first, second, scores=(("rm", "score"), ("reward", "score")))

    assert found.columns["score"] == [1.0, 2.0]


def test_every_field_called_score_is_a_column() -> None:
    rows = [{"id": "a", "idx": 0, "passed": True, "score_b": 1, "score_a": 2, "scored": "yes"}]

    assert joined(rows).score_names == ["score_a", "score_b"]


def test_a_list_may_be_chosen_by_name() -> None:
    rows = [{"id": "a", "tests": [{"x": 1}], "samples": [{"passed": True, "score": 1}]}]

    assert len(joined(rows, list="samples")) == 1
    with pytest.raises(
        LogError, match=r"1.jsonl:1: several lists could hold the candidates: tests, "
    ):
        joined(rows)


def test_a_chosen_list_may_hold_texts_alone() -> None:
    texts = [{"id": "a", "samples": ["one", "two"]}]
    labels = [{"id": "a", "passed": [True, False], "score": [1, 2]}]

    assert joined(texts, labels, list="samples").columns["candidate"] == [0, 1]


@pytest.mark.parametrize("empty", [{"samples": []}, {"passed": [], "score": []}])
def test_a_problem_with_an_empty_list_has_no_candidates(empty: dict[str, Any]) -> None:
    assert joined([{"id": "z", **empty}, *FLAT]).columns == COLUMNS


def test_a_label_that_is_broken_is_none() -> None:
    rows = [*FLAT, {"problem": "c", "candidate": 0, "passed": "broken", "score": 1}]

    assert joined(rows).unlabelled == 1


def test_two_files_may_say_the_same() -> None:
    assert joined(FLAT, FLAT).columns == COLUMNS


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_written_reads_back_as_the_same_log(ending: str) -> None:
    rows = [
        {"id": i % 12, "idx": i // 12, "passed": i % 5 == 0, "score": (i * 7919 % 13) / 3,
         "key": None if i % 3 == 0 else f'é,"{i % 7}'}
        for i in range(100)
    ]  # fmt: skip
    found = joined(rows)

    write_log(found.columns, f"log{ending}")
    log = Log.load(f"log{ending}")

    assert [problem.id for problem in log.problems] == [str(i) for i in range(12)]
    for problem in log.problems:
        mine = [row for row in rows if str(row["id"]) == problem.id]
        assert problem.scores.tolist() == [row["score"] for row in mine]
        assert problem.passed.tolist() == [row["passed"] for row in mine]
        assert problem.keys is not None
        assert (problem.keys >= 0).sum() + len(problem.contradictory) <= len(problem)
    assert Log.load(f"log{ending}")["3"].keys is not None


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_nobody_said_is_null_in_every_format(ending: str) -> None:
    rows = [*FLAT, {"problem": "b", "candidate": 1, "score": 5}]
    write_log(joined(rows).columns, f"log{ending}")

    log = Log.load(f"log{ending}", unlabelled="drop")

    assert log.unlabelled == 1
    assert log["b"].unscored == 1
    assert log["b"].keys is None


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{"candidate": 0, "score": 1}], "no problem: no field problem or id or task_id among"),
        (
            [{"id": 1.5, "candidate": 0, "score": 1}],
            "a problem must be a name or a whole number, not 1.5",
        ),
        (
            [{"id": True, "candidate": 0, "score": 1}],
            "a problem must be a name or a whole number, not T",
        ),
        (
            [{"id": "", "candidate": 0, "score": 1}],
            "a problem must be a name or a whole number, not ''",
        ),
        (
            [{"id": "a", "score": 1}],
            "no candidate number: no field candidate or idx among id, sc",
        ),
        ([{"id": "a", "idx": 0.5, "score": 1}], "a candidate must be a whole number, not 0.5"),
        ([{"id": "a", "idx": "x", "score": 1}], "a candidate must be a whole number, not 'x'"),
        ([{"id": "a", "idx": 0, "score": 1, "passed": "yes"}], "must be true or false, not 'yes'"),
        ([{"id": "a", "idx": 0, "score": 1, "passed": 2}], "a label must be true or false, not 2"),
        ([{"id": "a", "idx": 0, "score": float("nan")}], "score must be a finite number"),
        ([{"id": "a", "idx": 0, "score": float("inf")}], "score must be a finite number"),
        ([{"id": "a", "idx": 0, "score": 1, "key": [1]}], "a key must be text, a number or null"),
        ([{"id": "a", "passed": [True], "score": [1, 2]}], "passed and score differ in length"),
        ([FLAT[0]] * 2, "candidate 0 of 'a' occurs twice"),
        ([[1]], "a line must be an object, not a list"),
    ],
)
def test_what_is_wrong_with_a_line_is_said_with_its_place(records: list[Any], message: str) -> None:
    good = {"id": "good", "idx": 0, "passed": True, "score": 0}

    with pytest.raises(LogError) as caught:
        joined([good, *records])

    line = len(records) + 1
    assert str(caught.value).startswith(f"1.jsonl:{line}: ")
    assert message in str(caught.value)


def test_rows_of_one_file_without_numbers_are_numbered_in_their_order() -> None:
    rows = [
        {"task_id": "HumanEval/0", "completion": "a", "passed": False},
        {"task_id": "HumanEval/1", "completion": "bb", "passed": True},
        {"task_id": "HumanEval/0", "completion": "ccc", "passed": True},
    ]

    found = joined(rows)

    assert found.columns["problem"] == ["HumanEval/0", "HumanEval/1", "HumanEval/0"]
    assert found.columns["candidate"] == [0, 0, 1]
    assert found.columns["passed"] == [0, 1, 1]
    assert found.notes == ["1.jsonl has no candidate numbers: its rows are numbered in their order"]


@pytest.mark.parametrize(
    ("files", "fields"),
    [
        # Labels in one file, scores in another: their rows need not be in the same order.
        ([[{"id": "a", "passed": True}], [{"id": "a", "score": 1}]], {}),
        ([[{"id": "a", "idx": None, "passed": True, "score": 1}]], {}),
        ([[{"id": "a", "passed": True, "score": 1}]], {"candidate": ("sample",)}),
        ([[{"id": "a", "idx": 1, "passed": 1, "score": 1}, {"id": "a", "score": 1}]], {}),
    ],
)
def test_rows_are_not_numbered_if_a_number_may_be_missing(
    files: list[list[dict[str, Any]]], fields: dict[str, Any]
) -> None:
    with pytest.raises(LogError, match=r"no candidate number: .* (only one file|--candidate)"):
        joined(*files, **fields)


def test_a_score_of_the_wrong_type_is_refused_where_it_stands() -> None:
    rows = [{"id": "a", "idx": 0, "passed": True, "rm": "3"}]

    with pytest.raises(LogError, match=r"1.jsonl:1: rm must be a finite number.*, not '3'"):
        joined(rows, scores=(("rm", "rm"),))


@pytest.mark.parametrize(("name", "other"), [("passed", False), ("score", 1.25), ("key", "y")])
def test_two_files_that_contradict_each_other_are_an_error(name: str, other: Any) -> None:
    row = {"id": "a", "idx": 3, "passed": True, "score": 1.5, "key": "x"}

    with pytest.raises(LogError) as caught:
        joined([row], [{**row, name: other}])

    assert str(caught.value) == (
        f"2.jsonl:1: {name} of candidate 3 of 'a' is {other!r} here, but differs in another file"
    )


@pytest.mark.parametrize(
    ("records", "fields", "message"),
    [
        (
            [{"id": "a", "idx": 0, "passed": True, "rm": 1}],
            {},
            "name a score with --score (numbers are in: idx, rm)",
        ),
        (
            [{"id": "a", "idx": 0, "passed": True, "rm": 1}],
            {"scores": (("mr", "score"),)},
            "no score 'mr' in these files; there are id, idx, passed, rm",
        ),
        (
            [{"id": "a", "idx": 0, "ok": True, "score": 1}],
            {},
            "no label in these files: no field passed or correct or verdict among id, idx, ok,",
        ),
        ([{"id": "a", "samples": []}], {"scores": (("s", "s"),)}, "no candidates in these files"),
    ],
)
def test_what_is_missing_altogether_is_said_and_what_there_is(
    records: list[Any], fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        joined(records, **fields)

    assert message in str(caught.value)


def test_two_texts_of_one_candidate_are_an_error() -> None:
    texts = [{"problem": "a", "candidate": 0, "text": "x = 1"}]
    with pytest.raises(LogError, match=r"1: candidate 0 of 'a' has another text in another file"):
        joined([FLAT[0] | {"text": "x = 2"}], texts)
    assert joined([FLAT[0] | {"text": "x = 1"}], texts).columns["passed"] == [True]


def test_a_log_has_one_of_three_endings() -> None:
    with pytest.raises(
        UsageError, match=r"log.txt: the name of a log must end in .parquet, .jsonl, .csv"
    ):
        write_log(joined(FLAT).columns, "log.txt")
    assert not Path("log.txt").exists()


def test_without_pyarrow_parquet_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not there

    with pytest.raises(
        UsageError, match=r"log.parquet: writing Parquet needs pyarrow: pip install"
    ):
        write_log(joined(FLAT).columns, "log.parquet")
    assert not Path("log.parquet").exists()


def test_a_file_that_cannot_be_read_is_said() -> None:
    with pytest.raises(GrvError, match=r"none.jsonl: cannot be read: No such file"):
        join(["none.jsonl"], Fields())
