"""The judge's end of the socket to a zygote: lines of JSON, with file descriptors."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any


class Link:
    """One socket. Any thread may call `send`; only one thread may call the other methods."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._buffer = b""
        self._lock = threading.Lock()

    def send(self, message: Mapping[str, Any], descriptors: tuple[int, ...] = ()) -> None:
        """Send a message. Does nothing if the zygote is gone; `hear` then returns None."""
        data = json.dumps(message).encode() + b"\n"
        with self._lock, contextlib.suppress(OSError):
            socket.send_fds(self._channel, [data], list(descriptors))

    def hear(self, deadline: float) -> dict[str, Any] | None:
        """The zygote's next message; None if the zygote is gone or the deadline passes."""
        while b"\n" not in self._buffer:
            if self._channel.fileno() < 0:
                return None
            poll = select.poll()
            poll.register(self._channel, select.POLLIN)
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                return None
            try:
                data = self._channel.recv(1 << 16)
            except OSError:
                data = b""
            if not data:
                return None
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        """Close the socket, which ends the zygote."""
        with self._lock:
            self._channel.close()
