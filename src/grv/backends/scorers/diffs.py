"""Scores of diffs that cost nothing: their size, the files they touch, whether they fit."""

from __future__ import annotations

import ast
import asyncio
import json
import threading
import tomllib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.errors import UsageError
from ...text import checksum
from ..protocols import Draft, Problem, Score
from ..verifiers.programs.syntax import LARGEST, parser_lock
from ..verifiers.repo.diff_lines import UnreadableDiff
from ..verifiers.repo.diffs import FileChange, read
from ..verifiers.repo.protection import Protection

if TYPE_CHECKING:
    from ..verifiers.repo.changes import Changes
    from ..verifiers.repo.check import RepoCheck

MEASURES = ("size", "files", "tests", "applies", "compiles")
_KEPT = 64  # checks


class DiffScorer:
    """Scores a candidate that is a diff, by one measure. What is no diff has no score.

    Choose it for candidates that change a repository; `grv report` says whether the measure is
    worth anything on yours.

    Args:
        measure: "size": fewer lines first. "files": fewer files first. "tests": 1 if no test is
            touched, otherwise 0. "applies": 1 if it fits the commit and touches nothing that is
            protected. "compiles": 1 if it applies and its Python, JSON and TOML files can be read.
            The last two need a check of kind "repo".

    Examples:
        >>> import grv
        >>> grv.scorers.Diff("files")
        DiffScorer('files')
    """

    def __init__(self, measure: str = "size") -> None:
        if measure not in MEASURES:
            raise UsageError(f"a diff is scored by {', '.join(MEASURES)}, not {measure!r}")
        self.measure = measure
        self._checks: dict[str, RepoCheck | str] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"DiffScorer({self.measure!r})"

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """One score per draft."""
        if self.measure not in ("applies", "compiles"):
            return [self._of_text(draft.text) for draft in drafts]
        return await asyncio.to_thread(self._of_repository, problem, drafts)

    def _of_text(self, text: str) -> Score:
        try:
            changes = read(text).changes
        except (UnreadableDiff, UnicodeEncodeError) as exc:
            return Score(None, reason=str(exc))
        match self.measure:
            case "size":
                return Score(-float(sum(map(_lines, changes))))
            case "files":
                return Score(-float(len(_paths(changes))))
        covers = Protection().covers
        return Score(0.0 if any(covers(path) for path in _paths(changes)) else 1.0)

    def _of_repository(self, problem: Problem, drafts: Sequence[Draft]) -> list[Score]:
        with self._lock:
            check = self._check(problem)
        if isinstance(check, str):
            return [Score(None, reason=check) for _ in drafts]
        scores = []
        for draft in drafts:
            try:
                changes = check.changes(draft.text)
            except UnreadableDiff as exc:
                scores.append(Score(0.0, reason=str(exc)))
                continue
            is_good = self.measure == "applies" or _compiles(changes)
            scores.append(Score(1.0 if is_good else 0.0))
        return scores

    def _check(self, problem: Problem) -> RepoCheck | str:
        """The check of a problem; or why it cannot be used."""
        name = checksum(repr(problem.check))
        if name not in self._checks:
            while len(self._checks) >= _KEPT:
                self._checks.pop(next(iter(self._checks)))
            self._checks[name] = _check_of(problem)
        return self._checks[name]


def _check_of(problem: Problem) -> RepoCheck | str:
    from ..verifiers.repo.check import RepoCheck, outside

    if problem.check.get("kind") != "repo":
        return "its check has no repository"
    if elsewhere := outside(problem.check):
        return f"its check {elsewhere}"
    try:
        return RepoCheck.of(problem)
    except UsageError as exc:
        return str(exc)


def _paths(changes: Sequence[FileChange]) -> list[str]:
    paths = (path for change in changes for path in (change.old, change.new))
    return list(dict.fromkeys(path for path in paths if path is not None))


def _lines(change: FileChange) -> int:
    """The lines that a change adds or removes; all of them, if it gives a whole file."""
    if change.content is not None:
        return change.content.count(b"\n")
    return sum(hunk.changed for hunk in change.hunks)


def _compiles(changes: Changes) -> bool:
    """Whether the files of a change can be read by their languages. Nothing is executed."""
    return all(
        _is_readable(path, file.content) for path, file in changes.files.items() if file is not None
    )


def _is_readable(path: str, content: bytes) -> bool:
    ending = path.rpartition(".")[2]
    if ending not in ("py", "json", "toml") or len(content) > LARGEST:
        return True
    try:
        if ending == "py":
            with parser_lock:
                ast.parse(content)
        elif ending == "json":
            json.loads(content)
        else:
            tomllib.loads(content.decode())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
