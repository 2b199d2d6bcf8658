"""The table of the paper's statements names functions and tests that exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(
    r"^\| ([A-Z][a-z]+ \w\.\d) \| [^|]+ \| `([\w.]+)` \| `(\w+\.py)` \|$", re.MULTILINE
)
ROWS = ROW.findall((ROOT / "docs/theory/README.md").read_text())


def test_every_statement_is_listed_once() -> None:
    numbers = [name.split()[1] for name, _, _ in ROWS]
    counts = {"2": 2, "3": 2, "4": 3, "6": 4, "B": 2, "C": 8, "D": 9}

    assert numbers == [f"{part}.{i + 1}" for part, count in counts.items() for i in range(count)]


@pytest.mark.parametrize(("name", "function", "test"), ROWS)
def test_its_function_and_its_test_exist(name: str, function: str, test: str) -> None:
    module, _, attribute = function.rpartition(".")

    assert callable(getattr(importlib.import_module(f"grv.theory.{module}"), attribute)), name
    assert module.rpartition(".")[2] in (ROOT / "tests/theory" / test).read_text()
