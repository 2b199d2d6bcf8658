# mypy: ignore-errors
# It runs in an environment of its own, whose packages mypy does not see here.
"""A program that asks `grv serve` with the clients of others: Anthropic's, and LangChain.

It runs in an environment that has the clients, and not grv. `python gateway_clients.py KIND URL`
prints what the clients have read, as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

GRV = {"check": {"kind": "math", "answer": "42"}}
NEVER = {"check": {"kind": "math", "answer": "99"}, "policy": "fixed(3, 3)"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"name": "weather", "description": "The weather.", "input_schema": SCHEMA}


def anthropic(url: str) -> dict[str, Any]:
    """Anthropic's client: plain, streamed, tools, errors, the list of models."""
    import anthropic

    client = anthropic.Anthropic(base_url=url, api_key="any", max_retries=0)

    def asked(text: str, grv: Any = GRV) -> dict[str, Any]:
        said = [{"role": "user", "content": text}]
        return {"model": "m", "max_tokens": 50, "messages": said, "extra_body": {"grv": grv}}

    plain = client.messages.create(**asked("plain"))
    with client.messages.stream(**asked("streamed")) as stream:
        deltas = list(stream.text_stream)
        streamed = stream.get_final_message()
    conversation = asked("rain")
    call = client.messages.create(**conversation, tools=[TOOL])
    (use,) = [block for block in call.content if block.type == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": use.id, "content": "42 mm"}
    conversation["messages"] += [
        {"role": "assistant", "content": call.content},
        {"role": "user", "content": [result]},
    ]
    final = client.messages.create(**conversation, tools=[TOOL])
    try:
        client.messages.create(**asked("never", NEVER))
        error: Any = None
    except anthropic.UnprocessableEntityError as caught:
        error = caught.body["error"]
    try:
        list(client.messages.create(**asked("never, streamed", NEVER), stream=True))
        late: Any = None
    except anthropic.APIStatusError as caught:
        late = caught.body["error"]["type"]
    return {
        "plain": [plain.content[0].text, plain.stop_reason, plain.model_extra["grv"]["verified"]],
        "valid": type(plain).model_validate(plain.model_dump()).type,
        "streamed": ["".join(deltas), streamed.content[0].text, streamed.usage.output_tokens > 0],
        "call": [use.name, use.input, call.stop_reason, call.model_extra["grv"]["status"]],
        "final": [final.content[0].text, final.model_extra["grv"]["verified"]],
        "error": [error["type"], error["grv"]["outcome"]],
        "late": late,
        "models": [model.id for model in client.models.list()],
    }


def langchain(url: str) -> dict[str, Any]:
    """LangChain's clients: chats, responses, messages; plain, streamed, tools."""
    from langchain_anthropic import ChatAnthropic
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_openai import ChatOpenAI

    body = {"extra_body": {"grv": GRV}}
    common = {"base_url": f"{url}/v1", "api_key": "any", "max_retries": 0}
    chat = ChatOpenAI(model="grv/m", **common, **body)
    responses = ChatOpenAI(model="m", use_responses_api=True, **common, **body)
    messages = ChatAnthropic(
        model="m", base_url=url, api_key="any", max_retries=0, model_kwargs=body
    )
    found: dict[str, Any] = {}
    for name, model in {"chat": chat, "responses": responses, "messages": messages}.items():
        plain = model.invoke(f"plain {name}")
        streamed = "".join(chunk.text for chunk in model.stream(f"streamed {name}"))
        offered = model.bind_tools([TOOL])
        question = HumanMessage(f"rain {name}")
        call = offered.invoke([question])
        (use,) = call.tool_calls
        result = ToolMessage("42 mm", tool_call_id=use["id"])
        final = offered.invoke([question, call, result])
        found[name] = [plain.text, streamed, use["name"], use["args"], final.text]
    return found


if __name__ == "__main__":
    KINDS = {"anthropic": anthropic, "langchain": langchain}
    print(json.dumps(KINDS[sys.argv[1]](sys.argv[2])))
