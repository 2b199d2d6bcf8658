"""What a server says about its limits per minute: in the headers of responses, and in refusals."""

from __future__ import annotations

import email.utils
import math
import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Quota:
    """What is left of a limit.

    Attributes:
        of: what is limited: requests, tokens, input tokens or output tokens.
        remaining: how many are left.
        limit: how many there are when nothing is used; None if the server does not say.
        reset: the seconds until that many are left again; None if the server does not say.
    """

    of: str
    remaining: float
    limit: float | None = None
    reset: float | None = None


# The quotas of the last response to a call. Whoever makes a call reads them after it.
SAID: ContextVar[Sequence[Quota]] = ContextVar("SAID", default=())

_LARGEST = 1e15
_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")

# How providers name a limit per minute in the body of a refusal: in messages, and as Google's
# names of quotas, such as GenerateContentInputTokensPerModelPerMinute.
_NAMED = {
    "tokens": re.compile(
        r"tokens per (?:min|day)|\bTP[MD]\b|token rate limit|tokens_per_"
        r"|tokens?Per\w*(?:Minute|Day)",
        re.IGNORECASE,
    ),
    "requests": re.compile(
        r"requests per (?:min|day)|\bRP[MD]\b|call rate limit|requests_per_"
        r"|requests?Per\w*(?:Minute|Day)",
        re.IGNORECASE,
    ),
}


def quotas(headers: Mapping[str, str], forms: Mapping[str, str]) -> list[Quota]:
    """The quotas in the headers of a response.

    Args:
        headers: the headers, with names in lower case.
        forms: the names of headers by what they limit, with {} for limit, remaining and reset.

    >>> forms = {"requests": "x-ratelimit-{}-requests"}
    >>> said = {"x-ratelimit-remaining-requests": "59", "x-ratelimit-reset-requests": "1m0.5s"}
    >>> quotas(said, forms)
    [Quota(of='requests', remaining=59.0, limit=None, reset=60.5)]
    """
    result = []
    for of, form in forms.items():
        remaining = _number(headers.get(form.format("remaining")))
        if remaining is None:
            continue
        reset = _seconds(headers.get(form.format("reset")), headers.get("date"))
        limit = _number(headers.get(form.format("limit")))
        result.append(Quota(of, remaining, limit, reset))
    return result


def named_quota(body: str) -> str:
    """Which limit per minute a refusal names; empty if it names none.

    >>> named_quota("Rate limit reached on tokens per min (TPM)"), named_quota("overloaded")
    ('tokens', '')
    """
    return next((of for of, pattern in _NAMED.items() if pattern.search(body)), "")


def _number(text: str | None) -> float | None:
    try:
        number = math.nan if text is None else float(text)
    except ValueError:
        return None
    return number if 0 <= number <= _LARGEST else None


def _seconds(text: str | None, date: str | None) -> float | None:
    """A duration such as 6m0s or 20ms, or the time from the response's date to a point in time."""
    if text is None:
        return None
    if (seconds := _number(text)) is not None:
        return seconds
    parts = _PART.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        total = sum(float(number) * _UNITS[unit] for number, unit in parts)
        return total if total <= _LARGEST else None
    try:
        now = email.utils.parsedate_to_datetime(date or "")
        return max(0.0, (datetime.fromisoformat(text) - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None
