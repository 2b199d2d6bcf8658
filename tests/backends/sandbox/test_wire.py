"""Frames on a pipe, and the lines of JSON that a zygote sends."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from grv.backends.sandbox import wire

MESSAGES: list[Any] = [
    {"run": 7, "mode": "candidate", "limits": {"cpu": 11, "overdue": 1000.5}},
    {"value": ["l", 1, ["f", "0x1p-1"], None, True, 'é\ud800\n"\\'], "at": 12.25},
    [[], {}, "", 0, -1.5, 1 << 80, False],
]


@pytest.mark.parametrize("has_parts", [True, False])
@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_plain_json_and_comes_back(
    message: Any, has_parts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_parts:  # an interpreter without the C encoder
        monkeypatch.setattr(wire, "_parts", None)
    assert wire.text(message) == json.dumps(message, separators=(",", ":")).encode()
    assert wire.parsed(wire.text(message)) == message
    reading, writing = os.pipe()
    try:
        wire.write(writing, message)
        os.close(writing)
        assert wire.read(reading) == message
        assert wire.read(reading) is None
    finally:
        os.close(reading)
