"""Infinite streams: the same for every reader, and without an end."""

from __future__ import annotations

import numpy as np
import pytest

from grv.comparing.simulation.laws import Pieces
from grv.comparing.simulation.populations import flat_law, inverted_law, needle_law
from grv.comparing.simulation.streams import CandidateStream, Drawn
from grv.core.search import Policy
from grv.core.values import Costs, Verdict
from grv.policies import Adaptive, Alternate, Balanced, Fixed, Threshold, VerifyAll
from grv.testing import World, run

COSTS = Costs(generate=1, verify=10)


class Counting:
    """Candidates that are numbered; the thousandth passes."""

    def __init__(self) -> None:
        self.drawn = 0

    def sample(self, chance: np.random.Generator, n: int) -> Drawn:
        numbers = np.arange(self.drawn, self.drawn + n)
        self.drawn += n
        return Drawn(-numbers.astype(np.float64), numbers == 999)


def test_it_is_drawn_only_as_far_as_it_is_read() -> None:
    law = Counting()
    stream = CandidateStream(law, (0,))

    found = stream.run(VerifyAll(), COSTS)

    assert found == (True, 1000, 1000, 11000.0, False)
    assert law.drawn == 1024
    assert stream.run(Fixed(64, 4), COSTS) == (False, 64, 4, 104.0, False)
    assert law.drawn == 1024


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [Adaptive(), Alternate(), Balanced(), VerifyAll(), Threshold(0.9), Fixed(300, 3)],
    ids=repr,
)
def test_it_fares_as_in_a_world_that_is_long_enough(policy: Policy) -> None:
    law = Pieces((0.9, 0.1), (0.0, 0.02))
    for seed in range(5):
        chance = np.random.default_rng((seed,))
        parts = [law.sample(chance, n) for n in (256, 768, 3072, 12288)]  # as it is drawn
        scores, passed = (np.concatenate(each).tolist() for each in zip(*parts, strict=True))
        verdicts = tuple(Verdict.PASSED if each else Verdict.FAILED for each in passed)
        outcome = run(policy, COSTS, World(tuple(scores), verdicts)).outcome
        assert outcome is not None

        found = CandidateStream(law, (seed,)).run(policy, COSTS)

        bill = outcome.bill
        assert found == (outcome.solved, bill.generated, bill.verified, bill.total, False)


def test_earlier_readers_make_no_difference() -> None:
    law = needle_law(0.002)
    one, two = CandidateStream(law, (1, 2)), CandidateStream(law, (1, 2))
    two.run(VerifyAll(), COSTS)

    assert one.run(Balanced(), COSTS) == two.run(Balanced(), COSTS)


def test_an_infinite_search_ends_at_the_limit_of_the_stream() -> None:
    found = CandidateStream(inverted_law(0.001), (0,)).run(Balanced(), COSTS, most=5000)

    assert found.ended
    assert found.generated == 5000
    assert found.verified > 4900


@pytest.mark.slow
def test_the_mean_cost_is_the_expected_one() -> None:
    costs = [
        CandidateStream(flat_law(0.2), (7, i)).run(VerifyAll(), COSTS).cost for i in range(2000)
    ]

    assert np.mean(costs) == pytest.approx(11 / 0.2, rel=0.1)  # five standard errors
