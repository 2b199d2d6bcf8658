"""What a prior predicts that a search costs."""

from __future__ import annotations

import itertools
from pathlib import Path

from grv.core.pool import Pool
from grv.core.search import Search
from grv.core.values import CandidateId, Costs, Generated, Verdict, Verified, Verify
from grv.learning.prior_file import load_prior
from grv.policies import Fixed
from grv.policies.learned.prediction import predicted_cost

PRIOR = load_prior(str(Path(__file__).parent.parent / "assets" / "prior-1.json"))
COSTS = Costs(1, 10)


def predicted(scores: tuple[float, ...], failures: int) -> float:
    search = Search(Fixed(max(1, len(scores)), max(1, len(scores))), COSTS)
    verified: list[CandidateId] = []
    if scores:
        search.ask()
        search.tell(Generated(scores))
    while len(verified) < failures:
        action = search.ask()
        assert isinstance(action, Verify)
        verified += action.ids
        search.tell(Verified(dict.fromkeys(action.ids, Verdict.FAILED)))
    return predicted_cost(PRIOR, search.pool, verified, COSTS)


def test_every_failure_raises_the_prediction() -> None:
    middle = PRIOR.scale.values[len(PRIOR.scale.values) // 2]
    scores = tuple(middle + i * 1e-6 for i in range(30))
    costs = [predicted(scores, failures) for failures in (0, 1, 3, 10, 30)]
    assert all(less < more for less, more in itertools.pairwise(costs))
    assert costs[0] >= COSTS.of(1, 1)


def test_without_candidates_it_is_that_of_the_population() -> None:
    assert predicted((), 0) == predicted((), 0) > COSTS.of(1, 1)


def test_it_is_in_the_unit_of_the_costs() -> None:
    pool = Pool(COSTS)
    twice = predicted_cost(PRIOR, pool, [], Costs(2, 20))
    assert round(twice / predicted_cost(PRIOR, pool, [], COSTS), 9) == 2
