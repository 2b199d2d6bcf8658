"""A model that calls a tool."""

from __future__ import annotations

import json
from typing import Any

from .servers import Fault, Received, Say

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL: Any = {
    "type": "function",
    "function": {"name": "weather", "description": "The weather.", "parameters": SCHEMA},
}
ARGUMENTS = '{"city": "Oslo"}'


def calls_weather(request: Received) -> Fault | None:
    """Call the tool once: a model that is offered it, and has no result."""
    body = request.body
    has_result = any(each["role"] == "tool" for each in body.get("messages", ()))
    if "tools" not in body or body["tool_choice"] == "none" or has_result:
        return None
    function = {"name": "weather", "arguments": ARGUMENTS}
    message = {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [{"id": "call_7", "type": "function", "function": function}],
    }
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    usage = {"prompt_tokens": 5, "completion_tokens": 7}
    return Say(json.dumps({"choices": [choice], "usage": usage}))
