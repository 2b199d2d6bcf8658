"""The public names: about twenty in `grv`, and a door for each other notion."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import grv
from grv.policies import POLICIES

ROOT = Path(__file__).parents[2]
DOORS = [importlib.import_module(f"grv.{name}") for name in grv.DOORS]
# Those whose classes users make, give and catch: each has a docstring with an example.
TAUGHT = [grv, grv.generators, grv.scorers, grv.verifiers, grv.policies, grv.prices]


def in_groups(names: list[str]) -> list[str]:
    """The names as they are listed: constants, classes, functions."""
    groups = [
        [name for name in names if name.isupper()],
        [name for name in names if not name.isupper() and name[0].isupper()],
        [name for name in names if name.islower()],
    ]
    return [name for group in groups for name in sorted(group)]


def test_the_names_of_grv_are_few() -> None:
    assert 15 <= len(grv.__all__) <= 25


@pytest.mark.parametrize("door", [grv, *DOORS], ids=lambda door: door.__name__)
def test_a_door_lists_its_names_in_groups_and_has_them(door: ModuleType) -> None:
    policies = [policy.__name__ for policy in POLICIES.values()] if door is grv.policies else []
    listed = [name for name in door.__all__ if name not in policies]

    assert listed == in_groups(listed)
    assert door.__all__ == [*listed, *policies]
    for name in door.__all__:
        assert getattr(door, name) is not None
        assert name in dir(door)
        if name not in ("CandidateId", "DEFAULT_ROWS", "POLICIES", "POPULATIONS"):
            assert getattr(door, name).__doc__
    assert door.__doc__


def test_every_name_has_one_door() -> None:
    owners: dict[str, list[str]] = {}
    for door in [grv, *DOORS]:
        for name in door.__all__:
            owners.setdefault(name, []).append(door.__name__)

    assert {name: doors for name, doors in owners.items() if len(doors) > 1} == {}


def test_no_name_of_a_door_is_the_name_of_one_of_its_modules() -> None:
    for door in [grv, *DOORS]:
        assert door.__file__ is not None
        folder = Path(door.__file__).parent
        if Path(door.__file__).name == "__init__.py":
            modules = {path.stem for path in folder.iterdir()}
            assert not modules & set(door.__all__)


@pytest.mark.slow
def test_every_public_name_can_be_imported_by_a_star() -> None:
    code = "from grv import *; import grv; assert all(name in globals() for name in grv.__all__)"

    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'grv' has no attribute 'Adaptiv'$"):
        grv.Adaptiv  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'grv\.ledger' has no attribute 'Ledgr'"):
        grv.ledger.Ledgr  # noqa: B018


def test_a_name_behind_a_door_is_pointed_to() -> None:
    with pytest.raises(AttributeError, match=r"'Balanced'; write grv\.policies\.Balanced"):
        grv.Balanced  # noqa: B018


def test_the_version_has_three_parts() -> None:
    assert len(grv.__version__.split(".")) == 3


# They need files that are not part of the package.
NOT_SHOWN = {"Embedded", "TrainedModel"}


@pytest.mark.parametrize("door", TAUGHT, ids=lambda door: door.__name__)
def test_a_public_class_has_an_example(door: ModuleType) -> None:
    for name in door.__all__:
        found = getattr(door, name)
        if isinstance(found, type) and not issubclass(found, Exception) and name not in NOT_SHOWN:
            assert ">>> " in (found.__doc__ or ""), f"{door.__name__}.{name}"


@pytest.mark.parametrize("door", [grv.generators, grv.scorers, grv.policies])
def test_a_class_that_users_choose_says_when(door: ModuleType) -> None:
    for name in door.__all__:
        found = getattr(door, name)
        if isinstance(found, type) and not name.endswith(("Options", "Error", "Model")):
            if name in ("Generator", "Scorer", "Score", "Sampling", "Policy", "Pool", "Hedged"):
                continue
            assert re.search(r"Choose\s+it", found.__doc__ or ""), name


def test_the_help_of_grv_names_every_door() -> None:
    for door in grv.DOORS:
        assert f"grv.{door}" in (grv.__doc__ or ""), door


FENCE = re.compile(r"^( *)```(?:python|text)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
IMPORT = re.compile(r"^\s*(?:from|import)\s+(grv(?:\.\w+)+)", re.MULTILINE)


def shown_code(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    if path.suffix == ".md":
        return "\n".join(content for _, content in FENCE.findall(text))
    return text


def test_no_document_or_example_imports_from_deeper_than_a_door() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").iterdir()]
    checked = 0
    for path in pages:
        if path.suffix not in (".md", ".py", ".ipynb"):
            continue
        for module in IMPORT.findall(shown_code(path)):
            # A page about adding a backend tests a file that no door lists.
            if path.name.startswith("add-a") and module.startswith("grv.backends."):
                continue
            checked += 1
            if module.startswith("grv.adapters."):  # each adapter is a door of its own
                assert module.count(".") == 2, f"{path}: {module}"
                continue
            assert module.count(".") == 1, f"{path}: {module}"
            assert module.partition(".")[2] in grv.DOORS, f"{path}: {module}"
    assert checked > 15


def test_what_documents_import_is_listed_by_its_door() -> None:
    for path in [*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.py")]:
        if path.name.startswith("add-a"):
            continue
        for line in re.findall(r"^from grv(?:\.\w+)? import [\w, ]+$", shown_code(path), re.M):
            (statement,) = ast.parse(line).body
            assert isinstance(statement, ast.ImportFrom)
            assert statement.module is not None
            listed = importlib.import_module(statement.module).__all__
            assert {alias.name for alias in statement.names} <= {*listed}, f"{path}: {line}"
