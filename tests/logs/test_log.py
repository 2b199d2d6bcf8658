"""A log that exists is valid; classes are numbered, contradictions are not."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

from grv.core.errors import UsageError
from grv.logs.log import Log, LoggedProblem, classes
from grv.testing import World, all_wrong, empty, population, tied


def test_levels_are_places_of_distinct_scores_best_first() -> None:
    assert World.of("1- 5- 5+ -inf- 0.5-").logged().levels.tolist() == [1, 0, 0, 3, 2]


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(UsageError, match="the columns of problem 'a' differ in length"):
        LoggedProblem("a", np.zeros(2), np.zeros(3, dtype=np.bool_))


def test_a_score_that_is_nan_is_refused() -> None:
    with pytest.raises(UsageError, match="a score of problem 'a' is NaN"):
        LoggedProblem("a", np.array([1.0, np.nan]), np.zeros(2, dtype=np.bool_))


def test_a_log_without_problems_is_refused() -> None:
    with pytest.raises(UsageError, match="the log has no problems"):
        Log(())


@pytest.mark.parametrize("given", ["log.csv", pathlib.Path("log.csv"), {"problem": ["a"]}, [1]])
def test_what_is_no_problem_is_refused_with_what_reads_it(given: Any) -> None:
    with pytest.raises(UsageError, match=r"Log\.load reads a file, Log\.from_frame a"):
        Log(given)


def test_two_problems_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="some file has two problems with the same name"):
        Log((tied(3).logged("a"), tied(4).logged("a")), path="some file")


def test_a_problem_without_candidates_is_refused() -> None:
    with pytest.raises(UsageError, match="has a problem without candidates"):
        Log((tied(3).logged("a"), empty().logged("b")))


def test_solvable_problems_are_those_with_a_pass() -> None:
    log = Log((World.of("1+").logged("a"), all_wrong(3).logged("b")))

    assert [problem.id for problem in log.solvable] == ["a"]
    assert [problem.id for problem in log.unsolvable] == ["b"]
    assert log.candidates == 4
    assert not log.has_keys


def test_classes_are_numbered_and_a_null_key_is_in_none() -> None:
    codes, contradictory = classes(["b", None, "a", "b"], np.array([True, True, False, True]))

    assert codes.tolist() == [0, -1, 1, 0]
    assert contradictory == ()


def test_a_key_with_both_labels_is_no_class() -> None:
    codes, contradictory = classes(["b", "a", "b", "a"], np.array([True, True, False, True]))

    assert codes.tolist() == [-1, 1, -1, 1]
    assert contradictory == ("b",)


def test_a_log_is_shown_in_one_line_whatever_its_size() -> None:
    log = population("math", problems=4, candidates=20, seed=1)
    assert repr(log).startswith("<Log 'math population, seed 1': 4 problems, ")
    assert repr(log).endswith(", 80 candidates, score score>")
    assert repr(log.problems[0]).startswith("<LoggedProblem 'math-0000': 20 candidates, ")
