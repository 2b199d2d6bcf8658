"""Git repositories: what commits they have, copies of them, diffs, and branches from diffs.

Git is run with the arguments of a list, never by a shell. Variables such as GIT_DIR, which a hook
sets, do not reach it. The configuration of a repository starts nothing: no hook, filter,
file-system monitor, signature program or download. Where `apart` is given, neither the user's
configuration nor that of the machine counts, so that nothing of theirs runs on what an agent wrote.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import UsageError

SUBMODULE = b"160000"  # the mode of a submodule in a tree
_TIMEOUT = 600.0
_AUTHOR = "grv"
_ADDRESS = "grv@localhost"
_LOCAL = (b"local", b"worktree")  # the scopes of settings that a repository brings along
# What the configuration of a repository could start, switched off.
_OFF = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.sshCommand=false",
    "core.pager=cat",
    "core.askPass=",
    "credential.helper=",
    "diff.external=",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "log.showSignature=false",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
)
SWITCHED_OFF = tuple(part for setting in _OFF for part in ("-c", setting))
_VARIABLES = {
    "GIT_ALLOW_PROTOCOL": "none",  # unlike protocol.allow, no setting of a repository overrides it
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
# Git refuses these in names of branches; anything else that is unusual goes too.
_UNUSUAL = re.compile(r"[^A-Za-z0-9_.-]+")


class GitError(UsageError):
    """Git could not do it; the message is its last line."""


def environment(*, apart: bool = False) -> dict[str, str]:
    """The variables that git gets: none of its own, which could name repositories and programs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    kept |= _VARIABLES
    if apart:
        kept |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        kept |= {"GIT_ATTR_NOSYSTEM": "1", "HOME": os.devnull, "XDG_CONFIG_HOME": os.devnull}
    return kept


def git(
    *arguments: str,
    folder: str | os.PathLike[str],
    apart: bool = False,
    variables: Mapping[str, str] | None = None,
    settings: Sequence[str] = (),
    given: bytes = b"",
) -> bytes:
    """What git prints.

    Args:
        arguments: the command and its arguments.
        folder: where it runs.
        apart: whether the configuration of the user and of the machine is left out.
        variables: more variables of the environment.
        settings: more settings, each after `-c`.
        given: its standard input.

    Raises:
        GitError: it failed, or it is not installed.
    """
    try:
        done = subprocess.run(
            ["git", *SWITCHED_OFF, *settings, *arguments],
            cwd=folder,
            env={**environment(apart=apart), **(variables or {})},
            input=given,
            capture_output=True,
            check=False,
            timeout=_TIMEOUT,
        )
    except FileNotFoundError as error:
        if not os.path.isdir(folder):
            raise GitError(f"{os.fspath(folder)}: there is no such folder") from error
        raise GitError("git is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(f"git {arguments[0]} took longer than {_TIMEOUT:g} s") from error
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        said = next((line for line in lines if line.startswith(("fatal:", "error:"))), "")
        said = said or (lines[-1] if lines else f"status {done.returncode}")
        raise GitError(f"git {arguments[0]}: {said}")
    return done.stdout


@dataclass(frozen=True)
class UserRepository:
    """A repository of the user's. Only `keep` and `apply` change anything in it.

    Attributes:
        folder: the top of its working tree.
    """

    folder: str

    @classmethod
    def around(cls, folder: str | os.PathLike[str]) -> UserRepository:
        """The repository that a folder is in; a UsageError if it is in none with a tree."""
        try:
            top = git("rev-parse", "--show-toplevel", folder=folder)
        except GitError as error:
            if "not a git repository" in str(error):
                raise UsageError(f"{os.fspath(folder)}: this is no git repository") from error
            if "must be run in a work tree" in str(error) or "bare repository" in str(error):
                raise UsageError(f"{os.fspath(folder)}: a bare repository has no files") from error
            raise
        found = cls(os.fsdecode(top.rstrip(b"\n")))
        if found.private_folder != cls(os.fspath(folder)).private_folder:
            raise UsageError(f"{os.fspath(folder)}: its files are elsewhere (core.worktree)")
        return found

    @property
    def private_folder(self) -> str:
        """The folder in which git keeps its data; worktrees of a repository share it."""
        common = self._line("rev-parse", "--git-common-dir")
        return os.path.realpath(os.path.join(self.folder, common))

    def commit(self, name: str = "HEAD") -> str:
        """The id of the commit with this name."""
        try:
            return self._line("rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")
        except GitError as error:
            if name == "HEAD":
                raise UsageError(f"{self.folder}: there is no commit yet; make one") from error
            raise UsageError(f"{name}: {self.folder} has no such commit") from error

    def changed(self) -> list[str]:
        """The tracked files whose content differs from the last commit, or is staged."""
        listed = git(
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=no",
            "--no-renames",
            "--ignore-submodules=all",
            folder=self.folder,
            settings=self._without_filters(),
        )
        return [os.fsdecode(line[3:]) for line in listed.split(b"\0") if line]

    def submodules(self, commit: str) -> list[str]:
        """The submodules of a commit."""
        listed = git("ls-tree", "-r", "-z", "--full-tree", commit, folder=self.folder)
        lines = [line for line in listed.split(b"\0") if line.startswith(SUBMODULE)]
        return [os.fsdecode(line.partition(b"\t")[2]) for line in lines]

    def has(self, reference: str) -> str | None:
        """The id of the object that a reference names; None if there is no such reference."""
        try:
            return self._line("rev-parse", "--verify", "--quiet", "--end-of-options", reference)
        except GitError:
            return None

    def lend_objects(self, private_folder: Path) -> None:
        """Let another repository, at its private folder, read the objects of this one."""
        alternates = private_folder / "objects" / "info" / "alternates"
        alternates.parent.mkdir(parents=True, exist_ok=True)
        alternates.write_bytes(os.fsencode(self.object_folder) + b"\n")
        shallow = os.path.join(self.private_folder, "shallow")
        if os.path.exists(shallow):
            (private_folder / "shallow").write_bytes(Path(shallow).read_bytes())

    @property
    def object_folder(self) -> str:
        """Where its objects are."""
        return os.path.join(self.private_folder, "objects")

    @property
    def object_format(self) -> str:
        """The hash that names its objects."""
        return self._line("rev-parse", "--show-object-format")

    def keep(self, diff: str, commit: str, branch: str, message: str) -> str:
        """Make a branch of a commit with a diff applied to it; return the branch's name.

        A branch that has the name already and another content is left alone: the new one gets a
        name with a further number. The commit has a fixed author and date, so that the same diff
        is always the same commit.

        Raises:
            GitError: the diff does not apply, or the branch cannot be made.
        """
        made = self._committed(diff, commit, message)
        name = branch
        number = 1
        while (there := self.has(f"refs/heads/{name}")) is not None and there != made:
            number += 1
            name = f"{branch}.{number}"
        if there is None:
            git("update-ref", f"refs/heads/{name}", made, "", folder=self.folder)
        return name

    def _committed(self, diff: str, commit: str, message: str) -> str:
        with tempfile.TemporaryDirectory(prefix="grv-index-") as folder:
            index = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
            git("read-tree", commit, folder=self.folder, variables=index)
            given = diff.encode("utf-8", "surrogateescape")
            how = ("--cached", "--whitespace=nowarn", "-")
            git("apply", *how, folder=self.folder, variables=index, given=given)
            tree = git("write-tree", folder=self.folder, variables=index).decode().strip()
        date = self._line("show", "-s", "--format=%ct +0000", "--end-of-options", commit)
        who: dict[str, str] = {}
        for role in ("AUTHOR", "COMMITTER"):
            who |= {f"GIT_{role}_NAME": _AUTHOR, f"GIT_{role}_EMAIL": _ADDRESS}
            who[f"GIT_{role}_DATE"] = date
        arguments = ("commit-tree", tree, "-p", commit, "-m", message)
        return git(*arguments, folder=self.folder, variables=who).decode().strip()

    def apply(self, diff: str) -> None:
        """Apply a diff to the working tree: all of it, or nothing if a part does not fit.

        The index is left alone. A file that is in the way is never overwritten.

        Raises:
            GitError: it does not apply.
        """
        given = diff.encode("utf-8", "surrogateescape")
        settings = self._without_filters()
        how = ("--whitespace=nowarn", "-")
        git("apply", *how, folder=self.folder, settings=settings, given=given)

    def _without_filters(self) -> list[str]:
        """The settings that switch off the filters of the repository; those of the user stay."""
        wanted = ("--show-scope", "--name-only", "-z", "--get-regexp", r"^filter\.")
        try:
            listed = git("config", *wanted, folder=self.folder).split(b"\0")
        except GitError:  # there is none
            return []
        settings: list[str] = []
        for scope, name in zip(listed[::2], listed[1::2], strict=False):
            filter_name = os.fsdecode(name).rpartition(".")[0]
            if scope not in _LOCAL:
                continue
            if "=" in filter_name:
                raise UsageError(f"{self.folder}: the name of a filter contains =: {filter_name}")
            for setting in ("clean=", "smudge=", "process=", "required=false"):
                settings += ["-c", f"{filter_name}.{setting}"]
        return settings

    def _line(self, *arguments: str) -> str:
        return os.fsdecode(git(*arguments, folder=self.folder)).strip()


def branch_part(name: str) -> str:
    """A name as a part of the name of a branch.

    >>> branch_part("fix the parser.md"), branch_part("..a.lock"), branch_part("?")
    ('fix-the-parser.md', 'a-lock', 'task')
    """
    part = _UNUSUAL.sub("-", name).strip(".-")
    while ".." in part:
        part = part.replace("..", ".")
    if part.endswith(".lock"):
        part = f"{part.removesuffix('.lock')}-lock"
    return part[:80].strip(".-") or "task"
