"""What the backends that speak HTTP have in common: addresses, refusals, and when to come back."""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from ..core.errors import UsageError
from ..files import parse_json

REFUSED = frozenset({400, 413, 422})  # the server read the request and will not have it
_LONGEST = 300  # characters of what a server says that are worth repeating
_SHORT = 4  # characters of a query's value that is no secret: version=2


def address(url: str) -> str:
    """The address without a slash at its end, if it is one.

    Raises:
        UsageError: it is none.
    """
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # not a port, not an IPv6 address
        valid = False
    if not valid:
        raise UsageError(f"not an address: {shown(url)!r}; write http://HOST:PORT/...")
    return url.rstrip("/")


def shown(url: str) -> str:
    """The address without what may be secret: a user's name, a password, a query."""
    before, separator, rest = url.partition("://")
    if not separator:
        before, rest = "", url
    host, slash, path = rest.partition("/")
    return f"{before}{separator}{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}"


def secrets_of(url: str) -> list[str]:
    """What may be secret in an address, as it stands there and as it is meant: longest first."""
    parts = urlsplit(url)
    values = [value for _, value in parse_qsl(parts.query) if len(value) > _SHORT]
    found = [*values, parts.query, parts.password or ""]
    return sorted({*found, *map(unquote, found)} - {""}, key=len, reverse=True)


def seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """What a refusal says about when to come back: a number of seconds, or a date."""
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


def brief(message: str, *secrets: str) -> str:
    """One line of what a server says, without the secrets it may repeat."""
    for secret in filter(None, secrets):
        message = message.replace(secret, "***")
    line = " ".join(message.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def complaint(body: str) -> str:
    """What the body of a refusal says, in any of the usual forms."""
    try:
        record = parse_json(body)
    except ValueError:
        return body
    for name in ("error", "message", "detail"):
        if isinstance(record, dict) and name in record:
            record = record[name]
    return record if isinstance(record, str) else body
