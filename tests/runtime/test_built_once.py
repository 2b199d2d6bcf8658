"""A run makes its configuration, its backends and each search once; it tries each plan once."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any

import pytest

import grv
from grv.core.search import Search
from grv.runtime.config import SearchConfig, config_of
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


@pytest.mark.parametrize("names", [(), ("a", "b")])
@pytest.mark.parametrize("question", [False, True])
def test_the_id_of_a_search_is_the_hash_of_one_list_in_json(
    names: tuple[str, ...], question: bool
) -> None:
    about = {"é": [1, None], "b": {"z": 2, "a": 1.5}} | (
        {"score_question": True} if question else {}
    )
    config = config_of(options(*names) | {"policy": "default", "about": about})
    problem = grv.Problem(
        "p \ud800", 'say "é"', {"kind": "math", "labels": [1], "answer": "4"}, question="why"
    )
    check = {"kind": "math", "answer": "4"}
    content: list[Any] = [problem.id, problem.prompt, check, dict(config.identity)]
    text = json.dumps(content + ["why"] * question, sort_keys=True, default=str)
    hashed = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12)
    assert config.search_id(problem) == hashed.hexdigest()
