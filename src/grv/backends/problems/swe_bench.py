"""Instances of SWE-bench and its relatives: an issue, a commit, and the tests that must pass.

An instance becomes a check of kind "repo". It needs a clone of its repository:
`REPOSITORIES/OWNER__NAME`. If it names an image, the tests run there (`--isolation podman`).
"""

from __future__ import annotations

import os
import re
from typing import Any

from ...core.errors import UsageError
from ...files import shown
from ..protocols import Problem
from ..verifiers.repo.diff_lines import UnreadableDiff
from ..verifiers.repo.diffs import read
from .prompts import filled
from .records import Converted, NotConverted, Record, Wanted, kept

PROMPT = (
    "{question}\n\nChange the repository so that this is resolved. Answer with one git diff, in a"
    " fence that begins with ```diff.\n"
)
REPOSITORIES = "repositories"  # the usual folder of clones
_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_TEST = re.compile(r"[^\s:]+\.py::\S.*")
_IMAGES = ("image", "image_name", "docker_image")
# Where the images of SWE-bench have the interpreter of the project.
_PYTHON = "/opt/miniconda3/envs/testbed/bin/python"


def swe_bench(record: Record, wanted: Wanted) -> Converted:
    """An instance."""
    name = record.text("instance_id")
    project = record.text("repo")
    if not _NAME.fullmatch(project) or ".." in project:
        raise UsageError(f"field repo must be OWNER/NAME, not {shown(project)}")
    parser = record.text("log_parser", "")
    if parser and "pytest" not in parser:
        raise NotConverted(f"its tests are read by {parser}")
    lists = {field: _tests(record, field.upper()) for field in ("fail_to_pass", "pass_to_pass")}
    test_patch = record.text("test_patch", "")
    check: dict[str, Any] = {
        "kind": "repo",
        "repository": _clone(project, wanted),
        "commit": record.text("base_commit"),
        "runner": "pytest",
        **lists,
        **_patch(test_patch),
    }
    image = next((record.text(field) for field in _IMAGES if record.data.get(field)), "")
    if image:
        check |= {"image": image, "command": [_PYTHON, "-m", "pytest"]}
    statement = record.text("problem_statement")
    prompt = filled(wanted.prompt or PROMPT, statement)
    problem = Problem(name, prompt, check, statement)
    notes = ["its eval_script: the tests run with pytest"] if record.data.get("eval_script") else []
    solutions = kept([record.data.get("patch")])
    return Converted(problem, _difficulty(record), solutions, tuple(notes))


def _difficulty(record: Record) -> str | None:
    value = record.data.get("difficulty")
    return value if isinstance(value, str) and value else None


def _tests(record: Record, name: str) -> list[str]:
    """A list of tests, which may be JSON in a text."""
    found = record.parsed(name)
    if not isinstance(found, list) or not all(isinstance(test, str) for test in found):
        raise UsageError(f"field {name} must be a list of tests, not {shown(found)}")
    others = [test for test in found if not _TEST.fullmatch(test)]
    if others:
        raise NotConverted("tests that pytest does not name")
    return found


def _clone(project: str, wanted: Wanted) -> str:
    folder = wanted.repositories or REPOSITORIES
    place = os.path.join(folder, project.replace("/", "__"))
    if not os.path.isdir(place):
        raise NotConverted(f"no clone of {project} in {folder}/{project.replace('/', '__')}")
    return place


def _patch(test_patch: str) -> dict[str, Any]:
    """The tests that an instance adds. All of their files are protected."""
    if not test_patch.strip():
        return {}
    try:
        changes = read(test_patch).changes
    except UnreadableDiff as exc:
        raise NotConverted(f"a test_patch that cannot be read: {exc}") from None
    paths = [path for change in changes for path in (change.old, change.new) if path is not None]
    return {"test_patch": test_patch, "protect": list(dict.fromkeys(paths))}
