# mypy: ignore-errors
# It runs in an environment of its own, whose packages mypy does not see here.
"""A program that asks `grv serve` with the clients of others: Anthropic's, LangChain, LiteLLM.

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


def litellm(url: str) -> dict[str, Any]:
    """LiteLLM before it: chats, responses, messages; plain, streamed, tools, several answers."""
    import asyncio

    import litellm

    common = {"model": "openai/grv/m", "api_base": f"{url}/v1", "api_key": "any"}
    body = {"extra_body": {"grv": GRV}, "max_retries": 0}

    def asked(text: str) -> list[Any]:
        return [{"role": "user", "content": text}]

    plain = litellm.completion(messages=asked("plain"), **common, **body)
    chunks = list(litellm.completion(messages=asked("streamed"), stream=True, **common, **body))
    tool = {"name": "weather", "description": "The weather.", "parameters": SCHEMA}
    tools = {"tools": [{"type": "function", "function": tool}]}
    conversation = asked("rain")
    call = litellm.completion(messages=conversation, **tools, **common, **body).choices[0].message
    (use,) = call.tool_calls
    result = {"role": "tool", "tool_call_id": use.id, "content": "42 mm"}
    conversation += [call, result]
    final = litellm.completion(messages=conversation, **tools, **common, **body)
    responses = litellm.responses(input="by responses", **common, **body)
    ways = {"grv": {"check": {"kind": "text", "contains_any": ["42"]}}}
    two = litellm.completion(messages=asked("two ways"), n=2, extra_body=ways, **common)
    message = asyncio.run(
        litellm.anthropic_messages(
            model="anthropic/m",
            api_base=url,
            api_key="any",
            max_tokens=50,
            messages=asked("by messages"),  # its messages have no extra_body: the server's check
        )
    )
    try:
        never = {"extra_body": {"grv": NEVER}, "max_retries": 0}
        litellm.completion(messages=asked("never"), **common, **never)
        error = None
    except litellm.BadRequestError as caught:
        error = "no verified answer" in str(caught)
    return {
        "plain": [plain.choices[0].message.content, plain.usage.total_tokens > 0],
        "streamed": "".join(chunk.choices[0].delta.content or "" for chunk in chunks),
        "call": [use.function.name, json.loads(use.function.arguments)],
        "final": final.choices[0].message.content,
        "responses": responses.output[-1].content[0].text,
        "two": len({choice.message.content for choice in two.choices}),
        "message": message["content"][0]["text"],
        "error": error,
    }


if __name__ == "__main__":
    KINDS = {"anthropic": anthropic, "langchain": langchain, "litellm": litellm}
    print(json.dumps(KINDS[sys.argv[1]](sys.argv[2])))
