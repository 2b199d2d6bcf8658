"""Each dialect: what it sends, what it reads, and what it finds out about a server."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from grv.backends.by_name import generator
from grv.backends.generators.anthropic import ANTHROPIC, MOST_TOKENS
from grv.backends.generators.completions import ONLY_THOUGHT, WITHHELD, Moderated, reduced
from grv.backends.generators.dialect import DialectGenerator
from grv.backends.generators.gemini import GEMINI
from grv.backends.generators.openai import CHAT
from grv.backends.generators.responses import RESPONSES
from grv.backends.generators.sampling import Sampling
from grv.backends.http.endpoint import status
from grv.backends.protocols import Draft, Problem
from grv.core.errors import GeneratorError, UsageError
from grv.testing.servers import (
    FakeAnthropic,
    FakeGemini,
    FakeOpenai,
    FakeResponses,
    FakeServer,
)
from support.servers import FaultyServer, Say, Status

PIXEL = "data:image/png;base64,iVBORw0KGgo="
PROBLEM = Problem("sum", "What is two and two?")
CHATTING = Problem(
    "chat",
    messages=(
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": PIXEL}},
            ],
        },
    ),
)
KINDS = {
    "openai": FakeOpenai,
    "responses": FakeResponses,
    "anthropic": FakeAnthropic,
    "gemini": FakeGemini,
}
KEYS = {
    "openai": "OPENAI_API_KEY",
    "responses": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
}
every = pytest.mark.parametrize("name", KINDS)


def made(
    name: str, server: FakeServer, n: int = 1, problem: Problem = PROBLEM, **options: Any
) -> tuple[list[Draft], DialectGenerator]:
    """The drafts of one call, and the generator."""
    logprobs = options.pop("logprobs", False)
    asked = generator(
        f"{name}:fake", base_url=server.url, sampling=Sampling(**options), logprobs=logprobs
    )
    assert isinstance(asked, DialectGenerator)

    async def run() -> list[Draft]:
        try:
            return list(await asked.generate(problem, n))
        finally:
            await asked.aclose()

    return asyncio.run(run()), asked


SHOW: dict[str, dict[str, Any]] = {  # what asks a server for the model's thoughts
    "responses": {"reasoning": {"summary": "auto"}},
    "gemini": {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}},
}


@pytest.mark.slow
@every
def test_a_candidate_with_its_tokens_and_its_thoughts_apart(name: str) -> None:
    with KINDS[name](lambda prompt, index: "it is four", thinks=5, cached=2, written=1) as server:
        (draft,), _ = made(name, server, extra_body=SHOW.get(name))

    assert (draft.text, draft.broken) == ("it is four", "")
    assert draft.reasoning == "let me think"
    assert (draft.usage.prompt_tokens, draft.usage.completion_tokens) == (5, 8)
    assert draft.usage.seconds > 0
    assert draft.usage.cached_tokens == 2
    assert draft.usage.cache_write_tokens == (0 if name == "gemini" else 1)
    assert draft.usage.reasoning_tokens == 5
    assert draft.usage.dollars is None


def test_dollars_that_a_server_says() -> None:
    with FakeOpenai(cost=0.25) as server:
        first, second = made("openai", server, n=2)[0]
    assert (first.usage.dollars, second.usage.dollars) == (0.25, 0.0)


@every
def test_all_tokens_spent_on_thinking(name: str) -> None:
    with KINDS[name](lambda prompt, index: "it is four", thinks=20) as server:
        (draft,), _ = made(name, server, max_tokens=20)

    assert (draft.text, draft.broken) == ("", ONLY_THOUGHT)
    assert draft.usage.completion_tokens == 20


@every
def test_a_chat_with_a_system_message_and_an_image(name: str) -> None:
    with KINDS[name]() as server:
        made(name, server, problem=CHATTING)
        (body,) = server.bodies

    if name == "openai":
        assert body["messages"] == list(CHATTING.messages)
    elif name == "responses":
        assert [item["role"] for item in body["input"]] == ["system", "user", "assistant", "user"]
        image = {"type": "input_image", "image_url": PIXEL, "detail": "auto"}
        assert body["input"][-1]["content"] == [
            {"type": "input_text", "text": "What is this?"},
            image,
        ]
    elif name == "anthropic":
        assert body["system"] == "Be brief."
        source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
        assert body["messages"][-1]["content"][1] == {"type": "image", "source": source}
    else:
        assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
        assert [each["role"] for each in body["contents"]] == ["user", "model", "user"]
        inline = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
        assert body["contents"][-1]["parts"] == [{"text": "What is this?"}, inline]


def test_an_image_with_an_address() -> None:
    part = {"type": "image_url", "image_url": {"url": "https://h/a.png"}}
    problem = Problem("p", messages=({"role": "user", "content": [part]},))
    with FakeAnthropic() as server:
        made("anthropic", server, problem=problem)
        (sent,) = server.bodies[0]["messages"][0]["content"]
    assert sent == {"type": "image", "source": {"type": "url", "url": "https://h/a.png"}}
    with FakeGemini() as server:
        made("gemini", server, problem=problem)
        (sent,) = server.bodies[0]["contents"][0]["parts"]
    assert sent == {"fileData": {"mimeType": "image/png", "fileUri": "https://h/a.png"}}


SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
SENT: dict[str, dict[str, Any]] = {
    "openai": {
        "max_tokens": 50,
        "top_p": 0.9,
        "stop": ["END"],
        "reasoning_effort": "low",
        "response_format": FORMAT,
    },
    "responses": {
        "max_output_tokens": 50,
        "top_p": 0.9,
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_schema", "name": "answer", "schema": SCHEMA}},
        "store": False,
    },
    "anthropic": {
        "max_tokens": 50,
        "top_p": 0.9,
        "stop_sequences": ["END"],
        "thinking": {"type": "adaptive"},
        "output_config": {
            "effort": "low",
            "format": {"type": "json_schema", "schema": SCHEMA},
        },
    },
}


@every
def test_every_option_is_sent_as_the_dialect_writes_it(name: str) -> None:
    given: dict[str, Any] = {
        "max_tokens": 50,
        "top_p": 0.9,
        "stop": ("END",),
        "effort": "low",
        "seed": None,
    }
    with KINDS[name]() as server:
        made(name, server, temperature=1.0, response_format=FORMAT, **given)
        body = dict(server.bodies[0])

    if name == "gemini":
        assert body["generationConfig"] == {
            "temperature": 1.0,
            "topP": 0.9,
            "maxOutputTokens": 50,
            "stopSequences": ["END"],
            "thinkingConfig": {"thinkingLevel": "low"},
            "responseMimeType": "application/json",
            "responseJsonSchema": SCHEMA,
        }
        return
    for field in ("model", "messages", "input"):
        body.pop(field, None)
    assert body == {"temperature": 1.0, **SENT[name]}


def test_anthropic_needs_a_limit_and_gets_one() -> None:
    with FakeAnthropic() as server:
        made("anthropic", server)
        assert server.bodies[0]["max_tokens"] == MOST_TOKENS


def test_further_fields_join_an_object_that_is_there() -> None:
    with FakeGemini() as server:
        made("gemini", server, extra_body={"generationConfig": {"topK": 5}})
        config = server.bodies[0]["generationConfig"]
    assert (config["topK"], config["temperature"]) == (5, 0.7)


@pytest.mark.parametrize(
    ("name", "field", "option"),
    [
        ("openai", "logprobs", "logprobs"),
        ("openai", "n", "n"),
        ("openai", "seed", "seed"),
        ("openai", "stop", "stop"),
        ("openai", "top_p", "top_p"),
        ("openai", "temperature", "temperature"),
        ("responses", "include", "logprobs"),
        ("responses", "temperature", "temperature"),
        ("responses", "top_p", "top_p"),
        ("anthropic", "temperature", "temperature"),
        ("anthropic", "top_p", "top_p"),
        ("anthropic", "stop_sequences", "stop"),
        ("gemini", "responseLogprobs", "logprobs"),
        ("gemini", "candidateCount", "n"),
        ("gemini", "seed", "seed"),
        ("gemini", "topP", "top_p"),
    ],
)
def test_a_refused_option_is_left_out_and_said_once(name: str, field: str, option: str) -> None:
    with KINDS[name](refuses=[field]) as server:
        drafts, asked = made(name, server, n=3, logprobs=True, stop=("END",), top_p=0.9, seed=1)
        statuses = [received.status for received in server.received]

    assert statuses == [400, 200]
    assert drafts
    assert asked.refused == {option}
    said = [line for line in asked.notices if line.startswith(f"{name}:fake refuses {option}: ")]
    assert len(said) == 1
    assert (asked.batch == 1) == (option == "n" or name in ("responses", "anthropic"))


def test_several_refused_options_are_found_one_by_one() -> None:
    with FakeOpenai(refuses=["logprobs", "n", "seed", "temperature", "max_tokens"]) as server:
        drafts, asked = made("openai", server, n=3, logprobs=True, seed=1, max_tokens=9)
        assert [received.status for received in server.received] == [400] * 5 + [200]
        assert server.bodies[0]["max_completion_tokens"] == 9

    assert len(drafts) == 1
    assert asked.refused == {"logprobs", "n", "seed", "temperature"}


def test_an_option_that_is_blamed_wrongly_is_not_forgotten() -> None:
    refusal = Status(400, message="'temperature' must be 1")
    with FaultyServer(lambda _: refusal) as server:
        asked = generator("openai:m", base_url=server.url)
        assert isinstance(asked, DialectGenerator)

        async def run() -> None:
            try:
                await asked.generate(PROBLEM, 1)
            finally:
                await asked.aclose()

        with pytest.raises(GeneratorError) as caught:
            asyncio.run(run())
        assert len(server.received) == 2

    assert (caught.value.fault, status(caught.value)) == ("stop", 400)
    assert not asked.refused
    assert not asked.notices


def test_the_older_name_of_the_limit_where_the_newer_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "grv.backends.http.endpoint.Endpoint.cut",
        lambda self, tokens, *, chat: {"max_completion_tokens": tokens},
    )
    with FakeOpenai(refuses=["max_completion_tokens"]) as server:
        made("openai", server, max_tokens=9)
        assert server.bodies[0]["max_tokens"] == 9


def test_fewer_candidates_than_requested_are_followed_by_single_requests() -> None:
    with FakeOpenai(most=1) as server:
        drafts, asked = made("openai", server, n=4)
    assert len(drafts) == 1
    assert asked.batch == 1


@every
def test_another_bad_request_is_not_repeated(name: str) -> None:
    with KINDS[name]() as server:
        with pytest.raises(GeneratorError, match="nonsense"):
            made(name, server, n=3, extra_body={"nonsense": 1}, seed=1)
        assert len(server.received) == 1


MODERATED = {
    "openai": "status 400: Invalid prompt",
    "responses": "status 400: Invalid prompt",
    "anthropic": "the server's filter refuses this prompt (stop_reason: refusal)",
    "gemini": "the server's filter refuses this prompt (blockReason: SAFETY)",
}


@every
def test_a_moderated_prompt_fails_for_good_and_says_what_to_do(name: str) -> None:
    with KINDS[name]() as server, pytest.raises(GeneratorError) as caught:
        made(name, server, n=2, problem=Problem("p", "forbidden things"), logprobs=True)

    assert str(caught.value).startswith(MODERATED[name])
    assert (caught.value.fault, caught.value.final) == ("call", True)
    assert caught.value.hint.startswith("reword the prompt")


@every
def test_an_overloaded_server_is_waited_for(name: str) -> None:
    with KINDS[name](overloaded=1) as server, pytest.raises(GeneratorError) as caught:
        made(name, server)

    assert (caught.value.fault, caught.value.unpaid) == ("wait", True)
    assert caught.value.retry_after == (None if name == "anthropic" else 0.05)


@every
def test_a_wrong_key_and_an_unknown_model_stop_the_run(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEYS[name], "sk-wrong-0123456789abcdef")
    with KINDS[name](key="sk-right-0123456789abcdef") as server:
        with pytest.raises(GeneratorError) as caught:
            made(name, server)
        assert caught.value.fault == "stop"
        assert caught.value.hint == f"check the key in {KEYS[name]}"
        monkeypatch.setenv(KEYS[name], "sk-right-0123456789abcdef")
        assert made(name, server)[0]
    with KINDS[name](model="other") as server:
        with pytest.raises(GeneratorError) as caught:
            made(name, server)
        assert (caught.value.fault, caught.value.unpaid) == ("stop", True)
        assert "name of the model" in caught.value.hint


@pytest.mark.parametrize("name", ["anthropic", "gemini"])
def test_without_key_and_address_one_line_says_what_to_set(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(UsageError, match=f"{KEYS[name]} is not set; set it, or name another"):
        generator(f"{name}:m")


def test_googles_second_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.setenv("GOOGLE_API_KEY", "sk-right-0123456789abcdef")
    with FakeGemini(key="sk-right-0123456789abcdef") as server:
        assert made("gemini", server)[0]


def test_options_that_a_dialect_lacks() -> None:
    with pytest.raises(UsageError, match="anthropic has no json_object; it has text, json_schema"):
        generator(
            "anthropic:m",
            base_url="http://h",
            sampling=Sampling(response_format={"type": "json_object"}),
        )
    with pytest.raises(UsageError, match="--effort needs a chat model: openai:m"):
        generator("openai-text:m", base_url="http://h", sampling=Sampling(effort="low"))
    with pytest.raises(UsageError, match="there is no effort 'huge'; choose one of none"):
        Sampling(effort="huge")


ANSWERS: list[Any] = [None, 1, [], {}, {"error": "no"}, {"error": {"message": "no"}}]
for list_name in ("choices", "output", "candidates", "content"):
    ANSWERS += [{list_name: None}, {list_name: []}, {list_name: 3}, {list_name: [None, 1, {}]}]


@pytest.mark.parametrize("dialect", [CHAT, RESPONSES, ANTHROPIC, GEMINI], ids=lambda d: d.name)
@pytest.mark.parametrize(
    "answer",
    ANSWERS,
    ids=str,
)
def test_any_answer_is_read_or_refused(dialect: Any, answer: object) -> None:
    assert dialect.usage(answer).prompt_tokens == 0
    with contextlib.suppress(ValueError):
        assert [draft.text for draft in dialect.texts(answer)] == [""]


def test_withheld_answers_are_broken() -> None:
    incomplete = {"output": [], "incomplete_details": {"reason": "content_filter"}}
    assert RESPONSES.texts(incomplete)[0].broken == WITHHELD
    choice = {"message": {"content": ""}, "finish_reason": "content_filter"}
    assert CHAT.texts({"choices": [choice]})[0].broken == WITHHELD
    stopped = {"content": [{"type": "text", "text": "Hello.."}], "stop_reason": "refusal"}
    assert ANTHROPIC.texts(stopped)[0].broken == WITHHELD
    withheld = GEMINI.texts({"candidates": [{"finishReason": "SAFETY"}]})[0]
    assert withheld.broken == "the server withheld the answer (finishReason: SAFETY)"


def test_a_model_that_refuses_to_answer() -> None:
    choice = {"message": {"content": None, "refusal": "I cannot\nhelp."}, "finish_reason": "stop"}
    broken = "the model refuses to answer: I cannot help."
    assert CHAT.texts({"choices": [choice]})[0].broken == broken
    assert CHAT.texts({"choices": [reduced(choice)]})[0].broken == broken
    part = {"type": "refusal", "refusal": "I cannot help."}
    message = {"type": "message", "role": "assistant", "content": [part]}
    assert RESPONSES.texts({"output": [message]})[0].broken == broken


def test_an_answer_that_failed_on_its_way() -> None:
    choice = {
        "message": {"content": ""},
        "finish_reason": "error",
        "error": {"code": 502, "message": "Provider disconnected"},
    }
    broken = CHAT.texts({"choices": [choice]})[0].broken
    assert broken == "the server failed within the answer: Provider disconnected"
    error = {"code": "server_error", "message": "The server had an error"}
    with pytest.raises(ValueError, match="an error instead of an answer: The server had"):
        RESPONSES.texts({"status": "failed", "error": error, "output": []})


def test_an_error_about_the_prompt_within_an_answer() -> None:
    error = {"code": "invalid_prompt", "message": "It was flagged."}
    with pytest.raises(Moderated, match=r"prompt \(invalid_prompt\): It was flagged"):
        RESPONSES.texts({"status": "failed", "error": error, "output": []})


def test_comments_before_the_answer_are_thoughts() -> None:
    parts = [("commentary", "First I look."), ("final_answer", "42")]
    output = [
        {
            "type": "message",
            "phase": phase,
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }
        for phase, text in parts
    ]
    (draft,) = RESPONSES.texts({"output": output})
    assert (draft.text, draft.reasoning) == ("42", "First I look.")


def test_a_context_that_is_full_of_thoughts() -> None:
    content = [{"type": "thinking", "thinking": "let me think", "signature": "s"}]
    answer = {"content": content, "stop_reason": "model_context_window_exceeded"}
    assert ANTHROPIC.texts(answer)[0].broken == ONLY_THOUGHT


@pytest.mark.parametrize(
    ("name", "version"),
    [("anthropic", "/v1"), ("gemini", "/v1beta"), ("gemini", "/v1")],
)
def test_a_base_url_may_end_in_a_version(name: str, version: str) -> None:
    with KINDS[name]() as server:
        asked = generator(f"{name}:fake", base_url=f"{server.url}{version}/")

        async def run() -> None:
            await asked.generate(PROBLEM, 1)
            await asked.aclose()  # type: ignore[attr-defined]

        asyncio.run(run())
        (received,) = server.received
    assert received.path.startswith(f"{version}/m")


def test_an_address_without_its_usual_end() -> None:
    with FakeOpenai() as server:
        asked = generator("openai:fake", base_url=server.url.removesuffix("/v1"))

        async def run() -> None:
            try:
                await asked.generate(PROBLEM, 1)
            finally:
                await asked.aclose()  # type: ignore[attr-defined]

        with pytest.raises(GeneratorError) as caught:
            asyncio.run(run())
    assert caught.value.hint.endswith("the address of the server; it often ends in /v1")


@pytest.mark.parametrize(("name", "level"), [("anthropic", "minimal"), ("gemini", "max")])
def test_a_level_of_effort_that_an_interface_lacks(name: str, level: str) -> None:
    with pytest.raises(UsageError, match=f"--effort: {name} has no {level}; it has none, "):
        generator(f"{name}:m", base_url="http://h", sampling=Sampling(effort=level))


@every
def test_an_answer_that_is_cut_off_counts_as_paid(name: str) -> None:
    with (
        KINDS[name](faults=lambda number: "cut") as server,
        pytest.raises(GeneratorError) as caught,
    ):
        made(name, server)
    assert not caught.value.unpaid
    assert not caught.value.final


@every
def test_a_candidate_whose_tokens_ran_out_says_so(name: str) -> None:
    with KINDS[name](lambda prompt, index: "so " * 30) as server:
        (cut,), _ = made(name, server, max_tokens=20)
        (whole,), _ = made(name, server, max_tokens=30)
    assert (cut.is_cut, len(cut.text.split())) == (True, 20)
    assert not whole.is_cut


def failed(body: str) -> GeneratorError:
    """The error of a call to a chat server that answers this."""
    with FaultyServer([Say(body)]) as server:
        asked = generator("openai:fake", base_url=server.url, sampling=Sampling())

        async def run() -> None:
            try:
                await asked.generate(PROBLEM, 8)
            finally:
                await asked.aclose()  # type: ignore[attr-defined]

        with pytest.raises(GeneratorError) as caught:
            asyncio.run(run())
    return caught.value


@pytest.mark.parametrize(
    ("code", "fault"), [(429, "wait"), (502, "wait"), (402, "stop"), (0, "call")]
)
def test_an_error_within_an_answer_counts_like_its_status(code: int, fault: str) -> None:
    error = failed(f'{{"error": {{"message": "Provider returned error", "code": {code}}}}}')
    assert str(error) == "an error instead of an answer: Provider returned error"
    assert (error.fault, error.unpaid) == (fault, False)


def test_a_failed_call_says_how_many_candidates_it_asked_for() -> None:
    assert failed("{}").at_most == 8


def test_models_that_think_have_their_own_temperature() -> None:
    with FakeAnthropic(thinks=3) as server:
        _, asked = made("anthropic", server, effort="low", temperature=0.7)
        made("anthropic", server, effort="none", temperature=0.7)
        assert [body.get("temperature") for body in server.bodies] == [None, 0.7]
    assert not asked.notices


@pytest.mark.parametrize("name", KINDS)
def test_an_address_with_the_path_of_requests(name: str) -> None:
    with KINDS[name]() as server:
        made(name, server)
        path = server.received[0].path.removeprefix(server.prefix)
        asked = generator(f"{name}:fake", base_url=f"{server.url}{path}", sampling=Sampling())

        async def run() -> None:
            try:
                await asked.generate(PROBLEM, 1)
            finally:
                await asked.aclose()  # type: ignore[attr-defined]

        with pytest.raises(GeneratorError) as caught:
            asyncio.run(run())
    assert caught.value.hint == f"leave {path} out of the address: grv adds it"


def test_a_fake_of_a_server_that_is_not_known_names_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"like='vllm': give one of .*vLLM"):
        FakeOpenai(like="vllm")
