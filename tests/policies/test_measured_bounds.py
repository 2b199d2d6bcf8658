"""The bounds with measured costs: the first guess of the ratio is wrong by a factor of up to 1000.

The true costs are constant. So one payment of each kind reveals the true ratio, and a wrong guess
costs at most what was spent by then.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from grv.comparing.simulation.laws import Pieces
from grv.comparing.simulation.populations import flat_law, needle_law
from grv.comparing.simulation.streams import CandidateLaw
from grv.core.pool import Pool
from grv.core.search import Policy, Search
from grv.core.values import (
    Costs,
    Generate,
    Generated,
    Measured,
    Step,
    Stop,
    Verdict,
    Verified,
    Verify,
)
from grv.policies import Alternate, Balanced, Varied
from grv.policies.learned.guard import Guard, guarded
from grv.theory.constants import balanced_constant
from grv.theory.decimals import exact_ratio
from grv.theory.guard import FACTOR
from grv.theory.proofs.steps import step_cost
from grv.theory.rounds import StepLaw
from grv.theory.slots import BalancedPath, Slot, block_draws

CANDIDATE = 3.0  # the true cost of a candidate; the guess is 1
LAWS: dict[str, CandidateLaw] = {"flat": flat_law(0.05), "needle": needle_law(0.02)}
EASIER: dict[str, CandidateLaw] = {"flat": flat_law(0.5), "needle": needle_law(0.02)}
RATIOS = [1.0, 30.0, 1000.0]
WRONG = [1 / 1000, 1 / 30, 1.0, 30.0, 1000.0]


def _everything(pool: Pool) -> Iterator[Step]:
    while True:
        yield Generate(1, "one more")
        yield Verify(pool.best(pool.waiting), "all")


def _nothing(pool: Pool) -> Iterator[Step]:
    """Leaves all verifications to the guard."""
    while True:
        yield Generate(5, "more")


@dataclass(frozen=True)
class Greedy:
    """Verifies everything, inside the guard: it spends all that the guard allows."""

    inner: Callable[[Pool], Iterator[Step]] = _everything

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        return guarded(self.inner(pool), pool, Guard(pool, costs))


def spent(policy: Policy, law: CandidateLaw, rho: float, guess: float, seed: int) -> float:
    """The cost of one search in candidates, if only its payments reveal the ratio."""
    chance = np.random.default_rng((17, seed))
    search, passed = Search(policy, Measured(1, guess)), list[bool]()
    while not isinstance(action := search.ask(), Stop):
        if isinstance(action, Generate):
            drawn = law.sample(chance, action.n)
            passed += drawn.passed.tolist()
            paid = CANDIDATE * action.n
            search.tell(Generated(tuple(drawn.scores.tolist()), paid=paid))
        elif isinstance(action, Verify):
            verdicts = {id: Verdict.PASSED if passed[id] else Verdict.FAILED for id in action.ids}
            search.tell(Verified(verdicts, paid=CANDIDATE * rho * len(verdicts)))
    return search.bill.total / CANDIDATE


def low_end(policy: Policy, law: CandidateLaw, rho: float, guess: float, runs: int = 24) -> float:
    """The mean cost in candidates, less four standard errors."""
    runs = 4 if guess > 1e4 else runs
    costs = [spent(policy, law, rho, guess, seed) for seed in range(runs)]
    return float(np.mean(costs)) - 4 * float(np.std(costs, ddof=1)) / math.sqrt(runs)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("rho", RATIOS)
def test_alternate_and_varied_keep_their_bounds_whatever_the_guess(
    rho: float, wrong: float, law: str
) -> None:
    """Their first draw and verification are the same for every ratio."""
    best = LAWS[law].optimum(Costs(1, rho))
    for policy in (Alternate(), Varied()):
        found = low_end(policy, LAWS[law], rho, rho * wrong)
        assert found <= 3 * best
        assert found <= 3 * (1 + rho) / LAWS[law].pass_rate


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("rho", RATIOS)
def test_alternate_and_varied_do_not_depend_on_the_guess(rho: float, wrong: float) -> None:
    for policy in (Alternate(), Varied()):
        for seed in range(10):
            right = spent(policy, LAWS["needle"], rho, rho, seed)
            assert spent(policy, LAWS["needle"], rho, rho * wrong, seed) == pytest.approx(right)


def balanced_bound(rho: float, guess: float, law: CandidateLaw) -> float:
    """What Balanced costs at most: one round more than with a right guess."""
    first = BalancedPath(Fraction(guess)).drawn(1)
    return balanced_constant(rho) * law.optimum(Costs(1, rho)) + first + rho + 1


def guarded_bound(rho: float, guess: float, law: CandidateLaw) -> float:
    """What a guarded search costs at most."""
    return FACTOR * law.optimum(Costs(1, rho)) + block_draws(guess).first + rho


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("rho", RATIOS)
def test_a_wrong_guess_costs_balanced_one_round(rho: float, wrong: float, law: str) -> None:
    found = low_end(Balanced(), LAWS[law], rho, rho * wrong)

    assert found <= balanced_bound(rho, rho * wrong, LAWS[law])


@pytest.mark.slow
@pytest.mark.parametrize("rho", [*RATIOS, 0.75, 10.5, 142.875])
@pytest.mark.parametrize("wrong", [1 / 1000, 30.0])
def test_after_its_first_round_balanced_draws_as_with_known_costs(rho: float, wrong: float) -> None:
    """So the exact programme proves its bound for every step law."""
    search, right = Search(Balanced(), Measured(1, rho * wrong)), Costs(1, rho)
    draws: list[int] = []
    while len(draws) < 12:
        action = search.ask()
        if isinstance(action, Generate):
            draws.append(action.n)
            search.tell(Generated((0.5,) * action.n, paid=float(action.n)))
        elif isinstance(action, Verify):
            search.tell(Verified(dict.fromkeys(action.ids, Verdict.FAILED), paid=rho))
    first = BalancedPath(exact_ratio(Costs(1, rho * wrong))).drawn(1)
    later = [slot.draws for slot in itertools.islice(Balanced().slots(right), 1, 12)]

    assert draws == [first, *later]
    for q, p in itertools.product((1.0, 0.3, 0.02, 1e-4), (1.0, 0.4)):
        law = StepLaw(q, p)
        path = itertools.chain([Slot(first)], itertools.islice(Balanced().slots(right), 1, None))
        if rho * p * q < 2e-3:
            continue  # too many rounds to follow
        bound = balanced_constant(rho) * law.optimum(rho) + first + rho + 1
        assert step_cost(path, law, rho, most=40).high <= bound


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("rho", RATIOS)
def test_a_wrong_guess_costs_a_guarded_search_one_round(rho: float, wrong: float, law: str) -> None:
    each = EASIER[law] if rho > 100 else LAWS[law]

    assert low_end(Greedy(), each, rho, rho * wrong) <= guarded_bound(rho, rho * wrong, each)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("rho", [1.0, 30.0])
def test_a_wrong_guess_costs_one_round_more_than_the_factor_times_verify_all(
    rho: float, wrong: float
) -> None:
    """Whatever the score: here the best candidates never pass."""
    inverted = Pieces((0.7, 0.3), (0.3, 0.0))
    bound = FACTOR * (1 + rho) / inverted.pass_rate + block_draws(rho * wrong).first + rho
    for inner in (_everything, _nothing):
        assert low_end(Greedy(inner), inverted, rho, rho * wrong) <= bound


@pytest.mark.parametrize("right", [1, 2, 5])
@pytest.mark.parametrize("guess", [10.0, 30.0, 100.0])
@pytest.mark.parametrize("rho", [1.0, 2.0, 10.0])
def test_on_every_sequence_a_wrong_guess_adds_one_block_and_one_verification(
    rho: float, guess: float, right: int
) -> None:
    """Scores rise, but the one candidate that passes has the lowest."""
    for inner in (_everything, _nothing):
        search, drawn = Search(Greedy(inner), Costs(1, guess)), 0
        while not isinstance(action := search.ask(), Stop):
            if isinstance(action, Generate):
                numbers = range(drawn, drawn + action.n)
                scores = tuple(-1.0 if number == right else float(number) for number in numbers)
                search.tell(Generated(scores, paid=float(action.n)))
                drawn += action.n
            elif isinstance(action, Verify):
                passed = action.ids == (right,)
                verdict = Verdict.PASSED if passed else Verdict.FAILED
                search.tell(Verified(dict.fromkeys(action.ids, verdict), paid=rho))
        verify_all = (1 + rho) * (right + 1)
        assert search.bill.total <= FACTOR * verify_all + block_draws(guess).first + rho


@pytest.mark.soak
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("rho", [10 ** (i / 4) for i in range(13)])
def test_every_bound_holds_at_13_ratios(rho: float, wrong: float, law: str) -> None:
    each = EASIER[law] if rho > 100 else LAWS[law]
    best, guess = each.optimum(Costs(1, rho)), rho * wrong

    for policy in (Alternate(), Varied()):
        assert low_end(policy, each, rho, guess, 100) <= 3 * best
        assert low_end(policy, each, rho, guess, 100) <= 3 * (1 + rho) / each.pass_rate
    assert low_end(Balanced(), each, rho, guess, 100) <= balanced_bound(rho, guess, each)
    assert low_end(Greedy(), each, rho, guess, 100) <= guarded_bound(rho, guess, each)


@pytest.mark.slow
def test_a_guess_that_is_far_too_low_does_not_open_the_guard() -> None:
    """A guard that read the ratio only at the start would allow too much here."""
    law = needle_law(0.004)
    found = low_end(Greedy(), law, 100.0, 1.0)

    assert found <= FACTOR * law.optimum(Costs(1, 100.0)) + 101
