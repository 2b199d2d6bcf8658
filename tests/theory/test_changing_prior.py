"""A search that changes its prior at doublings costs at most three times its guard's factor."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from grv.core.search import Policy, Search
from grv.core.values import Costs, Generate, Generated, Stop, Verdict, Verified, Verify
from grv.learning.history import PastProblem
from grv.learning.online import fitted_prior
from grv.policies import Learned, Varied
from grv.theory.guard import FACTOR

pytestmark = pytest.mark.slow

Candidates = Sequence[tuple[float, bool]]


def guarded() -> list[Policy]:
    """The cold policy, and some that believe in priors of very different problems."""
    policies: list[Policy] = [Varied(FACTOR)]
    for seed, slope in enumerate((3.0, -3.0, 0.0)):
        draw = np.random.default_rng(seed)
        past = []
        for number in range(12):
            scores = draw.standard_normal(40)
            passed = draw.random(40) < 0.3 / (1 + np.exp(-slope * scores))
            past.append(PastProblem(f"p{number}", scores, passed, np.ones(40, dtype=np.bool_)))
        prior = fitted_prior(past, "score")
        assert prior is not None
        policies.append(Learned(prior))
    return policies


def cost_of(candidates: Candidates, ratio: float, policies: Sequence[Policy]) -> float:
    """What a search pays that goes on with the next policy as soon as it may."""
    made = 0
    verified: set[int] = set()
    paid = started = 0.0
    for policy in policies:
        search = Search(policy, Costs(1, ratio))
        started = paid
        while paid < 2 * started or paid == started:
            match search.ask():
                case Generate(n):
                    first = search.arrived
                    paid += max(0, first + n - made)
                    made = max(made, first + n)
                    search.tell(Generated(tuple(candidates[first + i][0] for i in range(n))))
                case Verify(ids):
                    (id,) = ids
                    paid += 0.0 if id in verified else ratio
                    verified.add(id)
                    if candidates[id][1]:
                        return paid
                    search.tell(Verified({id: Verdict.FAILED}))
                case Stop():
                    raise AssertionError("it never ends")
    raise AssertionError


def verify_all(sequence: Candidates, ratio: float) -> float:
    first = next(place for place, (_, passes) in enumerate(sequence) if passes)
    return (first + 1) * (1 + ratio)


def sequences(ratio: float) -> list[Candidates]:
    """Random ones, and ones whose only right candidate has the lowest score."""
    made: list[Candidates] = []
    for seed in range(12):
        chance = random.Random(f"{seed} {ratio}")
        where = chance.randrange(1, 40)
        hostile = seed % 2
        some = [
            (-9.0 if hostile and i == where else chance.gauss(0, 1), i == where)
            for i in range(60_000)
        ]
        made.append(some)
    return made


@pytest.mark.parametrize("ratio", [10.0, 30.0])
def test_no_choice_of_priors_costs_more_than_three_times_the_factor(ratio: float) -> None:
    policies = guarded()
    number = len(policies)
    worst = 0.0
    for seed, sequence in enumerate(sequences(ratio)):
        chance = random.Random(seed)
        orders = [[(first + change) % number for change in range(99)] for first in range(number)]
        orders.append([chance.randrange(number) for _ in range(99)])
        for order in orders:
            paid = cost_of(sequence, ratio, [policies[place] for place in order])
            worst = max(worst, paid / verify_all(sequence, ratio))
    assert FACTOR < worst <= 3 * FACTOR
