"""Solve a problem live with three plain functions, be interrupted, and pay for nothing twice.

The "model" guesses, the score is a hint, and the verifier is sure. Any of the three may be
asynchronous, ask a server, or be an object such as `grv.generators.OpenAI`.

Run it: python examples/solve_with_callables.py
"""

import random
import tempfile
from pathlib import Path

import grv

PROMPT = "A multiple of 7 with three digits that add up to 20"


def guess(problem: grv.Problem) -> str:
    return str(random.randint(100, 999))


def nearness(problem: grv.Problem, text: str) -> float:
    return -abs(sum(map(int, text)) - 20)


def is_right(problem: grv.Problem, text: str) -> bool:
    return int(text) % 7 == 0 and sum(map(int, text)) == 20


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for budget in (30, 5000):  # the second search goes on where the first had to stop
            solution = grv.solve_now(
                PROMPT,
                generator=guess,
                scorer=nearness,
                verifier=is_right,
                costs=grv.Costs(generate=1, verify=10),
                budget=budget,
                ledger=Path(folder) / "ledger.db",
            )
            answer = solution.draft.text if solution.draft is not None else "nothing"
            print(f"{solution.outcome}: {answer}, verified: {solution.verified}; {solution.bill}")


if __name__ == "__main__":
    main()
