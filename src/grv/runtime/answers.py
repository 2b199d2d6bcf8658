"""The file of answers of a run: one whole line per problem, however earlier runs ended."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import select
import stat
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

from ..conditions import Conditions
from ..core.errors import UsageError
from ..files import (
    TEXT,
    Layout,
    bounded_lines,
    check_same,
    error_line,
    is_torn,
    parse_json,
    replacing,
    typed,
)

if TYPE_CHECKING:
    from .solution import Solution

_LOOK_SECONDS = 0.2  # between two looks whether a reader reads, or the run has ended
_NAMES = ("problem", "outcome")
_LAYOUT: Layout = (b'{"problem": "', TEXT, b'", "outcome": "', TEXT, b'", "answer": ')


class Everything(Collection[str]):
    """Stands for all problems, if it is not known which ones will arrive."""

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class AnswerFile:
    """Writes solutions as they are found. Solved problems stay solved.

    An existing file must be a file of answers; any other file is refused and stays unchanged.

    Args:
        path: the file.
        problems: the problems of this run. Lines about other problems stay.
        holds: whether an answer to one of these problems that was verified under some conditions
            is a verified answer now. If not, the problem is searched again.

    Attributes:
        solved: the problems that already have a verified answer.
    """

    def __init__(
        self,
        path: str,
        problems: Collection[str] = (),
        holds: Callable[[str, Conditions | None], bool] = lambda problem, given: True,
    ) -> None:
        self.path = path
        self._closed = threading.Event()
        self.solved: dict[str, dict[str, Any]] = {}
        kept: dict[str, dict[str, Any]] = {}
        with _old(path) as lines:
            for line in lines:
                record = _record(path, line)
                if record is None:
                    continue
                name = str(record["problem"])
                solved = record["outcome"] == "solved"
                if solved and name in problems:
                    solved = holds(name, conditions_of(record))
                if solved:
                    self.solved[name] = record
                if solved or name not in problems:
                    kept[name] = record
            # Unsolved problems are searched again and get a new line; a torn last line is dropped.
            with replacing(path, through_link=True) as temporary:
                self._file = open(temporary, "wb", buffering=0)  # noqa: SIM115 - see close
                os.set_blocking(self._file.fileno(), False)
                _lock(self._file, path)
                for record in kept.values():
                    self._write(record)

    @property
    def is_stream(self) -> bool:
        """Whether this is a terminal or a pipe, whose reader may make it wait."""
        return not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)

    def add(self, record: dict[str, Any]) -> None:
        """Write a line at once; a UsageError if the file is not the one any more at its path."""
        check_same(self._file.fileno(), self.path)
        self._write(record)

    def _write(self, record: dict[str, Any]) -> None:
        left = json.dumps(record).encode() + b"\n"
        try:
            while left:
                left = left[self._file.write(left) or self._wait() :]
        except BrokenPipeError:
            raise  # the reader wants no more
        except OSError as error:
            raise UsageError(
                f"{self.path}: cannot be written: {error_line(error)}. The ledger has the answer:"
                " free some space and run the same command again"
            ) from error

    def _wait(self) -> int:
        """Wait until the reader of a pipe reads. Returns how much was written: nothing."""
        if self._closed.is_set():
            raise BrokenPipeError
        select.select([], [self._file], [], _LOOK_SECONDS)
        return 0

    def close(self) -> None:
        """Write no more. A line that could not be written was reported by `add`."""
        self._closed.set()  # another thread may wait for a reader
        with contextlib.suppress(OSError):
            self._file.close()


def record_of(solution: Solution) -> dict[str, Any]:
    """The line of a solution. Dollars that are unknown are None."""
    from ..backends.protocols import NOTHING, verified_part

    usage = {call: used.as_data() for call, used in solution.usage.items()}
    total = sum(solution.usage.values(), NOTHING)
    record: dict[str, Any] = {
        "problem": solution.problem,
        "outcome": solution.outcome,
        "answer": solution.draft.text if solution.draft is not None else None,
        "answer_verified": solution.verified,
        "answer_status": solution.status,
        "answer_program": solution.answer_program,
        "generated": solution.bill.generated,
        "verified": solution.bill.verified,
        "cost": solution.bill.total,
        "usage": {**total.as_data(), "by_call": usage},
        "seconds": round(solution.seconds, 3),
        "unneeded": solution.unneeded,
        "unneeded_candidates": solution.bill.unneeded,
        "lost": dict(solution.lost),
        "unscored": solution.unscored,
        "refuted": solution.bill.refuted,
        "shared": solution.bill.shared,
        "search": solution.search,
    }
    if solution.bill.repeated:
        record["repeated"] = solution.bill.repeated
    if solution.wrong_probability is not None:
        record["wrong_probability"] = solution.wrong_probability
    if solution.conditions is not None:
        record["conditions"] = dataclasses.asdict(solution.conditions)
    if solution.finding is not None:
        record |= verified_part(solution.finding.evidence)
    if len(solution.answers) > 1:
        record["answers"] = [draft.text for draft in solution.answers]
        record["answer_programs"] = [*solution.answer_programs]
    if solution.bills:
        record["generator"] = solution.generator
        record["by_generator"] = {
            name: {
                "generated": each.generated,
                "verified": each.verified,
                "shared": each.shared,
                "cost": each.total,
            }
            for name, each in solution.bills.items()
        }
    return {**record, "message": solution.message} if solution.message else record


def conditions_of(record: dict[str, Any]) -> Conditions | None:
    """The conditions of an answer; None if the line has none that can be read."""
    try:
        return typed(Conditions, record.get("conditions"))
    except ValueError:
        return None


@contextlib.contextmanager
def _old(path: str) -> Iterator[Iterable[bytes]]:
    """The lines of an earlier run, locked. A pipe has none."""
    if not os.path.isfile(path):
        yield ()
        return
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    with file:
        _lock(file, path)
        yield bounded_lines(file, path)


def _record(path: str, line: bytes) -> dict[str, Any] | None:
    """A line of answers; None if it is torn. Refuses a file of something else."""
    if not line.endswith(b"\n") and is_torn(line, _LAYOUT):
        return None
    try:
        record = parse_json(line)
    except ValueError:
        record = None
    if not isinstance(record, dict) or not all(isinstance(record.get(n), str) for n in _NAMES):
        raise UsageError(f"{path}: exists and is not a file of answers; give another --out")
    return record


def _lock(file: IO[Any], path: str) -> None:
    """Lock the file until it is closed; two runs would lose each other's lines."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UsageError(f"{path}: another grv process writes its answers there") from error
    except OSError:
        pass  # a terminal or a pipe cannot be locked
