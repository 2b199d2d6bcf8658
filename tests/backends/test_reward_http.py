from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from grv.backends.http.web import client_errors
from grv.backends.protocols import Draft, Problem, Score
from grv.backends.scorers.reward_http import RewardScorer
from grv.backends.scorers.reward_options import Reward, Split
from grv.core.errors import ScorerError, UsageError
from grv.testing.contracts_backends import ScorerContract
from support.selection import short
from support.servers import Cut, Drop, Fault, FaultyServer, Fewer, NotNumbers, Say, Status

PROBLEM = Problem("p", "What is two and two?")
KEY = "very-secret-0123456789"


class _Reward(ScorerContract):
    endpoint: str
    chat = True

    @pytest.fixture(autouse=True)
    def server(self) -> Iterator[None]:
        with FaultyServer() as self.good, FaultyServer(lambda _: Drop()) as self.bad:
            yield

    def make(self) -> RewardScorer:
        return RewardScorer(self.good.root, endpoint=self.endpoint, chat=self.chat)

    def make_failing(self) -> RewardScorer:
        return RewardScorer(self.bad.root, endpoint=self.endpoint, chat=self.chat)


class TestScore(_Reward):
    endpoint = "score"


class TestClassify(_Reward):
    endpoint = "classify"


class TestPooling(_Reward):
    endpoint = "pooling"


class TestTexts(_Reward):
    endpoint = "pooling"
    chat = False


async def rewarded(server: FaultyServer, *texts: str, **options: Any) -> list[Score]:
    scorer = RewardScorer(server.root, **{"endpoint": "score", **options})
    try:
        return list(await scorer.score(PROBLEM, [Draft(text) for text in texts]))
    finally:
        await scorer.aclose()


def data(*items: object) -> Say:
    return Say(json.dumps({"data": items, "usage": {"prompt_tokens": 12, "total_tokens": 12}}))


@pytest.mark.anyio
async def test_what_each_endpoint_is_sent() -> None:
    with FaultyServer() as server:
        await rewarded(server, "a", "b", model="m")
        await rewarded(server, "a", endpoint="classify", extra={"use_activation": False})
        await rewarded(server, "a\n\nb \n \n c", endpoint="pooling", step="<extra_0>")
        await rewarded(server, "a", "b", endpoint="pooling", chat=False)
        paths = [received.path for received in server.received]
        bodies = [received.body for received in server.received]

    def talk(text: str) -> list[dict[str, str]]:
        return [
            {"role": "user", "content": PROBLEM.prompt},
            {"role": "assistant", "content": text},
        ]

    assert paths == ["/score", "/classify", "/pooling", "/pooling"]
    assert bodies == [
        {"model": "m", "text_1": PROBLEM.prompt, "text_2": ["a", "b"]},
        {"messages": talk("a"), "use_activation": False},
        {"messages": talk("a<extra_0>b<extra_0>c<extra_0>")},
        {"input": [PROBLEM.prompt + "a", PROBLEM.prompt + "b"]},
    ]


@pytest.mark.anyio
async def test_what_a_reward_model_reads_and_returns_can_be_chosen() -> None:
    asked = Problem("p", "Two examples. What is two and two?", question="What is two and two?")
    reward = Reward(
        score_system="Be strict.", score_question=True, score_raw=True, score_tokens=4096
    )
    with FaultyServer() as server:
        scorer = RewardScorer(server.root, endpoint="classify", reward=reward)
        await scorer.score(asked, [Draft("four")])
        with pytest.raises(UsageError, match="--score-question: problem 'p' has no question"):
            await scorer.score(PROBLEM, [Draft("four")])
        await scorer.aclose()
        (received,) = server.received

    assert received.body == {
        "messages": [
            {"role": "system", "content": "Be strict."},
            {"role": "user", "content": "What is two and two?"},
            {"role": "assistant", "content": "four"},
        ],
        "use_activation": False,
        "truncate_prompt_tokens": 4096,
        "truncation_side": "right",
    }
    assert "score_tokens=4096" in repr(scorer)


@pytest.mark.parametrize(
    ("text", "paragraphs", "or_lines"),
    [
        ("a\n\nb\nc", ["a", "b\nc"], ["a", "b\nc"]),
        ("a\nb\n c ", ["a\nb\n c"], ["a", "b", "c"]),
        ("\n\na\nb\n\n", ["a\nb"], ["a", "b"]),
        ("a\n \nb", ["a", "b"], ["a", "b"]),
        ("a", ["a"], ["a"]),
        (" \n", [], []),
    ],
)
def test_where_the_steps_of_a_candidate_end(
    text: str, paragraphs: list[str], or_lines: list[str]
) -> None:
    assert Reward().steps(text) == paragraphs
    assert Reward(score_split=Split.PARAGRAPHS_OR_LINES).steps(text) == or_lines


@pytest.mark.anyio
async def test_a_candidate_without_steps_has_no_score_and_is_not_sent() -> None:
    with FaultyServer() as server:
        first, empty = await rewarded(server, "a", " ", endpoint="pooling", step="<extra_0>")
        assert len(server.received) == 1

    assert first.value is not None
    assert (empty.value, empty.reason) == (None, "there are no steps in an empty candidate")


def test_a_system_message_needs_messages() -> None:
    with pytest.raises(UsageError, match="--score-system needs classify:URL or pooling:URL"):
        RewardScorer("http://h", endpoint="score", reward=Reward(score_system="Be strict."))


@pytest.mark.anyio
async def test_scores_go_by_their_index() -> None:
    with FaultyServer([data({"index": 1, "score": 0.1}, {"index": 0, "score": -2})]) as server:
        scores = await rewarded(server, "a", "b")

    assert [score.value for score in scores] == [-2.0, 0.1]
    assert [score.usage.prompt_tokens for score in scores] == [12, 0]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("how", "value"), [("last", 0.25), ("min", 0.25), ("mean", 0.5), ("product", 0.09375)]
)
@pytest.mark.parametrize(
    "steps",
    [[0.75, 0.5, 0.25], [[0.75], [0.5], [0.25]], [[0.25, 0.75], [0.5, 0.5], [0.75, 0.25]]],
    ids=["numbers", "lists of one", "lists of two"],
)
async def test_the_rewards_of_steps_make_one_score(how: str, value: float, steps: Any) -> None:
    with FaultyServer([data({"index": 0, "data": steps})]) as server:
        (score,) = await rewarded(server, "a", endpoint="pooling", how=how)

    assert score.value == value


@pytest.mark.anyio
async def test_which_of_several_numbers_counts_can_be_said() -> None:
    answer = data({"index": 0, "probs": [0.7, 0.2, 0.1]})
    with FaultyServer([answer] * 3) as server:
        scores = [
            await rewarded(server, "a", endpoint="classify", column=column) for column in (-1, 0, 5)
        ]

    assert [score.value for (score,) in scores] == [0.1, 0.7, None]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("endpoint", "item"),
    [
        ("score", {"index": 0, "score": None}),
        ("score", {"index": 0, "score": float("nan")}),
        ("score", {"index": 0}),
        ("score", {"index": 7, "score": 1}),
        ("score", "what?"),
        ("classify", {"index": 0, "probs": []}),
        ("classify", {"index": 0, "probs": "high"}),
        ("pooling", {"index": 0, "data": []}),
        ("pooling", {"index": 0, "data": [0.5, None]}),
        ("pooling", {"index": 0, "data": [[0.5, 0.5], []]}),
        ("pooling", {"index": 0, "data": "AAAA"}),
    ],
    ids=str,
)
async def test_a_draft_without_a_number_says_why(endpoint: str, item: object) -> None:
    with FaultyServer([data(item)]) as server:
        (score,) = await rewarded(server, "a", endpoint=endpoint)

    assert score.value is None
    assert score.reason
    assert score.usage.prompt_tokens == 12


@pytest.mark.anyio
@pytest.mark.parametrize("endpoint", ["score", "classify", "pooling"])
async def test_nan_is_no_score(endpoint: str) -> None:
    with FaultyServer(lambda _: NotNumbers()) as server:
        scores = await rewarded(server, "a", "b", endpoint=endpoint)

    assert [score.value for score in scores] == [None, None]


@pytest.mark.anyio
async def test_fewer_scores_than_drafts_are_taken_as_they_came() -> None:
    with FaultyServer([Fewer(1)]) as server:
        one, two = await rewarded(server, "a", "b")

    assert one.value is not None
    assert (two.value, two.reason) == (None, "no score in the answer: None")


@pytest.mark.anyio
async def test_one_draft_that_is_refused_does_not_cost_the_others_their_scores() -> None:
    def refuse(received: Any) -> Fault | None:
        return Status(400, message="too long") if "long" in received.body["text_2"] else None

    with FaultyServer(refuse) as server:
        scores = await rewarded(server, "a", "long", "b")

    assert [score.value is None for score in scores] == [False, True, False]
    assert scores[1].reason == "status 400: too long"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("fault", "message", "retry_after"),
    [
        (Status(429, "2"), "status 429: not now", 2.0),
        (Status(429), "status 429: not now", None),
        (Status(500), "status 500: not now", None),
        (Status(404, message="no such endpoint"), "status 404: no such endpoint", None),
        (Drop(), "RemoteProtocolError", None),
        (Drop(midway=True), "RemoteProtocolError", None),
        (Cut(), "not JSON", None),
        (Say(), "not JSON", None),
        (Say("[" * 10_000), "not JSON", None),
        (Say("[]"), "an answer without data", None),
        (Say('{"data": []}'), "an answer without data", None),
    ],
    ids=short,
)
async def test_a_server_that_cannot_be_asked_is_an_error_of_the_scorer(
    fault: Fault, message: str, retry_after: float | None
) -> None:
    with FaultyServer([fault]) as server:
        with pytest.raises(ScorerError) as caught:
            await rewarded(server, "a", "b")

        assert len(server.received) == 1
        assert caught.value.backend == f"score:{server.root}"
    assert str(caught.value).startswith(message)
    assert (caught.value.problem_id, caught.value.retry_after) == ("p", retry_after)


def test_every_exception_of_the_client_is_translated() -> None:
    raised = [
        cls
        for _, cls in inspect.getmembers(httpx2, inspect.isclass)
        if issubclass(cls, Exception) and not issubclass(cls, Warning)
    ]

    assert len(raised) > 20
    assert [cls for cls in raised if not issubclass(cls, client_errors())] == []


@pytest.mark.anyio
async def test_a_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REWARD_API_KEY", KEY)
    with FaultyServer([Status(401, message=f"not {KEY}")]) as server:
        with pytest.raises(ScorerError, match=r"status 401: not \*\*\*"):
            await rewarded(server, "a")

        assert server.received[0].headers["authorization"] == f"Bearer {KEY}"
        assert KEY not in repr(RewardScorer(server.root, endpoint="score"))


@pytest.mark.parametrize("url", ["http://host:80", "http://host:80/", "http://host:80/score"])
def test_the_endpoint_is_added_where_it_is_not_there(url: str) -> None:
    assert RewardScorer(url, endpoint="score").url == "http://host:80/score"


@pytest.mark.parametrize(
    "wrong", [{"url": "host:80"}, {"endpoint": "embed"}, {"how": "median"}], ids=str
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        RewardScorer(**{"url": "http://host", "endpoint": "score", **wrong})  # type: ignore[arg-type]
