"""The table of the paper's statements agrees with the code and the tests."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(
    r"^\| ([A-Z][a-z]+ \w\.\d) \| [^|]+ \| `([\w.]+)` \| `([\w/]+\.py)` \|$", re.MULTILINE
)
ROWS = ROW.findall((ROOT / "docs/theory/README.md").read_text())
KINDS = {
    "Definition": ["2.1", "2.2", "3.1", "6.1", "D.1", "D.3", "D.4", "D.5"],
    "Theorem": ["3.2", "4.2", "6.2", "6.3", "D.6"],
    "Assumption": ["4.1"],
    "Remark": ["4.3", "6.4", "D.7"],
    "Lemma": ["B.1", "B.2", *(f"C.{i}" for i in range(1, 9)), "D.8", "D.9"],
    "Corollary": ["D.2"],
}


def test_every_statement_is_listed_once_in_order() -> None:
    names = [f"{kind} {number}" for kind, numbers in KINDS.items() for number in numbers]

    assert [name for name, _, _ in ROWS] == sorted(names, key=lambda name: name.split()[1])


@pytest.mark.parametrize(("name", "function", "test"), ROWS)
def test_its_function_cites_it_and_its_test_uses_the_function(
    name: str, function: str, test: str
) -> None:
    module, _, attribute = function.rpartition(".")
    found = getattr(importlib.import_module(f"grv.{module}"), attribute)

    assert callable(found)
    assert re.search(rf"\b{re.escape(name.split()[1])}\b", found.__doc__ or ""), name
    assert re.search(rf"\b{attribute}\(", (ROOT / "tests" / test).read_text()), name
