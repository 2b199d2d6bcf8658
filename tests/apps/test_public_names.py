"""The public names: sorted, all there, loaded when asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import grv
from grv.policies import POLICIES


def test_the_public_names_are_sorted_constants_classes_functions_and_policies() -> None:
    policies = [policy.__name__ for policy in POLICIES.values()]
    others = grv.__all__[: -len(policies)]
    groups = [
        [name for name in others if name.isupper()],
        [name for name in others if not name.isupper() and name[0].isupper()],
        [name for name in others if name.islower()],
    ]

    assert grv.__all__[-len(policies) :] == policies
    assert others == [name for group in groups for name in sorted(group)]
    assert len(set(grv.__all__)) == len(grv.__all__)


@pytest.mark.parametrize("name", grv.__all__)
def test_every_public_name_can_be_had(name: str) -> None:
    assert getattr(grv, name) is not None
    assert name in dir(grv)


def test_every_public_name_can_be_imported_by_a_star() -> None:
    code = "from grv import *; import grv; assert all(name in globals() for name in grv.__all__)"

    subprocess.run([sys.executable, "-c", code], check=True)


def test_everything_public_says_what_it_is() -> None:
    for name in grv.__all__:
        if name not in ("CandidateId", "DEFAULT_ROWS"):
            assert getattr(grv, name).__doc__


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'grv' has no attribute 'Adaptiv'"):
        grv.Adaptiv  # noqa: B018


def test_the_version_has_three_parts() -> None:
    assert len(grv.__version__.split(".")) == 3
