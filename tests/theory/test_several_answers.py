"""What several answers cost: between k J* and k times the bound for one answer."""

from __future__ import annotations

import random
import statistics

import pytest

from grv.core.limits import Limits
from grv.core.search import Policy, Search
from grv.core.values import Costs, Generate, Generated, Stop, Verdict, Verified, Verify
from grv.policies import Alternate, Balanced, VerifyAll

RHO, TOP, RATE = 10.0, 0.2, 0.5  # the best 20 % pass with probability .5, the others never
BEST = (1 + RHO * TOP) / (RATE * TOP)  # J*: verify the best 20 %


def cost(policy: Policy, answers: int, seed: int) -> float:
    chance = random.Random(seed)
    search = Search(policy, Costs(1, RHO), Limits(answers=answers))
    while not isinstance(action := search.ask(), Stop):
        match action:
            case Generate(n):
                search.tell(Generated(tuple(chance.random() for _ in range(n))))
            case Verify((id,)):
                right = search.pool.scores[id] > 1 - TOP and chance.random() < RATE
                search.tell(Verified({id: Verdict.PASSED if right else Verdict.FAILED}))
    assert len(search.answers) == answers
    return search.bill.total


@pytest.mark.parametrize("answers", [1, 3])
@pytest.mark.parametrize(
    ("policy", "constant"), [(Balanced(), 2.0), (Alternate(), 3.0), (VerifyAll(), 1 + RHO)]
)
def test_k_answers_cost_at_most_k_times_the_bound(
    policy: Policy, constant: float, answers: int
) -> None:
    spent = [cost(policy, answers, seed) for seed in range(150)]
    mean = statistics.fmean(spent)
    error = statistics.stdev(spent) / len(spent) ** 0.5
    assert answers * BEST - 4 * error <= mean <= constant * answers * BEST + 4 * error
