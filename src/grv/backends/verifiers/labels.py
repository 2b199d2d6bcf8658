"""Files of candidates to verify, and files of their labels, in JSON lines.

Labels are appended one by one. After a crash or Ctrl-C a run continues in the same file. A last
line that was cut off, and broken verdicts, which are not labels, are dropped. A file that grv did
not write is never changed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...conditions import LEVELS, Conditions, Level
from ...core.errors import LogError, UsageError
from ...core.values import Verdict
from ...files import (
    TEXT,
    Layout,
    bounded_lines,
    check_same,
    error_line,
    is_torn,
    json_lines,
    parse_json,
    shown,
    typed,
)
from ...options import misspelt
from ...text import TEXT_HASH, is_name, text_hash
from ..protocols import Finding, Problem


@dataclass(frozen=True, slots=True)
class LabelBatch:
    """A problem and the texts of its candidates."""

    problem: Problem
    texts: tuple[str, ...]


def read_batches(path: str) -> Iterator[LabelBatch]:
    """The problems of a file with their candidates; a LogError names the line."""
    seen: set[str] = set()
    for number, record in json_lines(path):
        batch = _batch(path, number, record)
        if batch.problem.id in seen:
            message = f"problem {batch.problem.id} occurs twice"
            raise LogError(message, path=path, line=number, problem_id=batch.problem.id)
        seen.add(batch.problem.id)
        yield batch


def _batch(path: str, number: int, record: Mapping[str, Any]) -> LabelBatch:
    def wrong(message: str) -> LogError:
        return LogError(message, path=path, line=number)

    fields = ("problem", "check", "candidates")
    if hint := misspelt(record, fields, ("prompt",)):
        raise wrong(hint)
    for field in fields:
        if field not in record:
            raise wrong(f"no field {field!r}; a line has {', '.join(fields)}")
    name, check, texts = (record[field] for field in fields)
    if not is_name(name):
        raise wrong(f"problem must be a name, not {shown(name)}")
    if not isinstance(check, dict):
        raise wrong(f"problem {name}: check must be a record")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise wrong(f"problem {name}: candidates must be a list of texts")
    prompt = record.get("prompt", "")
    if not isinstance(prompt, str):
        raise wrong(f"problem {name}: prompt must be a text")
    return LabelBatch(Problem(str(name), prompt, check), tuple(texts))


class LabelFile:
    """A file of labels, locked and open for appending.

    An existing file must be empty or consist of labels; its last line may be cut off.

    Args:
        path: the file.
        candidates: the fingerprints of each problem's candidates; other labels are an error.
        source: the file of the candidates, for messages.
        levels: the isolation that the labels of each problem need at least; a label that was given
            at a weaker one is an error.

    Attributes:
        done: the verdicts in the file, by problem and candidate number.

    Raises:
        UsageError: the file is not one of labels, or another process writes to it.
    """

    def __init__(
        self,
        path: str,
        candidates: Mapping[str, bytes] | None = None,
        source: str = "",
        levels: Mapping[str, Level] | None = None,
    ) -> None:
        self.path = path
        self._candidates = candidates
        self._source = source
        self._levels = levels or {}
        self._target = os.path.realpath(path)
        self.done: dict[tuple[str, int], Verdict] = {}
        self._descriptor = _opened(path, self._target)
        try:
            if stat.S_ISREG(os.fstat(self._descriptor).st_mode):
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                broken, end = self._read()
                self._repair(end, rewrite=broken)
        except BlockingIOError:
            os.close(self._descriptor)
            raise UsageError(f"{path}: another grv is writing to it") from None
        except BaseException:
            os.close(self._descriptor)
            raise

    def _read(self) -> tuple[bool, int]:
        """Fill `done`. Returns whether a verdict is broken, and where the last whole label ends."""
        broken = False
        end = 0
        with open(self._target, "rb") as file:
            for number, line in enumerate(bounded_lines(file, self.path), 1):
                label = _parse(line)
                if label is None:
                    if not line.endswith(b"\n") and is_torn(line, _LAYOUT):
                        break
                    raise UsageError(
                        f"{self.path}:{number}: not a label, so this is not a file of labels;"
                        " give another --out"
                    )
                end += len(line)
                if label.verdict is Verdict.BROKEN:
                    broken = True
                else:
                    self._check(label)
                    self.done[label.problem, label.candidate] = label.verdict
        return broken, end

    def _check(self, label: _Label) -> None:
        """Refuse a label of another text, check or file of candidates."""
        if self._candidates is None:
            return
        known = self._candidates.get(label.problem, b"")
        at = label.candidate * FINGERPRINT
        mine = known[at : at + FINGERPRINT] if label.candidate >= 0 else b""
        which = f"problem {label.problem}, candidate {label.candidate}"
        if not mine:
            wrong = f"has a label for {which}, which is not in {self._source}"
        elif not label.of:
            wrong = f"has a label for {which} that does not say which text it is of"
        elif label.of != mine.hex():
            wrong = f"has a label for {which} of {self._source} with another text, check or limits"
        elif LEVELS.index(label.isolation) < LEVELS.index(self._levels.get(label.problem, "")):
            wrong = f"has a label for {which} that was given at a weaker isolation"
        else:
            return
        raise UsageError(f"{self.path}: {wrong}; give another --out")

    def _repair(self, end: int, *, rewrite: bool) -> None:
        """Drop a partial last line; with `rewrite`, drop broken verdicts too, in a new file."""
        if not rewrite:
            if os.fstat(self._descriptor).st_size > end:
                os.ftruncate(self._descriptor, end)
            if end and os.pread(self._descriptor, 1, end - 1) != b"\n":
                _write(self._descriptor, b"\n")
            return
        beside = f"{self._target}.{os.getpid()}.new"
        descriptor = os.open(beside, _FLAGS | os.O_EXCL, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with open(self._target, "rb") as file:
            for line in bounded_lines(file, self.path):
                label = _parse(line)
                if label is not None and label.verdict is not Verdict.BROKEN:
                    _write(descriptor, line if line.endswith(b"\n") else line + b"\n")
        os.replace(beside, self._target)
        os.close(self._descriptor)
        self._descriptor = descriptor

    def add(
        self,
        problem: str,
        candidate: int,
        finding: Finding,
        key: str | None,
        evidence: Mapping[str, Any] | None = None,
    ) -> None:
        """Append a label with one write; with `evidence` if given."""
        known = (self._candidates or {}).get(problem, b"")
        of = known[candidate * FINGERPRINT : (candidate + 1) * FINGERPRINT].hex()
        level = finding.conditions.isolation if finding.conditions is not None else ""
        record: dict[str, Any] = {
            **{"problem": problem, "candidate": candidate},
            **{"verdict": finding.verdict.value, "reason": finding.reason},
            **{"seconds": round(finding.usage.seconds, 6), "key": key},
            **({"of": of} if of else {}),
            **({"isolation": level} if level else {}),
            **({} if evidence is None else {"evidence": dict(evidence)}),
        }
        check_same(self._descriptor, self.path)
        _write(self._descriptor, json.dumps(record).encode() + b"\n")

    def close(self) -> None:
        """Flush the file to disk and close it."""
        with contextlib.suppress(OSError):  # not a regular file
            os.fsync(self._descriptor)
        os.close(self._descriptor)


def _opened(path: str, target: str) -> int:
    """The descriptor of the file, created if absent. A terminal or pipe is opened for writing."""
    special = os.path.exists(target) and not os.path.isfile(target)
    try:
        return os.open(path, os.O_WRONLY | os.O_CLOEXEC if special else _FLAGS, 0o666)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error_line(error)}") from error


FINGERPRINT = 2 * TEXT_HASH  # bytes


def fingerprint(conditions: Conditions, text: str) -> bytes:
    """What a label belongs to: a hash of the text alone, and one with its check and the judge.

    The first one is for readers of labels that have the text but not the check.
    """
    content = f"{conditions.check}\n{conditions.judge}\n{text}".encode("utf-8", "surrogatepass")
    return text_hash(text) + hashlib.blake2b(content, digest_size=TEXT_HASH).digest()


def _parse(line: bytes) -> _Label | None:
    """The label in a line; None if it is not a label."""
    try:
        return typed(_Label, parse_json(line))
    except ValueError:
        return None


@dataclass(frozen=True)
class _Label:
    """The fields of every label that are read. One that lacks `of` is of no known text."""

    problem: str
    candidate: int
    verdict: Verdict
    of: str = ""
    isolation: Level = "unsafe"


_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
_LAYOUT: Layout = (
    b'{"problem": "',
    TEXT,
    b'", "candidate": ',
    re.compile(rb"\d+"),
    b', "verdict": "',
    re.compile(rb"[a-z]+"),
    b'", "reason": "',
    TEXT,
    b'", "seconds": ',
)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
