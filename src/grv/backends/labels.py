"""Files of candidates to be verified, and of their labels: one JSON record a line.

The labels are appended as they come. A file that was cut short, by a crash or by Ctrl-C, is taken
up where it stopped: a torn last line is dropped, and so are broken verdicts, which are no labels.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.errors import LogError, UsageError
from ..core.values import Verdict
from ..files import json_lines, shown
from .problems import is_name
from .protocols import Finding, Problem


@dataclass(frozen=True, slots=True)
class Batch:
    """A problem and its candidates' texts."""

    problem: Problem
    texts: tuple[str, ...]


def read_batches(path: str) -> Iterator[Batch]:
    """The problems of a file, each with its candidates; a LogError names the line."""
    seen: set[str] = set()
    for number, record in json_lines(path):
        batch = _batch(path, number, record)
        if batch.problem.id in seen:
            message = f"problem {batch.problem.id} is there twice"
            raise LogError(message, path=path, line=number, problem_id=batch.problem.id)
        seen.add(batch.problem.id)
        yield batch


def _batch(path: str, number: int, record: Mapping[str, Any]) -> Batch:
    def wrong(message: str) -> LogError:
        return LogError(message, path=path, line=number)

    name, check, texts = (record.get(field) for field in ("problem", "check", "candidates"))
    if not is_name(name):
        raise wrong(f"problem must be a name, not {shown(name)}")
    if not isinstance(check, dict):
        raise wrong(f"problem {name}: check must be a record")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise wrong(f"problem {name}: candidates must be a list of texts")
    prompt = record.get("prompt", "")
    if not isinstance(prompt, str):
        raise wrong(f"problem {name}: prompt must be a text")
    return Batch(Problem(str(name), prompt, check), tuple(texts))


class LabelFile:
    """A file of labels, open for more; nobody else may write to it meanwhile.

    `done` has the verdicts that it holds, by problem and number of the candidate.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.done: dict[tuple[str, int], Verdict] = {}
            kept = self._read()
            size = os.fstat(self._descriptor).st_size
            if len(kept) != size:
                self._replace(kept)
        except BlockingIOError:
            os.close(self._descriptor)
            raise UsageError(f"{path}: another grv is writing to it") from None
        except BaseException:
            os.close(self._descriptor)
            raise

    def _read(self) -> bytes:
        """The lines to keep, as they stand."""
        with open(self.path, "rb") as file:
            lines = file.read().split(b"\n")
        torn = lines.pop()  # nothing, where the file ends as it should
        kept = []
        for number, line in enumerate(lines, 1):
            label = self._parse(line)
            if label is None:
                raise LogError("not a label", path=self.path, line=number)
            if label[1] is not Verdict.BROKEN:
                kept.append(line)
                self.done[label[0]] = label[1]
        label = self._parse(torn)
        if label is not None and label[1] is not Verdict.BROKEN:
            kept.append(torn)
            self.done[label[0]] = label[1]
        return b"".join(line + b"\n" for line in kept)

    def _parse(self, line: bytes) -> tuple[tuple[str, int], Verdict] | None:
        try:
            record = json.loads(line)
            place = (record["problem"], record["candidate"])
            verdict = Verdict(record["verdict"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return (place, verdict) if isinstance(place[0], str) and type(place[1]) is int else None

    def _replace(self, content: bytes) -> None:
        """Put the lines to keep in the file's place, all or nothing."""
        if os.fstat(self._descriptor).st_size > len(content):
            with open(self.path, "rb") as file:
                unchanged = file.read(len(content)) == content
            if unchanged:  # only the end is to go
                os.ftruncate(self._descriptor, len(content))
                return
        beside = f"{self.path}.{os.getpid()}.new"
        descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        _write(descriptor, content)
        os.replace(beside, self.path)
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
        """Append a label, in one piece; with `evidence` where it is given."""
        record: dict[str, Any] = {
            **{"problem": problem, "candidate": candidate},
            **{"verdict": finding.verdict.value, "reason": finding.reason},
            **{"seconds": round(finding.usage.seconds, 6), "key": key},
        }
        if evidence is not None:
            record["evidence"] = dict(evidence)
        _write(self._descriptor, json.dumps(record).encode() + b"\n")

    def close(self) -> None:
        """Close the file, with all of it on the disk."""
        with contextlib.suppress(OSError):  # not a regular file
            os.fsync(self._descriptor)
        os.close(self._descriptor)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
