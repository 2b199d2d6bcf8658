"""Applies the changes of a candidate to the files of a commit, in memory.

The result is one value: the new content of every file that differs from the commit. Candidates with
equal results are one candidate, however their diffs are written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ....text import checksum
from .binary import LARGEST
from .diff_lines import UnreadableDiff
from .diffs import FileChange, Hunk, ReadCandidate

_MOST_FILES = 5_000
_MOST_BYTES = 256 << 20  # of all files together, before and after
_MOST_COMPARED = 5_000_000  # lines, until all hunks have found their places
_LONGEST_NAME = 255
_LONGEST_PATH = 1_000
_GIT_NAMES = (".git", "git~1", ".gitmodules")


@dataclass(frozen=True, slots=True)
class NewFile:
    """The content of a file, and its permissions: 0o644 or 0o755."""

    content: bytes
    mode: int = 0o644

    @property
    def digest(self) -> str:
        """A checksum of the content."""
        return hashlib.sha256(self.content).hexdigest()


class Files(Protocol):
    """The files of a commit."""

    def kind(self, path: str) -> str:
        """What is at a path: "file", "link", "submodule", "folder", or "" for nothing."""
        ...

    def file(self, path: str) -> NewFile:
        """A file of the commit."""
        ...


@dataclass(frozen=True)
class Changes:
    """What a candidate makes of a commit.

    Attributes:
        files: the new content by path; None for a file that is gone.
        form: how the candidate's text was read.
    """

    files: Mapping[str, NewFile | None]
    form: str = ""

    @property
    def key(self) -> str:
        """A checksum: equal if the files are."""
        parts = []
        for path, file in sorted(self.files.items()):
            content = "-" if file is None else f"{file.mode:o} {file.digest}"
            parts.append(f"{path.encode('utf-8', 'surrogateescape').hex()} {content}")
        return checksum("\n".join(parts))


def apply(candidate: ReadCandidate, files: Files) -> Changes:
    """The files after a candidate's changes.

    Raises:
        UnreadableDiff: a change does not fit, or leaves the tree.
    """
    if len(candidate.changes) > _MOST_FILES:
        raise UnreadableDiff(f"it changes more than {_MOST_FILES:,} files")
    state = _State(files)
    for change in candidate.changes:
        state.apply(change)
    changed = {path: file for path, file in state.changed.items() if not state.is_same(path, file)}
    if not changed:
        raise UnreadableDiff("it changes nothing")
    return Changes(changed, candidate.form)


class _State:
    def __init__(self, files: Files) -> None:
        self._files = files
        self._search = _Search()
        self._bytes = 0
        self.changed: dict[str, NewFile | None] = {}

    def is_same(self, path: str, file: NewFile | None) -> bool:
        """Whether a file is as in the commit."""
        if self._files.kind(path) != "file":
            return file is None
        return file == self._files.file(path)

    def apply(self, change: FileChange) -> None:
        for path in (change.old, change.new):
            if path is not None:
                check_path(path)
        if change.content is not None:
            assert change.new is not None
            self._check_place(change.new)
            there = self._there(change.new)
            mode = 0o644 if there is None else there.mode
            self.changed[change.new] = NewFile(change.content, mode)
            return
        if change.old is None:
            assert change.new is not None
            self._create(change.new, change)
            return
        before = self._existing(change.old)
        if change.binary is None:
            content = _patched(before.content, change.hunks, change.old, self._search)
        else:
            content = change.binary.applied(before.content)
        self._bytes += len(before.content) + len(content)
        if self._bytes > _MOST_BYTES:
            raise UnreadableDiff(f"it changes files of more than {_MOST_BYTES:,} bytes together")
        if change.new is None:
            if content:
                raise UnreadableDiff(f"it removes {change.old}, and not all of its lines")
            self.changed[change.old] = None
            return
        if change.new != change.old:
            if self._there(change.new) is not None:
                raise UnreadableDiff(f"{change.new} is already there")
            self._check_place(change.new)
            if not change.keeps_old:
                self.changed[change.old] = None
        self.changed[change.new] = NewFile(content, change.mode or before.mode)

    def _create(self, path: str, change: FileChange) -> None:
        if self._there(path) is not None:
            raise UnreadableDiff(f"{path} is already there")
        self._check_place(path)
        if change.binary is None:
            content = b"".join(line for hunk in change.hunks for line in hunk.new)
        else:
            content = change.binary.applied(b"")
        self.changed[path] = NewFile(content, change.mode or 0o644)

    def _there(self, path: str) -> NewFile | None:
        if path in self.changed:
            return self.changed[path]
        kind = self._files.kind(path)
        if kind == "file":
            return self._files.file(path)
        if kind:
            raise UnreadableDiff(f"{path} is a {kind}")
        return None

    def _existing(self, path: str) -> NewFile:
        there = self._there(path)
        if there is None:
            raise UnreadableDiff(f"there is no {path}")
        return there

    def _check_place(self, path: str) -> None:
        """Refuse a file below something that is no folder, or in place of a folder."""
        parts = path.split("/")
        for length in range(1, len(parts)):
            above = "/".join(parts[:length])
            is_file = self.changed.get(above) is not None
            if above in self.changed and not is_file:
                continue
            kind = "file" if is_file else self._files.kind(above)
            if kind not in ("", "folder"):
                raise UnreadableDiff(f"{above} is a {kind}")
        if any(other.startswith(f"{path}/") and self.changed[other] for other in self.changed):
            raise UnreadableDiff(f"{path} is a folder")


def check_path(path: str) -> None:
    """Refuse a path that leaves the tree, or is git's own."""
    parts = path.split("/")
    outside = path.startswith("/") or any(part in ("", ".", "..") for part in parts)
    if outside or "\\" in path or any(ord(letter) < 32 or ord(letter) == 127 for letter in path):
        raise UnreadableDiff(f"{path[:100]!r} is no path below the repository")
    if len(path) > _LONGEST_PATH or any(
        len(p.encode("utf-8", "replace")) > _LONGEST_NAME for p in parts
    ):
        raise UnreadableDiff(f"a path is longer than {_LONGEST_PATH} characters")
    if any(part.rstrip(" .").lower() in _GIT_NAMES for part in parts):
        raise UnreadableDiff(f"{path[:100]} belongs to git")


def _patched(content: bytes, hunks: tuple[Hunk, ...], path: str, search: _Search) -> bytes:
    """A file after its hunks, each of which must fit in exactly one place.

    That place is the line that the hunk names, moved by what the hunks before have added; or else
    the only one where its lines are.
    """
    if not hunks:
        return content
    lines = content.split(b"\n")
    lines = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    patched: list[bytes] = []
    moved = 0
    done = 0  # lines before this one are in `patched`
    for number, hunk in enumerate(hunks, 1):
        wanted = hunk.start - 1 if hunk.old else hunk.start
        place = search.place(lines, hunk.old, wanted + moved, done)
        if place is None:
            raise UnreadableDiff(f"hunk {number} of {path} does not fit")
        patched += lines[done:place]
        patched += hunk.new
        moved = place - wanted
        done = place + len(hunk.old)
    joined = b"".join([*patched, *lines[done:]])
    if len(joined) > LARGEST:
        raise UnreadableDiff(f"{path} is larger than {LARGEST >> 20} MB")
    return joined


@dataclass
class _Search:
    """Finds the lines of hunks in those of a file. How much it compares is limited."""

    compared: int = 0

    def place(
        self, lines: list[bytes], old: tuple[bytes, ...], wanted: int, first: int
    ) -> int | None:
        """Where a hunk's lines are; None if that is not in exactly one place."""
        last = len(lines) - len(old)
        if first <= wanted <= last and self._is_at(lines, wanted, old):
            return wanted
        if not old:
            return None
        found = None
        for place in range(first, last + 1):
            if self._is_at(lines, place, old):
                if found is not None:
                    return None
                found = place
        return found

    def _is_at(self, lines: list[bytes], place: int, old: tuple[bytes, ...]) -> bool:
        if self.compared > _MOST_COMPARED:
            raise UnreadableDiff("too many of its hunks are not at the lines that they name")
        for offset, line in enumerate(old):
            self.compared += 1
            if lines[place + offset] != line:
                return False
        return True
