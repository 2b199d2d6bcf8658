"""Functions and a policy of one's own, for the command line and for Python.

From the command line, with a file of problems (see docs/guide/own-code.md):

    grv solve riddles.jsonl --generator own_code.py:guess --score own_code.py:nearness \
        --verifier own_code.py:is_right --policy "own_code.py:Patient(batch=4)" --out answers.jsonl

Run it: python examples/own_code.py
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import grv
from grv.policies import Pool
from grv.verifiers import Finding


def guess(problem: grv.Problem) -> str:
    """One candidate: three digits. Ask your own model here."""
    return str(random.randint(100, 999))


def nearness(problem: grv.Problem, text: str) -> float:
    """A score: higher is better."""
    return -abs(sum(map(int, text)) - float(problem.check["sum"]))


async def is_right(problem: grv.Problem, text: str) -> Finding:
    """A verdict with a reason. True or False is enough."""
    wanted = problem.check["sum"]
    if sum(map(int, text)) != wanted:
        return Finding(grv.Verdict.FAILED, f"the digits do not add up to {wanted}")
    right = int(text) % 7 == 0
    return Finding(grv.Verdict.PASSED if right else grv.Verdict.FAILED, "divided by 7")


@dataclass(frozen=True)
class Patient:
    """Generate in rounds of `batch`; verify the best as soon as a round brings no better score."""

    batch: int = 8

    def plan(self, pool: Pool, costs: grv.Costs) -> Iterator[grv.Generate | grv.Verify]:
        """Yield rounds and, after a poor one, a verification."""
        best = float("-inf")
        while True:
            yield grv.Generate(self.batch, "another round")
            record = max(pool.scores, default=best)
            if record <= best:
                yield grv.Verify(pool.best(1), "the last round was no better")
            best = max(best, record)


def main() -> None:
    solution = grv.solve_now(
        grv.Problem("riddle", "A multiple of 7 with three digits that add up to 20", {"sum": 20}),
        generator=guess,
        scorer=nearness,
        verifier=is_right,
        policy=Patient(batch=4),
        budget=5000,
    )
    print(f"{solution.outcome}: {solution.draft}; {solution.bill}")


if __name__ == "__main__":
    main()
