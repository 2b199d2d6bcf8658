"""The file of answers of a run: one whole line a problem, whatever stopped the run before."""

from __future__ import annotations

import dataclasses
import json
from typing import IO, TYPE_CHECKING, Any

from ..core.errors import UsageError
from ..replay.writing import write_whole

if TYPE_CHECKING:
    from ..runtime.prices import Prices
    from ..runtime.solve import Solution


class AnswerFile:
    """Where solutions go as they come. Problems that are solved stay solved.

    Attributes:
        solved: the problems that have a verified answer already.
    """

    def __init__(self, path: str) -> None:
        self.solved: dict[str, dict[str, Any]] = {}
        try:
            with open(path, "rb") as file:
                for line in file:
                    record = _record(path, line)
                    if record is not None and record["outcome"] == "solved":
                        self.solved[str(record["problem"])] = record
        except FileNotFoundError:
            pass
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
        # What is not solved is tried again and gets its line then; a torn last line is gone.
        write_whole(path, "".join(json.dumps(each) + "\n" for each in self.solved.values()))
        self._file: IO[str] = open(path, "a", encoding="utf-8")  # noqa: SIM115 - closed by close

    def add(self, record: dict[str, Any]) -> None:
        """Write a line, at once."""
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Write no more."""
        self._file.close()


def record_of(solution: Solution, prices: Prices, model: str) -> dict[str, Any]:
    """A solution as it stands in the file."""
    from ..backends.protocols import Usage

    calls = {"generate": solution.bill.generated, "score": solution.bill.generated}
    calls["verify"] = solution.bill.verified
    usage = {}
    total = Usage()
    for call, used in solution.usage.items():
        dollars = used.dollars + prices.dollars(call, used, model, calls[call])
        priced = dataclasses.replace(used, dollars=dollars)
        usage[call] = dataclasses.asdict(priced)
        total += priced
    record = {
        "problem": solution.problem,
        "outcome": solution.outcome,
        "answer": solution.draft.text if solution.draft is not None else None,
        "answer_verified": solution.verified,
        "generated": solution.bill.generated,
        "verified": solution.bill.verified,
        "cost": solution.bill.total,
        "usage": {**dataclasses.asdict(total), "by_call": usage},
        "unneeded": solution.unneeded,
        "lost": dict(solution.lost),
        "unscored": solution.unscored,
        "search": solution.search,
    }
    return {**record, "message": solution.message} if solution.message else record


def _record(path: str, line: bytes) -> dict[str, Any] | None:
    """A line of answers; None where it is torn. A file of something else is not touched."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    if not isinstance(record, dict) or not {"problem", "outcome"} <= record.keys():
        raise UsageError(f"{path}: is there already, and is no file of answers")
    return record
