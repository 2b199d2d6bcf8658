"""Scores of diffs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from grv import Draft, Problem, UsageError
from grv.backends.scorers.diffs import MEASURES, DiffScorer
from support.repositories import PRICES, RIGHT, diff, make_repository

DIFF = diff({"shop/prices.py": RIGHT})


def scores(measure: str, problem: Problem, *texts: str) -> list[float | None]:
    found = asyncio.run(DiffScorer(measure).score(problem, [Draft(text) for text in texts]))
    return [score.value for score in found]


def test_smaller_diffs_are_better() -> None:
    larger = diff({"shop/prices.py": RIGHT, "shop/new.py": "a = 1\nb = 2\n"})
    assert scores("size", Problem("p"), DIFF, larger, "prose") == [-2.0, -4.0, None]
    assert scores("files", Problem("p"), DIFF, larger, "") == [-1.0, -2.0, None]


def test_diffs_that_touch_tests_are_worse() -> None:
    touches = diff({"shop/prices.py": RIGHT, "tests/test_new.py": "x = 1\n"})
    assert scores("tests", Problem("p"), DIFF, touches) == [1.0, 0.0]


def test_diffs_that_fit_and_can_be_parsed_are_better(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_repository(tmp_path / "shop", modules=0)
    problem = Problem("p", check={"kind": "repo", "repository": "shop"})
    other = diff({"shop/prices.py": RIGHT}, {"shop/prices.py": "x = 1\n"})
    broken = diff({"shop/prices.py": PRICES.replace("def total", "def total(")})
    protected = diff({"conftest.py": "x = 1\n"})
    texts = (DIFF, broken, other, protected)
    assert scores("applies", problem, *texts) == [1.0, 1.0, 0.0, 0.0]
    assert scores("compiles", problem, *texts) == [1.0, 0.0, 0.0, 0.0]


def test_a_repository_elsewhere_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    make_repository(tmp_path / "shop", modules=0)
    monkeypatch.chdir(tmp_path / "here")
    problem = Problem("p", check={"kind": "repo", "repository": "../shop"})
    assert scores("applies", problem, DIFF) == [None]


@pytest.mark.parametrize("measure", MEASURES)
def test_a_strange_text_has_no_score_and_spoils_no_other(measure: str) -> None:
    strange = ("", "\0", "@@ -1 +1 @@\n", "--- a\n+++ b\n@@ -1 +1 @@\n", "\ud800", "```", DIFF)
    found = scores(measure, Problem("p"), *strange)
    assert found[:-1] == [None] * (len(strange) - 1)
    assert (found[-1] is None) == (measure in ("applies", "compiles"))


def test_an_unknown_measure_is_named() -> None:
    with pytest.raises(UsageError, match=", ".join(MEASURES)):
        DiffScorer("beauty")
