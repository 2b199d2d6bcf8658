"""What failed requests mean, told by a server that really fails."""

from __future__ import annotations

import json
import ssl

import httpx2
import pytest

from grv.backends.http.endpoint import Endpoint
from grv.backends.http.faults import Cause, of_exception, of_response
from grv.backends.http.json_client import JsonClient
from grv.core.errors import BackendError, Fault, GeneratorError
from grv.testing import FakeOpenai
from support.servers import Cut, Drop, FaultyServer, Say, Status
from support.servers import Fault as Scripted

BODY = {"model": "m", "prompt": "p", "temperature": 0.7, "n": 2, "max_tokens": 9}


async def failed(url: str) -> GeneratorError:
    endpoint = Endpoint(url, backend="test", error=GeneratorError)
    with pytest.raises(GeneratorError) as caught:
        await endpoint.ask("/completions", BODY, "p")
    await endpoint.aclose()
    return caught.value


HINTED = (Status(413), Drop(midway=True), Say())  # faults of one call, with advice


@pytest.mark.anyio
async def test_a_server_without_tls_is_not_waited_for() -> None:
    with FakeOpenai() as server:
        error = await failed(server.url.replace("http://", "https://"))

    assert (error.fault, error.unpaid) == ("stop", True)
    assert error.hint == "the server does not speak TLS: write http:// in place of https://"


def test_a_certificate_that_is_not_trusted_is_not_waited_for() -> None:
    error = httpx2.ConnectError("certificate verify failed")
    error.__cause__ = ssl.SSLCertVerificationError("certificate verify failed")

    cause = of_exception(error)

    assert (cause.fault, cause.unpaid) == ("stop", True)
    assert "does not trust the server's certificate" in cause.hint


def test_a_handshake_that_broke_off_is_an_outage() -> None:
    error = httpx2.ConnectError("EOF occurred")
    error.__cause__ = ssl.SSLEOFError("EOF occurred")

    assert of_exception(error).fault == "wait"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("fault", "kind", "unpaid"),
    [
        (Status(429), "wait", True),
        (Status(503), "wait", True),
        (Status(500), "wait", False),
        (Status(502), "wait", False),
        (Status(504), "wait", False),
        (Drop(), "wait", False),
        (Status(401), "stop", True),
        (Status(402), "stop", True),
        (Status(403), "stop", True),
        (Status(404), "stop", True),
        (Status(429, message="insufficient_quota"), "stop", True),
        (Status(400, message="no `temperature` here"), "stop", True),
        (Status(400, message="I refuse"), "call", True),
        (Status(413), "call", False),
        (Drop(midway=True), "call", False),
        (Cut(), "call", False),
        (Say(), "call", False),
    ],
    ids=str,
)
async def test_responses(fault: Scripted, kind: Fault, unpaid: bool) -> None:
    with FaultyServer([fault]) as server:
        error = await failed(server.url)
        assert (error.fault, error.unpaid) == (kind, unpaid)
        assert error.place == server.root.removeprefix("http://")
        assert bool(error.hint) == (kind == "stop" or fault in HINTED)


@pytest.mark.anyio
@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "http://no-such-host.invalid/v1"])
async def test_without_a_connection_there_is_nothing_to_pay(url: str) -> None:
    error = await failed(url)
    assert (error.fault, error.unpaid) == ("wait", True)
    client = JsonClient(url, None, key_name="KEY", backend="test", error=BackendError)
    with pytest.raises(BackendError) as caught:
        await client.post({}, "p")
    await client.aclose()
    assert (caught.value.fault, caught.value.unpaid) == ("wait", True)


@pytest.mark.parametrize(
    ("error", "name"),
    [
        ({"message": "Unsupported value", "param": "temperature"}, "temperature"),
        ({"message": "bad", "param": "model", "code": "model_not_found"}, "model"),
        ({"message": "Unsupported parameter: 'max_tokens'"}, "max_tokens"),
        ({"message": "max_tokens must be at most 4"}, "max_tokens"),
        ({"message": "'n' must be 1"}, "n"),
        ({"message": "too long", "param": "messages"}, None),
        ({"message": "maximum context length is 9 tokens", "param": "max_tokens"}, None),
        ({"message": "This model's maximum context length is 9; reduce max_tokens"}, None),
        ({"message": "a model with n layers cannot do it"}, None),
        ({"message": "no top_p", "param": "top_p"}, None),  # was not sent
    ],
    ids=str,
)
def test_a_refused_parameter_stops_the_run_but_a_long_prompt_does_not(
    error: dict[str, str], name: str | None
) -> None:
    cause = of_response(400, json.dumps({"error": error}), {}, BODY)
    if name is None:
        is_long = "too long" in error["message"] or "context length" in error["message"]
        hint = "shorten the prompt, or leave this problem out" if is_long else ""
        assert cause == Cause("call", final=True, unpaid=True, hint=hint)
    else:
        omit = f"--{name.replace('_', '-')}" if name in ("temperature", "max_tokens") else "it"
        assert (cause.fault, cause.hint) == (
            "stop",
            f"the server refuses {name}: change or omit {omit}",
        )


def test_a_parameter_within_an_object_stops_the_run() -> None:
    message = "it has a maxOutputTokens value of 9 but the supported range is from 1 to 8"
    sent = {"contents": [], "generationConfig": {"maxOutputTokens": 9}}
    cause = of_response(400, json.dumps({"error": {"message": message}}), {}, sent)
    assert cause.fault == "stop"
    assert cause.hint == "the server refuses maxOutputTokens: change or omit --max-tokens"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "vendor/m is not a valid model ID"),
        (400, "Invalid model name passed in model=m"),
        (410, "the model is retired"),
    ],
)
def test_an_unknown_model_stops_the_run_whatever_the_status(status: int, message: str) -> None:
    cause = of_response(status, json.dumps({"error": {"message": message}}), {}, BODY)
    assert (cause.fault, cause.unpaid) == ("stop", True)
    assert cause.hint == "check the name of the model and the address of the server"


@pytest.mark.parametrize("body", ["", "null", "[1]", "<html>", '{"error": null}', '{"error": [2]}'])
def test_any_body_is_read(body: str) -> None:
    assert of_response(400, body, {}, BODY).fault == "call"
