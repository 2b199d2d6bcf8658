"""What the backends that speak HTTP have in common: addresses, refusals, and when to come back."""

from __future__ import annotations

import email.utils
import math
import re
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from ...core.errors import UsageError
from ...files import parse_json
from .secrets import Secrets

REFUSED = frozenset({400, 413, 422})  # the server read the request and will not have it
_LONGEST = 300  # characters of what a server says that are worth repeating
_READ = 10_000  # characters of it that are looked at


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
    """The address without what may be secret: user name, password, query and fragment."""
    before, separator, rest = url.partition("://")
    if not separator:
        before, rest = "", url
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    host = rest.partition("/")[0]
    if "@" in host or not re.fullmatch(r"(\[[^]]*\]|[^:]*)(:\d*)?", host):
        # A password may have a slash in it, or a question mark: then nothing is left to show.
        rest = rest.rpartition("@")[2] if "@" in rest else "..."
    return f"{before}{separator}{rest}"


def without_secrets(text: str) -> str:
    """A text in which each address is as it may be shown."""
    return _ADDRESS.sub(lambda match: shown(match[0]), text)


_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>]+", re.IGNORECASE)


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


def brief(message: str, secrets: Secrets) -> str:
    """One short line of what a server says, without the secrets that it may repeat."""
    line = " ".join(secrets.hide(message[:_READ]).split())
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
