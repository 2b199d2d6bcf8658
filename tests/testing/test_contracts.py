"""The contract must be able to fail: each of these policies breaks it, and is caught."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.errors import Flaky

from grv.core.errors import GrvError, PolicyError, UsageError
from grv.core.pool import Pool
from grv.core.search import Policy
from grv.core.values import CandidateId, Costs, Generate, Step, Verdict, Verify
from grv.policies import POLICIES, Threshold
from grv.testing.contracts import PolicyContract


def broken_promises(bad: Policy) -> dict[str, type[BaseException]]:
    """The tests of the contract that the policy fails, and how."""

    class Bad(PolicyContract):
        policy = bad

    failures: dict[str, type[BaseException]] = {}
    for name in dir(Bad):
        if name.startswith("test_"):
            try:
                getattr(Bad(), name)()
            except pytest.skip.Exception:
                pass
            except (AssertionError, GrvError, Flaky, KeyError, IndexError) as error:
                failures[name.removeprefix("test_")] = type(error)
    return failures
