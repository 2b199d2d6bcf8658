"""A package that adds one kind of each to grv. Copy it, rename it, keep what you need."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grv
from grv.policies import Pool


class Counting:
    """A generator, `--generator counting:5`: the numbers from 5 on."""

    def __init__(self, start: str = "1") -> None:
        self.start = int(start)

    async def generate(
        self, problem: grv.Problem, n: int, *, first: int = 0
    ) -> Sequence[grv.Draft]:
        """The next `n` candidates; `first` were made before."""
        return [grv.Draft(str(self.start + first + index)) for index in range(n)]


def closeness(problem: grv.Problem, text: str) -> float:
    """A score, `--score closeness`: higher is better."""
    return -abs(int(text) - float(problem.check.get("near", 0)))


def multiple(problem: grv.Problem, text: str) -> bool:
    """A check, `{"kind": "multiple", "of": 7}` with `--allow-check multiple`."""
    return int(text) % int(problem.check["of"]) == 0


@dataclass(frozen=True)
class OneByOne:
    """A policy, `--policy "one-by-one(batch=4)"`: a few candidates, then the best is verified."""

    batch: int = 2

    def plan(self, pool: Pool, costs: grv.Costs) -> Iterator[grv.Generate | grv.Verify]:
        """Yield what to do next."""
        while True:
            yield grv.Generate(self.batch)
            yield grv.Verify(pool.best(1))


def words(path: str) -> Iterator[dict[str, Any]]:
    """An importer, `grv convert FILE --importer words`: lines such as `p1 passed 0.5`."""
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        problem, verdict, score = line.split()
        yield {"problem": problem, "passed": verdict == "passed", "score": float(score)}
