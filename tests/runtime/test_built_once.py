"""A run makes its configuration, its backends and each search once; it tries each plan once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import grv
from grv.core.search import Search
from grv.runtime.config import SearchConfig
from grv.runtime.executor import Backends


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many objects of each class were made."""
    counts: Counter[str] = Counter()
    for kind in (Backends, SearchConfig, Search):
        _count(kind, counts, monkeypatch)
    return counts


def _count(kind: type, counts: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    make = kind.__init__  # type: ignore[misc]

    def counted(self: Any, *given: Any, **named: Any) -> None:
        counts[kind.__name__] += 1
        make(self, *given, **named)

    monkeypatch.setattr(kind, "__init__", counted)


def options(*names: str) -> dict[str, Any]:
    texts = iter(f"text {number}" for number in range(1000))

    def generate(problem: grv.Problem) -> str:
        return next(texts)

    how: dict[str, Any] = {"scorer": lambda problem, text: 0.0, "budget": 1000.0}
    how["verifier"] = lambda problem, text: text.endswith("5")
    if not names:
        return how | {"generator": generate}
    costs = dict.fromkeys(names, grv.Costs(1, 10))
    return how | {"generator": dict.fromkeys(names, generate), "costs": costs}


def test_one_generator(built: Counter[str]) -> None:
    assert grv.solve_now("a problem", **options(), policy="default").verified
    assert built == {"Backends": 1, "SearchConfig": 1, "Search": 2}


def test_a_policy_that_learns_decides_each_search(built: Counter[str]) -> None:
    """Its configuration is made again once, with the policy that was chosen."""
    assert grv.solve_now("a problem", **options(), policy="learning").verified
    assert built == {"Backends": 1, "SearchConfig": 2, "Search": 2}


def test_several_generators(built: Counter[str]) -> None:
    assert grv.solve_now("a problem", **options("a", "b"), policy="default").verified
    assert built == {"Backends": 2, "SearchConfig": 1, "Search": 4}
