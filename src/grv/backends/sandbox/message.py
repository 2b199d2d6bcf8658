"""How the judge reads a candidate's message: it checks size and depth before it uses anything.

The length of a message is checked first (run.py), then the number of its values, by counting
brackets, commas and quotes, and last its depth.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from . import plain
from .limits import End

# Roughly how many bytes of memory the parsed message takes per character of each kind.
_WEIGHTS = {b"[": 72, b"{": 240, b",": 40, b":": 60, b'"': 30}
_HEAVIEST = max(_WEIGHTS.values())
_TIMES = 12  # a parsed message may take this many times the output limit
_DEEPEST = plain.DEEPEST + 8
_OTHERS = bytes(set(range(256)) - set(b"".join(_WEIGHTS)))
_PART = 1 << 16


def parse(body: bytes, output_bytes: int) -> dict[str, Any] | End:
    """The message, or why there is none. Time and memory are proportional to the limit."""
    room = _TIMES * output_bytes + (1 << 16)
    if _HEAVIEST * len(body) > room and _is_heavy(body, room):
        return End.TOO_LARGE
    try:
        message = json.loads(body.decode("ascii"))  # json.dumps writes ASCII
    except (ValueError, RecursionError):
        return End.MALFORMED
    deepest = body.count(b"[") + body.count(b"{")
    if not isinstance(message, dict) or (deepest > _DEEPEST and _is_too_deep(message)):
        return End.MALFORMED
    return message


def _is_heavy(body: bytes, room: int) -> bool:
    return _weight(body) > room and sum(map(_weight, _without_strings(body))) > room


def _weight(body: bytes) -> int:
    """Estimated memory of the parsed message; too high if its strings contain such characters."""
    return sum(weight * body.count(mark) for mark, weight in _WEIGHTS.items())


def _without_strings(body: bytes) -> Iterator[bytes]:
    """The counted characters of a message outside its strings, in parts, and all quotes."""
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
