"""The messages of requests. What would make a server fetch something is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...files import shown
from ..errors import wrong

Message = Mapping[str, Any]

_ROLES = ("system", "developer", "user", "assistant")
_FIELDS = ("role", "content", "name")
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
        case {"type": "text", "text": str(), **more} if not more:
            return
        case {"type": "image_url", "image_url": {"url": str(url), **inner}, **more} if not more:
            if not _IMAGE.fullmatch(url):
                kinds = "png, jpeg, gif or webp"
                raise wrong(
                    f"{place}.image_url.url",
                    f"must be data:image/...;base64,... with a {kinds}, not an address",
                )
            if inner.keys() - {"detail"} or inner.get("detail", "auto") not in _DETAILS:
                there = ", ".join(_DETAILS)
                raise wrong(f"{place}.image_url", f"may have a url and a detail: {there}")
            return
    raise wrong(place, 'must be {"type": "text", "text": ...}')
