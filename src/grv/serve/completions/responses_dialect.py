"""OpenAI's Responses. The server keeps no responses: a request has its whole conversation."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...files import shown
from ..errors import ApiError, wrong
from ..fields import only, record
from ..profiles import Profile
from .dialect import Answered, Asked, Fields, ServerDialect
from .formats import schema_format
from .messages import call_of, check_id, check_number, image_part
from .sampling_fields import effort, randomness, tokens
from .tools import CHOICES, named, offered, tool_list, tool_of

if TYPE_CHECKING:
    from .requests import CompletionRequest

_ROLES = ("system", "developer", "user", "assistant")
# Fields of an item that say nothing to a model.
_ABOUT_ITEMS = ("id", "status", "phase")
_INCLUDED = ("reasoning.encrypted_content",)  # the server's responses have none
_SUMMARIES = ("auto", "concise", "detailed")


def read(given: Fields, profile: Profile) -> Asked:
    """What a request says."""
    sampling = randomness(given) | {
        "max_tokens": tokens(given, profile.sampling.max_tokens, "max_output_tokens")
    }
    if "text" in given:
        sampling |= _text_options(record(given["text"], "text", "text"))
    if "reasoning" in given:
        options = record(given["reasoning"], "reasoning", "reasoning")
        only(options, "reasoning.", ("effort", "summary"))
        if options.get("summary", "auto") not in _SUMMARIES:
            raise wrong("reasoning.summary", f"must be one of {', '.join(_SUMMARIES)}")
        sampling["effort"] = effort(options.get("effort"), "reasoning.effort")
    included = given.get("include", [])
    if not isinstance(included, list) or any(name not in _INCLUDED for name in included):
        raise wrong("include", f"may have {', '.join(_INCLUDED)} only")
    options = record(given.get("stream_options", {}), "stream_options", "stream_options")
    only(options, "stream_options.", ("include_obfuscation",))
    messages = _messages(given.get("input"))
    instructions = given.get("instructions")
    if instructions is not None:
        if not isinstance(instructions, str):
            raise wrong("instructions", f"must be a text, not {shown(instructions)}")
        messages.insert(0, {"role": "system", "content": instructions})
    tools, may_call = _tools(given)
    return Asked(tuple(messages), sampling=sampling, tools=tools, may_call=may_call)


def _text_options(options: Mapping[str, Any]) -> dict[str, Any]:
    only(options, "text.", ("format", "verbosity"))
    if options.get("verbosity", "medium") != "medium":
        raise wrong("text.verbosity", "must be medium: the model decides")
    form = options.get("format")
    if form is None:
        return {}
    match form:
        case {"type": "text" | "json_object" as kind, **more} if not more:
            return {} if kind == "text" else {"response_format": {"type": kind}}
        case {"type": "json_schema"}:
            fields = {name: value for name, value in form.items() if name != "type"}
            return {"response_format": schema_format(fields, "text.format")}
    raise wrong("text.format", "needs a type: text, json_object or json_schema")


def _messages(given: Any) -> list[Fields]:
    """The conversation, as OpenAI's chats have it. Tool calls belong to the message before them."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise wrong("input", f"must be a text or a list of items, not {shown(given)}")
    contents = [item.get("content") for item in given if isinstance(item, Mapping)]
    check_number(len(given), "input")
    check_number(sum(len(each) for each in contents if isinstance(each, list)), "input")
    messages: list[dict[str, Any]] = []
    for index, item in enumerate(given):
        place = f"input[{index}]"
        if not isinstance(item, Mapping):
            raise wrong(place, f"must be an object, not {shown(item)}")
        said = {
            name: value
            for name, value in item.items()
            if value is not None and name not in _ABOUT_ITEMS
        }
        kind = said.pop("type", "message")
        match kind, said:
            case "message", {"role": role, "content": content, **more} if not more:
                if role not in _ROLES:
                    there = ", ".join(_ROLES)
                    raise wrong(f"{place}.role", f"must be one of {there}, not {shown(role)}")
                messages.append({"role": role, "content": _content(content, place)})
            case "function_call", {"call_id": id, "name": name, "arguments": text, **more} if (
                not more
            ):
                call = call_of(id, name, text, place)
                if not messages or messages[-1]["role"] != "assistant":
                    messages.append({"role": "assistant", "content": None})
                messages[-1].setdefault("tool_calls", []).append(call)
            case "function_call_output", {"call_id": id, "output": output, **more} if not more:
                check_id(id, f"{place}.call_id")
                text = _content(output, place)
                messages.append({"role": "tool", "tool_call_id": id, "content": text})
            case _:
                known = "a message, a function_call or a function_call_output"
                raise wrong(place, f"must be {known}, with its fields only")
    return [*messages]


def _content(given: Any, place: str) -> Any:
    """A text, or parts that are texts and images."""
    if isinstance(given, str):
        return given
    if not isinstance(given, list) or not given:
        raise wrong(f"{place}.content", f"must be a text or a list of parts, not {shown(given)}")
    check_number(len(given), f"{place}.content")
    parts: list[Fields] = []
    for index, part in enumerate(given):
        match part:
            case {"type": "input_text" | "text", "text": str(text), **more} if not more:
                parts.append({"type": "text", "text": text})
            case {"type": "output_text", "text": str(text), **more} if not more.keys() - {
                "annotations",
                "logprobs",
            }:
                parts.append({"type": "text", "text": text})
            case {"type": "input_image", "image_url": url, **more} if not more.keys() - {"detail"}:
                at = f"{place}.content[{index}].image_url"
                parts.append(image_part(url, at, more.get("detail")))
            case _:
                raise wrong(
                    f"{place}.content[{index}]", 'must be {"type": "input_text", "text": ...}'
                )
    texts = [part["text"] for part in parts if part["type"] == "text"]
    return texts[0] if len(parts) == len(texts) == 1 else parts


def _tools(given: Fields) -> tuple[dict[str, Any], bool]:
    tools = []
    for index, tool in enumerate(tool_list(given.get("tools", []))):
        place = f"tools[{index}]"
        match tool:
            case {"type": "function"}:
                known = ("type", "name", "description", "parameters", "strict")
                only(tool, f"{place}.", known)
                tools.append(
                    tool_of(
                        tool.get("name"),
                        place,
                        description=tool.get("description"),
                        schema=tool.get("parameters"),
                        strict=tool.get("strict"),
                    )
                )
            case _:
                raise wrong(place, "must be a function: the server runs no tools of its own")
    match given.get("tool_choice"):
        case {"type": "function", "name": name, **more} if not more:
            choice: Any = named(name, tools, "tool_choice")
        case None | str() as choice if choice in (None, *CHOICES):
            pass
        case other:
            there = ", ".join(CHOICES)
            raise wrong("tool_choice", f"must be {there} or a function, not {shown(other)}")
    return offered(tools, choice, given.get("parallel_tool_calls"))


def _response(
    request: CompletionRequest, status: str, output: list[Fields], **more: Any
) -> dict[str, Any]:
    """A response object."""
    return {
        "id": request.dialect.id_of(request),
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": request.profile.name,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "temperature": None,
        "top_p": None,
        "usage": None,
        **more,
    }


def _message_item(request: CompletionRequest, answer: Answered, status: str) -> Fields:
    part = _part(answer.text) if status == "completed" else None
    return {
        "id": f"msg_{request.search}",
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": [] if part is None else [part],
    }


def _part(text: str) -> Fields:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call_items(answer: Answered) -> list[dict[str, Any]]:
    return [
        {
            "id": f"fc_{index}_{call.id}",
            "type": "function_call",
            "status": "completed",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
        }
        for index, call in enumerate(answer.calls)
    ]


def _completed(request: CompletionRequest, answer: Answered) -> dict[str, Any]:
    output: list[Fields] = []
    if answer.text or not answer.calls:
        output.append(_message_item(request, answer, "completed"))
    output += _call_items(answer)
    usage = {
        "input_tokens": answer.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": answer.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.prompt_tokens + answer.completion_tokens,
    }
    return _response(request, "completed", output, usage=usage, grv=answer.grv)


def opening(request: CompletionRequest) -> list[Fields]:
    """The response exists, and is in progress."""
    started = _response(request, "in_progress", [])
    return [
        {"type": "response.created", "response": started},
        {"type": "response.in_progress", "response": started},
    ]


def progress(request: CompletionRequest, done: Fields) -> list[Fields]:
    """The response is still in progress."""
    response = _response(request, "in_progress", [], grv=done)
    return [{"type": "response.in_progress", "response": response}]


def closing(request: CompletionRequest, answer: Answered) -> list[Fields]:
    """The items of the response, one after the other, and the whole of it."""
    response = _completed(request, answer)
    events: list[Fields] = []
    for index, item in enumerate(response["output"]):
        events += _item_events(index, item)
    return [*events, {"type": "response.completed", "response": response}]


def _item_events(index: int, item: Fields) -> list[Fields]:
    where = {"output_index": index, "item_id": item["id"]}
    if item["type"] == "function_call":
        kind = "response.function_call_arguments"
        begun = {**item, "status": "in_progress", "arguments": ""}
        arguments = item["arguments"]
        inner: list[Fields] = [
            {"type": f"{kind}.delta", **where, "delta": arguments},
            {"type": f"{kind}.done", **where, "name": item["name"], "arguments": arguments},
        ]
    else:
        (part,) = item["content"]
        place = {**where, "content_index": 0}
        begun = {**item, "status": "in_progress", "content": []}
        text = part["text"]
        inner = [
            {"type": "response.content_part.added", **place, "part": _part("")},
            {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []},
            {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
            {"type": "response.content_part.done", **place, "part": part},
        ]
    return [
        {"type": "response.output_item.added", "output_index": index, "item": begun},
        *inner,
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def failure(request: CompletionRequest, error: ApiError) -> list[Fields]:
    """The response has failed; the second event is what clients raise."""
    body = error.body
    said = {"code": error.code, "message": str(error)}
    response = _response(request, "failed", [], error=said, grv=error.grv)
    return [
        {"type": "response.failed", "response": response},
        {"type": "error", **said, "param": error.param, **body},
    ]


RESPONSES = ServerDialect(
    path="/v1/responses",
    prefix="resp_",
    known=(
        "input",
        "instructions",
        "temperature",
        "top_p",
        "max_output_tokens",
        "text",
        "reasoning",
        "include",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "stream_options",
        # Fields without influence on the answer.
        "user",
        "metadata",
        "store",
        "service_tier",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_retention",
    ),
    fixed={
        "background": (False,),
        "truncation": ("disabled",),
        "top_logprobs": (0,),
        "previous_response_id": (),
        "conversation": (),
        "prompt": (),
        "max_tool_calls": (),
    },
    read=read,
    body=_completed,
    opening=opening,
    progress=progress,
    closing=closing,
    failure=failure,
    named=True,
    numbered=True,
)
