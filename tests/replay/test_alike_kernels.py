"""Failures counted by another column: kernels equal the engine, and the score is the default."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grv.core.limits import Limits
from grv.core.values import Costs
from grv.learning.fit import prior_of
from grv.learning.history import History, past
from grv.logs.log import Log, LoggedProblem
from grv.policies import Learned, Varied
from grv.policies.learned.prior import Prior
from grv.replay.kernels.dispatch import engine_trials, many_trials, trials
from grv.replay.orders import batches
from grv.replay.trials import Trials
from grv.testing import World
from grv.testing.strategies import worlds
from support.examples import examples


def made_up(*, keyed: bool, seed: int = 0, problems: int = 8) -> list[LoggedProblem]:
    """Smooth scores, and few values of `alike`, which agree on labels."""
    chance = np.random.default_rng(seed)
    found = []
    for at in range(problems):
        size = int(chance.integers(2, 90))
        passed = chance.random(size) < chance.choice([0.02, 0.1, 0.4])
        scores = chance.normal(passed, 1)
        alike = (2 * chance.integers(0, 5, size) + passed).astype(np.float64) ** 2
        alike[chance.random(size) < 0.05] = -np.inf
        keys = np.where(chance.random(size) < 0.3, -1, 2 * chance.integers(0, 9, size) + passed)
        found.append(LoggedProblem(f"p{at}", scores, passed, keys if keyed else None, alike=alike))
    return found


def equal(fast: Trials, slow: Trials) -> bool:
    names = ("solved", "generated", "verified", "rounds")
    return all(getattr(fast, n).tolist() == getattr(slow, n).tolist() for n in names)


def fitted(problems: list[LoggedProblem], tie: float, ratio: float) -> Prior:
    prior = prior_of(History.of(past(Log(tuple(problems))), "score", []), tie)
    return dataclasses.replace(prior, ratios=(ratio,), tilts=(-0.6,), keyed_tilts=(-0.3,))


@pytest.mark.slow
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("tie", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("ratio", [0.7, 10, 33.3])
def test_the_kernel_of_learned_equals_the_engine(keyed: bool, tie: float, ratio: float) -> None:
    problems = made_up(keyed=keyed)
    policy = Learned(fitted(problems, tie, ratio))
    made = list(batches(problems, 2, keyed=keyed))

    together = many_trials(policy, made, Costs(1, ratio))

    for batch, fast in zip(made, together, strict=True):
        assert equal(fast, engine_trials(policy, batch, Costs(1, ratio), Limits(width=1)))


@settings(max_examples=examples(100))
@given(
    world=worlds(candidates=24, broken=False, keys=False).filter(len),
    values=st.lists(st.sampled_from([0.13, 0.9, 4.0, 17.5, float("-inf")]), min_size=24),
    ratio=st.sampled_from([1, 3, 10, 100]),
    seed=st.integers(0, 3),
)
def test_the_kernel_of_varied_equals_the_engine(
    world: World, values: list[float], ratio: float, seed: int
) -> None:
    problem = world.logged()
    problem = dataclasses.replace(problem, alike=np.array(values[: len(problem)]))
    for batch in batches([problem], 3, seed=seed):
        fast = trials(Varied(), batch, Costs(1, ratio))
        assert equal(fast, engine_trials(Varied(), batch, Costs(1, ratio), Limits(width=1)))


@pytest.mark.slow
@pytest.mark.parametrize("keyed", [False, True])
def test_the_score_itself_as_alike_changes_nothing(keyed: bool) -> None:
    plain = [
        dataclasses.replace(p, scores=np.round(p.scores, 1), alike=None)
        for p in made_up(keyed=keyed)
    ]
    same = [dataclasses.replace(p, alike=p.scores) for p in plain]
    prior = fitted(plain, 0.5, 10)
    assert fitted(same, 0.5, 10) == prior
    for policy in (Varied(), Learned(prior)):
        for one, other in zip(batches(plain, 3), batches(same, 3), strict=True):
            assert equal(
                engine_trials(policy, one, Costs(1, 10), Limits(width=1)),
                engine_trials(policy, other, Costs(1, 10), Limits(width=1)),
            )


def test_failures_of_equal_values_lower_the_merit_of_others() -> None:
    """The best eight are alike and fail; the next one differs and passes."""
    scores = np.array([9.0, 8.9, 8.8, 8.7, 8.6, 8.5, 8.4, 8.3, 8.0, *np.linspace(0, 1, 31)])
    passed = np.arange(40) == 8
    alike = np.where(passed, 2.0, 1.0)
    alike[9:] = np.arange(31) + 10
    problem = LoggedProblem("p", scores, passed)
    history = made_up(keyed=False)
    prior = dataclasses.replace(fitted(history, 0.1, 10), looks=LENIENT)
    order = [np.arange(40)[None, :]]
    found = {}
    for name, values in (("score", None), ("alike", alike)):
        (batch,) = [
            dataclasses.replace(b, orders=order[0])
            for b in batches([dataclasses.replace(problem, alike=values)], 1)
        ]
        found[name] = int(
            engine_trials(Learned(prior), batch, Costs(1, 10), Limits(width=1)).verified[0]
        )
    assert found["alike"] < found["score"]


LENIENT = dataclasses.replace(
    fitted(made_up(keyed=False), 1.0, 10).looks, distance=1.0, outside=1.0
)
