"""Structured logs: one line of JSON per event, without keys and without texts of clients."""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import os
import sys
import traceback
from typing import TextIO


class Events:
    """Writes one line per event."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def __call__(self, event: str, **fields: object) -> None:
        """Write an event. Fields that are None are left out."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        there = {name: value for name, value in fields.items() if value is not None}
        line = json.dumps({"at": now, "event": event, **there}, default=str)
        with contextlib.suppress(OSError, ValueError):  # there is no reader any more
            print(line, file=self._stream or sys.stderr, flush=True)


class Handler(logging.Handler):
    """Writes the log records of libraries as events: what happened, without details."""

    def __init__(self, events: Events) -> None:
        super().__init__(logging.WARNING)
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record. Its arguments may contain texts, so only the format is written."""
        self._events(record.levelname.lower(), source=record.name, message=str(record.msg)[:200])


def place_of(error: BaseException) -> str:
    """Where an exception was raised, as `app.py:12`; with GRV_DEBUG the traceback is printed."""
    if os.environ.get("GRV_DEBUG"):
        traceback.print_exception(error)
    frames = traceback.extract_tb(error.__traceback__)
    return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
