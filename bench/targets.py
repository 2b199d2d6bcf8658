"""What it costs to collect to a target, over collecting n candidates for every problem.

    python bench/targets.py [problems]

Made-up problems: the share of right candidates of each is drawn from a U-shaped distribution, right
candidates have scores that are higher by `signal` standard deviations, and half of the candidates
repeat an earlier text. Both ways see the same candidates. With keys, collecting n verifies each
text once. Printed per signal and target: the cost over that of collecting n, for all problems and
for those whose n candidates have the target; their share; and for how many of them it was found.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
from collections.abc import Sequence

import anyio

from grv.backends.protocols import Draft, Finding, Problem, Score
from grv.core.values import Costs, Verdict
from grv.ledger.ledger import MemoryLedger
from grv.ledger.view import SearchView
from grv.runtime.calls import Caller
from grv.runtime.collect import Collected, Collection, collect_many
from grv.runtime.executor import Backends
from grv.runtime.training import ProblemTexts, Target

N = 64
COSTS = Costs(1, 10)
SIGNALS = (0.0, 1.0, 2.0)
TARGETS = (Target(1, 1), Target(4, 4), Target(4, 0))


class MadeUp:
    """The backends of made-up problems. A text is `SERIAL SCORE RIGHT`."""

    def __init__(self, signal: float, problems: int) -> None:
        self.texts: dict[str, list[str]] = {}
        draw = random.Random(f"{signal}")
        for number in range(problems):
            share = draw.betavariate(0.5, 0.5)
            texts: list[str] = []
            for serial in range(N):
                if texts and draw.random() < 0.5:
                    texts.append(draw.choice(texts))
                    continue
                right = draw.random() < share
                texts.append(f"{serial} {draw.gauss(signal * right, 1):.6f} {int(right)}")
            self.texts[f"p{number}"] = texts

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """The next texts."""
        return [Draft(text) for text in self.texts[problem.id][first : first + n]]

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """The scores in the texts."""
        return [Score(float(draft.text.split()[1])) for draft in drafts]

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        """The verdict in the text."""
        return Finding(Verdict.PASSED if draft.text.endswith(" 1") else Verdict.FAILED)


def key(problem: Problem, draft: Draft) -> str:
    return draft.text


async def collected(world: MadeUp, target: Target) -> tuple[list[float], list[ProblemTexts]]:
    """What each problem cost, and what was found."""
    problems = [Problem(name) for name in world.texts]
    backends = Backends(world, world, world, key, own_keys=True)
    collection = Collection(backends, N, costs=COSTS, target=target)
    ledger = MemoryLedger()
    done: list[Collected] = []
    await collect_many(problems, collection, ledger=ledger, caller=Caller(), done=done.append)
    costs = {each.problem: COSTS.of(len(each.rows), each.verified) for each in done}
    views = [SearchView(ledger.read(collection.search_id(problem))) for problem in problems]
    return [costs[problem.id] for problem in problems], [
        ProblemTexts.of(p, view) for p, view in zip(problems, views, strict=True)
    ]


def main() -> None:
    problems = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    figures = []
    for signal in SIGNALS:
        world = MadeUp(signal, problems)
        whole, everything = anyio.run(collected, world, Target())
        for target in TARGETS:
            costs, found = anyio.run(collected, world, target)
            possible = [target.is_met(texts) for texts in everything]
            met = [target.is_met(texts) for texts in found]
            figures.append(
                {
                    "signal": signal,
                    "passes": target.passes,
                    "failures": target.failures,
                    "cost": round(sum(costs) / sum(whole), 3),
                    "cost_if_possible": round(
                        sum(itertools.compress(costs, possible))
                        / sum(itertools.compress(whole, possible)),
                        3,
                    ),
                    "possible": sum(possible) / problems,
                    "found": sum(met) / sum(possible),
                }
            )
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
