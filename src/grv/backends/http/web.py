"""What all backends that speak HTTP share: addresses, errors without secrets."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import urlsplit

from ...core.errors import BackendError, UsageError
from .faults import THIS_CALL, Cause
from .secrets import Secrets

if TYPE_CHECKING:
    import ssl

REFUSED = frozenset({400, 413, 422})  # the server understood the request and refuses it
_LONGEST = 300  # characters of a server's message that are shown
_READ = 10_000  # characters of it that are searched for secrets

_Error = TypeVar("_Error", bound=BackendError)


def address(url: str) -> str:
    """The address without a final slash; a UsageError if it is not an HTTP address."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port or IPv6 address
        valid = False
    if not valid:
        raise UsageError(f"not an address: {shown(url)!r}; write http://HOST:PORT/...")
    return url.rstrip("/")


def shown(url: str) -> str:
    """The address without the parts that may be secret: user, password, query and fragment.

    >>> shown("https://me:secret@host:8000/v1?key=abc")
    'https://host:8000/v1'
    """
    before, separator, rest = url.partition("://")
    if not separator:
        before = ""
        rest = url
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    host = rest.partition("/")[0]
    if "@" in host or not re.fullmatch(r"(\[[^]]*\]|[^:]*)(:\d*)?", host):
        # A password may contain a slash or a question mark. Then nothing can be shown.
        rest = rest.rpartition("@")[2] if "@" in rest else "..."
    return f"{before}{separator}{rest}"


def host_of(url: str) -> str:
    """The host and port of an address.

    >>> host_of("https://me:secret@host:8000/v1?key=abc")
    'host:8000'
    """
    return shown(url).partition("://")[2].partition("/")[0]


def without_secrets(text: str) -> str:
    """The text with each address in it as `shown` returns it."""
    return _ADDRESS.sub(lambda match: shown(match[0]), text)


_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>]+", re.IGNORECASE)


def client_errors() -> tuple[type[Exception], ...]:
    """Every class of exception that httpx2 raises, and those that it lets through."""
    import ssl

    import anyio
    import httpx2

    own = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.CookieConflict, httpx2.StreamError)
    return (*own, ssl.SSLError, anyio.EndOfStream)


@functools.cache
def tls() -> ssl.SSLContext:
    """What all clients verify servers with; made once, because it reads all certificates."""
    import httpx2

    return httpx2.create_ssl_context()


class Failures(Generic[_Error]):
    """Makes the errors of one server: one short line each, without secrets.

    Args:
        backend: the name for errors.
        error: the class of errors.
        secrets: what to hide.
        place: the host and port of the server.
        key: the environment variable that holds the server's key.
    """

    def __init__(
        self, backend: str, error: type[_Error], secrets: Secrets, *, place: str, key: str
    ) -> None:
        self.backend = backend
        self._error = error
        self.secrets = secrets
        self.place = place
        self.key = key

    def brief(self, message: str) -> str:
        """A server's message in one short line, without secrets."""
        line = " ".join(self.secrets.hide(message[:_READ]).split())
        return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."

    def failure(self, message: str, problem_id: str | None, cause: Cause = THIS_CALL) -> _Error:
        """An error with this message."""
        return self._error(
            self.brief(message),
            backend=self.backend,
            problem_id=problem_id,
            retry_after=cause.retry_after,
            fault=cause.fault,
            final=cause.final,
            unpaid=cause.unpaid,
            place=self.place,
            hint=cause.hint.replace("{key}", self.key),
            limit=cause.limit,
        )

    def cause(self, error: Exception) -> Exception | None:
        """The exception as the cause of a failure; None if it would show a secret."""
        return None if self.secrets.is_in(f"{error!r} {error.__cause__!r}") else error
