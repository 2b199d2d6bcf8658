"""A commit on disk, made once, and cheap copies of it: one for each run of each candidate.

A copy has folders of its own. Its files are hard links to those of the commit, and what a candidate
changes is written anew. The jail lets nobody write to a copy, so nothing can be written through a
link; after each run the files of the commit are looked at nevertheless. A check whose tests write
beside themselves says `"writable": true`: its copies share nothing with the commit.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path

from ....core.errors import UsageError
from ...sandbox import scratch
from ..command import process_folder
from .changes import Changes, NewFile, apply
from .diff_lines import UnreadableDiff
from .diffs import read
from .git import Repository, TreeEntry

_KEPT = 4  # commits on disk that nobody uses
_CLONE = 0x40049409  # FICLONE: a copy that shares its blocks until one of the two is written
_KINDS = {"100644": "file", "100755": "file", "120000": "link", "160000": "submodule"}

Stamp = tuple[int, int, int, int]


class CommitFiles:
    """The files of a commit, for `apply`: what git has stored, whatever was set up since."""

    def __init__(self, entries: dict[str, TreeEntry], folder: Path) -> None:
        self._entries = entries
        self._folder = folder
        self._folders = {
            path[:index] for path in entries for index, letter in enumerate(path) if letter == "/"
        }

    @property
    def paths(self) -> list[str]:
        """The paths of all regular files."""
        return [path for path in self._entries if self.kind(path) == "file"]

    def kind(self, path: str) -> str:
        """What is at a path: "file", "link", "submodule", "folder", or "" for nothing."""
        entry = self._entries.get(path)
        if entry is not None:
            return _KINDS.get(entry.mode, "file of another kind")
        return "folder" if path in self._folders else ""

    def file(self, path: str) -> NewFile:
        """A file of the commit."""
        mode = 0o755 if self._entries[path].mode == "100755" else 0o644
        return NewFile((self._folder / path).read_bytes(), mode)


class Workspace:
    """One commit on disk.

    Attributes:
        files: what the commit has.
        pristine: the folder with exactly that.
        ready: the folder that copies are made of: the same, with what `setup` has added.
        facts: what checks have found out about it, by a name of theirs.
        lock: held while it is set up, or while such a fact is found out.

    Args:
        repository: where the commit is.
        commit: its full name.
        test_patch: a diff that adds tests to the commit; "" for none.
    """

    def __init__(self, repository: Repository, commit: str, test_patch: str = "") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="repo-", dir=process_folder()))
        self.pristine = self.folder / "commit"
        self.ready = self.pristine
        self.lock = threading.RLock()
        self.facts: dict[object, object] = {}
        entries = repository.entries(commit)
        self.pristine.mkdir()
        _write_commit(repository, entries, self.pristine)
        if test_patch:
            try:
                _add_tests(test_patch, entries, self.pristine)
            except UnreadableDiff as exc:
                raise UsageError(f"test_patch does not apply: {exc}") from None
        self.files = CommitFiles(entries, self.pristine)
        self._stamps = stamps(self.ready)

    def set_up(self, run: Callable[[Path], None]) -> None:
        """Have `run` add to a copy of the commit, which copies are then made of."""
        ready = self.folder / "ready"
        if ready.exists():
            remove(ready)
        _copy_tree(str(self.pristine), str(ready))
        _allow_writing(ready)
        run(ready)
        _forbid_writing(ready)
        self.ready = ready
        self._stamps = stamps(ready)

    @contextlib.contextmanager
    def copy(self, changes: Changes | None, *, writable: bool) -> Iterator[Path]:
        """A fresh copy with the changes of a candidate; it is removed on exit."""
        place = Path(tempfile.mkdtemp(prefix="copy-", dir=self.folder))
        target = place / "repo"
        try:
            if writable:
                _copy_tree(str(self.ready), str(target))
                _allow_writing(target)
            else:
                _link_tree(str(self.ready), str(target))
            for path, file in ({} if changes is None else changes.files).items():
                write(target, path, file, writable=writable)
            yield target
        finally:
            if writable:
                remove(place)
            else:
                shutil.rmtree(place)  # it is as it was made, and this is faster

    def is_unchanged(self) -> bool:
        """Whether nothing was written to the files that copies are made of."""
        return stamps(self.ready) == self._stamps

    def remove(self) -> None:
        """Remove it from disk."""
        remove(self.folder)


def _write_commit(repository: Repository, entries: dict[str, TreeEntry], target: Path) -> None:
    written = [(path, entry) for path, entry in entries.items() if entry.mode != "160000"]
    contents = repository.contents(entry.blob for _, entry in written)
    made: set[str] = set()
    for (path, entry), content in zip(written, contents, strict=True):
        parts = path.split("/")
        if any(part in ("", ".", "..", ".git") for part in parts):
            raise UsageError(f"the commit has a file with the path {path!r}")
        folder = "/".join(parts[:-1])
        if folder not in made:
            (target / folder).mkdir(parents=True, exist_ok=True)
            made.add(folder)
        place = target / path
        if entry.mode == "120000":
            os.symlink(content, place)
            continue
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(place, flags, 0o555 if entry.mode == "100755" else 0o444)
        with open(descriptor, "wb") as file:
            file.write(content)


def _add_tests(test_patch: str, entries: dict[str, TreeEntry], folder: Path) -> None:
    changes = apply(read(test_patch), CommitFiles(entries, folder))
    for path, file in changes.files.items():
        write(folder, path, file)
        if file is None:
            del entries[path]
        else:
            entries[path] = TreeEntry("100755" if file.mode == 0o755 else "100644", file.digest)


def write(target: Path, path: str, file: NewFile | None, *, writable: bool = False) -> None:
    """Replace a file of a copy. What was there is removed first, so that no link is followed."""
    place = target
    for part in path.split("/")[:-1]:
        place = place / part
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            raise UnreadableDiff(f"{path} is below something that is no folder")
    where = target / path
    if where.is_dir() and not where.is_symlink():
        if file is None or any(where.iterdir()):
            raise UnreadableDiff(f"{path} is a folder")
        where.rmdir()
    if where.is_symlink() or where.exists():
        where.unlink()
    if file is None:
        return
    where.parent.mkdir(parents=True, exist_ok=True)
    mode = file.mode if writable else file.mode & 0o555
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with open(os.open(where, flags, mode), "wb") as handle:
        handle.write(file.content)


def _link_tree(source: str, target: str) -> None:
    """Folders of its own, with hard links to the files."""
    os.mkdir(target)
    with os.scandir(source) as entries:
        for entry in entries:
            place = f"{target}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                _link_tree(entry.path, place)
            elif entry.is_symlink():
                os.symlink(os.readlink(entry.path), place)
            else:
                os.link(entry.path, place, follow_symlinks=False)


def _copy_tree(source: str, target: str) -> None:
    """Folders and files of its own; blocks are shared until they are written, if that works."""
    os.mkdir(target)
    with os.scandir(source) as entries:
        for entry in entries:
            place = f"{target}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                _copy_tree(entry.path, place)
            elif entry.is_symlink():
                os.symlink(os.readlink(entry.path), place)
            else:
                _copy_file(entry.path, place, stat.S_IMODE(entry.stat().st_mode))


def _copy_file(source: str, target: str, mode: int) -> None:
    with open(source, "rb") as given:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(target, flags, mode), "wb") as taken:
            try:
                fcntl.ioctl(taken.fileno(), _CLONE, given.fileno())
            except OSError:  # the file system cannot
                shutil.copyfileobj(given, taken, 1 << 20)


def _walk(folder: Path) -> Iterator[os.DirEntry[str]]:
    waiting = [str(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def stamps(folder: Path) -> dict[str, Stamp]:
    """What changes when a file does, by path. A new name of a file changes none of it."""
    found = {}
    for entry in _walk(folder):
        about = entry.stat(follow_symlinks=False)
        if not stat.S_ISDIR(about.st_mode):
            found[entry.path] = (about.st_ino, about.st_size, about.st_mtime_ns, about.st_mode)
    return found


def _allow_writing(folder: Path) -> None:
    _change_modes(folder, lambda mode: mode | 0o200)


def _forbid_writing(folder: Path) -> None:
    _change_modes(folder, lambda mode: mode & 0o555)


def _change_modes(folder: Path, changed: Callable[[int], int]) -> None:
    for entry in _walk(folder):
        about = entry.stat(follow_symlinks=False)
        if stat.S_ISREG(about.st_mode):
            os.chmod(entry.path, changed(stat.S_IMODE(about.st_mode)))


def remove(folder: Path) -> None:
    """Remove a folder of any content, without following a link."""
    with contextlib.suppress(FileNotFoundError):
        scratch.empty(str(folder))
        folder.rmdir()


class Workspaces:
    """The commits on disk, by name. Those that nobody uses are removed, the oldest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: OrderedDict[object, Workspace] = OrderedDict()
        self._users: dict[object, int] = {}
        self._making: dict[object, threading.Lock] = {}

    @contextlib.contextmanager
    def use(self, name: object, make: Callable[[], Workspace]) -> Iterator[Workspace]:
        """A workspace, which stays as long as it is used."""
        with self._lock:
            self._users[name] = self._users.get(name, 0) + 1
            making = self._making.setdefault(name, threading.Lock())
        try:
            with making:
                workspace = self._made.get(name)
                if workspace is None or not workspace.ready.is_dir():
                    workspace = make()
                with self._lock:
                    self._made[name] = workspace
                    self._made.move_to_end(name)
            yield workspace
        finally:
            with self._lock:
                self._users[name] -= 1
                unused = [other for other in self._made if not self._users.get(other)]
                for other in unused[: max(0, len(self._made) - _KEPT)]:
                    self._made.pop(other).remove()
                    self._making.pop(other, None)

    def forget(self, name: object) -> None:
        """Have a workspace made anew when it is used again."""
        with self._lock:
            self._made.pop(name, None)


WORKSPACES = Workspaces()
