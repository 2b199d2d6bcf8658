"""What a failed request means: try again, wait, or stop; and whether it may have been charged.

The three classes are those of `BackendError.fault`. A response that does not fit any rule concerns
its call only, and counts as charged.
"""

from __future__ import annotations

import email.utils
import errno
import math
import re
import ssl
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import CALLS_AT_ONCE, Fault
from ...files import parse_json
from .quotas import named_quota

_UNPAID = frozenset({400, 401, 402, 403, 404, 405, 410, 429, 501, 503, 529})
_LIMITED = frozenset({429, 503, 529})  # the server has too much to do, or the client asks too much
_HINTS = {
    401: "check the key in {key}",
    402: "add credit to the account, or use another key",
    403: "check the key in {key} and what it may use",
    404: "check the name of the model and the address of the server",
    410: "check the name of the model and the address of the server",
    405: "check the address of the server; it often ends in /v1",
    501: "check the address of the server; it often ends in /v1",
}
_NO_SERVER = "check that the server runs and that its address is right"
_NO_TLS = "the server does not speak TLS: write http:// in place of https://"
_NO_TRUST = "this machine does not trust the server's certificate: check the address, or trust it"
_BROKE_OFF = "check the server and what is between: a proxy may close connections too early"
_QUOTA = re.compile(
    r"insufficient[_ ]quota|exceeded your current quota|credit balance is too low", re.IGNORECASE
)
_BAD_KEY = re.compile(r"API_KEY_INVALID|API key not valid", re.IGNORECASE)  # Gemini, status 400
# An unknown model with status 400, as at OpenRouter, or as servers behind a gateway say it.
_NO_MODEL = re.compile(
    r"model_not_found|not a valid model|invalid model (?:name|id)|model ?not ?exist", re.IGNORECASE
)
_MODERATED = re.compile(
    r"content_filter|content_policy|content management policy|invalid_prompt|moderation|flagged",
    re.IGNORECASE,
)
REWORD = "reword the prompt, or leave this problem out"
_SHORTEN = "shorten the prompt, or leave this problem out"
_LONG_INPUT = re.compile(
    r"context (?:length|window)|context_length_exceeded|too long|too large|input token count",
    re.IGNORECASE,
)
# The options of grv behind the fields of requests, for advice.
_FLAGS = {
    "max_tokens": "--max-tokens",
    "max_completion_tokens": "--max-tokens",
    "max_output_tokens": "--max-tokens",
    "maxOutputTokens": "--max-tokens",
    "temperature": "--temperature",
    "top_p": "--top-p",
    "topP": "--top-p",
    "stop": "--stop",
    "stop_sequences": "--stop",
    "stopSequences": "--stop",
    "reasoning": "--effort",
    "reasoning_effort": "--effort",
    "thinking": "--effort",
    "thinkingConfig": "--effort",
    "response_format": "--response-format",
    "responseJsonSchema": "--response-format",
}
_TOO_LONG = re.compile(r"context|too long|length|content", re.IGNORECASE)  # of one prompt
_PROMPTS = frozenset(
    {"prompt", "messages", "input", "text_1", "text_2"}
)  # differ from call to call
_LONG_PROMPT = "context_length_exceeded"
_PLAIN = frozenset({"temperature", "logprobs"})  # parameters that are no words of a sentence
_NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})


@dataclass(frozen=True, slots=True)
class Cause:
    """What a failure means; the fields are those of `BackendError`."""

    fault: Fault = "call"
    final: bool = False
    unpaid: bool = False
    retry_after: float | None = None
    hint: str = ""
    limit: str = ""


THIS_CALL = Cause()


def of_response(
    status: int, body: str, headers: Mapping[str, str], sent: Collection[str] = ()
) -> Cause:
    """What an error response means. `sent` has the names of the fields of the request."""
    unpaid = status in _UNPAID
    wait = seconds_to_wait(headers)
    if wait is None:
        wait = _delay_in(body)
    is_quota = status in (400, 403, 429) and _QUOTA.search(body) and wait is None
    if status == 402 or is_quota:
        return Cause("stop", unpaid=unpaid, hint=_HINTS[402])
    if status == 400 and _BAD_KEY.search(body):
        return Cause("stop", unpaid=unpaid, hint=_HINTS[401])
    if status in (400, 422) and _NO_MODEL.search(complaint(body)):
        return Cause("stop", unpaid=unpaid, hint=_HINTS[404])
    if status in (400, 403) and _MODERATED.search(body):
        return Cause("call", final=True, unpaid=unpaid, hint=REWORD)
    if status in _HINTS:
        return Cause("stop", unpaid=unpaid, hint=_HINTS[status])
    if status == 429 or status >= 500:
        limit = named_quota(body) or CALLS_AT_ONCE if status in _LIMITED else ""
        return Cause("wait", unpaid=unpaid, retry_after=wait, limit=limit)
    if status in (400, 422) and (name := _parameter(body, sent)):
        omit = _FLAGS.get(name, "it")
        hint = f"the server refuses {name}: change or omit {omit}"
        return Cause("stop", unpaid=unpaid, hint=hint)
    is_final = status in (400, 413, 422)
    hint = _SHORTEN if is_final and (status == 413 or _LONG_INPUT.search(body)) else ""
    return Cause("call", final=is_final, unpaid=unpaid, retry_after=wait, hint=hint)


def of_exception(error: BaseException) -> Cause:
    """What it means that there is no response; `error` comes from httpx2, or is caused by it."""
    import httpx2

    for each in _causes(error):
        if isinstance(each, OSError) and each.errno in _NO_DESCRIPTORS:
            hint = "lower --concurrency, or raise the limit of open files (ulimit -n)"
            return Cause("stop", unpaid=True, hint=hint)
    for each in _causes(error):
        match each:
            case ssl.SSLCertVerificationError():
                return Cause("stop", unpaid=True, hint=_NO_TRUST)
            case ssl.SSLError(reason="WRONG_VERSION_NUMBER" | "RECORD_LAYER_FAILURE"):
                return Cause("stop", unpaid=True, hint=_NO_TLS)
    for each in _causes(error):
        match each:
            case httpx2.ConnectError() | httpx2.ConnectTimeout():
                return Cause("wait", unpaid=True, hint=_NO_SERVER)
            case httpx2.PoolTimeout():
                return Cause("wait", unpaid=True)
            case httpx2.NetworkError():  # reset while the request or the response was on its way
                return Cause("wait")
            case httpx2.RemoteProtocolError() if "without sending a response" in str(each):
                return Cause("wait")
            case httpx2.RemoteProtocolError():
                return Cause(hint=_BROKE_OFF)
    return THIS_CALL


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


def _delay_in(body: str) -> float | None:
    """The pause that Google's error details ask for, as in {"retryDelay": "30s"}."""
    match = _DELAY.search(body)
    return None if match is None else float(match[1])


_DELAY = re.compile(r'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"')


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


def _parameter(body: str, sent: Collection[str]) -> str | None:
    """The field of the request that an error response blames; None if it may be the prompt."""
    names = set(sent) - _PROMPTS
    if isinstance(sent, Mapping):  # Gemini has an object of parameters
        names |= {name for part in sent.values() if isinstance(part, Mapping) for name in part}
    record = _error_of(body)
    blamed = record.get("param")
    if isinstance(blamed, str) and blamed in names and record.get("code") != _LONG_PROMPT:
        return None if blamed.startswith("max_") and _TOO_LONG.search(body) else blamed
    message = complaint(body)
    if _TOO_LONG.search(message):
        return None
    quoted = set(re.findall(r"[`'\"]([A-Za-z_]+)[`'\"]", message))
    words = re.findall(r"[A-Za-z_]+", message)
    plain = {word for word in words if re.search("_|[a-z][A-Z]", word) or word in _PLAIN}
    return min(names & (quoted | plain), default=None)


def blamed(body: str, names: Mapping[str, Collection[str]]) -> str | None:
    """Which of some options a refusal names; None if it names none of them.

    A name of a field must stand in quotes, or as a subject: a sentence may contain the word "stop".
    A name with a space in it is a phrase, found anywhere.

    Args:
        body: the body of an error response.
        names: for each option, what a server may call it.

    >>> blamed("'n' must be 1", {"n": ["n"]}), blamed("a model with n layers", {"n": ["n"]})
    ('n', None)
    """
    field = _error_of(body).get("param")
    for option, forms in names.items():
        if isinstance(field, str) and field.rpartition(".")[2] in forms:
            return option
    message = complaint(body)
    if _MODERATED.search(body) or _LONG_PROMPT in body:
        return None
    for option, forms in names.items():
        for form in forms:
            word = re.escape(form)
            if " " in form:
                found = re.search(word, message, re.IGNORECASE)
            else:
                found = re.search(_NAMED.replace("NAME", word), message, re.IGNORECASE)
            if found:
                return option
    return None


# A name in quotes, at the beginning with a colon, before a verb, or after what is wrong with it.
_NAMED = (
    r"[`'\"][\w.]*?\bNAME[`'\"]|^(?:[\w.]+\.)?NAME:"
    r"|(?<![\w.])NAME(?: parameter| value)? (?:is|are|must|may|can|cannot|should|does|do|has|not)\b"
    r"|(?:unknown|unsupported|unrecognized|unexpected|invalid|no)"
    r"(?: param| parameter| field| argument| value| name)?s?:? NAME\b"
)


def _error_of(body: str) -> Mapping[str, Any]:
    """The record of an error response; empty if there is none."""
    try:
        record = parse_json(body)
    except ValueError:
        return {}
    inner = record.get("error", record) if isinstance(record, dict) else {}
    return inner if isinstance(inner, dict) else {}


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The exception and what caused it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
