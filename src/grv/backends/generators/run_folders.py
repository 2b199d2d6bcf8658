"""Folders in which agents work: a fresh copy of a commit, or an empty folder.

A copy shares no state with the repository it was made from, nor with another copy. It has its own
index, branches, configuration and no hooks; it only reads the objects of the original. What an
agent does to its copy's git data does not count: the diff is computed with git data of our own,
beside the folder that the agent works in.

A run folder is removed when its run ends. If the process is killed first, the next one that makes a
run folder removes it: the folder is locked while its owner lives.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..git import SUBMODULE, UserRepository, git
from ..sandbox import scratch
from .containers import remove_container

PREFIX = "grv-run-"  # of the folders that `sweep` removes
_NEW = "grv-new-"  # of those that have no lock yet
_KEPT = "grv-kept-"  # of those that stay
_STALE_SECONDS = 3600.0
# What tools leave behind, also where no .gitignore names it. It is in no diff.
_LEFT_BEHIND = ("__pycache__/", "*.py[co]", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/")
BRANCH = "attempt"  # the branch that an agent finds itself on


@dataclass(frozen=True)
class Source:
    """What a run folder is a copy of.

    Attributes:
        repository: the top of the working tree of a repository.
        commit: the id of a commit.
    """

    repository: str
    commit: str


@dataclass(frozen=True)
class RunFolder:
    """A folder for one run of an agent.

    Attributes:
        folder: has everything of the run.
        source: what the tree is a copy of; None if it was empty.
    """

    folder: Path
    source: Source | None

    @property
    def tree(self) -> Path:
        """The folder that the agent works in."""
        return self.folder / "tree"

    def file(self, name: str) -> Path:
        """A file beside the tree: the task, the cost, the answer."""
        return self.folder / "files" / name

    def diff(self) -> str:
        """What the tree has become, as a diff of git against the commit.

        Files that the tree's `.gitignore` names are no part of it. A diff that is not UTF-8 is
        written in git's binary form, whose characters are plain. Submodules are left as they are:
        git would look into them with settings that the agent may have written there.
        """
        assert self.source is not None
        paths = b"\0".join([b".", *self._not_submodules()])
        self._git("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul", given=paths)
        found = self._difference(self.source.commit)
        try:
            return found.decode("utf-8")
        except UnicodeDecodeError:
            attributes = self.folder / "git" / "info" / "attributes"
            attributes.parent.mkdir(exist_ok=True)
            attributes.write_text("* -diff\n", encoding="ascii")
            return self._difference(self.source.commit).decode("ascii")

    def _not_submodules(self) -> list[bytes]:
        """Path patterns that leave out the submodules of the index."""
        listed = self._git("ls-files", "--stage", "-z").split(b"\0")
        paths = [line.partition(b"\t")[2] for line in listed if line.startswith(SUBMODULE)]
        return [b":(exclude,top,literal)" + path for path in paths]

    def _difference(self, commit: str) -> bytes:
        plain = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
        return self._git("diff", "--cached", "--binary", "--full-index", *plain, commit, "--")

    def _git(self, *arguments: str, given: bytes = b"") -> bytes:
        places = self._places
        return git(*arguments, folder=self.tree, apart=True, variables=places, given=given)

    @property
    def _places(self) -> dict[str, str]:
        return {
            "GIT_DIR": str(self.folder / "git"),
            "GIT_WORK_TREE": str(self.tree),
            "GIT_INDEX_FILE": str(self.folder / "git" / "index"),
        }

    def fill(self, source: Source) -> None:
        """Put the files of the commit into the tree, with git data for us and for the agent."""
        repository = UserRepository(source.repository)
        hashes = f"--object-format={repository.object_format}"
        quiet = ("--quiet", "--template=", hashes)
        git("init", *quiet, "--bare", "git", folder=self.folder, apart=True)
        repository.lend_objects(self.folder / "git")
        exclude = self.folder / "git" / "info" / "exclude"
        exclude.parent.mkdir(exist_ok=True)
        exclude.write_text("".join(f"{pattern}\n" for pattern in _LEFT_BEHIND), encoding="ascii")
        self._git("read-tree", source.commit)
        self._git("checkout-index", "--all", "--force", "--quiet", "--index")
        git("init", *quiet, "tree", folder=self.folder, apart=True)
        own = self.tree / ".git"
        repository.lend_objects(own)
        shutil.copyfile(self.folder / "git" / "index", own / "index")
        for arguments in (
            ("config", "core.hooksPath", os.devnull),
            ("symbolic-ref", "HEAD", f"refs/heads/{BRANCH}"),
            ("update-ref", f"refs/heads/{BRANCH}", source.commit),
        ):
            git(*arguments, folder=self.tree, apart=True)


@contextmanager
def run_folder(source: Source | None, *, keep: bool = False) -> Iterator[RunFolder]:
    """A new run folder, which is removed at the end unless it is to be kept."""
    _sweep_once(os.getpid())
    new = Path(tempfile.mkdtemp(prefix=_NEW))
    lock = os.open(new, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = new.with_name(new.name.replace(_NEW, PREFIX, 1))
        new.rename(folder)
        made = RunFolder(folder, source)
        made.tree.mkdir()
        made.file("").mkdir()
        try:
            if source is not None:
                made.fill(source)
            yield made
        finally:
            if keep:
                remove_container(folder)
                folder.rename(kept_folder(made))
            else:
                remove(folder)
    finally:
        os.close(lock)


def kept_folder(made: RunFolder) -> Path:
    """Where a run folder is at the end of its run, if it is kept."""
    return made.folder.with_name(made.folder.name.replace(PREFIX, _KEPT, 1))


def remove(folder: Path) -> None:
    """Remove a folder with whatever is in it, and end its container if it has one."""
    remove_container(folder)
    with contextlib.suppress(OSError):
        scratch.empty(str(folder))
        folder.rmdir()


@functools.cache
def _sweep_once(process: int) -> None:
    sweep()


def sweep() -> None:
    """Remove the run folders of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.lstat().st_uid != os.getuid():
                continue
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if its owner lives
                remove(folder)
            finally:
                os.close(descriptor)
    for folder in Path(tempfile.gettempdir()).glob(f"{_NEW}*"):
        with contextlib.suppress(OSError):
            state = folder.lstat()
            if state.st_uid == os.getuid() and time.time() - state.st_mtime > _STALE_SECONDS:
                folder.rmdir()  # it is empty
