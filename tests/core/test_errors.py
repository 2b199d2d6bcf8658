"""The tree of errors is the one that its docstring draws."""

from __future__ import annotations

import inspect

import pytest

from grv.core import errors
from grv.core.errors import BackendError, GrvError, LedgerError, LogError, UsageError


def drawn(text: str) -> dict[str, str]:
    """Each name in the drawing, and the name it hangs from."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in text.splitlines():
        name = line.lstrip("│├└─ ")
        if not name.isidentifier():
            continue
        depth = (len(line) - len(name)) // 4
        path[depth:] = [name]
        if depth:
            parents[name] = path[depth - 1]
    return parents


def test_the_drawn_tree_is_the_tree_of_classes() -> None:
    classes = {
        name: cls.__mro__[1].__name__
        for name, cls in inspect.getmembers(errors, inspect.isclass)
        if cls.__module__ == errors.__name__ and cls is not GrvError
    }

    assert errors.__doc__ is not None
    assert drawn(errors.__doc__) == classes


def test_every_error_says_what_it_means() -> None:
    for _, cls in inspect.getmembers(errors, inspect.isclass):
        assert cls.__doc__


def test_the_callers_mistake_is_also_a_value_error() -> None:
    assert issubclass(UsageError, ValueError)


def test_a_backend_error_says_who_failed_at_what_and_when_to_try_again() -> None:
    error = BackendError("no answer", backend="openai", problem_id="two-sum", retry_after=2.5)

    assert str(error) == "no answer"
    assert (error.backend, error.problem_id, error.retry_after) == ("openai", "two-sum", 2.5)


def test_a_ledger_error_says_where() -> None:
    error = LedgerError("cannot be read", path="runs.db", entry=7)

    assert str(error) == "cannot be read"
    assert (error.path, error.entry) == ("runs.db", 7)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (LogError("no score"), "no score"),
        (LogError("no score", path="a.jsonl"), "a.jsonl: no score"),
        (LogError("no score", path="a.jsonl", line=3), "a.jsonl:3: no score"),
    ],
)
def test_a_log_error_starts_with_the_place_as_compilers_write_it(
    error: LogError, message: str
) -> None:
    assert str(error) == message


def test_a_log_error_keeps_its_parts() -> None:
    error = LogError("no score", path="a.jsonl", line=3, problem_id="p1")

    assert (error.path, error.line, error.problem_id) == ("a.jsonl", 3, "p1")
