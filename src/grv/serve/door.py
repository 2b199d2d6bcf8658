"""What a request must be before anything reads it: bounded, unambiguous, and for this server."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.types import Scope

from .errors import ApiError

HEADERS = 32 << 10  # bytes of all headers together


@dataclass(frozen=True)
class DoorBounds:
    """How large requests may be, and how many.

    Attributes:
        requests: the number of requests at once.
        body: the most bytes of a body.
    """

    requests: int = 1024
    body: int = 4 << 20


class Door:
    """Admits requests.

    Without keys, requests must come from this machine for this machine: a page in a browser cannot
    use the server through a name that it has made resolve to loopback.
    """

    def __init__(self, bounds: DoorBounds, *, keys: bool) -> None:
        self.bounds, self._keys = bounds, keys
        self._inside = 0

    @contextmanager
    def admit(self, scope: Scope) -> Iterator[None]:
        """Admit a request until it is answered; an ApiError if it cannot be admitted."""
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        names = [name for name, _ in headers]
        lengths = names.count(b"content-length")
        if lengths > 1 or (lengths and b"transfer-encoding" in names):
            message = "the length of the request is ambiguous"
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


def _check_local(headers: dict[bytes, bytes]) -> None:
    host = _host(f"//{headers.get(b'host', b'').decode('latin-1')}")
    origin = headers.get(b"origin")
    local = is_loopback(host) and (origin is None or is_loopback(_host(origin.decode("latin-1"))))
    if not local:
        message = "without a file of clients, this server answers requests of this machine only"
        raise ApiError(403, message, code="forbidden", close=True)


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, as `localhost` or an address of it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def read_body(http: HttpRequest, most: int, seconds: float) -> bytes:
    """The body of a request, if it is small enough and arrives in time."""
    kind = http.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        message = "the request needs the header Content-Type: application/json"
        raise ApiError(415, message, code="invalid_content_type", close=True)
    length = http.headers.get("content-length", "0")
    parts: list[bytes] = []
    size = int(length) if length.isdigit() and len(length) < 20 else most + 1
    try:
        with anyio.fail_after(seconds):
            if size <= most:
                size = 0
                async for part in http.stream():
                    size += len(part)
                    if size > most:
                        break
                    parts.append(part)
    except (TimeoutError, ClientDisconnect) as error:
        message = f"the request did not arrive within {seconds:g} s"
        raise ApiError(408, message, code="timeout", close=True) from error
    if size > most:
        message = f"the request has more than {most} bytes"
        raise ApiError(413, message, code="request_too_large", close=True)
    return b"".join(parts)
