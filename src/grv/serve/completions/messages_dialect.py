"""Anthropic's Messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...files import parse_json, shown
from ..errors import ApiError, wrong
from ..fields import only, record
from ..profiles import Profile
from .dialect import Answered, Asked, Fields, ServerDialect
from .formats import schema_format
from .messages import call_of, check_id, check_number, image_part
from .sampling_fields import effort, randomness, stops, tokens
from .tools import NO_CALLS, named, offered, tool_list, tool_of

if TYPE_CHECKING:
    from .requests import CompletionRequest

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}
_CHOICES = {"auto": "auto", "any": "required", "none": NO_CALLS}
_THINKING = ("disabled", "adaptive")
_HINT = "cache_control"  # says nothing to a model


def read(given: Fields, profile: Profile) -> Asked:
    """What a request says. It must have a limit of tokens; a lower one of the server holds."""
    most = tokens(given, None, "max_tokens")
    if most is None:
        raise wrong("max_tokens", "is missing: the most tokens of an answer")
    own = profile.sampling.max_tokens
    sampling = randomness(given) | {
        "max_tokens": most if own is None else min(most, own),
        "stop": stops(given.get("stop_sequences"), "stop_sequences"),
    }
    if "output_config" in given:
        sampling |= _output(record(given["output_config"], "output_config", "output_config"))
    thinking = given.get("thinking")
    if thinking is not None:
        kind = thinking.get("type") if isinstance(thinking, Mapping) else None
        if kind not in _THINKING:
            there = ", ".join(_THINKING)
            raise wrong("thinking", f"must have a type: {there}; output_config.effort says more")
    messages = _messages(given.get("messages"))
    if "system" in given:
        messages.insert(0, {"role": "system", "content": _system(given["system"])})
    tools, may_call = _tools(given)
    return Asked(tuple(messages), sampling=sampling, tools=tools, may_call=may_call)


def _output(options: Mapping[str, Any]) -> dict[str, Any]:
    only(options, "output_config.", ("effort", "format"))
    found: dict[str, Any] = {"effort": effort(options.get("effort"), "output_config.effort")}
    match options.get("format"):
        case None:
            pass
        case {"type": "json_schema", "schema": schema, **more} if not more:
            form = {"name": "answer", "schema": schema}
            found["response_format"] = schema_format(form, "output_config.format")
        case other:
            raise wrong("output_config.format", f"must be a json_schema, not {shown(other)}")
    return found


def _system(given: Any) -> str:
    if isinstance(given, str):
        return given
    if not isinstance(given, list) or not given:
        raise wrong("system", f"must be a text or a list of texts, not {shown(given)}")
    check_number(len(given), "system")
    return "\n\n".join(_text(block, f"system[{at}]") for at, block in enumerate(given))


def _text(block: Any, place: str) -> str:
    match block:
        case {"type": "text", "text": str(text), **more} if not more.keys() - {_HINT, "citations"}:
            return text
    raise wrong(place, 'must be {"type": "text", "text": ...}')


def _messages(given: Any) -> list[Fields]:
    """The conversation, as OpenAI's chats have it. A result of a tool is a message of its own."""
    if not isinstance(given, list) or not given:
        raise wrong("messages", f"must be a list of messages, not {shown(given)}")
    contents = [each.get("content") for each in given if isinstance(each, Mapping)]
    check_number(len(given), "messages")
    check_number(sum(len(each) for each in contents if isinstance(each, list)), "messages")
    messages: list[Fields] = []
    for index, message in enumerate(given):
        place = f"messages[{index}]"
        match message:
            case {"role": "user" | "assistant" as role, "content": str(text), **more} if not more:
                messages.append({"role": role, "content": text})
            case {"role": "user", "content": [_, *_] as blocks, **more} if not more:
                messages += _user(blocks, f"{place}.content")
            case {"role": "assistant", "content": [_, *_] as blocks, **more} if not more:
                messages.append(_assistant(blocks, f"{place}.content"))
            case _:
                raise wrong(place, 'must be {"role": "user" or "assistant", "content": ...}')
    return messages


def _user(blocks: list[Any], place: str) -> list[Fields]:
    results: list[Fields] = []
    parts: list[Fields] = []
    for index, block in enumerate(blocks):
        at = f"{place}[{index}]"
        match block:
            case {"type": "tool_result", "tool_use_id": id, **more} if not more.keys() - {
                "content",
                "is_error",
                _HINT,
            }:
                check_id(id, f"{at}.tool_use_id")
                text = _result(more.get("content"), f"{at}.content")
                results.append({"role": "tool", "tool_call_id": id, "content": text})
            case {
                "type": "image",
                "source": {"type": "base64", "media_type": str(kind), "data": str(data), **inner},
                **more,
            } if not (inner or more.keys() - {_HINT}):
                parts.append(image_part(f"data:{kind};base64,{data}", f"{at}.source"))
            case {"type": "image"}:
                raise wrong(f"{at}.source", "must be base64 data, not an address")
            case _:
                parts.append({"type": "text", "text": _text(block, at)})
    texts = [part["text"] for part in parts if part["type"] == "text"]
    content: Any = texts[0] if len(parts) == len(texts) == 1 else parts
    return [*results, {"role": "user", "content": content}] if parts else results


def _result(given: Any, place: str) -> str:
    """What a tool has said: texts only."""
    if given is None or isinstance(given, str):
        return given or ""
    if not isinstance(given, list):
        raise wrong(place, f"must be a text or a list of texts, not {shown(given)}")
    check_number(len(given), place)
    return "\n".join(_text(block, f"{place}[{at}]") for at, block in enumerate(given))


def _assistant(blocks: list[Any], place: str) -> Fields:
    texts: list[str] = []
    calls: list[Fields] = []
    for index, block in enumerate(blocks):
        at = f"{place}[{index}]"
        match block:
            case {"type": "thinking" | "redacted_thinking"}:
                continue  # of another model: this one does not read it
            case {"type": "tool_use", "id": id, "name": name, "input": {**given}, **more} if (
                not more.keys() - {_HINT, "caller"}
            ):
                calls.append(call_of(id, name, json.dumps(given), at))
            case _:
                texts.append(_text(block, at))
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) or None}
    if calls:
        return {**message, "tool_calls": calls}
    return {**message, "content": "".join(texts)}


def _tools(given: Fields) -> tuple[dict[str, Any], bool]:
    tools = []
    for index, tool in enumerate(tool_list(given.get("tools", []))):
        place = f"tools[{index}]"
        if not isinstance(tool, Mapping) or tool.get("type", "custom") != "custom":
            raise wrong(place, "must be a tool of the client: the server runs none of its own")
        known = ("type", "name", "description", "input_schema", "strict", _HINT)
        only(tool, f"{place}.", known)
        tools.append(
            tool_of(
                tool.get("name"),
                place,
                description=tool.get("description"),
                schema=tool.get("input_schema"),
                strict=tool.get("strict"),
            )
        )
    parallel = None
    choice: Any = None
    match given.get("tool_choice"):
        case None:
            pass
        case {"type": str(kind), **more} if not more.keys() - {"name", "disable_parallel_tool_use"}:
            if kind == "tool":
                choice = named(more.get("name"), tools, "tool_choice.name")
            elif kind in _CHOICES and "name" not in more:
                choice = _CHOICES[kind]
            else:
                there = ", ".join((*_CHOICES, "tool"))
                raise wrong("tool_choice.type", f"must be one of {there}, not {shown(kind)}")
            alone = more.get("disable_parallel_tool_use")
            if alone is not None and not isinstance(alone, bool):
                raise wrong("tool_choice.disable_parallel_tool_use", "must be true or false")
            parallel = False if alone else None
        case other:
            raise wrong("tool_choice", f"must have a type, not be {shown(other)}")
    return offered(tools, choice, parallel)


def _head(request: CompletionRequest) -> dict[str, Any]:
    return {
        "id": request.dialect.id_of(request),
        "type": "message",
        "role": "assistant",
        "model": request.profile.name,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def _blocks(answer: Answered) -> list[Fields]:
    blocks: list[Fields] = []
    if answer.text or not answer.calls:
        blocks.append({"type": "text", "text": answer.text})
    for call in answer.calls:
        input = _input(call.arguments, answer)
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
    return blocks


def _input(arguments: str, answer: Answered) -> dict[str, Any]:
    """The arguments of a call, which are an object here."""
    try:
        found = parse_json(arguments or "{}")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        message = "the model called a tool with arguments that are no JSON object"
        raise ApiError(502, message, code="search_failed", grv=answer.grv)
    return found


def _end(answer: Answered) -> str:
    return "tool_use" if answer.calls else "end_turn"


def _usage(answer: Answered) -> dict[str, int]:
    return {"input_tokens": answer.prompt_tokens, "output_tokens": answer.completion_tokens}


def body(request: CompletionRequest, answer: Answered) -> dict[str, Any]:
    """A response that is not streamed."""
    return {
        **_head(request),
        "content": _blocks(answer),
        "stop_reason": _end(answer),
        "usage": _usage(answer),
        "grv": answer.grv,
    }


def opening(request: CompletionRequest) -> list[Fields]:
    """The message begins."""
    return [{"type": "message_start", "message": _head(request)}]


def progress(request: CompletionRequest, done: Fields) -> list[Fields]:
    """A ping, which clients skip, with the progress."""
    return [{"type": "ping", "grv": done}]


def closing(request: CompletionRequest, answer: Answered) -> list[Fields]:
    """The blocks of the message, one after the other, and its end."""
    events: list[Fields] = []
    for index, block in enumerate(_blocks(answer)):
        if block["type"] == "text":
            begun = {**block, "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            begun = {**block, "input": {}}
            said = json.dumps(block["input"])
            delta = {"type": "input_json_delta", "partial_json": said}
        events += [
            {"type": "content_block_start", "index": index, "content_block": begun},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    end = {"stop_reason": _end(answer), "stop_sequence": None}
    last = {"type": "message_delta", "delta": end, "usage": _usage(answer), "grv": answer.grv}
    return [*events, last, {"type": "message_stop"}]


def error(given: ApiError) -> dict[str, Any]:
    """The body of an error."""
    kind = "api_error" if given.status >= 500 else "invalid_request_error"
    said = given.body["error"] | {"type": _TYPES.get(given.status, kind)}
    return {"type": "error", "error": said, "request_id": None}


def failure(request: CompletionRequest, given: ApiError) -> list[Fields]:
    """The error as an event."""
    return [error(given)]


MESSAGES = ServerDialect(
    path="/v1/messages",
    prefix="msg_",
    known=(
        "messages",
        "system",
        "max_tokens",
        "temperature",
        "top_p",
        "stop_sequences",
        "output_config",
        "thinking",
        "tools",
        "tool_choice",
        # Fields without influence on the answer.
        "metadata",
        "service_tier",
        _HINT,
    ),
    fixed={},
    read=read,
    body=body,
    opening=opening,
    progress=progress,
    closing=closing,
    failure=failure,
    error=error,
    named=True,
)
