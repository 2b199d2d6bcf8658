from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from grv.backends.models import Models
from grv.backends.protocols import Draft, Problem, Score
from grv.backends.scorers.judge import JudgeScorer
from grv.core.errors import ScorerError, UsageError
from grv.testing.contracts_backends import ScorerContract
from grv.testing.servers import (
    FakeAnthropic,
    FakeGemini,
    FakeOpenai,
    FakeResponses,
    FakeServer,
)
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
    with FaultyServer([None, fault]) as server:
        before, one, two = await judged(server.url, "three", "four", "five")

    assert before.value is not None
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


KINDS: dict[str, Any] = {
    "openai": FakeOpenai,
    "responses": FakeResponses,
    "anthropic": FakeAnthropic,
    "gemini": FakeGemini,
}
REFUSED = {"openai": "logprobs", "responses": "include", "gemini": "responseLogprobs"}


async def asked(name: str, server: FakeServer, *texts: str) -> tuple[list[Score], JudgeScorer]:
    """The scores of a judge of this dialect."""
    judge = JudgeScorer("fake", base_url=server.url, dialect=name)
    try:
        return list(await judge.score(PROBLEM, [Draft(text) for text in texts])), judge
    finally:
        await judge.aclose()


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["openai", "responses", "gemini"])
async def test_log_probabilities_of_each_dialect(name: str) -> None:
    likely = {"Yes": -0.5, "No": -1.5}
    with KINDS[name](lambda prompt, index: "Yes", likely=likely) as server:
        (one, two), judge = await asked(name, server, "four", "five")

    assert (one.value, two.value) == (1.0, 1.0)
    assert one.usage.prompt_tokens > 20
    assert not judge.notices


def percent(prompt: str, index: int) -> str:
    """A judge that likes four."""
    return "90" if "answer:\nfour" in prompt else "I say 20%."


@pytest.mark.anyio
@pytest.mark.parametrize("name", KINDS)
async def test_a_judge_without_log_probabilities_says_a_number(name: str) -> None:
    with KINDS[name](percent, refuses=[REFUSED[name]] if name in REFUSED else ()) as server:
        (four, five), judge = await asked(name, server, "four", "five")

    assert four.value == pytest.approx(math.log(90.5 / 10.5))
    assert five.value == pytest.approx(math.log(20.5 / 80.5))
    (notice,) = judge.notices
    assert notice.endswith("has no log-probabilities: it rates answers from 0 to 100")


@pytest.mark.anyio
async def test_log_probabilities_that_do_not_come_are_paid_for_once() -> None:
    with FakeOpenai(percent, logprobs=False) as server:
        (four, five), _ = await asked("openai", server, "four", "five")
        assert len(server.received) == 3

    assert four.value is not None
    assert five.value is not None
    assert four.usage.prompt_tokens > 1.5 * five.usage.prompt_tokens


@pytest.mark.anyio
@pytest.mark.parametrize("name", KINDS)
async def test_a_judge_that_thinks_too_long_or_says_no_number(name: str) -> None:
    refuses = [REFUSED[name]] if name in REFUSED else ()
    with KINDS[name](percent, thinks=2000, refuses=refuses) as server:
        (score,), _ = await asked(name, server, "four")
    assert score.reason == "the judge: the model spent all its tokens on thinking"
    assert score.usage.reasoning_tokens >= 1024
    with KINDS[name](lambda prompt, index: "perhaps 300", refuses=refuses) as server:
        (score,), _ = await asked(name, server, "four")
    assert score.reason == "the judge said no number from 0 to 100"


@pytest.mark.anyio
async def test_what_was_scored_before_a_failure_is_not_asked_again() -> None:
    with FaultyServer([None, Status(503)]) as server:
        judge = JudgeScorer("m", base_url=server.url)
        drafts = [Draft("four"), Draft("five")]
        with pytest.raises(ScorerError):
            await judge.score(PROBLEM, drafts)
        scores = await judge.score(PROBLEM, drafts)
        await judge.aclose()
        assert len(server.received) == 3

    assert all(score.value is not None for score in scores)


def test_a_dialect_that_there_is_not() -> None:
    with pytest.raises(UsageError, match="no dialect 'smoke'; choose one of openai, responses"):
        JudgeScorer("m", base_url="http://h", dialect="smoke")


def test_a_question_must_have_the_answer_in_it() -> None:
    with pytest.raises(UsageError, match=r"\{answer\}"):
        JudgeScorer("m", base_url="http://host/v1", question="Is it right?")


def test_its_repr_shows_no_secret() -> None:
    judge = JudgeScorer("m", base_url="http://me:pass@host/v1")

    assert repr(judge) == "JudgeScorer('m', base_url='http://host/v1')"


@pytest.mark.parametrize(
    ("generator", "score", "score_url", "whole", "url"),
    [
        ("openai:g", "judge:m", None, "judge:openai:m", "http://h"),
        ("anthropic:g", "judge:m", None, "judge:anthropic:m", "http://h"),
        ("gemini:g", "judge:m", "http://j", "judge:m", "http://j"),
        ("responses:g", "judge:openai:m", None, "judge:openai:m", "http://h"),
        ("openai-text:g", "judge:m", None, "judge:m", "http://h"),
        ("openai-text:g", "judge:openai:m", None, "judge:openai:m", "http://h"),
        ("anthropic:g", "judge:gemini:m", None, "judge:gemini:m", None),
        ("my.py:f", "judge:anthropic:m", None, "judge:anthropic:m", None),
        ("anthropic:g", "length", None, "length", "http://h"),
    ],
)
def test_a_judge_has_the_interface_and_the_server_of_the_generator(
    generator: str, score: str, score_url: str | None, whole: str, url: str | None
) -> None:
    models = Models(generator=generator, base_url="http://h", score=score, score_url=score_url)
    assert (models.whole_score(score), models.judge_url(score)) == (whole, url)
