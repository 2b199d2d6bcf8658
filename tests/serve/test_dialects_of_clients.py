"""What clients speak besides chats: responses and messages, several answers, names of models."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import openai
import pytest

from support.servers import Received
from support.serving import RIGHT, Model, Server, check, key_hash, serving, write_job

KEY = "a-key-of-some-length"
CLIENTS = f"""
[clients.alice]
key = "{key_hash(KEY)}"
"""


class Varied(Model):
    """Every third candidate is right; the right ones are written in different ways."""

    def _numbered(self, request: Received, seed: int) -> str:
        text = super()._numbered(request, seed)
        return f"{text}, say {seed % 2} of us" if "ways" in request.prompt else text


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Varied(every=3) as up:
        yield up


@pytest.fixture(scope="module")
def server(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("serve")
    write_job(folder, model, max_tokens=100, policy="fixed(12, 12)")
    (folder / "clients.toml").write_text(CLIENTS)
    with serving(folder, "--heartbeat", 0.1, "--clients", folder / "clients.toml") as up:
        yield up
    assert up.events("bug") == []
    assert not any(KEY in line or "boxed" in line for line in up.lines)


@pytest.fixture
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.url, api_key=KEY, max_retries=0) as made:
        yield made


def post(server: Server, body: Mapping[str, Any], path: str = "/v1/messages", **more: str) -> bytes:
    """What the server answers to a message, also if it is an error."""
    return posted(server, body, path, **more)[1]


def posted(
    server: Server, body: Mapping[str, Any], path: str = "/v1/messages", **more: str
) -> tuple[int, bytes]:
    """The status of an answer, and its body."""
    headers = {"Content-Type": "application/json", "x-api-key": KEY, **more}
    request = urllib.request.Request(f"{server.root}{path}", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, bytes(response.read())
    except urllib.error.HTTPError as error:
        return error.code, bytes(error.read())


def message(text: str, **more: Any) -> dict[str, Any]:
    said = [{"role": "user", "content": text}]
    return {"model": "m", "max_tokens": 50, "messages": said, "grv": check(), **more}


def events(content: bytes) -> list[dict[str, Any]]:
    """The events of a stream, whose names are their types."""
    found = []
    for block in content.decode().strip().split("\n\n"):
        if block.startswith(":"):
            continue
        name, data = block.split("\n")
        found.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {found[-1]['type']}"
    return found


@pytest.mark.slow
def test_a_response_is_verified_and_shares_the_search_of_a_chat(client: openai.OpenAI) -> None:
    messages: Any = [{"role": "system", "content": "brief"}, {"role": "user", "content": "six"}]
    chat = client.chat.completions.create(
        model="m", messages=messages, max_tokens=50, extra_body={"grv": check()}
    )
    response = client.responses.create(
        model="grv/m",
        instructions="brief",
        input=[{"role": "user", "content": [{"type": "input_text", "text": "six"}]}],
        max_output_tokens=50,
        store=False,
        extra_body={"grv": check()},
    )
    assert response.output_text == RIGHT
    assert (response.status, response.model) == ("completed", "m")
    assert response.model_extra is not None
    assert chat.model_extra is not None
    assert response.model_extra["grv"] == chat.model_extra["grv"]
    assert response.usage is not None
    assert chat.usage is not None
    assert response.usage.total_tokens == chat.usage.total_tokens
    assert type(response).model_validate(response.model_dump()).output_text == RIGHT


@pytest.mark.slow
def test_a_stream_of_responses_has_progress_and_the_text(
    client: openai.OpenAI, model: Model
) -> None:
    with (
        model.taking(0.4),
        client.responses.stream(
            model="m", input="stream it", extra_body={"grv": check()}
        ) as stream,
    ):
        seen = list(stream)
        final = stream.get_final_response()
    types = [event.type for event in seen]
    assert types[:2] == ["response.created", "response.in_progress"]
    assert types[-1] == "response.completed"
    assert [event.sequence_number for event in seen] == sorted(
        event.sequence_number for event in seen
    )
    told = [
        event.response.model_extra["grv"]
        for event in seen[2:]
        if event.type == "response.in_progress" and event.response.model_extra
    ]
    assert told
    assert told[0]["outcome"] is None
    assert "".join(e.delta for e in seen if e.type == "response.output_text.delta") == RIGHT
    assert final.output_text == RIGHT
    assert final.model_extra is not None
    assert final.model_extra["grv"]["verified"] is True


def test_a_response_that_fails_is_an_error_of_openai(client: openai.OpenAI) -> None:
    wanted = {**check(99), "policy": "fixed(3, 3)"}
    with pytest.raises(openai.UnprocessableEntityError) as caught:
        client.responses.create(model="m", input="none", extra_body={"grv": wanted})
    body: Any = caught.value.body
    assert (body["code"], body["grv"]["bill"]["verified"]) == ("not_verified", 3)
    with pytest.raises(openai.BadRequestError, match="previous_response_id") as refused:
        client.responses.create(model="m", input="x", previous_response_id="resp_1")
    assert refused.value.param == "previous_response_id"
    with pytest.raises(openai.BadRequestError, match="the server runs no tools"):
        client.responses.create(
            model="m", input="x", tools=[{"type": "web_search"}], extra_body={"grv": check()}
        )


@pytest.mark.slow
def test_an_error_within_a_stream_of_responses_is_raised(
    client: openai.OpenAI, model: Model
) -> None:
    wanted = {**check(98), "policy": "fixed(3, 3)"}
    seen: list[Any] = []
    with model.taking(0.6):
        stream = client.responses.create(
            model="m", input="late", stream=True, extra_body={"grv": wanted}
        )
        with pytest.raises(openai.APIError, match="no verified answer"):
            seen.extend(stream)
    assert seen[-1].type == "response.failed"
    assert seen[-1].response.error is not None


def test_a_message_is_verified(server: Server) -> None:
    answer = json.loads(post(server, message("seven", system="brief", stop_sequences=["END"])))
    assert answer["content"] == [{"type": "text", "text": RIGHT}]
    assert (answer["type"], answer["role"], answer["stop_reason"]) == (
        "message",
        "assistant",
        "end_turn",
    )
    assert answer["grv"]["verified"] is True
    assert answer["usage"]["output_tokens"] > 0
    more = json.loads(post(server, message("seven", max_tokens=5000)))  # the server allows 100
    assert more["content"][0]["text"] == RIGHT


def test_a_stream_of_messages_has_pings_and_the_text(server: Server, model: Model) -> None:
    with model.taking(0.4):
        seen = events(post(server, message("slowly", stream=True)))
    types = [event["type"] for event in seen]
    assert types[0] == "message_start"
    assert "ping" in types
    assert [kind for kind in types if kind != "ping"][1:] == [
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert seen[types.index("content_block_delta")]["delta"]["text"] == RIGHT
    assert seen[-2]["grv"]["verified"] is True
    assert seen[-2]["usage"]["output_tokens"] > 0


@pytest.mark.parametrize(
    ("changes", "status", "kind", "param"),
    [
        ({"max_tokens": None}, 400, "invalid_request_error", "max_tokens"),
        ({"top_k": 3}, 400, "invalid_request_error", "top_k"),
        ({"model": "other"}, 404, "not_found_error", "model"),
        ({"grv": {**check(97), "policy": "fixed(2, 2)"}}, 422, "invalid_request_error", None),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
            400,
            "invalid_request_error",
            "messages[0].content[0].source",
        ),
        (
            {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
            400,
            "invalid_request_error",
            "tools[0]",
        ),
    ],
)
def test_an_error_of_messages_has_the_form_of_anthropic(
    server: Server, changes: dict[str, Any], status: int, kind: str, param: str | None
) -> None:
    code, content = posted(server, message("wrong", **changes))
    said = json.loads(content)
    assert (code, said["type"]) == (status, "error")
    assert (said["error"]["type"], said["error"]["param"]) == (kind, param)


def test_a_key_is_needed_in_either_header_and_once(server: Server) -> None:
    wrong = {"x-api-key": "another-key-that-nobody-has"}
    said = json.loads(post(server, message("hi"), **wrong))
    assert said["error"]["type"] == "authentication_error"
    both = {"Authorization": f"Bearer {KEY}"}
    assert json.loads(post(server, message("hi"), **both))["type"] == "error"
    nowhere = json.loads(post(server, {}, "/v1/nothing"))
    assert nowhere["error"]["type"] == "invalid_request_error"


@pytest.mark.slow
def test_n_gives_different_verified_answers(client: openai.OpenAI) -> None:
    def ask(n: int, text: str, **grv: Any) -> Any:
        return client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": text}],
            n=n,
            extra_body={"grv": {"check": {"kind": "text", "contains_any": ["42"]}, **grv}},
        )

    two = ask(2, "two ways")
    texts = [choice.message.content for choice in two.choices]
    assert [choice.index for choice in two.choices] == [0, 1]
    assert len(set(texts)) == 2
    assert all("42" in text for text in texts)
    assert two.model_extra["grv"]["verified"] is True

    # There are only two different right answers.
    with pytest.raises(openai.UnprocessableEntityError, match="2 of 3 different verified") as error:
        ask(3, "two ways")
    body: Any = error.value.body
    assert body["param"] == "n"
    best = ask(3, "two ways", require="best")
    assert {choice.message.content for choice in best.choices} == set(texts)


def test_a_stream_has_every_one_of_several_answers(client: openai.OpenAI) -> None:
    chunks = client.completions.create(
        model="m",
        prompt="two ways more",
        n=2,
        stream=True,
        extra_body={"grv": {"check": {"kind": "text", "contains_any": ["42"]}}},
    )
    texts: dict[int, str] = {}
    for chunk in chunks:
        for choice in chunk.choices:
            texts[choice.index] = texts.get(choice.index, "") + choice.text
    assert len(set(texts.values())) == 2


def test_models_have_names_for_all_clients(client: openai.OpenAI, server: Server) -> None:
    assert client.models.retrieve("grv/m").id == "m"
    (listed,) = client.models.list().data
    assert listed.model_extra is not None
    assert (listed.id, listed.model_extra["type"]) == ("m", "model")
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("grv/other")
