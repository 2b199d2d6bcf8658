"""Frames on a pipe: four bytes of length, then JSON.

These functions block. The judge must not, so it reads frames itself (run.py).
"""

from __future__ import annotations

import json
import os
from json import encoder
from typing import Any

HEADER = 4
_JSON = json.JSONEncoder(separators=(",", ":"))
# What `_JSON.encode` makes anew for each message, made once: a forked child copies each page of
# memory that it touches. None if the interpreter lacks it.
_make: Any = getattr(encoder, "c_make_encoder", None)
_parts: Any = _make and _make(
    None, _JSON.default, encoder.encode_basestring_ascii, None, ":", ",", False, False, True
)
_decode = json.JSONDecoder().raw_decode


def text(message: Any) -> bytes:
    """A message as JSON."""
    return (_JSON.encode(message) if _parts is None else "".join(_parts(message, 0))).encode()


def parsed(content: bytes) -> Any:
    """The message that `text` made."""
    return _decode(content.decode())[0]


def frame(message: Any) -> bytes:
    """A message as the bytes of a frame."""
    body = text(message)
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
    return None if body is None else parsed(body)
