"""Requests of pages and gateways, and the answers of a gateway behind us.

- LangChain: bodies recorded from langchain-openai 1.7.3 and langchain-anthropic 1.7.7.
- Open WebUI 0.10.2: typed after its source, `generate_chat_completion` and
  `convert_to_responses_payload` in `backend/open_webui/routers/openai.py`.
- LiteLLM: a conversation that goes on with a message of LiteLLM 1.106.2, as it was sent, and with
  the index that a streamed call has. `test_clients_of_others.py` has the package itself.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from grv.backends.generators.completions import texts
from support.serving import RIGHT, Model, Server, serving, write_job
from support.tools import SCHEMA, TOOL, calls_weather

CALL = {"name": "weather", "arguments": '{"city": "Oslo"}'}
ASKED = {"role": "user", "content": "rain?"}
FLAT = {"type": "function", "name": "weather", "description": "The weather.", "parameters": SCHEMA}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "Open WebUI": (
        "/v1/chat/completions",
        {
            "stream": True,
            "model": "m",
            "messages": [{"role": "system", "content": "You help."}, ASKED],
            "temperature": 0.8,
            "stop": ["END"],
            "max_tokens": 200,
            "stream_options": {"include_usage": True},
        },
    ),
    "Open WebUI, after a tool": (
        "/v1/chat/completions",
        {
            "stream": True,
            "model": "m",
            "messages": [
                ASKED,
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"id": "call_7", "type": "function", "function": CALL}],
                },
                {"role": "tool", "tool_call_id": "call_7", "content": "42 mm"},
            ],
            "tools": [TOOL],
        },
    ),
    "Open WebUI, responses": (
        "/v1/responses",
        {
            "stream": True,
            "model": "m",
            "input": [
                {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": "rain?"}],
                },
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "I look."}],
                },
                {"type": "function_call", "call_id": "call_7", **CALL},
                {"type": "function_call_output", "call_id": "call_7", "output": "42 mm"},
            ],
            "instructions": "You help.",
            "max_output_tokens": 200,
            "tools": [FLAT],
        },
    ),
    "LiteLLM in front": (
        "/v1/chat/completions",
        {
            "model": "m",
            "messages": [
                ASKED,
                {
                    "content": None,
                    "role": "assistant",
                    "tool_calls": [
                        {"index": 0, "function": CALL, "id": "call_7", "type": "function"}
                    ],
                    "function_call": None,
                    "provider_specific_fields": {"refusal": None},
                },
                {"role": "tool", "tool_call_id": "call_7", "name": "weather", "content": "42 mm"},
            ],
            "max_tokens": 200,
            "tools": [TOOL],
            "tool_choice": "auto",
        },
    ),
    "LangChain, a stream": (
        "/v1/chat/completions",
        {"model": "grv/m", "stream": True, "messages": [{"content": "rain?", "role": "user"}]},
    ),
    "LangChain": (
        "/v1/chat/completions",
        {
            "model": "grv/m",
            "stream": False,
            "messages": [
                {"content": "rain?", "role": "user"},
                {
                    "content": "I look.",
                    "role": "assistant",
                    "tool_calls": [{"type": "function", "id": "call_7", "function": CALL}],
                },
                {"content": "42 mm", "role": "tool", "tool_call_id": "call_7"},
            ],
            "tools": [TOOL],
        },
    ),
    "LangChain, responses": (
        "/v1/responses",
        {
            "model": "m",
            "stream": False,
            "input": [
                {"content": "rain?", "role": "user", "type": "message"},
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
                },
                {"type": "function_call", **CALL, "call_id": "call_7"},
                {"type": "function_call_output", "output": "42 mm", "call_id": "call_7"},
            ],
            "tools": [FLAT],
        },
    ),
    "LangChain, messages": (
        "/v1/messages",
        {
            "max_tokens": 4096,
            "messages": [
                {"role": "user", "content": "rain?"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "text", "text": "I look."},
                        {
                            "type": "tool_use",
                            "name": "weather",
                            "input": {"city": "Oslo"},
                            "id": "call_7",
                        },
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "content": "42 mm",
                            "tool_use_id": "call_7",
                            "is_error": False,
                        }
                    ],
                },
            ],
            "model": "m",
            "tools": [{"name": "weather", "description": "The weather.", "input_schema": SCHEMA}],
        },
    ),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("serve")
    named = ("[checks.sum]", 'kind = "math"', 'answer = "42"')
    with Model(every=3, script=calls_weather) as model:
        write_job(folder, model, *named, check="sum", policy="fixed(6, 6)")
        with serving(folder) as up:
            yield up


@pytest.mark.slow
@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_of_others_gets_a_verified_answer(server: Server, name: str) -> None:
    path, body = REQUESTS[name]
    request = urllib.request.Request(
        f"{server.root}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as response:
        said = response.read().decode()
    assert json.dumps(RIGHT)[1:-1] in said
    assert '"verified": true' in said


def test_an_answer_of_litellm_is_read_with_its_nulls() -> None:
    message = {
        "content": "It is 42.",
        "role": "assistant",
        "tool_calls": None,
        "function_call": None,
        "provider_specific_fields": {"refusal": None},
    }
    choice = {"finish_reason": "stop", "index": 0, "message": message}
    usage = {
        "completion_tokens": 4,
        "prompt_tokens": 9,
        "total_tokens": 13,
        "completion_tokens_details": None,
        "prompt_tokens_details": {"audio_tokens": None, "cached_tokens": 0, "text_tokens": None},
    }
    answer = {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], "usage": usage}
    (draft,) = texts(answer)
    assert (draft.text, draft.broken) == ("It is 42.", "")
