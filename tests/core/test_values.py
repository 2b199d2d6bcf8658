"""The values and their rules."""

from __future__ import annotations

import dataclasses
import math

import pytest

from grv.core.errors import UsageError
from grv.core.values import (
    Bill,
    CandidateId,
    Costs,
    Generate,
    Generated,
    Latency,
    Outcome,
    Reason,
    Rounds,
    Stop,
    Turn,
    Verdict,
    Verified,
    Verify,
)


def test_a_candidate_costs_its_generation_and_its_score() -> None:
    costs = Costs(generate=2, verify=30, score=1)

    assert costs.candidate == 3
    assert costs.ratio == 10
    assert costs.of(4, 2) == 4 * 3 + 2 * 30


def test_a_verification_costs_ten_candidates_unless_told_otherwise() -> None:
    assert Costs() == Costs(generate=1, verify=10, score=0)


@pytest.mark.parametrize("wrong", [0, -1, math.inf, -math.inf, math.nan])
def test_generating_and_verifying_have_a_positive_finite_cost(wrong: float) -> None:
    with pytest.raises(UsageError, match=f"the cost to generate must be .*, not {wrong}"):
        Costs(generate=wrong)
    with pytest.raises(UsageError, match=f"the cost to verify must be .*, not {wrong}"):
        Costs(verify=wrong)


@pytest.mark.parametrize("wrong", [-0.5, math.inf, math.nan])
def test_scoring_may_be_free_but_not_less(wrong: float) -> None:
    assert Costs(score=0).candidate == 1
    with pytest.raises(UsageError, match=f"the cost to score must be .*, not {wrong}"):
        Costs(score=wrong)


def test_rounds_take_their_time_one_after_the_other() -> None:
    assert Latency(generate=20, verify=60).of(Rounds(3, 2)) == 180
    assert Latency(0, 0).of(Rounds(3, 2)) == 0


@pytest.mark.parametrize("wrong", [-1, math.inf, math.nan])
def test_a_round_takes_a_finite_time(wrong: float) -> None:
    with pytest.raises(
        UsageError, match=f"seconds of a round of generation must be .*, not {wrong}"
    ):
        Latency(wrong, 1)
    with pytest.raises(
        UsageError, match=f"seconds of a round of verification must be .*, not {wrong}"
    ):
        Latency(1, wrong)


def test_a_reason_for_people_does_not_make_another_action() -> None:
    ids = (CandidateId(1), CandidateId(0))

    assert Generate(3, "to begin with") == Generate(3)
    assert Verify(ids, "the best") == Verify(ids)
    assert Verify(ids) != Verify(ids[::-1])


def test_a_turn_reads_as_what_happened_and_why() -> None:
    ids = (CandidateId(4), CandidateId(1))
    verdicts = {ids[0]: Verdict.FAILED, ids[1]: Verdict.PASSED}

    assert str(Turn(Generate(8, "to begin with"), Generated((1.0, 2.0)))) == (
        "generated 2 (to begin with)"
    )
    assert str(Turn(Verify(ids), Verified(verdicts))) == "verified 4 failed, 1 passed"


def test_an_outcome_is_solved_for_one_reason_only() -> None:
    bill = Bill(1, 1, 11.0)

    solved = {reason for reason in Reason if Outcome(reason, None, bill).solved}

    assert solved == {Reason.SOLVED}


@pytest.mark.parametrize("value", [Costs(), Generate(1), Stop(Reason.FINISHED), Bill(0, 0, 0.0)])
def test_values_are_frozen(value: object) -> None:
    name = dataclasses.fields(value)[0].name  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, 5)


def test_verdicts_and_reasons_are_stored_under_these_words() -> None:
    assert [verdict.value for verdict in Verdict] == ["passed", "failed", "broken"]
    assert [reason.value for reason in Reason] == [
        "solved",
        "finished",
        "exhausted",
        "out of budget",
    ]
