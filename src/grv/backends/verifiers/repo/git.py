"""Reads a commit of a repository, as data.

Only plumbing commands of git run (`rev-parse`, `ls-tree`, `cat-file`), and they run nothing that a
repository names: no hook, no filter, no file-system monitor, no submodule, no download. Contents
are taken as they are stored; attributes and line endings do not change them.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ....core.errors import UsageError
from ....files import shown
from ...git import SWITCHED_OFF, environment

_SECONDS = 600.0
_MOST_ENTRIES = 200_000
_MOST_BYTES = 4 << 30
_MOST_BYTES_OF_A_FILE = 512 << 20  # it is in memory
_MOST_PRINTED = 64 << 20  # bytes of a list of files
# What a user may have set, and what does not count here either.
_NO_FILES = ("-c", "core.attributesFile=/dev/null", "-c", "core.excludesFile=/dev/null")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file of a commit: its mode, as git writes it, and the name of its content."""

    mode: str
    blob: str


class Repository:
    """A repository in a folder, or a bare one.

    Raises:
        UsageError: there is none, or git is missing.
    """

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder).resolve()
        if (self.folder / ".git").exists():
            self._where = ["-C", str(self.folder)]
        elif (self.folder / "HEAD").is_file() and (self.folder / "objects").is_dir():
            self._where = [f"--git-dir={self.folder}"]
        else:
            raise UsageError(f"repository {shown(folder)} is no git repository")

    def commit(self, name: str) -> str:
        """The full name of a commit."""
        if not name or name.startswith("-") or "\0" in name:
            raise UsageError(f"commit must name a commit, not {shown(name)}")
        try:
            found = self._ask("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip()
        except UsageError as error:
            said = f": {error}" if str(error) else ""
            raise UsageError(f"the repository has no commit {shown(name)}{said}") from None
        if not _COMMIT.fullmatch(found):
            raise UsageError(f"the repository has no commit {shown(name)}")
        return found

    @property
    def common_folder(self) -> Path:
        """Where git keeps its objects: elsewhere, if this is a worktree of another one."""
        found = self._ask("rev-parse", "--git-common-dir").rstrip("\n")
        return (self.folder / found).resolve()

    def entries(self, commit: str) -> dict[str, TreeEntry]:
        """The files of a commit by path."""
        listing = self._run("ls-tree", "-r", "-z", "--full-tree", commit)
        found: dict[str, TreeEntry] = {}
        for line in listing.split(b"\0")[:-1]:
            about, _, path = line.partition(b"\t")
            mode, _, blob = about.decode().split()
            found[path.decode("utf-8", "surrogateescape")] = TreeEntry(mode, blob)
            if len(found) > _MOST_ENTRIES:
                raise UsageError(f"the commit has more than {_MOST_ENTRIES:,} files")
        return found

    def contents(self, blobs: Iterable[str]) -> Iterator[bytes]:
        """The contents with these names, in their order."""
        wanted = list(blobs)
        with tempfile.TemporaryFile() as names:
            names.write("".join(f"{blob}\n" for blob in wanted).encode())
            names.seek(0)
            argv = self._argv("cat-file", "--batch")
            with subprocess.Popen(
                argv,
                stdin=names,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(self.folder),
            ) as process:
                try:
                    yield from _batched(process, wanted)
                finally:
                    process.kill()

    def _argv(self, *arguments: str) -> list[str]:
        return ["git", *SWITCHED_OFF, *_NO_FILES, *self._where, *arguments]

    def _ask(self, *arguments: str) -> str:
        return self._run(*arguments).decode("utf-8", "surrogateescape")

    def _run(self, *arguments: str) -> bytes:
        try:
            return self._printed(self._argv(*arguments))
        except FileNotFoundError:
            raise UsageError("git is not installed; checks of kind repo need it") from None
        except OSError as error:
            raise UsageError(f"git does not answer: {error}") from None

    def _printed(self, argv: list[str]) -> bytes:
        """What git prints. A few trees that contain each other can be a billion files."""
        with (
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=_environment(self.folder),
            ) as process,
        ):
            assert process.stdout is not None
            late = threading.Timer(_SECONDS, process.kill)
            late.start()
            try:
                content = process.stdout.read(_MOST_PRINTED + 1)
                if len(content) <= _MOST_PRINTED:
                    process.wait()
            finally:
                late.cancel()
                process.kill()
            if len(content) > _MOST_PRINTED:
                raise UsageError(
                    f"the commit has more than {_MOST_ENTRIES:,} files, or more than"
                    f" {_MOST_PRINTED >> 20} MB of names"
                )
            if process.returncode < 0:
                raise UsageError(f"git does not answer: it ended by signal {-process.returncode}")
            if process.returncode:
                errors.seek(0)
                said = errors.read(_MOST_PRINTED).decode("utf-8", "replace").strip().splitlines()
                raise UsageError(said[0].removeprefix("fatal: ") if said else "")
        return content


def _batched(process: subprocess.Popen[bytes], wanted: list[str]) -> Iterator[bytes]:
    assert process.stdout is not None
    total = 0
    for blob in wanted:
        header = process.stdout.readline().split()
        if len(header) != 3 or header[0].decode() != blob or header[1] != b"blob":
            raise UsageError(f"the repository lacks the file {blob}: fetch it, then run again")
        size = int(header[2])
        total += size
        if size > _MOST_BYTES_OF_A_FILE:
            raise UsageError(f"the commit has a file of more than {_MOST_BYTES_OF_A_FILE >> 20} MB")
        if total > _MOST_BYTES:
            raise UsageError(f"the commit has more than {_MOST_BYTES >> 30} GB")
        content = process.stdout.read(size)
        if len(content) != size or not process.stdout.read(1):
            raise UsageError("git ended before it had printed all files")
        yield content


def _environment(folder: Path) -> dict[str, str]:
    own = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1"}
    return environment() | own | {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
