"""The messages and formats of requests. What would make a server fetch something is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...files import shown
from ..errors import wrong

Message = Mapping[str, Any]

_ROLES = ("system", "developer", "user", "assistant")
_FIELDS = ("role", "content", "name")
_FORMATS = ("text", "json_object", "json_schema")


def parse_messages(given: Any) -> tuple[Message, ...]:
    """The messages of a request: texts, and images that are in the request itself."""
    if not isinstance(given, list) or not given:
        raise wrong("messages", f"must be a list of messages, not {shown(given)}")
    return tuple(_message(each, f"messages[{at}]") for at, each in enumerate(given))


def _message(given: Any, place: str) -> Message:
    if not isinstance(given, Mapping):
        raise wrong(place, f"must be an object, not {shown(given)}")
    said = {name: value for name, value in given.items() if value is not None}
    for name in said:
        if name not in _FIELDS:
            raise wrong(f"{place}.{name}", "is not supported")
    if said.get("role") not in _ROLES:
        there = ", ".join(_ROLES)
        raise wrong(f"{place}.role", f"must be one of {there}, not {shown(said.get('role'))}")
    if not isinstance(said.get("name", ""), str):
        raise wrong(f"{place}.name", "must be a text")
    content = said.get("content")
    if isinstance(content, list) and content:
        for at, part in enumerate(content):
            _check_part(part, f"{place}.content[{at}]")
    elif not isinstance(content, str):
        raise wrong(f"{place}.content", f"must be a text, not {shown(content)}")
    return said


def _check_part(part: Any, place: str) -> None:
    match part:
        case {"type": "text", "text": str()} if len(part) == 2:
            return
        case {"type": "image_url", "image_url": {"url": str(url)}} if len(part) == 2:
            if url.startswith("data:image/"):
                return
            raise wrong(f"{place}.image_url.url", "must be data:image/..., not an address")
    raise wrong(place, 'must be {"type": "text", "text": ...}')


def parse_format(given: Any) -> dict[str, Any]:
    """The form of the answers. A schema must not refer to other places."""
    if not isinstance(given, Mapping) or given.get("type") not in _FORMATS:
        raise wrong("response_format", f"needs a type: one of {', '.join(_FORMATS)}")
    waiting: list[Any] = [given]
    while waiting:
        match waiting.pop():
            case Mapping() as record:
                reference = record.get("$ref", "#")
                if isinstance(reference, str) and not reference.startswith("#"):
                    raise wrong("response_format", "a $ref must begin with #")
                waiting += record.values()
            case list() as values:
                waiting += values
    return dict(given)
