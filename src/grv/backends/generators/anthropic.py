"""Anthropic's Messages interface.

It has one candidate per request, and neither seeds nor log-probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..http.service import Service
from ..protocols import Draft, Usage
from .chat import Message
from .completions import TOO_LARGE, WITHHELD, Moderated, count, draft_of, inner, used
from .dialect import Dialect, Request, image_data, image_url, schema_of, split_system

_CUT = ("max_tokens", "model_context_window_exceeded")  # why an answer may end in the middle
MOST_TOKENS = 16_000  # the interface requires a limit; this one if --max-tokens gives none

ANTHROPIC_SERVICE = Service(
    address="https://api.anthropic.com",
    keys=("ANTHROPIC_API_KEY",),
    base_url="ANTHROPIC_BASE_URL",
    key_header="x-api-key",
    key_prefix="",
    headers={"anthropic-version": "2023-06-01"},
    custom_headers="ANTHROPIC_CUSTOM_HEADERS",
    # https://platform.claude.com/docs/en/api/rate-limits, response headers.
    quotas={
        "requests": "anthropic-ratelimit-requests-{}",
        "tokens": "anthropic-ratelimit-tokens-{}",
        "input tokens": "anthropic-ratelimit-input-tokens-{}",
        "output tokens": "anthropic-ratelimit-output-tokens-{}",
    },
    versions=("v1",),
)


def body(request: Request) -> dict[str, Any]:
    """The body of a request."""
    system, messages = split_system(request.messages)
    fields: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens or MOST_TOKENS,
        "messages": [_message(message) for message in messages],
    }
    if system:
        fields["system"] = system
    is_thinking = request.effort not in (None, "none")
    # With thinking, temperature cannot be changed: 1 is the server's own.
    if request.temperature is not None and (not is_thinking or request.temperature == 1):
        fields["temperature"] = request.temperature
    if request.top_p is not None:
        fields["top_p"] = request.top_p
    if request.stop:
        fields["stop_sequences"] = list(request.stop)
    output: dict[str, Any] = {}
    if request.effort == "none":
        fields["thinking"] = {"type": "disabled"}
    elif request.effort is not None:
        fields["thinking"] = {"type": "adaptive"}
        output["effort"] = request.effort
    if (schema := schema_of(request.response_format)) is not None:
        output["format"] = {"type": "json_schema", "schema": schema}
    if output:
        fields["output_config"] = output
    return fields


def _message(message: Message) -> dict[str, Any]:
    content = message["content"]
    if not isinstance(content, str):
        content = [_part(part) for part in content]
    return {"role": message["role"], "content": content}


def _part(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part of a message; one that is in this dialect already stays as it is."""
    url = image_url(part)
    if url is None:
        return part
    if (data := image_data(url)) is None:
        return {"type": "image", "source": {"type": "url", "url": url}}
    source = {"type": "base64", "media_type": data[0], "data": data[1]}
    return {"type": "image", "source": source}


def texts(answer: object) -> list[Draft]:
    """The draft of an answer; its thinking is kept apart."""
    match answer:
        case {"error": {"message": str(message)}} | {"error": str(message)}:
            raise ValueError(f"an error instead of an answer: {message}")
        case {"content": [*blocks], **more}:
            reason = more.get("stop_reason")
        case _:
            raise ValueError("an answer without content")
    known = [block for block in blocks if isinstance(block, Mapping)]
    if any(block.get("too_large") is True for block in known):
        return [Draft("", broken=TOO_LARGE)]
    parts = [block.get("text") for block in known if block.get("type") == "text"]
    thoughts = [block.get("thinking") for block in known if block.get("type") == "thinking"]
    text = "".join(part for part in parts if isinstance(part, str))
    thought = "".join(part for part in thoughts if isinstance(part, str))
    if reason == "refusal" and text:  # the filter stopped this answer, perhaps not the next one
        return [Draft("", broken=WITHHELD)]
    if reason == "refusal":
        raise Moderated("the server's filter refuses this prompt (stop_reason: refusal)")
    return [draft_of(text, None, thought, is_cut=reason in _CUT)]


def usage(answer: object) -> Usage:
    """What an answer used. The interface counts cached tokens of the prompt apart from others."""
    match answer:
        case {"usage": {**counted}}:
            cached = count(counted.get("cache_read_input_tokens"))
            written = count(counted.get("cache_creation_input_tokens"))
            return used(
                count(counted.get("input_tokens")) + cached + written,
                count(counted.get("output_tokens")),
                cached=cached,
                written=written,
                reasoning=inner(counted, "output_tokens_details", "thinking_tokens"),
            )
        case _:
            return Usage()


ANTHROPIC = Dialect(
    name="anthropic",
    service=ANTHROPIC_SERVICE,
    path="/v1/messages",
    body=body,
    texts=texts,
    usage=usage,
    names={
        "stop": ("stop_sequences",),
        "temperature": ("temperature",),
        "top_p": ("top_p",),
    },
    lacks=frozenset({"n", "seed", "logprobs"}),
    most=1,
    usual=MOST_TOKENS,
    formats=("text", "json_schema"),
    efforts=("none", "low", "medium", "high", "xhigh", "max"),
    items=7,
)
