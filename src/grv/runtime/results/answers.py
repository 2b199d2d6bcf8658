"""The file of answers of a run: one whole line per problem, however earlier runs ended."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
from collections.abc import Collection, Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

from ...core.errors import UsageError
from ...files import TEXT, Layout, bounded_lines, error_line, is_torn, parse_json, replacing

if TYPE_CHECKING:
    from ..prices import Prices
    from .solution import Solution

_NAMES = ("problem", "outcome")
_LAYOUT: Layout = (b'{"problem": "', TEXT, b'", "outcome": "', TEXT, b'", "answer": ')


class AnswerFile:
    """Writes solutions as they are found. Solved problems stay solved.

    An existing file must be a file of answers; any other file is refused and stays unchanged.

    Args:
        path: the file.
        problems: the problems of this run. Lines about other problems stay.

    Attributes:
        solved: the problems that already have a verified answer.
    """

    def __init__(self, path: str, problems: Collection[str] = ()) -> None:
        self.path = path
        self.solved: dict[str, dict[str, Any]] = {}
        kept: dict[str, dict[str, Any]] = {}
        with _old(path) as lines:
            for line in lines:
                record = _record(path, line)
                if record is None:
                    continue
                name = str(record["problem"])
                if record["outcome"] == "solved":
                    self.solved[name] = record
                if record["outcome"] == "solved" or name not in problems:
                    kept[name] = record
            # Unsolved problems are searched again and get a new line; a torn last line is dropped.
            with replacing(path) as temporary:
                self._file: IO[str] = open(temporary, "w", encoding="utf-8")  # noqa: SIM115 - see close
                _lock(self._file, path)
                for record in kept.values():
                    self.add(record)

    def add(self, record: dict[str, Any]) -> None:
        """Write a line at once."""
        try:
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()
        except BrokenPipeError:
            raise  # the reader wants no more
        except OSError as error:
            raise UsageError(
                f"{self.path}: cannot be written: {error_line(error)}. The ledger has the answer:"
                " free some space and run the same command again"
            ) from error

    def close(self) -> None:
        """Write no more. A line that could not be written was reported by `add`."""
        with contextlib.suppress(OSError):
            self._file.close()


def record_of(solution: Solution, prices: Prices, model: str) -> dict[str, Any]:
    """The line of a solution."""
    from ...backends.protocols import Usage

    calls = {"generate": solution.bill.generated, "score": solution.bill.generated}
    calls |= {"verify": solution.bill.verified, "rescore": solution.bill.rescored}
    usage = {}
    total = Usage()
    for call, used in solution.usage.items():
        dollars = used.dollars + prices.dollars(call, used, model, calls[call])
        priced = dataclasses.replace(used, dollars=dollars)
        usage[call] = dataclasses.asdict(priced)
        total += priced
    record: dict[str, Any] = {
        "problem": solution.problem,
        "outcome": solution.outcome,
        "answer": solution.draft.text if solution.draft is not None else None,
        "answer_verified": solution.verified,
        "generated": solution.bill.generated,
        "verified": solution.bill.verified,
        "cost": solution.bill.total,
        "usage": {**dataclasses.asdict(total), "by_call": usage},
        "seconds": round(solution.seconds, 3),
        "unneeded": solution.unneeded,
        "unneeded_candidates": solution.bill.unneeded,
        "lost": dict(solution.lost),
        "unscored": solution.unscored,
        "refuted": solution.bill.refuted,
        "search": solution.search,
    }
    if len(solution.answers) > 1:
        record["answers"] = [draft.text for draft in solution.answers]
    if solution.bills:
        record["generator"] = solution.generator
        record["by_generator"] = {
            name: {"generated": each.generated, "verified": each.verified, "cost": each.total}
            for name, each in solution.bills.items()
        }
    return {**record, "message": solution.message} if solution.message else record


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
