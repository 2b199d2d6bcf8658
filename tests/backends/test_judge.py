from __future__ import annotations

import json
import math
from collections.abc import Iterator

import pytest

from grv.backends.protocols import Draft, Problem, Score
from grv.backends.scorers.judge import JudgeScorer
from grv.core.errors import ScorerError, UsageError
from grv.testing.contracts_backends import ScorerContract
from support.servers import (
    Cut,
    Drop,
    Empty,
    Fault,
    FaultyServer,
    NoLogprobs,
    NotNumbers,
    Say,
    Status,
)

PROBLEM = Problem("p", "What is {answer}?")


class TestJudge(ScorerContract):
    @pytest.fixture(autouse=True)
    def server(self) -> Iterator[None]:
        with FaultyServer() as self.good, FaultyServer(lambda _: Status(503)) as self.bad:
            yield

    def make(self) -> JudgeScorer:
        return JudgeScorer("m", base_url=self.good.url)

    def make_failing(self) -> JudgeScorer:
        return JudgeScorer("m", base_url=self.bad.url)


async def judged(url: str, *texts: str) -> list[Score]:
    judge = JudgeScorer("m", base_url=url)
    try:
        return list(await judge.score(PROBLEM, [Draft(text) for text in texts]))
    finally:
        await judge.aclose()


def said(**logprobs: float) -> Say:
    """An answer in which these words could have come first."""
    tops = [{"token": token, "logprob": value} for token, value in logprobs.items()]
    first = {"token": "x", "logprob": -1, "top_logprobs": tops}
    choice = {"message": {"content": "x"}, "logprobs": {"content": [first]}}
    return Say(json.dumps({"choices": [choice]}))


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_real_model_says_yes_or_no_or_neither(model_url: str) -> None:
    scores = await judged(model_url, "It is four.", "It is a fish.")

    for score in scores:
        assert score.value is not None or score.reason
        assert score.usage.prompt_tokens > 20


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "value"),
    [
        (said(yes=-0.5, no=-1.5), 1.0),
        (said(No=-0.1, Yes=-4.1), -4.0),
        (said(Yes=math.log(0.2), yes=math.log(0.2), NO=math.log(0.1)), math.log(4)),
        (said(**{" Yes": -1.0, "\u2581no": -2.0}), 1.0),
        (said(yes=-0.5, maybe=-3.0), 2.5),  # no is no likelier than maybe
        (said(no=-0.5, maybe=-3.0), -2.5),
    ],
)
async def test_the_score_is_yes_against_no(answer: Say, value: float) -> None:
    with FaultyServer([answer]) as server:
        (score,) = await judged(server.url, "four")

    assert score.value == pytest.approx(value)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (said(maybe=-0.5), "the judge said neither yes nor no"),
        (NoLogprobs(), "the judge returned no log-probabilities"),
        (Empty(), "the judge returned no log-probabilities"),
        (NotNumbers(), "the judge returned no log-probabilities"),
        (Status(400, message="too long"), "status 400: too long"),
    ],
    ids=str,
)
async def test_a_draft_without_a_score_says_why_and_the_next_has_one(
    fault: Fault, reason: str
) -> None:
    with FaultyServer([fault]) as server:
        one, two = await judged(server.url, "four", "five")

    assert (one.value, one.reason) == (None, reason)
    assert two.value is not None


@pytest.mark.anyio
@pytest.mark.parametrize("fault", [Status(429, "7"), Status(500), Drop(), Cut(), Say()], ids=str)
async def test_a_judge_that_cannot_be_asked_is_an_error_of_the_scorer(fault: Fault) -> None:
    with FaultyServer([None, fault]) as server:
        with pytest.raises(ScorerError) as caught:
            await judged(server.url, "four", "five")

        assert len(server.received) == 2
    assert (caught.value.backend, caught.value.problem_id) == ("judge:m", "p")
    assert caught.value.retry_after == (7.0 if fault == Status(429, "7") else None)


@pytest.mark.anyio
async def test_braces_in_a_problem_or_an_answer_are_left_alone() -> None:
    with FaultyServer() as server:
        await judged(server.url, "{prompt} {0} \\1")
        question = server.received[0].prompt

    assert "Problem:\nWhat is {answer}?\n" in question
    assert "Proposed answer:\n{prompt} {0} \\1\n" in question


def test_a_question_must_have_the_answer_in_it() -> None:
    with pytest.raises(UsageError, match=r"\{answer\}"):
        JudgeScorer("m", base_url="http://host/v1", question="Is it right?")


def test_its_repr_shows_no_secret() -> None:
    judge = JudgeScorer("m", base_url="http://me:pass@host/v1")

    assert repr(judge) == "JudgeScorer('m', base_url='http://host/v1')"
