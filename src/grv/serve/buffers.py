"""How many bytes of its requests and responses a client may keep in the server's memory.

A request counts from its first byte until it is answered, and a response until it is read. If its
client leaves and its search goes on, a request counts until the end of the search. So a client that
sends much and reads nothing stops itself, and no other client.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from .errors import ApiError


class Buffer:
    """The bytes of one request and its response.

    Attributes:
        closed: whether the request has ended.
    """

    def __init__(self, held: Counter[str], client: str, most: int) -> None:
        self._held = held
        self._client = client
        self._most = most
        self._own = 0
        self.closed = False

    def add(self, size: int) -> None:
        """Count some bytes; an ApiError if the client has too many. One request always has room.

        After the end of the request nothing is counted: nobody is there to read it.
        """
        if self.closed:
            return
        others = self._held[self._client] - self._own
        if others and others + self._own + size > self._most:
            raise ApiError(
                429,
                f"this client has more than {self._most} bytes of requests, unread responses and"
                " searches that go on here; read them first, or wait",
                code="unread_responses",
                retry_after=5,
                close=True,
            )
        self._own += size
        self._held[self._client] += size

    def move(self, stack: ExitStack) -> Buffer:
        """Count these bytes until the end of a stack, which may be later."""
        moved = Buffer(self._held, self._client, self._most)
        moved.take(self)
        stack.callback(moved.close)
        return moved

    def take(self, other: Buffer) -> None:
        """Count the bytes of another one from now on, unless this request has ended."""
        if not self.closed:
            self._own += other._own
            other._own = 0

    def close(self) -> None:
        """Forget the bytes."""
        self.closed = True
        self._held[self._client] -= self._own
        self._own = 0
        if not self._held[self._client]:
            del self._held[self._client]


class Buffers:
    """The bytes of all clients.

    Args:
        most: the most bytes of one client.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[str] = Counter()

    @contextmanager
    def of(self, client: str) -> Iterator[Buffer]:
        """The bytes of one request of a client, until the end of the context."""
        buffer = Buffer(self._held, client, self._most)
        try:
            yield buffer
        finally:
            buffer.close()
