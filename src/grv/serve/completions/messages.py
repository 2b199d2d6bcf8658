"""The messages of requests. What would make a server fetch something is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...files import shown
from ..errors import wrong

Message = Mapping[str, Any]

_ROLES = ("system", "developer", "user", "assistant", "tool")
_FIELDS = ("role", "content", "name")
# Further fields of a role, for tools.
_OF_ROLE = {"assistant": ("tool_calls",), "tool": ("tool_call_id",)}
# What clients add to an answer that they send back. It is no part of the conversation.
_ADDED = {"assistant": ("annotations", "provider_specific_fields")}
_ADDED_TO_CALLS = {"index", "provider_specific_fields"}
_LONGEST_ID = 200
_IMAGE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")
_MOST = 10_000  # messages, and parts of all messages together
_DETAILS = ("auto", "low", "high")


def parse_messages(given: Any) -> tuple[Message, ...]:
    """The messages of a request: texts, and images that are in the request itself."""
    if not isinstance(given, list) or not given:
        raise wrong("messages", f"must be a list of messages, not {shown(given)}")
    contents = [each.get("content") for each in given if isinstance(each, Mapping)]
    parts = sum(len(each) for each in contents if isinstance(each, list))
    if len(given) > _MOST or parts > _MOST:
        raise wrong("messages", f"must have at most {_MOST} messages and {_MOST} parts")
    return tuple(_message(each, f"messages[{at}]") for at, each in enumerate(given))


def _message(given: Any, place: str) -> Message:
    if not isinstance(given, Mapping):
        raise wrong(place, f"must be an object, not {shown(given)}")
    said = {name: value for name, value in given.items() if value is not None}
    role = said.get("role")
    if role not in _ROLES:
        there = ", ".join(_ROLES)
        raise wrong(f"{place}.role", f"must be one of {there}, not {shown(role)}")
    for name in _ADDED.get(role, ()):
        said.pop(name, None)
    for name in said:
        if name not in (*_FIELDS, *_OF_ROLE.get(role, ())):
            raise wrong(f"{place}.{name}", "is not supported")
    if not isinstance(said.get("name", ""), str):
        raise wrong(f"{place}.name", "must be a text")
    if role == "tool":
        check_id(said.get("tool_call_id"), f"{place}.tool_call_id")
    if "tool_calls" in said:
        said["tool_calls"] = _calls(said["tool_calls"], f"{place}.tool_calls")
    content = said.get("content")
    if isinstance(content, list) and content:
        for at, part in enumerate(content):
            _check_part(part, f"{place}.content[{at}]")
    elif content is None and "tool_calls" in said:
        said["content"] = None  # as servers want it
    elif not isinstance(content, str):
        raise wrong(f"{place}.content", f"must be a text, not {shown(content)}")
    return said


def check_id(given: Any, place: str) -> str:
    """The id of a tool call."""
    if not isinstance(given, str) or not 0 < len(given) <= _LONGEST_ID:
        raise wrong(place, f"must be a text of at most {_LONGEST_ID} characters")
    return given


def call_of(id: Any, name: Any, arguments: Any, place: str) -> Message:
    """A tool call in the form of OpenAI's chats."""
    check_id(id, f"{place}.id")
    check_id(name, f"{place}.name")
    if not isinstance(arguments, str):
        raise wrong(f"{place}.arguments", f"must be a text with JSON, not {shown(arguments)}")
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _calls(given: Any, place: str) -> list[Message]:
    """The tool calls of a message, which the model made before."""
    if not isinstance(given, list) or not 0 < len(given) <= _MOST:
        raise wrong(place, "must be a list of tool calls")
    calls = []
    for index, call in enumerate(given):
        match call:
            case {
                "id": id,
                "type": "function",
                "function": {"name": name, "arguments": arguments, **inner},
                **more,
            } if not (inner or more.keys() - _ADDED_TO_CALLS):
                calls.append(call_of(id, name, arguments, f"{place}[{index}]"))
            case _:
                form = (
                    '{"id": ..., "type": "function", "function": {"name": ..., "arguments": ...}}'
                )
                raise wrong(f"{place}[{index}]", f"must be {form}")
    return calls


def image_part(url: Any, place: str, detail: Any = None) -> Message:
    """A part with an image that is in the request itself."""
    if not isinstance(url, str) or not _IMAGE.fullmatch(url):
        kinds = "png, jpeg, gif or webp"
        raise wrong(place, f"must be data:image/...;base64,... with a {kinds}, not an address")
    image = {"url": url}
    if detail is not None:
        if detail not in _DETAILS:
            raise wrong(f"{place}.detail", f"must be one of {', '.join(_DETAILS)}")
        image["detail"] = detail
    return {"type": "image_url", "image_url": image}


def check_number(number: int, place: str) -> None:
    """Refuse too many messages, or too many parts of them."""
    if number > _MOST:
        raise wrong(place, f"must have at most {_MOST} messages and {_MOST} parts")


def _check_part(part: Any, place: str) -> None:
    match part:
        case {"type": "text", "text": str(), **more} if not more:
            return
        case {"type": "image_url", "image_url": {"url": str(url), **inner}, **more} if not more:
            image_part(url, f"{place}.image_url.url")
            if inner.keys() - {"detail"} or inner.get("detail", "auto") not in _DETAILS:
                there = ", ".join(_DETAILS)
                raise wrong(f"{place}.image_url", f"may have a url and a detail: {there}")
            return
    raise wrong(place, 'must be {"type": "text", "text": ...}')
