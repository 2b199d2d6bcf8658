"""Prompts from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from grv.backends.problems.prompts import Prompts
from grv.backends.protocols import Problem
from grv.core.errors import UsageError

STDIN = Problem("s", "old", {"kind": "stdin"}, "Add {x}.")
FUNCTION = Problem("f", "old", {"kind": "function"}, "Add.", "def add(a, b):")


def written(folder: Path, text: str) -> str:
    path = folder / "prompts.toml"
    path.write_text(text)
    return str(path)


def test_one_template_serves_all_problems(tmp_path: Path) -> None:
    path = written(tmp_path, "stop = ['Q:']\nprompt = 'Q: 1?\\boxed{1} Q: {question} A:'\n")
    prompts = Prompts.load(path)

    assert prompts.stop == ("Q:",)
    assert prompts.of(STDIN).prompt == "Q: 1?\\boxed{1} Q: Add {x}. A:"
    assert prompts.of(FUNCTION).prompt == "Q: 1?\\boxed{1} Q: Add. A:"
    assert prompts.of(STDIN).check == STDIN.check


def test_each_kind_of_check_may_have_its_template(tmp_path: Path) -> None:
    path = written(tmp_path, "[prompts]\nfunction = '{question} {code}'\n")
    prompts = Prompts.load(path)

    assert prompts.of(FUNCTION).prompt == "Add. def add(a, b):"
    with pytest.raises(UsageError, match="no prompt for problem 's', whose check is 'stdin'"):
        prompts.of(STDIN)


def test_a_problem_without_a_question_is_refused(tmp_path: Path) -> None:
    prompts = Prompts.load(written(tmp_path, "prompt = '{question}'\n"))
    with pytest.raises(UsageError, match="problem 'p' has no question; write the file"):
        prompts.of(Problem("p", "old", {"kind": "stdin"}))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stop = ['x']", "there is no prompt"),
        ("prompt = 'no place'", "a prompt is text with {question} in it"),
        ("prompt = 3", "a prompt is text with {question} in it"),
        ("prompts = 3", "prompts must be a table"),
        ("prompt = '{question}'\nstop = 'x'", "stop must be a list of texts"),
        ("prompt = '{question}'\nstop = ['']", "stop must be a list of texts"),
        ("prompt = '{question}'\nstops = ['x']", "unknown stops"),
    ],
)
def test_a_mistake_in_the_file_is_said_in_one_line(text: str, words: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        Prompts.load(path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(path)
    assert "\n" not in str(caught.value)
