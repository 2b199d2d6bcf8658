"""Frames on a pipe: four bytes of length, then JSON.

These functions block. The judge must not, so it reads frames itself (run.py).
"""

from __future__ import annotations

import json
import os
from typing import Any

HEADER = 4
_JSON = json.JSONEncoder(separators=(",", ":"))  # made once: `json.dumps` would make one per frame


def frame(message: Any) -> bytes:
    """A message as the bytes of a frame."""
    body = _JSON.encode(message).encode()
    return len(body).to_bytes(HEADER, "big") + body


def write(descriptor: int, message: Any) -> None:
    """Send a message."""
    data = memoryview(frame(message))
    while data:
        data = data[os.write(descriptor, data) :]


def _exactly(descriptor: int, count: int) -> bytes | None:
    parts = []
    while count:
        part = os.read(descriptor, min(count, 1 << 20))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def read(descriptor: int) -> Any:
    """The next message; None at the end of the file."""
    header = _exactly(descriptor, HEADER)
    body = _exactly(descriptor, int.from_bytes(header, "big")) if header else None
    return None if body is None else json.loads(body)
