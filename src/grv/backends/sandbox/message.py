"""A candidate's message, read by the judge: within bounds that are checked before it is parsed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from . import plain
from .limits import End

# Bytes of memory that the parsed message takes for each of these characters, roughly.
_WEIGHTS = {b"[": 72, b"{": 240, b",": 40, b":": 60, b'"': 30}
_HEAVIEST = max(_WEIGHTS.values())
_TIMES = 12  # what it makes of a message may be larger than the output may be
_DEEPEST = plain.DEEPEST + 8
_OTHERS = bytes(set(range(256)) - set(b"".join(_WEIGHTS)))
_PART = 1 << 16


def parse(body: bytes, output_bytes: int) -> dict[str, Any] | End:
    """The message, or why there is none. Takes time and memory in proportion to the limit."""
    room = _TIMES * output_bytes + (1 << 16)
    if _HEAVIEST * len(body) > room and _is_heavy(body, room):
        return End.TOO_LARGE
    try:
        message = json.loads(body.decode("ascii"))  # as ours are written
    except (ValueError, RecursionError):
        return End.MALFORMED
    deepest = body.count(b"[") + body.count(b"{")
    if not isinstance(message, dict) or (deepest > _DEEPEST and _is_too_deep(message)):
        return End.MALFORMED
    return message


def _is_heavy(body: bytes, room: int) -> bool:
    return _weight(body) > room and sum(map(_weight, _without_texts(body))) > room


def _weight(body: bytes) -> int:
    """How much memory it takes once parsed; too much where texts hold brackets or commas."""
    return sum(weight * body.count(mark) for mark, weight in _WEIGHTS.items())


def _without_texts(body: bytes) -> Iterator[bytes]:
    """The marks of a message that stand outside of its texts, part by part, and all quotes."""
    marks = body.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _OTHERS)
    is_inside = 0
    for start in range(0, len(marks), _PART):
        pieces = marks[start : start + _PART].split(b'"')
        yield b"".join(pieces[is_inside::2]) + b'"' * (len(pieces) - 1)
        is_inside ^= (len(pieces) - 1) & 1


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
