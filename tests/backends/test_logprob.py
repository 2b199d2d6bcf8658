from __future__ import annotations

import pytest

from grv.backends.protocols import Draft, Problem
from grv.backends.scorers.logprob import LogprobScorer
from grv.core.errors import UsageError
from grv.testing.contracts_backends import ScorerContract

PROBLEM = Problem("p")


class TestMean(ScorerContract):
    def make(self) -> LogprobScorer:
        return LogprobScorer()


class TestSum(ScorerContract):
    def make(self) -> LogprobScorer:
        return LogprobScorer("sum")


class TestMin(ScorerContract):
    def make(self) -> LogprobScorer:
        return LogprobScorer("min")


@pytest.mark.anyio
@pytest.mark.parametrize(("how", "value"), [("mean", -1.0), ("sum", -3.0), ("min", -2.25)])
async def test_a_score_is_made_of_the_drafts_own_tokens(how: str, value: float) -> None:
    (score,) = await LogprobScorer(how).score(PROBLEM, [Draft("abc", (-0.5, -2.25, -0.25))])

    assert score.value == value


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("draft", "reason"),
    [
        (Draft("abc"), "the generator returned no log-probabilities"),
        (Draft("abc", ()), "the generator returned no log-probabilities"),
        (Draft("", (-0.1,)), "the text is empty"),
        (Draft("abc", (-0.1, float("nan"))), "a log-probability is not a number"),
        (Draft("abc", (float("nan"), -0.1)), "a log-probability is not a number"),
        (Draft("abc", (-0.1, float("-inf"))), "a log-probability is not a number"),
    ],
)
async def test_a_score_that_cannot_be_had_says_why(draft: Draft, reason: str) -> None:
    for how in ("mean", "sum", "min"):
        (score,) = await LogprobScorer(how).score(PROBLEM, [draft])
        assert (score.value, score.reason) == (None, reason)


def test_there_are_three_ways() -> None:
    with pytest.raises(UsageError, match="how must be one of mean, sum, min, not 'median'"):
        LogprobScorer("median")
