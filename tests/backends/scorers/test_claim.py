"""The score that reads what an agent claims."""

from __future__ import annotations

import asyncio

import pytest

from grv import Draft, Problem
from grv.backends.scorers.claim import ClaimScorer
from grv.testing import ScorerContract


class TestClaim(ScorerContract):
    def make(self) -> ClaimScorer:
        return ClaimScorer()


@pytest.mark.parametrize(
    ("log", "claim"),
    [
        ("Done. All tests pass.", 1.0),
        ("All 12 tests are passing now.", 1.0),
        ("===== 14 passed in 0.31s =====", 1.0),
        ("The suite is green.", 1.0),
        ("Passed every test.", 1.0),
        ("No tests fail any more, and all checks pass.", 1.0),
        ("I changed the parser.", 0.0),
        ("", 0.0),
        ("===== 1 failed, 13 passed in 0.4s =====", -1.0),
        ("Two tests still fail.", -1.0),
        ("I could not run the tests.", -1.0),
        ("I was unable to fix the parser.", -1.0),
        ("All tests pass." + " x" * 4000, 0.0),  # only the end counts
    ],
)
def test_what_a_log_claims(log: str, claim: float) -> None:
    assert ClaimScorer().of(log) == claim


def test_a_draft_without_a_log_claims_nothing() -> None:
    drafts = [Draft("diff", log="All tests pass."), Draft("diff")]
    scores = asyncio.run(ClaimScorer().score(Problem("p"), drafts))

    assert [score.value for score in scores] == [1.0, 0.0]
