"""What all backends that speak HTTP share: addresses, errors without secrets, Retry-After."""

from __future__ import annotations

import email.utils
import math
import re
import time
from collections.abc import Mapping
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from ...core.errors import BackendError, UsageError
from ...files import parse_json
from .secrets import Secrets

REFUSED = frozenset({400, 413, 422})  # the server understood the request and refuses it
HOPELESS = frozenset({401, 403, 404})  # no key, not allowed, not found: a retry cannot succeed
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
        before, rest = "", url
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    host = rest.partition("/")[0]
    if "@" in host or not re.fullmatch(r"(\[[^]]*\]|[^:]*)(:\d*)?", host):
        # A password may contain a slash or a question mark. Then nothing can be shown.
        rest = rest.rpartition("@")[2] if "@" in rest else "..."
    return f"{before}{separator}{rest}"


def without_secrets(text: str) -> str:
    """The text with each address in it as `shown` returns it."""
    return _ADDRESS.sub(lambda match: shown(match[0]), text)


_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>]+", re.IGNORECASE)


def seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """The pause that a response asks for: Retry-After in seconds or as a date, or in ms.

    >>> seconds_to_wait({"retry-after": "7"}), seconds_to_wait({"retry-after-ms": "500"})
    (7.0, 0.5)
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        said = headers.get(name)
        if said is None:
            continue
        try:
            seconds = float(said) / unit
        except ValueError:
            try:
                seconds = email.utils.parsedate_to_datetime(said).timestamp() - time.time()
            except (ValueError, OverflowError):
                continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None


def complaint(body: str) -> str:
    """The message in the body of an error response, in any of the usual formats."""
    try:
        record = parse_json(body)
    except ValueError:
        return body
    for name in ("error", "message", "detail"):
        if isinstance(record, dict) and name in record:
            record = record[name]
    return record if isinstance(record, str) else body


def client_errors() -> tuple[type[Exception], ...]:
    """Every class of exception that httpx2 raises."""
    import httpx2

    return (httpx2.HTTPError, httpx2.InvalidURL, httpx2.CookieConflict, httpx2.StreamError)


class Failures(Generic[_Error]):
    """Makes the errors of one server: one short line each, without secrets."""

    def __init__(self, backend: str, error: type[_Error], secrets: Secrets) -> None:
        self.backend, self._error, self.secrets = backend, error, secrets

    def brief(self, message: str) -> str:
        """A server's message in one short line, without secrets."""
        line = " ".join(self.secrets.hide(message[:_READ]).split())
        return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."

    def failure(
        self,
        message: str,
        problem_id: str,
        *,
        retry_after: float | None = None,
        final: bool = False,
    ) -> _Error:
        """An error with this message."""
        return self._error(
            self.brief(message),
            backend=self.backend,
            problem_id=problem_id,
            retry_after=retry_after,
            final=final,
        )

    def cause(self, error: Exception) -> Exception | None:
        """The exception as the cause of a failure; None if it would show a secret."""
        return None if self.secrets.is_in(f"{error!r} {error.__cause__!r}") else error
