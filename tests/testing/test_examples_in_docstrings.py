"""The examples in docstrings are run."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from grv.policies import spec
from grv.testing import drivers, worlds


@pytest.mark.parametrize("module", [spec, drivers, worlds], ids=lambda module: module.__name__)
def test_the_examples_are_true(module: ModuleType) -> None:
    result = doctest.testmod(module)

    assert result.attempted > 0
    assert result.failed == 0
