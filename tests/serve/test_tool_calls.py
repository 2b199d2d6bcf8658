"""Tools: a response that calls them is returned as it is; the final answer is verified."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import openai
import pytest

from support.serving import RIGHT, Model, Server, check, serving, write_job
from support.tools import ARGUMENTS, SCHEMA, TOOL, calls_weather


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(every=3, script=calls_weather) as up:
        yield up


@pytest.fixture(scope="module")
def server(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("serve")
    write_job(folder, model, policy="fixed(6, 6)")
    with serving(folder) as up:
        yield up
    assert up.events("bug") == []


@pytest.fixture
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.url, api_key="x", max_retries=0) as made:
        yield made


def asked(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def post(server: Server, path: str, body: Mapping[str, Any]) -> Any:
    request = urllib.request.Request(
        f"{server.root}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def test_a_call_of_a_chat_is_returned_unverified_and_paid_once(
    client: openai.OpenAI, model: Model
) -> None:
    def ask() -> Any:
        return client.chat.completions.create(
            model="m", messages=asked("rain?"), tools=[TOOL], extra_body={"grv": check()}
        )

    before = len(model.received)
    first = ask()
    (choice,) = first.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "I look."
    (call,) = choice.message.tool_calls
    assert (call.id, call.function.name, call.function.arguments) == (
        "call_7",
        "weather",
        ARGUMENTS,
    )
    told = first.model_extra["grv"]
    assert (told["verified"], told["status"], told["calls_tools"]) == (False, "unverified", True)
    assert (told["bill"]["generated"], told["bill"]["verified"]) == (1, 0)
    assert told["bill"]["cost"] == 1
    assert len(model.received) == before + 1
    assert ask().model_extra["grv"] == told
    assert len(model.received) == before + 1


def test_the_final_answer_of_a_conversation_is_verified(
    client: openai.OpenAI, model: Model
) -> None:
    call = {"name": "weather", "arguments": ARGUMENTS}
    messages: Any = [
        *asked("rain today?"),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_7", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": "call_7", "content": "42 mm"},
    ]
    answer = client.chat.completions.create(
        model="m", messages=messages, tools=[TOOL], extra_body={"grv": check()}
    )
    told: Any = answer.model_extra
    assert answer.choices[0].message.content == RIGHT
    assert told["grv"]["verified"] is True
    sent = [each.body for each in model.received if each.prompt == "rain today?"]
    assert sent[0]["messages"] == messages
    assert sent[0]["tool_choice"] == "auto"
    # The first response is the first candidate; the others may not call tools.
    assert {body["tool_choice"] for body in sent[1:]} <= {"none"}
    made = sum(body.get("n", 1) for body in sent)
    assert made == told["grv"]["bill"]["generated"]
    assert told["grv"]["bill"]["cost"] == made + 2 * told["grv"]["bill"]["verified"]


def test_a_stream_has_the_calls(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="m",
            messages=asked("rain, streamed?"),
            tools=[TOOL],
            stream=True,
            extra_body={"grv": check()},
        )
    )
    deltas = [each.choices[0].delta for each in chunks if each.choices]
    assert deltas[0].tool_calls is not None
    (call,) = deltas[0].tool_calls
    assert call.function is not None
    assert (call.index, call.id, call.function.arguments) == (0, "call_7", ARGUMENTS)
    ended = next(each for each in chunks if each.choices and each.choices[0].finish_reason)
    assert ended.choices[0].finish_reason == "tool_calls"
    assert ended.model_extra is not None
    assert ended.model_extra["grv"]["verified"] is False


def test_tools_that_may_not_be_called_are_not(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="m",
        messages=asked("no tools now"),
        tools=[TOOL],
        tool_choice="none",
        extra_body={"grv": check()},
    )
    assert answer.choices[0].message.content == RIGHT


def test_responses_return_calls_and_take_results(client: openai.OpenAI) -> None:
    tool: Any = {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": True}
    conversation: Any = asked("rain, by responses?")

    def ask() -> Any:
        return client.responses.create(
            model="m", input=conversation, tools=[tool], extra_body={"grv": check()}
        )

    first = ask()
    message, call = first.output
    assert message.content[0].text == "I look."
    assert (call.type, call.call_id, call.arguments) == ("function_call", "call_7", ARGUMENTS)
    assert first.model_extra["grv"]["status"] == "unverified"

    conversation += [item.to_dict() for item in first.output]
    result = {"type": "function_call_output", "call_id": "call_7", "output": "42 mm"}
    conversation.append(result)
    final = ask()
    assert final.output_text == RIGHT
    assert final.model_extra["grv"]["verified"] is True


def test_a_stream_of_responses_has_the_calls(client: openai.OpenAI) -> None:
    tool: Any = {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": None}
    with client.responses.stream(
        model="m", input="rain, by a stream?", tools=[tool], extra_body={"grv": check()}
    ) as stream:
        events = [event.type for event in stream]
        final = stream.get_final_response()
    assert "response.function_call_arguments.done" in events
    assert final.output[1].type == "function_call"


def test_messages_return_calls_and_take_results(server: Server) -> None:
    tool = {"name": "weather", "description": "The weather.", "input_schema": SCHEMA}
    conversation: list[Any] = asked("rain, by messages?")

    def ask() -> Any:
        body = {"model": "m", "max_tokens": 100, "messages": conversation, "tools": [tool]}
        return post(server, "/v1/messages", {**body, "grv": check()})

    first = ask()
    assert first["stop_reason"] == "tool_use"
    use = {"type": "tool_use", "id": "call_7", "name": "weather", "input": {"city": "Oslo"}}
    assert first["content"] == [{"type": "text", "text": "I look."}, use]
    assert first["grv"]["verified"] is False

    conversation.append({"role": "assistant", "content": first["content"]})
    result = {"type": "tool_result", "tool_use_id": "call_7", "content": "42 mm"}
    conversation.append({"role": "user", "content": [result]})
    final = ask()
    assert final["content"] == [{"type": "text", "text": RIGHT}]
    assert (final["stop_reason"], final["grv"]["verified"]) == ("end_turn", True)
