"""What one budget for many problems costs: `python bench/schedule.py [PROBLEMS]`.

Runs 100,000 problems (or as many as given) that are never solved, until each has had a verdict and
a tenth of them a second one: then all searches are open and wait. Prints the peak memory, the
processor time per turn, and the time that the schedule takes to choose among that many searches.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio

from grv.backends.protocols import Draft, Finding, Problem, Score
from grv.core.values import Costs, Verdict
from grv.ledger.sqlite import SqliteLedger
from grv.runtime.calls import Caller
from grv.runtime.config import config_of
from grv.runtime.options import Calls
from grv.runtime.solve import SolveRun
from grv.schedules import LeastSpent

TEXT = "x" * 1000
TURN = 11.0  # a candidate and its verification


class Enough(Exception):
    """The run has shown what it can show."""


class Impossible:
    """Generates texts of 1,000 characters, of which none passes."""

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """New texts."""
        return [Draft(f"{problem.id} {first + i} {TEXT}") for i in range(n)]

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """The same for all."""
        return [Score(0.0) for _ in drafts]

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """None passes."""
        return Finding(Verdict.FAILED)


async def run(problems: int, ledger: SqliteLedger) -> dict[str, Any]:
    """Run until all searches are open, and stop."""
    made = Impossible()
    options: Any = {"generator": made, "scorer": made, "verifier": made, "policy": "verify-all"}
    config = config_of({**options, "costs": Costs(1, 10), "identity": {}})
    asked = [Problem(f"problem {i}", f"What is {i}?") for i in range(problems)]
    spent = 0.0
    peak = 0.0

    def show(progress: Any) -> None:
        nonlocal spent, peak
        spent = progress.spent
        if spent >= 1.1 * TURN * problems:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            raise Enough

    caller = Caller(Calls(concurrency=64))
    total = 3 * TURN * problems
    whole = SolveRun(config, ledger, caller, total, at_once=64, progress=show)
    before = time.process_time()
    try:
        async for _ in whole.solutions(asked):
            pass
    except Enough:
        pass
    seconds = time.process_time() - before
    turns = spent / TURN
    return {
        "problems": problems,
        "turns": round(turns),
        "peak_mb": round(peak, 1),
        "ms_per_turn": round(1000 * seconds / turns, 3),
    }


def choosing(problems: int, turns: int = 200_000) -> float:
    """Microseconds of processor time to choose the next search and to tell what it has cost."""
    schedule = LeastSpent().begin(budget=1e12, problems=problems)
    for place in range(problems):
        schedule.add(place, next_cost=TURN)
    spent = [0.0] * problems
    before = time.process_time()
    for _ in range(turns):
        chosen = schedule.ask()
        assert chosen is not None
        spent[chosen] += TURN
        schedule.tell(chosen, spent=spent[chosen], next_cost=TURN)
    return 1e6 * (time.process_time() - before) / turns


def main() -> None:
    """Measure, and print one record."""
    problems = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteLedger(Path(folder) / "ledger")) as ledger,
    ):
        record = anyio.run(run, problems, ledger)
    print(json.dumps({**record, "us_to_choose": round(choosing(problems), 2)}))


if __name__ == "__main__":
    main()
