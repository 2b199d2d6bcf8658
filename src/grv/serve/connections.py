"""Connections: how many there are, and how long a client may take to send a request.

A connection *waits for its client* until a request has arrived whole, and again after its response.
Only such a connection can be idle for no reason of ours. So if there are as many connections as
there may be, a new one takes the place of the one that has waited longest. A new one is refused
only if all the others are being answered.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import defaultdict

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .door import HEADERS
from .errors import ApiError

_CHUNKS = 256  # of a body, and one more for each kilobyte: each costs work, whatever its size
_REFUSED = 64  # connections that are told why they are refused; others are only closed
_TOLD = 1.0  # seconds that they have to read it
_RECEIVING = (h11.IDLE, h11.SEND_BODY)  # the states of a client that has not sent all of a request
_BEFORE_RESPONSE = (h11.IDLE, h11.SEND_RESPONSE)


class _Address:
    """The connections of one address.

    Attributes:
        number: how many there are.
        waiting: those that wait for their client, the longest first; apart, those that have never
            sent a request, and those that have: they are more likely to send one.
    """

    def __init__(self) -> None:
        self.number = 0
        self.waiting: tuple[dict[Protocol, None], dict[Protocol, None]] = ({}, {})

    def longest(self) -> Protocol | None:
        """The connection that has waited longest; None if none waits."""
        for connection in itertools.chain(*self.waiting):
            if not connection.transport.get_write_buffer_size():  # it has read its response
                return connection
        return None


class Connections:
    """The open connections of a server.

    Args:
        most: how many there may be.
        of_address: how many of them one address may have.

    Attributes:
        refused: how many are being told that there is no room.
    """

    def __init__(self, most: int, of_address: int) -> None:
        self._most = most
        self._of_address = of_address
        self._open: set[Protocol] = set()
        self._addresses: defaultdict[str, _Address] = defaultdict(_Address)
        self.refused = 0

    def add(self, new: Protocol) -> str:
        """Add a connection, if need be in the place of another; why it is refused, or ""."""
        address = self._addresses[new.address]
        if address.number >= self._of_address:
            if not self._replace(address):
                return f"this address has {self._of_address} connections here already"
        elif len(self._open) >= self._most:
            crowded = sorted(self._addresses.values(), key=lambda each: -each.number)
            if not any(map(self._replace, crowded)):
                return f"there are {self._most} connections already"
        self._open.add(new)
        self._addresses[new.address].number += 1
        self.note(new, waits=True)
        return ""

    def note(self, connection: Protocol, *, waits: bool) -> None:
        """A connection waits for its client, or does so no more."""
        if connection not in self._open:
            return
        for waiting in self._addresses[connection.address].waiting:
            waiting.pop(connection, None)
        if waits:
            waiting = self._addresses[connection.address].waiting[connection.has_asked]
            waiting[connection] = None

    def remove(self, connection: Protocol) -> None:
        """Forget a connection, if it is here."""
        self.note(connection, waits=False)
        if connection in self._open:
            self._open.remove(connection)
            self._addresses[connection.address].number -= 1
        if not self._addresses[connection.address].number:
            del self._addresses[connection.address]

    def _replace(self, address: _Address) -> bool:
        """Close the connection that has waited longest for its client; False if none waits."""
        longest = address.longest()
        if longest is None:
            return False
        self.remove(longest)
        longest.transport.close()
        return True


class _Connection(h11.Connection):
    """A connection on which bodies do not come in tiny chunks.

    Attributes:
        complaint: why the rest of a request is not read.
    """

    complaint = ""
    _chunks = 0
    _size = 0

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """The next event."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = self._size = 0
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            self._size += len(event.data)
            if self._chunks > _CHUNKS + self._size // 1024:
                self.complaint = "the chunks of the body are too small; send 1 kB in each"
                raise h11.RemoteProtocolError(self.complaint)
        return event


class Protocol(H11Protocol):
    """HTTP/1.1 for which a request, and a client that reads, must come in time.

    Attributes:
        slow: the seconds for headers and body together, and for reading a part of a response.
        others: all connections of the server.
        has_asked: whether a request has arrived before.
    """

    slow = 30.0
    others = Connections(1024, 1024)
    has_asked = False
    _begun = False  # whether a part of the next request has arrived
    _refused = False
    _timer: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    @property
    def address(self) -> str:
        """The address of the client."""
        return self.client[0] if self.client is not None else ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, unless there are too many connections."""
        super().connection_made(transport)
        self.conn = _Connection(h11.SERVER, HEADERS)
        reason = self.others.add(self)
        if reason:
            self._refuse_connection(reason)
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of the request, if it is not complete."""
        if self._refused:
            return
        if not self._begun:
            self._begun = True
            self._unwatch()
        super().data_received(data)
        self._watch()

    def eof_received(self) -> None:
        """The client sends no more."""
        if self._refused:
            self.transport.abort()
        super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self.others.remove(self)
        if self._refused:
            self.others.refused -= 1
        self._unwatch()
        self._reads()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request, if it has begun."""
        super().on_response_complete()
        self.others.note(self, waits=self.conn.their_state in _RECEIVING)
        if self.conn.trailing_data[0]:
            self._watch()
        if self.transport.is_closing():
            self._must_read()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection without requests."""
        super().timeout_keep_alive_handler()
        self._must_read()

    def pause_writing(self) -> None:
        """The client does not read what is written."""
        super().pause_writing()
        self._must_read()

    def resume_writing(self) -> None:
        """The client reads."""
        super().resume_writing()
        self._reads()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or has too many chunks."""
        message = getattr(self.conn, "complaint", "") or "the request is not valid HTTP/1.1"
        self._refuse_request(ApiError(400, message, code="invalid_request", close=True))

    def _must_read(self) -> None:
        """Give up a client that does not read: closing would wait for it for ever."""
        if self._stuck is None:
            self._stuck = self.loop.call_later(self.slow, self.transport.abort)

    def _reads(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _watch(self) -> None:
        """Bound the time until a request has arrived whole."""
        if self.conn.their_state not in _RECEIVING:
            self._begun = False
            self.has_asked = True
            self.others.note(self, waits=False)
            self._unwatch()
        elif self._timer is None and not self.transport.is_closing():
            self._timer = self.loop.call_later(self.slow, self._give_up)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        """Close a connection whose request has not arrived in time."""
        self._timer = None
        if self.conn.their_state not in _RECEIVING or self.transport.is_closing():
            return
        message = f"the request did not arrive within {self.slow:g} s"
        if self._begun:
            self._refuse_request(ApiError(408, message, code="timeout", close=True))
        else:
            self.transport.close()

    def _refuse_request(self, error: ApiError) -> None:
        """Answer a request that has not arrived whole, if nothing was answered, and close."""
        if self.conn.our_state in _BEFORE_RESPONSE:
            self._write(error)
        self.transport.close()
        self._must_read()

    def _refuse_connection(self, reason: str) -> None:
        """Say why there is no room. What the client sends is not read."""
        self._refused = True
        self.others.refused += 1
        if self.others.refused > _REFUSED:
            self.transport.abort()
            return
        message = f"{reason}; try again later"
        error = ApiError(429, message, code="too_many_connections", retry_after=2, close=True)
        self._write(error)
        # Not closed at once: the kernel would drop the response if the client still sends.
        self.transport.write_eof()
        self._timer = self.loop.call_later(_TOLD, self.transport.abort)

    def _write(self, error: ApiError) -> None:
        body = json.dumps(error.body).encode("ascii")
        headers = {
            **error.headers,
            "content-type": "application/json",
            "content-length": str(len(body)),
        }
        response = h11.Response(status_code=error.status, headers=[*headers.items()])
        for event in (response, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
