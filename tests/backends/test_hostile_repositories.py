"""Git data that somebody else wrote starts no program when grv reads, copies or changes it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from grv.backends.generators.command import source_of
from grv.backends.generators.run_folders import Source, run_folder
from grv.backends.git import UserRepository
from grv.backends.protocols import Problem
from grv.backends.verifiers.repo import git as reading
from grv.backends.verifiers.repo.git import Repository
from grv.core.errors import UsageError

MISSING = "1" * 40
MODULE = "2" * 40


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().strip()


def repository(folder: Path, module: str = "") -> Path:
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "a.py").write_text("a = 1\n")
    (folder / ".gitattributes").write_text("*.py filter=evil diff=evil\n")
    git(folder, "add", "--all")
    if module:
        git(folder, "update-index", "--add", "--cacheinfo", f"160000,{MODULE},{module}")
    git(folder, "commit", "--quiet", "--message=one")
    return folder


def spy(folder: Path) -> Path:
    """A program that leaves a file beside itself if it is started."""
    program = folder / "spy"
    program.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{folder}/started'\ncat\n")
    program.chmod(0o755)
    return program


def started(folder: Path) -> str:
    path = folder / "started"
    return path.read_text() if path.exists() else ""


def make_hostile(target: Path, program: Path) -> None:
    for name in ("diff.evil.textconv", "diff.external", "gpg.program", "core.pager"):
        git(target, "config", name, f"{program} {name}")
    for name in ("clean", "smudge"):
        git(target, "config", f"filter.evil.{name}", f"{program} {name}")
    git(target, "config", "filter.evil.required", "true")
    git(target, "config", "log.showSignature", "true")
    for name in ("post-index-change", "reference-transaction", "post-checkout", "post-commit"):
        hook = target / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_bytes(program.read_bytes())
        hook.chmod(0o755)
    os.utime(target / "a.py", (1, 1))  # git compares contents where times differ


@pytest.mark.slow
@pytest.mark.parametrize("monitor", [False, True])
def test_the_configuration_of_a_repository_starts_nothing(tmp_path: Path, monitor: bool) -> None:
    target = repository(tmp_path / "there")
    make_hostile(target, spy(tmp_path))
    if monitor:
        git(target, "config", "core.fsmonitor", f"{tmp_path}/spy monitor")
    found = UserRepository.around(target)
    commit = found.commit()
    assert found.changed() == []
    with run_folder(Source(found.folder, commit)) as folder:
        (folder.tree / "a.py").write_text("a = 2\n")
        diff = folder.diff()
    assert found.keep(diff, commit, "grv/x/1", "one more") == "grv/x/1"
    found.apply(diff)
    assert started(tmp_path) == ""
    assert (target / "a.py").read_text() == "a = 2\n"
    assert found.changed() == ["a.py"]


def test_a_filter_that_cannot_be_switched_off_is_refused(tmp_path: Path) -> None:
    target = repository(tmp_path / "there")
    git(target, "config", "filter.a=b.clean", f"{spy(tmp_path)} clean")
    with pytest.raises(UsageError, match="the name of a filter contains ="):
        UserRepository.around(target).changed()


def test_objects_that_are_missing_are_not_fetched(tmp_path: Path) -> None:
    target = repository(tmp_path / "there")
    program = spy(tmp_path)
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{program}",
        "protocol.ext.allow": "always",
    }.items():
        git(target, "config", name, value)
    with pytest.raises(UsageError, match="no such commit"):
        UserRepository.around(target).commit(MISSING)
    with pytest.raises(UsageError, match="has no commit"):
        Repository(str(target)).commit(MISSING)
    assert started(tmp_path) == ""


def test_git_data_of_an_agent_in_a_submodule_is_not_used(tmp_path: Path) -> None:
    target = repository(tmp_path / "there", module="lib[1]")
    program = spy(tmp_path)
    found = UserRepository.around(target)
    with run_folder(Source(found.folder, found.commit())) as folder:
        for name in ("lib[1]", "new"):
            own = folder.tree / name
            own.mkdir(exist_ok=True)
            git(own, "init", "--quiet")
            (own / "x").write_text("x\n")
            git(own, "add", "--all")
            git(own, "commit", "--quiet", "--message=x")
            git(own, "config", "core.fsmonitor", str(program))
        (folder.tree / "lib[1]" / ".git" / "HEAD").write_text(f"{MODULE}\n")
        (folder.tree / "a.py").write_text("a = 2\n")
        for _ in range(2):
            diff = folder.diff()
            assert "a = 2" in diff
            assert "lib[1]" not in diff
    assert started(tmp_path) == ""


def test_a_repository_does_not_name_another_one_as_its_files(tmp_path: Path) -> None:
    repository(tmp_path / "private")
    target = repository(tmp_path / "private" / "data")
    git(target, "config", "core.worktree", str(tmp_path / "private"))
    with pytest.raises(UsageError, match="its files are elsewhere"):
        UserRepository.around(target)


def _stored(folder: Path, *words: str, given: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, input=given.encode(), capture_output=True, check=True
    )
    return done.stdout.decode().strip()


@pytest.mark.timeout(120)
def test_a_billion_files_of_a_few_trees_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_MOST_PRINTED", 1 << 20)
    folder = tmp_path / "bomb"
    folder.mkdir()
    git(folder, "init", "--quiet")
    blob = _stored(folder, "hash-object", "-w", "--stdin", given="boom")
    tree = _stored(
        folder,
        "mktree",
        given="".join(f"100644 blob {blob}\tfile{number}\n" for number in range(10)),
    )
    for _ in range(9):
        inside = "".join(f"040000 tree {tree}\tfolder{number}\n" for number in range(10))
        tree = _stored(folder, "mktree", given=inside)
    commit = git(folder, "commit-tree", tree, "-m", "one")
    said = "more than 200,000 files, or more than 1 MB of names"
    with pytest.raises(UsageError, match=said):
        Repository(str(folder)).entries(commit)
    with pytest.raises(UsageError, match=said):
        source_of(Problem("p", check={"kind": "repo", "repository": str(folder), "commit": commit}))


def test_a_file_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_MOST_BYTES_OF_A_FILE", 1 << 20)
    folder = repository(tmp_path / "target")
    read = Repository(str(folder))
    large = [_stored(folder, "hash-object", "-w", "--stdin", given="a" * (1 << 20))]
    assert list(read.contents(large)) == [b"a" * (1 << 20)]
    large.append(_stored(folder, "hash-object", "-w", "--stdin", given="a" * (1 << 20) + "b"))
    with pytest.raises(UsageError, match="the commit has a file of more than 1 MB"):
        list(read.contents(large))
