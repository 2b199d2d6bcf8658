"""Every example in a docstring of the package is run."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import grv

PACKAGE = Path(grv.__file__).parent
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text("utf-8")]


def module_name(path: Path) -> str:
    parts = [part for part in path.relative_to(PACKAGE).with_suffix("").parts if part != "__init__"]
    return ".".join(["grv", *parts])


@pytest.mark.parametrize("name", [module_name(path) for path in FILES])
def test_the_examples_are_true_and_none_is_skipped(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__file__ is not None
    written = Path(module.__file__).read_text("utf-8").count(">>> ")

    result = doctest.testmod(module)

    assert result.failed == 0
    assert result.attempted == written


def test_the_modules_with_examples_are_found() -> None:
    names = set(map(module_name, FILES))

    assert {"grv.testing.worlds", "grv.policies.spec", "grv.text"} <= names
