"""The examples in docstrings of all modules are run."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import grv

SOURCE = Path(grv.__file__).parent
MODULES = sorted(
    ".".join(("grv", *path.relative_to(SOURCE).with_suffix("").parts))
    for path in SOURCE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_are_true(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))

    assert result.attempted > 0
    assert result.failed == 0
