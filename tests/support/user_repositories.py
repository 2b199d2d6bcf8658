"""Small git repositories for tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_WHO = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(folder: Path, *arguments: str) -> str:
    """What git prints, in a folder."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, **_WHO},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def make_repository(folder: Path, files: Mapping[str, str]) -> Path:
    """A new repository with one commit of these files."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=first")
    return folder


def state_of(folder: Path) -> dict[str, object]:
    """Everything of a repository that attempts must not change: files, index, branches, settings.

    Branches `grv/...` and the ledger of attempts are left out.
    """
    files = {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }
    private = folder / ".git"
    return {
        "files": files,
        "head": (private / "HEAD").read_bytes(),
        "config": (private / "config").read_bytes(),
        "staged": git(folder, "diff", "--cached", "--binary"),
        "references": [
            line
            for line in git(folder, "for-each-ref").splitlines()
            if "refs/heads/grv/" not in line
        ],
        "hooks": sorted(path.name for path in (private / "hooks").glob("*")),
        "worktrees": git(folder, "worktree", "list"),
    }
