"""What a request must be before anything reads it: bounded, unambiguous, and for this server."""

from __future__ import annotations

import functools
import ipaddress
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.types import Message, Scope, Send

from ..files import parse_json
from .errors import ApiError

HEADERS = 32 << 10  # bytes of the address and all headers together
_PART = 64 << 10  # bytes of a body that are sent together
# Headers that decide something. A second one would let two readers decide differently.
_ONCE = (b"host", b"origin", b"content-type", b"sec-fetch-site", b"x-grv-token")
# The escape of half a character in JSON; whole ones are two of them together.
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
# A name or an address, and a port: neither a user nor a path.
_HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")


@dataclass(frozen=True)
class DoorBounds:
    """How large requests may be, and how many.

    Attributes:
        requests: the number of requests at once.
        body: the most bytes of a body.
        client: the most bytes of requests and unread responses of one client.
    """

    requests: int = 1024
    body: int = 4 << 20
    client: int = 64 << 20


class Door:
    """Admits requests.

    Without keys, requests must come from this machine for this machine: a page in a browser cannot
    use the server through a name that it has made resolve to loopback.
    """

    def __init__(self, bounds: DoorBounds, *, keys: bool) -> None:
        self.bounds = bounds
        self._keys = keys
        self._inside = 0

    @contextmanager
    def admit(self, scope: Scope) -> Iterator[None]:
        """Admit a request until it is answered; an ApiError if it cannot be admitted."""
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        names = [name for name, _ in headers]
        size = sum(len(name) + len(value) + 4 for name, value in headers)
        size += len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"])
        if size > HEADERS:
            message = f"the headers have more than {HEADERS} bytes"
            raise ApiError(431, message, code="headers_too_large", close=True)
        lengths = names.count(b"content-length")
        if lengths > 1 or (lengths and b"transfer-encoding" in names):
            message = "the length of the request is ambiguous"
            raise ApiError(400, message, code="invalid_request", close=True)
        for name in _ONCE:
            if names.count(name) > 1:
                message = f"there is more than one header {name.decode()}"
                raise ApiError(400, message, code="invalid_request", close=True)
        if not self._keys:
            _check_local(dict(headers))
        if self._inside >= self.bounds.requests:
            message = f"{self._inside} requests are being answered; try again later"
            raise ApiError(429, message, code="too_many_requests", retry_after=2, close=True)
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1


class OpenRequests:
    """Counts the requests of each client that are being answered.

    Args:
        most: the number that one client may have; at least one.
    """

    def __init__(self, most: float) -> None:
        self._most = max(1, most)
        self._open: Counter[str] = Counter()

    @contextmanager
    def one_more(self, client: str) -> Iterator[None]:
        """One more request of a client; an ApiError if it has too many."""
        if self._open[client] >= self._most:
            message = f"{client} has {self._open[client]} requests here; try again later"
            raise ApiError(429, message, code="too_many_requests", retry_after=2, close=True)
        self._open[client] += 1
        try:
            yield
        finally:
            self._open[client] -= 1


def _check_local(headers: dict[bytes, bytes]) -> None:
    host = host_of(headers.get(b"host", b"").decode("latin-1"))
    origin = headers.get(b"origin")
    local = is_loopback(host) and (
        origin is None or is_loopback(host_of(netloc_of(origin.decode("latin-1"))))
    )
    if not local:
        message = "without a file of clients, this server answers requests of this machine only"
        raise ApiError(403, message, code="forbidden", close=True)


def host_of(netloc: str) -> str:
    """The name or address in a header Host, without brackets; empty if it is neither."""
    match = _HOST.fullmatch(netloc)
    return "" if match is None else match["name"].strip("[]").lower()


def netloc_of(origin: str) -> str:
    """Host and port in a header Origin; empty if it is of another form.

    >>> netloc_of("http://localhost:8000"), netloc_of("http://["), netloc_of("null")
    ('localhost:8000', '', '')
    """
    scheme, separator, netloc = origin.partition("://")
    fits = separator and scheme in ("http", "https") and _HOST.fullmatch(netloc)
    return netloc if fits else ""


@functools.lru_cache
def is_loopback(host: str) -> bool:
    """Whether a host is this machine, as `localhost` or an address of it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def in_parts(send: Send) -> Send:
    """Send bodies in parts, so that what a client does not read is not written for it either."""

    async def parts(message: Message) -> None:
        body = message.get("body", b"")
        for at in range(0, max(0, len(body) - _PART), _PART):
            await send({**message, "body": body[at : at + _PART], "more_body": True})
        rest = max(0, -(-len(body) // _PART) - 1) * _PART
        await send({**message, "body": body[rest:]} if rest else message)

    return parts


def address_of(http: HttpRequest) -> str:
    """The address that a request comes from."""
    return http.client.host if http.client is not None else ""


async def read_body(
    http: HttpRequest, most: int, seconds: float, count: Callable[[int], None] = lambda size: None
) -> bytes:
    """The body of a request, if it is small enough and arrives in time.

    `count` is told the size of each part; it may raise an ApiError.
    """
    kind = http.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        message = "the request needs the header Content-Type: application/json"
        raise ApiError(415, message, code="invalid_content_type", close=True)
    length = http.headers.get("content-length", "0")
    content = bytearray()
    size = int(length) if length.isdigit() and len(length) < 20 else most + 1
    try:
        with anyio.fail_after(seconds):
            if size <= most:
                size = 0
                async for part in http.stream():
                    size += len(part)
                    if size > most:
                        break
                    count(len(part))
                    content += part
    except (TimeoutError, ClientDisconnect) as error:
        message = f"the request did not arrive within {seconds:g} s"
        raise ApiError(408, message, code="timeout", close=True) from error
    if size > most:
        message = f"the request has more than {most} bytes"
        raise ApiError(413, message, code="request_too_large", close=True)
    return bytes(content)


def parse_body(content: bytes) -> Any:
    """The JSON in a body. All that reads a body uses this function.

    Half a character cannot be sent on as UTF-8, so it is refused wherever it stands.

    Raises:
        ApiError: the body is not JSON in UTF-8, or has half a character.
    """
    try:
        body = parse_json(content.decode("utf-8-sig"), finite=True)
    except UnicodeDecodeError as error:
        message = "the request is not JSON: not UTF-8 text"
        raise ApiError(400, message, code="invalid_json") from error
    except ValueError as error:
        raise ApiError(400, f"the request is not JSON: {error}", code="invalid_json") from error
    if _HALF.search(content):
        try:
            json.dumps(body, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            message = "the request has half a character, \\ud800 to \\udfff; send whole characters"
            raise ApiError(400, message, code="invalid_json") from error
    return body
