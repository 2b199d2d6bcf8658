"""A release: what is written, what stops it, and that workflows run what the Makefile has."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from support.environments import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def load_release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release = load_release()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with the files that a release changes."""
    (tmp_path / "src" / "grv").mkdir(parents=True)
    (tmp_path / "src" / "grv" / "__init__.py").write_text('__version__ = "0.1.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## Unreleased\n\n### Added\n- A thing.\n"
    )
    (tmp_path / "CITATION.cff").write_text("title: grv\nversion: 0.1.0\nlicense: Apache-2.0\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "cite.md").write_text("  year = {2026},\n  version = {0.1.0},\n")
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    person = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    subprocess.run(["git", "-C", str(tmp_path), *person, "commit", "-qm", "First"], check=True)
    return tmp_path


def test_version_changelog_and_citation_are_written(tree: Path) -> None:
    release.write_version(tree, "0.2.0")
    release.write_changelog(tree / "CHANGELOG.md", "0.2.0", "2026-11-18")
    release.write_citation(tree, "0.2.0", "2026-11-18")
    release.write_citation(tree, "0.2.1", "2026-11-19")

    assert (tree / "src" / "grv" / "__init__.py").read_text() == '__version__ = "0.2.0"\n'
    assert (
        "## Unreleased\n\n## 0.2.0 - 2026-11-18\n\n### Added\n- A thing."
        in (tree / "CHANGELOG.md").read_text()
    )
    assert (tree / "CITATION.cff").read_text() == (
        "title: grv\nversion: 0.2.1\ndate-released: 2026-11-19\nlicense: Apache-2.0\n"
    )
    assert (tree / "docs" / "cite.md").read_text() == "  year = {2026},\n  version = {0.2.1},\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "reason"),
    [("0.1.0", "not later than 0.1.0"), ("0.0.9", "not later"), ("1.0", "three numbers")],
)
def test_a_version_that_is_not_later_is_refused(tree: Path, version: str, reason: str) -> None:
    with pytest.raises(release.NotReleased, match=reason):
        release.release(tree, version, "2026-11-18")


def test_a_tree_with_changes_is_refused_and_stays_as_it_is(tree: Path) -> None:
    (tree / "CITATION.cff").write_text("changed\n")

    with pytest.raises(release.NotReleased, match="the work tree has changes"):
        release.release(tree, "0.2.0", "2026-11-18")

    assert (tree / "CITATION.cff").read_text() == "changed\n"


def test_a_changelog_without_entries_is_refused(tree: Path) -> None:
    (tree / "CHANGELOG.md").write_text("## Unreleased\n\n## 0.1.0 - 2025-01-01\n- Old.\n")

    with pytest.raises(release.NotReleased, match="no entries under Unreleased"):
        release.write_changelog(tree / "CHANGELOG.md", "0.2.0", "2026-11-18")


def test_the_pages_have_what_a_release_tries() -> None:
    example, table = release.shown_first(ROOT)

    assert "grv.solve_now(" in example
    assert table.startswith("policy ")


@pytest.mark.slow
def test_two_builds_are_equal(tmp_path: Path) -> None:
    # The lines of this file that git knows: an export of HEAD has its own history.
    if not (ROOT / ".git").exists():
        pytest.skip("no repository")

    built = release.build_twice(ROOT, tmp_path)

    assert sorted(file.suffix for file in built) == [".gz", ".whl"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_targets_that_exist_with_few_rights(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert "timeout-minutes" in job
        for step in job["steps"]:
            command = step.get("run", "")
            # What comes from outside reaches a shell as a variable, never as text of the script.
            assert "${{" not in command
            for target in re.findall(r"^make (\w+)", command, re.MULTILINE):
                assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.slow
def test_workflows_and_the_action_are_valid() -> None:
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
    for schema, paths in (
        ("vendor.github-workflows", WORKFLOWS),
        ("vendor.github-actions", [ROOT / "action.yml"]),
    ):
        subprocess.run([*command, schema, *map(str, paths)], check=True)
