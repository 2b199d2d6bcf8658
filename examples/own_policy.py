"""A policy of one's own, next to the paper's, on a population with a known law.

Run it: python examples/own_policy.py
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import grv
from grv.policies import Adaptive, Policy, Pool
from grv.testing import population


@dataclass(frozen=True)
class Patient:
    """Generate in rounds of `batch`; verify the best as soon as a round brings no better score."""

    batch: int = 8
    rank_only: ClassVar[bool] = True
    relies_on: ClassVar[str] = "higher scores are not worse"

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
    log = population("coding", problems=30, candidates=256)
    policies: dict[str, Policy] = {
        "adaptive": Adaptive(),
        "patient": Patient(),
        "patient 2": Patient(2),
    }
    print(grv.compare(policies, log, grv.Costs(generate=1, verify=10)))


if __name__ == "__main__":
    main()
