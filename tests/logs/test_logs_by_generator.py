"""Logs with the candidates of several generators."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grv.core.errors import LogError
from grv.logs.generators import read_generators

HEAD = "problem,candidate,passed,score,key,generator\n"
ROWS = ["p,0,1,.5,x,a", "p,1,0,.4,y,a", "p,0,0,.3,y,b", "q,0,1,.9,z,b", "q,7,0,.1,,a"]


def write(tmp_path: Path, *rows: str, head: str = HEAD) -> str:
    path = tmp_path / "log.csv"
    path.write_text(head + "\n".join(rows or ROWS) + "\n")
    return str(path)


def test_candidates_are_numbered_per_generator(tmp_path: Path) -> None:
    log = read_generators(write(tmp_path), ["b", "a"])
    assert log.generators == ("b", "a")
    p, q = log.problems
    assert p.generators is not None
    assert q.generators is not None
    assert p.generators.tolist() == [0, 1, 1]
    assert q.generators.tolist() == [0, 1]
    assert p.scores.tolist() == [0.3, 0.5, 0.4]


def test_keys_are_classes_of_all_generators(tmp_path: Path) -> None:
    p = read_generators(write(tmp_path)).problems[0]
    assert p.keys is not None
    assert p.keys[1] == p.keys[2] != p.keys[0]


def test_by_default_all_generators_are_read(tmp_path: Path) -> None:
    assert read_generators(write(tmp_path)).generators == ("a", "b")


def test_other_generators_are_left_out(tmp_path: Path) -> None:
    log = read_generators(write(tmp_path), ["a"])
    assert [len(problem) for problem in log.problems] == [2, 1]


def test_a_log_without_scores_is_fine(tmp_path: Path) -> None:
    path = write(tmp_path, "p,0,1,a", head="problem,candidate,passed,generator\n")
    assert read_generators(path).problems[0].scores.tolist() == [0.0]


@pytest.mark.parametrize(
    ("rows", "names", "words"),
    [
        (ROWS, ["c"], "no generator 'c'; there are a, b"),
        ([*ROWS, "p,1,1,.4,y,a"], [], "log.csv:7: candidate 1 of 'p' occurs twice"),
        ([*ROWS, "p,2,maybe,.4,y,a"], [], "log.csv:7: passed must be true or false"),
    ],
)
def test_mistakes_name_the_line(
    tmp_path: Path, rows: list[str], names: list[str], words: str
) -> None:
    with pytest.raises(LogError, match=re.escape(words)):
        read_generators(write(tmp_path, *rows), names)


def test_a_log_without_the_column_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "p,0,1,.5", head="problem,candidate,passed,score\n")
    with pytest.raises(LogError, match="no column 'generator'"):
        read_generators(path)
