"""The contract holds for a stranger's policy, and it can fail: each of the bad ones is caught."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import pytest
from hypothesis import Phase
from hypothesis.errors import Flaky

from grv.core.errors import PolicyError, UsageError
from grv.core.pool import Pool
from grv.core.search import Policy
from grv.core.values import CandidateId, Costs, Generate, Step, Verify
from grv.policies import POLICIES, Threshold
from grv.testing.contracts import PolicyContract


@dataclass(frozen=True)
class Patient:
    """Verify the best as soon as a round brings no better score. Nobody has registered it."""

    batch: int = 8

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        best = float("-inf")
        while True:
            yield Generate(self.batch)
            record = max(pool.scores, default=best)
            if record <= best:
                yield Verify(pool.best(1))
            best = max(best, record)


class TestPatient(PolicyContract):
    policy = Patient(batch=2)


class Dicey:
    """Not deterministic."""

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        while not pool.exhausted:
            yield Generate(random.randint(1, 3))
            yield Verify(pool.best(1))


@dataclass
class Learning:
    """Remembers from search to search."""

    lengths: Iterator[int] = field(default_factory=lambda: itertools.cycle([1, 2, 4, 3]))

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        while not pool.exhausted:
            yield Generate(next(self.lengths))
            yield Verify(pool.best(1))


class Repeating:
    """Verifies the same candidate twice."""

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        yield Generate(2)
        best = pool.best(1)
        yield Verify(best)
        yield Verify(best)


class Guessing:
    """Verifies what was never generated."""

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        yield Generate(2)
        yield Verify((CandidateId(2),))


class Idle:
    """Never does anything."""

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        while True:
            yield Verify(())


@dataclass(frozen=True)
class Absolute(Threshold):
    """Uses the values of scores, and denies it."""

    rank_only: ClassVar[bool] = True


class KeyReading:
    """Reads something into the name of a key."""

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        yield Generate(16)
        yield Verify(tuple(id for id in pool.best(16) if (pool.key(id) or "a").isalpha()))


class Meddling:
    """Makes the pool forget what was verified."""

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        yield Generate(4)
        single = [id for id in pool.best(4) if pool.key(id) is None]
        for _ in range(2):
            yield Verify(tuple(single[:1]))
            cast(Any, pool.verdicts).clear()


class Smuggling:
    """Adds candidates that were not generated."""

    def plan(self, pool: Pool, costs: Costs) -> Iterator[Step]:
        yield Generate(1)
        cast(Any, pool.scores).append(1.0)
        yield Generate(1)


CAUGHT = (AssertionError, Flaky, ExceptionGroup)  # hypothesis may find two ways to fail


@pytest.mark.parametrize(
    ("bad", "promise", "error"),
    [
        (Repeating, "it_ends_and_verifies_only_what_is_known_and_new", PolicyError),
        (Guessing, "it_ends_and_verifies_only_what_is_known_and_new", PolicyError),
        (Idle, "it_ends_and_verifies_only_what_is_known_and_new", PolicyError),
        (Meddling, "it_ends_and_verifies_only_what_is_known_and_new", (*CAUGHT, PolicyError)),
        (Dicey, "the_same_events_get_the_same_actions", CAUGHT),
        (Learning, "the_same_events_get_the_same_actions", CAUGHT),
        (Learning, "asking_twice_is_asking_once", CAUGHT),
        (Learning, "a_crash_anywhere_changes_nothing", CAUGHT),
        (Learning, "what_was_not_generated_does_not_matter", CAUGHT),
        (Learning, "a_budget_that_just_covers_a_search_changes_nothing", CAUGHT),
        (Learning, "one_at_a_time_never_costs_more_and_finds_the_same", CAUGHT),
        (Smuggling, "the_bill_is_the_sum_of_the_events_and_within_the_budget", AssertionError),
        (KeyReading, "replay_agrees", AssertionError),
        (lambda: Absolute(1), "only_the_order_of_scores_matters", AssertionError),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_a_bad_policy_is_caught(
    bad: Callable[[], Policy],
    promise: str,
    error: type[Exception] | tuple[type[Exception], ...],
) -> None:
    class Bad(PolicyContract, phases=[Phase.generate], database=None, max_examples=150):
        policy = bad()

    with pytest.raises(error):
        getattr(Bad(), f"test_{promise}")()


def test_a_registered_policy_that_cannot_be_written_down_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @dataclass(frozen=True)
    class Opaque(Patient):
        chooser: Callable[[int], int] = abs

    monkeypatch.setitem(POLICIES, "opaque", Opaque)

    class Bad(PolicyContract):
        policy = Opaque(chooser=hash)

    with pytest.raises(UsageError, match="are not valid"):
        Bad().test_its_specification_reads_back()
