from __future__ import annotations

import asyncio
import itertools
import math
import traceback
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grv.backends.generators.completions import HALF_A_CHARACTER, drafts, seed_of
from grv.backends.generators.openai import OpenaiGenerator
from grv.backends.http.endpoint import Endpoint
from grv.backends.protocols import Draft, Problem
from grv.core.errors import GeneratorError, UsageError
from grv.files import is_number
from grv.testing.contracts_backends import GeneratorContract
from support.selection import short
from support.servers import (
    Cut,
    Drop,
    Empty,
    Fault,
    FaultyServer,
    Fewer,
    Hang,
    NoLogprobs,
    NotNumbers,
    Say,
    Status,
)

PROBLEM = Problem("sum", "What is two and two?")
CODE = Problem("add", 'def add(a, b):\n    """Return the sum of a and b."""\n')
KEY = "sk-very-secret-0123456789"


class _Faulty(GeneratorContract):
    """Against the scripted server, which fails when it is asked to."""

    seeded = True
    chat: bool

    @pytest.fixture(autouse=True)
    def server(self) -> Iterator[None]:
        with FaultyServer() as self.good, FaultyServer(lambda _: Status(500)) as self.bad:
            yield

    def make(self) -> OpenaiGenerator:
        return OpenaiGenerator("m", chat=self.chat, base_url=self.good.url, seed=1)

    def make_failing(self) -> OpenaiGenerator:
        return OpenaiGenerator("m", chat=self.chat, base_url=self.bad.url)


class TestChat(_Faulty):
    chat = True


class TestText(_Faulty):
    chat = False


class TestSingles(_Faulty):
    """A server that ignores `n` gives the same candidates, one at a time."""

    chat = True

    @pytest.fixture(autouse=True)
    def server(self) -> Iterator[None]:
        with FaultyServer(ignores_n=True) as self.good, FaultyServer(lambda _: Drop()) as self.bad:
            yield


@pytest.mark.slow
class TestModel(GeneratorContract):
    """A real server at the other end."""

    seeded = True

    @pytest.fixture(autouse=True)
    def server(self, model_url: str) -> None:
        self.url = model_url

    def make(self) -> OpenaiGenerator:
        return OpenaiGenerator(
            "smollm2", chat=False, base_url=self.url, max_tokens=4, seed=1, temperature=0.8
        )


async def generated(generator: OpenaiGenerator, n: int = 3, first: int = 0) -> list[Draft]:
    """Drafts of one call, after which the generator is closed."""
    try:
        return list(await generator.generate(PROBLEM, n, first=first))
    finally:
        await generator.aclose()


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("chat", [True, False])
async def test_a_real_model_says_how_likely_its_tokens_are(model_url: str, chat: bool) -> None:
    generator = OpenaiGenerator("smollm2", chat=chat, base_url=model_url, max_tokens=12, seed=3)
    drafts = await generator.generate(CODE, 3)
    await generator.aclose()

    assert len(drafts) == 3
    assert drafts[0].usage.prompt_tokens > 5
    for draft in drafts:
        assert draft.text
        assert draft.logprobs is not None
        assert len(draft.logprobs) == draft.usage.completion_tokens <= 12
        assert all(value <= 0 for value in draft.logprobs)


@pytest.mark.slow
@pytest.mark.anyio
async def test_where_a_real_server_refuses_so_many_single_ones_are_asked_for(
    model_url: str,
) -> None:
    generator = OpenaiGenerator("smollm2", chat=True, base_url=model_url, max_tokens=4)
    drafts = await generator.generate(PROBLEM, 9)  # it has room for four
    again = await generator.generate(PROBLEM, 9, first=1)
    await generator.aclose()

    assert len(drafts) == len(again) == 1
    assert generator.batch == 1


@pytest.mark.anyio
async def test_a_prompt_that_is_too_long_is_refused_in_the_servers_words(model_url: str) -> None:
    generator = OpenaiGenerator("smollm2", chat=False, base_url=model_url)
    with pytest.raises(GeneratorError, match=r"status 400: .*exceeds the available context size"):
        await generator.generate(Problem("long", "x " * 9000), 2)
    await generator.aclose()

    assert generator.batch is None  # it was not `n` that was refused


@pytest.mark.slow
@pytest.mark.anyio
async def test_stop_strings_end_a_candidate(model_url: str) -> None:
    generator = OpenaiGenerator(
        "smollm2", chat=False, base_url=model_url, max_tokens=30, seed=3, stop=["\n", "."]
    )
    drafts = await generated(generator)

    assert not any("\n" in draft.text or "." in draft.text for draft in drafts)


@pytest.mark.anyio
async def test_everything_asked_for_is_in_the_request() -> None:
    with FaultyServer() as server:
        common = {"base_url": server.url, "max_tokens": 9, "stop": ["END"], "seed": 5}
        for chat in (True, False):
            generator = OpenaiGenerator("m", chat=chat, top_p=0.9, temperature=0.5, **common)  # type: ignore[arg-type]
            await generated(generator, n=2, first=4)
        chat_body, text_body = (received.body for received in server.received)

    same = {"model": "m", "n": 2, "max_tokens": 9, "stop": ["END"], "top_p": 0.9}
    same |= {"temperature": 0.5, "seed": seed_of(5, "sum", 4)}
    message = {"role": "user", "content": PROBLEM.prompt}
    assert chat_body == {**same, "messages": [message], "logprobs": True, "top_logprobs": 1}
    assert text_body == {**same, "prompt": PROBLEM.prompt, "logprobs": 1}


@pytest.mark.anyio
async def test_what_was_not_asked_for_is_left_to_the_server() -> None:
    with FaultyServer() as server:
        generator = OpenaiGenerator("m", chat=False, base_url=server.url, logprobs=False)
        drafts = await generated(generator, n=1)

        assert server.received[0].body == {
            "model": "m",
            "prompt": PROBLEM.prompt,
            "temperature": 0.7,
        }
        assert drafts[0].logprobs is None
        assert drafts[0].usage.completion_tokens == len(drafts[0].text.split())


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("server", "requests"),
    [
        (FaultyServer(most=1), [8, 1, 1]),
        (FaultyServer(ignores_n=True), [8, 1]),
    ],
    ids=["refuses n", "ignores n"],
)
async def test_a_server_that_gives_one_at_a_time_is_remembered(
    server: FaultyServer, requests: list[int]
) -> None:
    with server:
        generator = OpenaiGenerator("m", chat=True, base_url=server.url, seed=2)
        drafts = [*await generator.generate(PROBLEM, 8)]
        assert generator.batch == 1
        drafts += await generated(generator, 7, first=len(drafts))

        assert len(drafts) == 2
        assert drafts[0].text != drafts[1].text
        assert [received.body.get("n", 1) for received in server.received] == requests


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("fault", "message", "retry_after"),
    [
        (Status(429, "2.5"), "status 429: not now", 2.5),
        (Status(429), "status 429: not now", None),
        (Status(429, "Thu, 01 Jan 1970 00:00:00 GMT"), "status 429: not now", 0.0),
        (Status(429, "soon"), "status 429: not now", None),
        (Status(500), "status 500: not now", None),
        (Status(503, "0"), "status 503: not now", 0.0),
        (Status(401, message="who are you?"), "status 401: who are you?", None),
        (Status(404, message="no such model"), "status 404: no such model", None),
        (Drop(), "no connection: RemoteProtocolError", None),
        (Drop(midway=True), "the answer broke off: peer closed connection", None),
        (Cut(), "not JSON", None),
        (Say(), "not JSON", None),
        (Say(""), "not JSON", None),
        (Say("[" * 10_000), "not JSON", None),
        (Say("[]"), "an answer without choices", None),
        (Say("null"), "an answer without choices", None),
        (Say('{"choices": []}'), "an answer without choices", None),
        (Say('{"choices": [1, {}, {"text": 5}]}'), "an answer without choices", None),
        (Say('{"error": "out of memory"}'), "an error instead of an answer: out of mem", None),
    ],
    ids=short,
)
async def test_a_fault_is_an_error_of_the_generator_and_the_next_call_works(
    fault: Fault, message: str, retry_after: float | None
) -> None:
    with FaultyServer([fault]) as server:
        generator = OpenaiGenerator("m", chat=True, base_url=server.url)
        with pytest.raises(GeneratorError) as caught:
            await generator.generate(PROBLEM, 2)
        drafts = await generated(generator, 2)

        assert str(caught.value).startswith(message)
        assert (caught.value.backend, caught.value.problem_id) == ("openai:m", "sum")
        assert caught.value.retry_after == retry_after
        assert len(drafts) == 2
        assert len(server.received) == 2  # nothing is tried again behind the runtime's back


@pytest.mark.anyio
async def test_fewer_choices_than_asked_are_taken_as_they_came() -> None:
    with FaultyServer([Fewer(2)]) as server:
        generator = OpenaiGenerator("m", chat=True, base_url=server.url)

        assert len(await generated(generator, 5)) == 2
        assert generator.batch is None


@pytest.mark.anyio
@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("fault", [Empty(), NoLogprobs(), NotNumbers()], ids=str)
async def test_missing_texts_and_missing_numbers_are_no_failure(fault: Fault, chat: bool) -> None:
    with FaultyServer([fault]) as server:
        drafts = await generated(OpenaiGenerator("m", chat=chat, base_url=server.url))

    assert [draft.logprobs for draft in drafts] == [None] * 3
    assert all(draft.text == "" for draft in drafts) == isinstance(fault, Empty)


def test_half_a_character_makes_a_candidate_broken_and_is_not_replaced() -> None:
    answer = {"choices": [{"message": {"content": "half \ud83d"}}, {"message": {"content": "x"}}]}
    half, whole = drafts(answer)
    assert (half.text, half.broken) == ("", HALF_A_CHARACTER)
    assert (whole.text, whole.broken) == ("x", "")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("choice", "text"),
    [
        ('{"message": {"content": null}}', ""),
        (r'{"message": {"content": "whole \ud83d\ude00"}}', "whole \U0001f600"),
        ('{"text": "as a completion"}', "as a completion"),
    ],
)
async def test_odd_texts_can_be_written_down(choice: str, text: str) -> None:
    with FaultyServer([Say(f'{{"choices": [{choice}]}}')]) as server:
        drafts = await generated(OpenaiGenerator("m", chat=True, base_url=server.url), 1)

    assert [draft.text for draft in drafts] == [text]


@pytest.mark.anyio
async def test_tokens_are_counted_even_where_the_server_counts_one_choice_only() -> None:
    tokens = '{"content": [{"logprob": -1}, {"logprob": -2}, {"logprob": -0.5}]}'
    choices = ", ".join(f'{{"text": "x", "logprobs": {tokens}}}' for _ in range(2))
    usage = '"usage": {"prompt_tokens": 7, "completion_tokens": 3}'
    with FaultyServer([Say(f'{{"choices": [{choices}], {usage}}}')]) as server:
        drafts = await generated(OpenaiGenerator("m", chat=False, base_url=server.url), 2)

    assert [draft.usage.completion_tokens for draft in drafts] == [3, 3]
    assert [draft.usage.prompt_tokens for draft in drafts] == [7, 0]
    assert drafts[0].usage.seconds > 0 == drafts[1].usage.seconds


@pytest.mark.anyio
async def test_a_call_that_hangs_can_be_cancelled() -> None:
    with FaultyServer([Hang()]) as server:
        generator = OpenaiGenerator("m", chat=True, base_url=server.url)
        call = asyncio.ensure_future(generator.generate(PROBLEM, 2))
        while not server.received:  # noqa: ASYNC110 (or the next call would be the one that hangs)
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        assert len(await generated(generator, 2)) == 2


@pytest.mark.anyio
async def test_nobody_there_is_an_error_of_the_generator() -> None:
    with FaultyServer() as server:
        url = server.url
    with pytest.raises(GeneratorError, match="no connection: ConnectError"):
        await generated(OpenaiGenerator("m", chat=True, base_url=url))


@pytest.mark.anyio
async def test_half_a_character_in_a_prompt_is_an_error_of_the_generator() -> None:
    with FaultyServer() as server:
        generator = OpenaiGenerator("m", chat=True, base_url=server.url, seed=1)
        with pytest.raises(GeneratorError, match="half a character"):
            await generator.generate(Problem("half \ud83d", "half \ud83d"), 2)
        await generator.aclose()


@pytest.mark.anyio
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 429, 500, 502, 529])
async def test_a_key_is_nowhere_to_be_seen(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FaultyServer([Status(status, message=f"wrong key {KEY}")] * 2) as server:
        generator = OpenaiGenerator("m", chat=True, base_url=server.url)
        with pytest.raises(GeneratorError) as caught:
            await generator.generate(PROBLEM, 2)
        await generator.aclose()

        assert server.received[0].headers["authorization"] == f"Bearer {KEY}"
    assert "wrong key ***" in str(caught.value)
    shown = [repr(generator), str(vars(generator)), *traceback.format_exception(caught.value)]
    assert KEY not in "".join(shown)


def test_a_server_of_ones_own_needs_no_key_and_openai_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    OpenaiGenerator("m", chat=True, base_url="http://localhost:1/v1")
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        OpenaiGenerator("m", chat=True)


def test_openai_has_another_name_for_where_a_chat_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    official = Endpoint(None, backend="openai", error=GeneratorError)
    other = Endpoint("http://localhost:1/v1", backend="openai", error=GeneratorError)

    assert official.cut(5, chat=True) == {"max_completion_tokens": 5}
    assert official.cut(5, chat=False) == other.cut(5, chat=True) == {"max_tokens": 5}


@pytest.mark.anyio
async def test_what_a_server_without_a_key_says_is_left_alone() -> None:
    with (
        FaultyServer([Status(503, message="none left")]) as server,
        pytest.raises(GeneratorError, match="status 503: none left") as caught,
    ):
        await generated(OpenaiGenerator("m", chat=True, base_url=server.url))

    assert isinstance(caught.value.__cause__, httpx2.HTTPStatusError)
    assert caught.value.__cause__.response.status_code == 503


def test_its_repr_says_what_the_candidates_depend_on_and_no_secret() -> None:
    generator = OpenaiGenerator("m", chat=True, base_url="http://me:pass@host/v1/?k=1", seed=3)

    assert repr(generator) == (
        "OpenaiGenerator('m', chat=True, base_url='http://host/v1/', temperature=0.7, top_p=None, "
        "max_tokens=None, stop=(), seed=3, logprobs=True)"
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1},
        {"temperature": float("nan")},
        {"top_p": 0},
        {"top_p": 1.1},
        {"max_tokens": 0},
        {"stop": "END"},
        {"stop": [""]},
        {"batch": 0},
        {"base_url": "localhost:8000"},
        {"base_url": "ftp://host/v1"},
        {"base_url": "http://host:x/v1"},
    ],
    ids=str,
)
def test_parameters_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        OpenaiGenerator("m", chat=True, **{"base_url": "http://host/v1", **wrong})  # type: ignore[arg-type]


@pytest.mark.anyio
async def test_no_drafts_are_not_asked_for() -> None:
    with pytest.raises(UsageError):
        await OpenaiGenerator("m", chat=True, base_url="http://host/v1").generate(PROBLEM, 0)


@given(
    st.lists(st.floats() | st.integers() | st.none() | st.booleans() | st.just("-1"), max_size=6)
)
@example([-1e308, -1e308])
@example([-1.0, math.nan])
@example([-1.0, -2.5])
def test_log_probabilities_are_taken_if_all_are_finite_numbers(values: list[Any]) -> None:
    (draft,) = drafts({"choices": [{"text": "x", "logprobs": {"token_logprobs": values}}]})

    if values and all(is_number(value) for value in values):
        assert draft.logprobs == tuple(map(float, values))
    else:
        assert draft.logprobs is None


def test_seeds_of_a_problem_follow_one_another_and_fit_in_31_bits() -> None:
    seeds = {
        (seed, id): seed_of(seed, id, 0) for seed, id in itertools.product(range(20), ["a", "b"])
    }

    assert len(set(seeds.values())) == 40
    assert all(0 <= value < 2**30 for value in seeds.values())
    assert seed_of(3, "a", 5) == seeds[3, "a"] + 5


@pytest.mark.anyio
async def test_requests_are_addressed_and_headed_as_the_official_client_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "an organization")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "a project")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team: one\nX-Gate: two: three")
    body = {"model": "m", "prompt": "é?", "seed": 7}
    with FaultyServer() as server:
        asked = Endpoint(f"{server.url}/", backend="test", error=GeneratorError)
        await asked.ask("/completions", body, "p")
        await asked.aclose()
        async with openai.AsyncOpenAI(base_url=server.url) as official:
            await official.completions.create(model="m", prompt="é?", seed=7)
        ours, theirs = server.received

    names = ["authorization", "content-type", "accept", "x-team", "x-gate"]
    names += ["openai-organization", "openai-project"]
    assert [ours.headers[name] for name in names] == [theirs.headers[name] for name in names]
    assert (ours.path, ours.body) == (theirs.path, theirs.body) == ("/v1/completions", body)


@pytest.mark.anyio
async def test_the_query_of_an_address_stays_its_query() -> None:
    with FaultyServer() as server:
        asked = Endpoint(f"{server.url}?version=2", backend="test", error=GeneratorError)
        await asked.ask("/completions", {"model": "m"}, "p")
        await asked.aclose()

    assert [received.path for received in server.received] == ["/v1/completions?version=2"]
