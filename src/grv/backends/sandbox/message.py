"""A candidate's message, read by the judge: within bounds that are checked before it is parsed."""

from __future__ import annotations

import json
import re
from typing import Any

from . import plain
from .limits import End

# What the parser makes of a message takes about so many bytes for each of these.
_CONTAINER, _ITEM, _QUOTE = 72, 40, 30
_TIMES = 12  # what it makes of a message may be larger than the output may be
_DEEPEST = plain.DEEPEST + 8
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


def parse(body: bytes, output_bytes: int) -> dict[str, Any] | End:
    """The message, or why there is none. Takes time and memory in proportion to the limit."""
    room = _TIMES * output_bytes + (1 << 16)
    if _weight(body) > room and _weight(_TEXT.sub(b'""', body)) > room:
        return End.TOO_LARGE
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return End.MALFORMED
    if not isinstance(message, dict) or _is_too_deep(message):
        return End.MALFORMED
    return message


def _weight(body: bytes) -> int:
    """How much memory it takes once parsed; too much where texts hold brackets or commas."""
    containers = body.count(b"[") + body.count(b"{")
    return _CONTAINER * containers + _ITEM * body.count(b",") + _QUOTE * body.count(b'"')


def _is_too_deep(message: dict[str, Any]) -> bool:
    level: list[Any] = [message]
    for _ in range(_DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer if isinstance(outer, list) else outer.values())
            if isinstance(inner, list | dict)
        ]
        if not level:
            return False
    return True
