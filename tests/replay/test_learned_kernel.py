"""The fast path of `learned` equals the engine, search by search."""

from __future__ import annotations

import dataclasses
import math
import warnings

import numpy as np
import pytest

from grv.comparing.tune import costs_of
from grv.core.limits import Limits
from grv.core.pace import Pace
from grv.core.values import Costs, Latency
from grv.learning.fit import prior_of
from grv.learning.history import History, past
from grv.logs.log import Log, LoggedProblem
from grv.policies import Learned
from grv.policies.learned.drift import Drift
from grv.policies.learned.policy import UnlikeHistoryWarning
from grv.policies.learned.prior import Looks, Prior
from grv.replay.engine import replayed
from grv.replay.kernels.dispatch import engine_trials, many_trials
from grv.replay.kernels.learned import MeritLimits, StackedOrders, learned_trials
from grv.replay.orders import OrderBatch, batches
from grv.theory.guard import FACTOR, LEAST_FOR_BOTH

TILTS = (-3.0, -0.3, 0.3)


def made_up(*, tied: bool, keyed: bool, problems: int = 8, seed: int = 0) -> list[LoggedProblem]:
    """Problems of different sizes and pass rates; a candidate in three has no key."""
    chance = np.random.default_rng(seed)
    found = []
    for at in range(problems):
        size = int(chance.integers(1, 90))
        passed = chance.random(size) < chance.choice([0.0, 0.02, 0.1, 0.5])
        scores = chance.standard_normal(size) + passed * chance.normal(1, 1)
        if tied:
            scores = np.round(scores)
        scores[chance.random(size) < 0.05] = -math.inf
        keys = np.where(chance.random(size) < 0.3, -1, 2 * chance.integers(0, 6, size) + passed)
        found.append(LoggedProblem(f"p{at}", scores, passed, keys if keyed else None))
    return found


def fitted(problems: list[LoggedProblem], tie: float, votes: float) -> Prior:
    prior = prior_of(History.of(past(Log(tuple(problems))), "score", []), tie)
    return dataclasses.replace(prior, votes=votes)


def tilted(prior: Prior, ratio: float, tilt: float, keyed_tilt: float) -> Prior:
    return dataclasses.replace(prior, ratios=(ratio,), tilts=(tilt,), keyed_tilts=(keyed_tilt,))


def by_the_engine(
    prior: Prior, made: list[OrderBatch], ratio: float
) -> list[tuple[bool, int, int, int]]:
    """Of each order: whether it was solved, candidates, verifications, rounds of generation."""
    found = []
    for batch in made:
        for order in batch.orders.tolist():
            search = replayed(
                Learned(prior), batch.problem, Costs(1, ratio), order=order, keys=batch.keyed
            )
            assert search.outcome is not None
            bill = search.outcome.bill
            numbers = (bill.generated, bill.verified, search.rounds.generate)
            assert search.rounds.verify == bill.verified
            found.append((search.outcome.solved, *numbers))
    return found


def with_refuted(problems: list[LoggedProblem], share: float = 0.4) -> list[LoggedProblem]:
    """The same problems, with a share of the failures refuted."""
    chance = np.random.default_rng(7)
    return [
        dataclasses.replace(p, refuted=~p.passed & (chance.random(len(p)) < share))
        for p in problems
    ]


@pytest.mark.slow
@pytest.mark.parametrize("refuted", [False, True])
@pytest.mark.parametrize("ratio", [0.7, 10, 33.3])
@pytest.mark.parametrize(
    ("tied", "keyed", "tie", "votes"),
    [
        (False, False, 1.0, 0.0),
        (True, False, 1.0, 0.0),
        (True, False, 0.1, 0.0),
        (False, True, 1.0, 0.0),
        (False, True, 0.5, 1.0),
        (True, True, 0.5, 2.0),
    ],
)
def test_every_search_is_that_of_the_engine(
    ratio: float, tied: bool, keyed: bool, tie: float, votes: float, refuted: bool
) -> None:
    problems = made_up(tied=tied, keyed=keyed)
    if refuted:
        problems = with_refuted(problems)
    prior = fitted(problems, tie, votes)
    made = list(batches(problems, 2, seed=3, keyed=keyed))
    priors = [tilted(prior, ratio, tilt, tilt + 0.2) for tilt in TILTS]

    found = learned_trials(
        prior, StackedOrders.of(made), [MeritLimits.of(each, ratio) for each in priors]
    )

    assert not found.unlike.any()
    for at, each in enumerate(priors):
        arrays = (found.solved, found.generated, found.verified, found.rounds[..., 0])
        rows = [tuple(row) for row in np.stack([array[at] for array in arrays]).T.tolist()]
        assert rows == by_the_engine(each, made, ratio)


@pytest.mark.slow
@pytest.mark.parametrize(("keyed", "tie"), [(False, 1.0), (True, 0.5)])
def test_searches_at_several_ratios_together_are_those_at_each(keyed: bool, tie: float) -> None:
    problems = made_up(tied=False, keyed=keyed)
    prior = fitted(problems, tie, 0.0)
    stack = StackedOrders.of(list(batches(problems, 2, seed=3, keyed=keyed)))
    asked = [(tilted(prior, ratio, t, t + 0.2), ratio) for ratio in (0.7, 10, 33.3) for t in TILTS]
    limits = [MeritLimits.of(each, ratio) for each, ratio in asked]

    together = learned_trials(prior, stack, limits)

    for at, limit in enumerate(limits):
        alone = learned_trials(prior, stack, [limit])
        assert np.array_equal(together.generated[at], alone.generated[0])
        assert np.array_equal(together.checked[at], alone.checked[0])
    assert len({tuple(row) for row in together.generated.tolist()}) > len(TILTS)


def test_searches_unlike_the_history_are_left_to_the_engine() -> None:
    problems = made_up(tied=False, keyed=False)
    prior = tilted(fitted(problems, 1.0, 0.0), 10, -0.3, -0.3)
    strange = [dataclasses.replace(p, scores=p.scores + 50) for p in problems]
    made = list(batches([*problems, *strange], 1))
    # at most 7 candidates are too few to tell
    expected = [len(p) > 7 and p.id in {q.id for q in strange} for p in problems]

    found = learned_trials(prior, StackedOrders.of(made), [MeritLimits.of(prior, 10)])
    assert not found.unlike[0, : len(problems)].any()
    assert found.unlike[0, len(problems) :].any()
    assert not (found.unlike[0, len(problems) :] & ~np.array(expected)).any()

    with pytest.warns(UnlikeHistoryWarning):
        costs = costs_of([(prior, 10)], made)
    with pytest.warns(UnlikeHistoryWarning):
        rows = by_the_engine(prior, made, 10)
    assert costs[0].tolist() == [generated + 10 * verified for _, generated, verified, _ in rows]


TIMED = Pace(wait_price=1.0, latency=Latency(5, 30))


@pytest.mark.slow
@pytest.mark.parametrize("value", [math.inf, 40.0])
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize(
    ("width", "pace"),
    [
        (1, Pace()),
        (2, Pace()),
        (16, Pace(overlap=False)),
        (16, Pace()),
        (5, Pace(False, True)),
        (16, Pace(random_phase=True)),
        (16, TIMED),
    ],
)
def test_a_comparison_runs_learned_as_the_engine_does(
    width: int, pace: Pace, keyed: bool, value: float
) -> None:
    problems = made_up(tied=width == 2, keyed=keyed, problems=6)
    strange = [dataclasses.replace(p, id=f"far {p.id}", scores=p.scores + 50) for p in problems]
    policy = Learned(tilted(fitted(problems, 1.0, 0.0), 10, -0.3, -0.1))
    made = list(batches([*problems, *strange], 2, keyed=keyed))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnlikeHistoryWarning)
        together = many_trials(
            policy, made, Costs(1, 10), Limits(width=width, value=value, pace=pace)
        )
        how = Limits(width=width, value=value, pace=pace)
        each = [engine_trials(policy, batch, Costs(1, 10), how) for batch in made]

    for fast, slow in zip(together, each, strict=True):
        assert fast.solved.tolist() == slow.solved.tolist()
        assert fast.generated.tolist() == slow.generated.tolist()
        assert fast.verified.tolist() == slow.verified.tolist()
        assert fast.rounds.tolist() == slow.rounds.tolist()
        assert fast.generated.dtype == slow.generated.dtype


@pytest.mark.parametrize("tied", [False, True])
def test_drift_is_detected_where_the_policy_detects_it(tied: bool) -> None:
    problems = made_up(tied=tied, keyed=False, problems=12)
    prior = fitted(problems[:3], 1.0, 0.0)
    moved = [
        dataclasses.replace(p, scores=p.scores * 3 + at / 4) for at, p in enumerate(problems[3:])
    ]
    made = list(batches(moved, 3))

    expected = []
    for batch in made:
        for order in batch.orders:
            drift, scores = Drift(prior), batch.problem.scores[order].tolist()
            seen = [n for n in range(1, len(scores) + 1) if drift.complaint(scores[:n])]
            expected.append(seen[0] if seen else 0)

    assert StackedOrders.of(made).drifts(prior).tolist() == expected
    assert len(set(expected)) > 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::grv.policies.learned.policy.UnlikeHistoryWarning")
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize(
    ("ratio", "factor"), [(3.7, FACTOR), (30.0, FACTOR), (3.9, LEAST_FOR_BOTH)]
)
def test_the_oldest_and_all_else_that_is_verified_equal_those_of_the_engine(
    ratio: float, factor: float, keyed: bool
) -> None:
    """Long searches, in which the second guard has to act."""
    problems, oldest = made_up(tied=False, keyed=keyed, seed=5), 0
    chance = np.random.default_rng(9)
    for number in range(3):
        scores, passed = chance.standard_normal(400), np.zeros(400, dtype=np.bool_)
        passed[380 + number] = True
        keys = chance.integers(0, 300, 400, dtype=np.int32) if keyed else None
        if keys is not None:
            keys[passed] = 999
        problems.append(LoggedProblem(f"long{number}", scores, passed, keys))
    prior = fitted(problems[:8], tie=0.5, votes=0.5)
    made = list(batches(problems, 2, keyed=keyed))
    limits = [MeritLimits.of(prior, ratio)]
    found = learned_trials(prior, StackedOrders.of(made), limits, factor)
    rows = [(batch, order) for batch in made for order in batch.orders.tolist()]
    for at, (batch, order) in enumerate(rows):
        if found.unlike[0, at]:
            continue
        search = replayed(
            Learned(prior, factor=factor),
            batch.problem,
            Costs(1, ratio),
            order=order,
            keys=keyed,
        )
        oldest += sum(turn.action.why.startswith("guard: the oldest") for turn in search.trace)
        assert search.bill.verified == found.verified[0, at]
        row = at - sum(each.size for each in made[: made.index(batch)])
        ranks = np.flatnonzero(found.checked[0, at, : len(batch.problem)])
        assert set(batch.ranked[row][ranks].tolist()) == set(map(int, search.pool.verdicts))
    assert oldest > 10


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [30, 100])
@pytest.mark.parametrize("kind", ["refuted", "repeated", "plain"])
def test_the_guard_of_the_oldest_is_that_of_the_engine(ratio: float, kind: str) -> None:
    """Most candidates are known to fail, and the lowest score passes: the guard has to act."""
    chance = np.random.default_rng(5)
    problems = []
    for at in range(6):
        size = int(chance.integers(100, 500))
        passed = np.arange(size) == chance.integers(20, size)
        scores = np.where(passed, -9.0, chance.standard_normal(size))
        keys = np.where(passed, 999, chance.integers(0, 20, size)) if kind == "repeated" else None
        refuted = ~passed & (chance.random(size) < 0.9) if kind == "refuted" else None
        problems.append(LoggedProblem(f"p{at}", scores, passed, keys, refuted=refuted))
    prior = tilted(fitted(made_up(tied=False, keyed=False), 0.5, 0.5), ratio, -0.3, -0.3)
    prior = dataclasses.replace(prior, looks=Looks(1.0, 1.0))
    made = list(batches(problems, 3, seed=1, keyed=kind == "repeated"))

    found = learned_trials(prior, StackedOrders.of(made), [MeritLimits.of(prior, ratio)])

    arrays = (found.solved, found.generated, found.verified, found.rounds[..., 0])
    rows = [tuple(row) for row in np.stack([array[0] for array in arrays]).T.tolist()]
    assert not found.unlike.any()
    assert rows == by_the_engine(prior, made, ratio)
