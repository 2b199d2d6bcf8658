"""The official openai client, unmodified, before a real server and a model that counts."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from support.serving import RIGHT, Model, Server, check, serving, write_job

HELLO: Any = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(every=3) as up:
        yield up


@pytest.fixture(scope="module")
def server(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("serve")
    named = ('[checks."the sum"]', 'kind = "math"', 'answer = "42"')
    write_job(folder, model, *named, max_tokens=100)
    with serving(folder, "--heartbeat", 0.1) as up:
        yield up
    for line in up.lines:
        assert "boxed" not in line
        assert "hello" not in line
        assert "secret-key" not in line


@pytest.fixture
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.url, api_key="secret-key", max_retries=0) as made:
        yield made


def asked(text: str) -> Any:
    return [{"role": "user", "content": text}]


def grv_of(response: Any) -> dict[str, Any]:
    found = response.model_extra["grv"]
    assert isinstance(found, dict)
    return found


def get(server: Server, path: str) -> Any:
    with urllib.request.urlopen(f"{server.root}{path}") as response:
        return json.load(response)


def test_a_chat_is_answered_with_a_verified_text(client: openai.OpenAI, model: Model) -> None:
    response = client.chat.completions.create(
        model="m", messages=HELLO, extra_body={"grv": check()}
    )

    found = grv_of(response)
    assert response.choices[0].message.content == RIGHT
    assert (found["outcome"], found["verified"]) == ("solved", True)
    assert found["evidence"]["verdict"] == "passed"
    assert found["answer_program"] is None  # the check runs no program
    assert found["answer_value"] == "42"  # what was verified
    assert found["bill"]["cost"] == found["bill"]["generated"] + 2 * found["bill"]["verified"]


def test_usage_sums_all_candidates(client: openai.OpenAI, model: Model) -> None:
    before = model.served.total()
    response = client.completions.create(
        model="m", prompt="one two three", extra_body={"grv": check()}
    )
    made = model.served.total() - before
    assert made == grv_of(response)["bill"]["generated"]
    assert response.usage is not None
    assert response.usage.prompt_tokens >= 3
    assert response.usage.completion_tokens == 3 * made
    assert response.usage.total_tokens == (
        response.usage.prompt_tokens + response.usage.completion_tokens
    )


@pytest.mark.slow
def test_an_equal_request_returns_the_recorded_answer_and_bill(
    client: openai.OpenAI, model: Model
) -> None:
    def ask(**more: Any) -> Any:
        return client.chat.completions.create(
            model="m", messages=asked("again"), extra_body={"grv": {**check(), **more}}
        )

    first = ask()
    before = model.served.total()
    second = ask()
    assert grv_of(second) == grv_of(first)
    assert second.usage == first.usage
    assert model.served.total() == before

    fresh = ask(fresh=True)
    assert grv_of(fresh)["search"] != grv_of(first)["search"]
    assert model.served.total() == before + grv_of(fresh)["bill"]["generated"]
    named = ask(fresh="second try")
    assert grv_of(ask(fresh="second try")) == grv_of(named)
    assert grv_of(ask(fresh=True))["search"] != grv_of(fresh)["search"]


@pytest.mark.slow
def test_what_influences_candidates_makes_another_search(client: openai.OpenAI) -> None:
    def search(**more: Any) -> str:
        response = client.chat.completions.create(
            model="m", messages=HELLO, **{"extra_body": {"grv": check()}, **more}
        )
        return str(grv_of(response)["search"])

    usual = search()
    ways: list[dict[str, Any]] = [
        {"temperature": 0.3},
        {"seed": 7},
        {"max_tokens": 50},
        {"stop": ["x"]},
        {"frequency_penalty": 0.5},
        {"response_format": {"type": "json_object"}},
        {"extra_body": {"grv": {"check": {"kind": "math", "answer": "42.0"}}}},
    ]
    assert len({usual, *(search(**each) for each in ways)}) == 1 + len(ways)
    assert search(user="me", metadata={"a": "b"}) == usual
    assert search(extra_body={"grv": {**check(), "budget": 100}}) == usual


def test_the_fields_of_a_request_reach_the_model(client: openai.OpenAI, model: Model) -> None:
    messages: Any = [{"role": "system", "content": "be brief"}, *asked("fields")]
    client.chat.completions.create(
        model="m",
        messages=messages,
        temperature=0.25,
        top_p=0.5,
        max_tokens=77,
        stop="END",
        presence_penalty=1.5,
        extra_body={"grv": check()},
    )
    body = next(each.body for each in model.received if each.prompt == "be brief")
    assert body["messages"] == messages
    assert (body["temperature"], body["top_p"], body["stop"]) == (0.25, 0.5, ["END"])
    assert 77 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    assert body["presence_penalty"] == 1.5
    assert "grv" not in body


def test_a_stream_has_progress_the_text_and_usage(client: openai.OpenAI, model: Model) -> None:
    with model.taking(0.3):
        chunks = list(
            client.chat.completions.create(
                model="m",
                messages=asked("stream"),
                stream=True,
                stream_options={"include_usage": True},
                extra_body={"grv": check()},
            )
        )
    texts = [each.choices[0].delta.content for each in chunks if each.choices]
    assert texts == [RIGHT, None]
    waiting = [each for each in chunks[:-1] if not each.choices]
    assert waiting
    assert {grv_of(each)["outcome"] for each in waiting} == {None}
    assert [each.usage for each in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1].usage is not None
    ended = next(each for each in chunks if each.choices and each.choices[0].finish_reason)
    assert grv_of(ended)["verified"] is True
    assert chunks[-1].usage.completion_tokens == 3 * grv_of(ended)["bill"]["generated"]


def test_a_stream_has_no_usage_unless_it_asks_for_it(client: openai.OpenAI) -> None:
    chunks = list(
        client.completions.create(
            model="m", prompt="stream text", stream=True, extra_body={"grv": check()}
        )
    )
    assert "".join(each.choices[0].text for each in chunks if each.choices) == RIGHT
    assert [each.usage for each in chunks] == [None] * len(chunks)


@pytest.mark.slow
def test_silence_is_never_longer_than_a_heartbeat(server: Server, model: Model) -> None:
    body = {"model": "m", "messages": asked("slow"), "stream": True, "grv": check()}
    with model.taking(0.6):
        request = urllib.request.Request(
            f"{server.url}/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as response:
            lines = [line.strip() for line in response]
    assert lines.count(b": heartbeat") >= 2
    assert lines[-2:] == [b"data: [DONE]", b""]


def test_the_async_client_works(server: Server) -> None:
    async def ask() -> list[str | None]:
        async with openai.AsyncOpenAI(base_url=server.url, api_key="x") as client:
            names = [each.id async for each in client.models.list()]
            assert names == ["m"]
            assert (await client.models.retrieve("m")).id == "m"
            made = await client.chat.completions.create(
                model="m", messages=asked("async"), extra_body={"grv": check()}
            )
            stream = await client.chat.completions.create(
                model="m", messages=asked("async 2"), stream=True, extra_body={"grv": check()}
            )
            texts = [each.choices[0].delta.content async for each in stream if each.choices]
            return [made.choices[0].message.content, texts[0]]

    assert asyncio.run(ask()) == [RIGHT, RIGHT]


def test_a_check_of_the_server_is_named(client: openai.OpenAI) -> None:
    response = client.chat.completions.create(
        model="m", messages=asked("named"), extra_body={"grv": {"check": "the sum"}}
    )
    evidence = {"verdict": "passed", "reason": "right answer", "check": "the sum"}
    assert grv_of(response)["evidence"] == evidence


def test_an_unmet_requirement_is_422_with_the_bill(client: openai.OpenAI, server: Server) -> None:
    wanted = {**check(99), "policy": "fixed(6, 2)"}
    with pytest.raises(openai.UnprocessableEntityError) as caught:
        client.chat.completions.create(model="m", messages=HELLO, extra_body={"grv": wanted})
    body: Any = caught.value.body
    assert body["code"] == "not_verified"
    assert body["grv"]["outcome"] == "finished"
    assert body["grv"]["bill"]["cost"] == 6 + 2 * 2
    assert get(server, f"/grv/searches/{body['grv']['search']}")["outcome"] == "finished"

    best = client.chat.completions.create(
        model="m", messages=HELLO, extra_body={"grv": {**wanted, "require": "best"}}
    )
    assert grv_of(best) == body["grv"]
    assert grv_of(best)["verified"] is False
    assert best.choices[0].message.content


def test_if_all_candidates_have_failed_there_is_no_best_one(client: openai.OpenAI) -> None:
    wanted = {**check(97), "policy": "fixed(2, 2)", "require": "best"}
    with pytest.raises(openai.UnprocessableEntityError) as caught:
        client.chat.completions.create(
            model="m", messages=asked("wrong"), extra_body={"grv": wanted}
        )
    said = str(caught.value)
    assert "there is no candidate to return (finished): of 2 candidates, 2 failed" in said
    assert "0 were refuted" in said


@pytest.mark.slow
def test_a_larger_budget_continues_the_search(client: openai.OpenAI, model: Model) -> None:
    def cost(budget: float) -> float:
        with pytest.raises(openai.UnprocessableEntityError) as caught:
            client.chat.completions.create(
                model="m",
                messages=asked("more"),
                extra_body={"grv": {**check(98), "budget": budget}},
            )
        body: Any = caught.value.body
        return float(body["grv"]["bill"]["generated"])

    before = model.served.total()
    cost(20)
    assert cost(40) == model.served.total() - before


@pytest.mark.alone
def test_a_deadline_ends_a_request(client: openai.OpenAI, model: Model, server: Server) -> None:
    with model.taking(0.6):  # one answer per request, so that no budget ends it
        wanted = {**check(97), "deadline": 1, "policy": "threshold(1000)"}
        with pytest.raises(openai.UnprocessableEntityError) as caught:
            client.chat.completions.create(
                model="m", messages=asked("late"), extra_body={"grv": wanted}
            )
        body: Any = caught.value.body
        assert (body["code"], body["grv"]["outcome"]) == ("deadline", "unfinished")
        best = client.chat.completions.create(
            model="m", messages=asked("late"), extra_body={"grv": {**wanted, "require": "best"}}
        )
        assert best.choices[0].message.content
        assert grv_of(best)["bill"]["generated"] >= body["grv"]["bill"]["generated"] > 0
        chunks = client.chat.completions.create(
            model="m", messages=asked("late"), stream=True, extra_body={"grv": wanted}
        )
        with pytest.raises(openai.APIError, match="deadline"):
            list(chunks)
        state = get(server, f"/grv/searches/{body['grv']['search']}")
        assert (state["status"], state["verified"]) in {("unfinished", False), ("running", False)}


@pytest.mark.alone
def test_closing_the_last_stream_stops_the_search(
    client: openai.OpenAI, model: Model, server: Server
) -> None:
    with model.taking(0.1):
        streams = [
            client.chat.completions.create(
                model="m", messages=asked("close"), stream=True, extra_body={"grv": check(96)}
            )
            for _ in range(2)
        ]
        search = str(grv_of(next(iter(streams[0])))["search"])
        next(iter(streams[1]))
        streams[0].close()
        threading.Event().wait(0.4)
        assert get(server, f"/grv/searches/{search}")["status"] == "running"
        streams[1].close()
        for _ in range(50):
            if get(server, f"/grv/searches/{search}")["status"] == "unfinished":
                break
            threading.Event().wait(0.1)
        else:
            pytest.fail("the search runs on")
        threading.Event().wait(0.3)
        served = model.served.total()
        threading.Event().wait(0.5)
        assert model.served.total() == served


@pytest.mark.alone
def test_a_client_that_gave_up_joins_its_own_search(
    client: openai.OpenAI, model: Model, server: Server
) -> None:
    with model.taking(0.4):
        with pytest.raises(openai.APITimeoutError):
            client.chat.completions.create(
                model="m", messages=asked("impatient"), timeout=0.3, extra_body={"grv": check()}
            )
        response = client.chat.completions.create(
            model="m", messages=asked("impatient"), extra_body={"grv": check()}
        )
    prompts = [n for (prompt, _), n in model.served.items() if prompt == "impatient"]
    assert prompts == [1] * grv_of(response)["bill"]["generated"]
