"""OpenAI's Responses interface. It has one candidate per request, and neither seeds nor stops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...files import is_number
from ..http.service import OPENAI
from ..protocols import Draft, Usage
from .chat import Message
from .completions import (
    TOO_LARGE,
    WITHHELD,
    Moderated,
    count,
    draft_of,
    inner,
    numbered,
    refused,
    used,
)
from .dialect import Dialect, Request, image_url

_LOGPROBS = "message.output_text.logprobs"
_POLICIES = (  # codes of an error about what the prompt says
    "invalid_prompt",
    "bio_policy",
    "misalignment_policy_violation",
    "image_content_policy_violation",
)


def body(request: Request) -> dict[str, Any]:
    """The body of a request. Nothing is stored at the provider."""
    fields: dict[str, Any] = {
        "model": request.model,
        "input": [_message(message) for message in request.messages],
        "store": False,
    }
    if request.temperature is not None:
        fields["temperature"] = request.temperature
    if request.top_p is not None:
        fields["top_p"] = request.top_p
    if request.max_tokens is not None:
        fields["max_output_tokens"] = request.max_tokens
    if request.effort is not None:
        fields["reasoning"] = {"effort": request.effort}
    if request.logprobs:
        fields["include"] = [_LOGPROBS]
        if request.tops > 1:
            fields["top_logprobs"] = request.tops
    if request.response_format is not None:
        fields["text"] = {"format": _format(request.response_format)}
    return fields


def _message(message: Message) -> dict[str, Any]:
    content = message["content"]
    if not isinstance(content, str):
        kind = "output_text" if message["role"] == "assistant" else "input_text"
        content = [_part(part, kind) for part in content]
    return {"role": message["role"], "content": content}


def _part(part: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """A part of a message; one that is in this dialect already stays as it is."""
    if (url := image_url(part)) is not None:
        image = part["image_url"]
        detail = image.get("detail", "auto") if isinstance(image, Mapping) else "auto"
        return {"type": "input_image", "image_url": url, "detail": detail}
    if part.get("type") == "text":
        return {"type": kind, "text": part.get("text", "")}
    return part


def _format(given: Mapping[str, Any]) -> dict[str, Any]:
    """A response format: the fields of its schema are beside its type."""
    schema = given.get("json_schema")
    return {"type": given["type"], **(schema if isinstance(schema, Mapping) else {})}


def texts(answer: object) -> list[Draft]:
    """The draft of an answer; its reasoning is kept apart."""
    match answer:
        case {"error": {"code": str(code), "message": str(message)}} if code in _POLICIES:
            raise Moderated(f"the server's filter refuses this prompt ({code}): {message}")
        case {"error": {"message": str(message)}} | {"error": str(message)}:
            raise ValueError(f"an error instead of an answer: {message}")
        case {"output": [*items]}:
            pass
        case _:
            raise ValueError("an answer without output")
    if any(isinstance(item, Mapping) and item.get("too_large") is True for item in items):
        return [Draft("", broken=TOO_LARGE)]
    text = ""
    thought = ""
    refusal = ""
    logprobs: list[Any] = []
    for item in items:
        match item:
            case {"type": "message", "content": [*parts]}:
                is_comment = item.get("phase") == "commentary"  # said before the answer
                for part in parts:
                    match part:
                        case {"text": str(said)} if is_comment:
                            thought += said
                        case {"text": str(said)}:
                            text += said
                            logprobs += _logprobs(part)
                        case {"refusal": str(said)}:
                            refusal += said
            case {"type": "reasoning"}:
                for part in item.get("summary") or item.get("content") or ():
                    if isinstance(part, Mapping):
                        thought += str(part.get("text", ""))
    details = answer.get("incomplete_details") if isinstance(answer, Mapping) else None
    reason = details.get("reason") if isinstance(details, Mapping) else None
    if reason == "content_filter":
        return [Draft("", broken=WITHHELD)]
    if refusal and not text:
        return [Draft("", broken=refused(refusal))]
    is_complete = bool(logprobs) and all(is_number(value) for value in logprobs)
    numbers = tuple(float(value) for value in logprobs) if is_complete else None
    return [draft_of(text, numbers, thought, is_cut=reason == "max_output_tokens")]


def _logprobs(part: Mapping[str, Any]) -> list[Any]:
    given = part.get("logprobs")
    tokens = given if isinstance(given, list) else []
    return [token.get("logprob") if isinstance(token, Mapping) else None for token in tokens]


def likely(answer: object) -> dict[str, float]:
    """The tokens with which an answer could have begun, with their log-probabilities."""
    items = answer.get("output") if isinstance(answer, Mapping) else None
    for item in items if isinstance(items, list) else ():
        match item:
            case {"content": [{"logprobs": [{"top_logprobs": [*tops]}, *_]}, *_]}:
                return numbered((top, "token", "logprob") for top in tops)
    return {}


def usage(answer: object) -> Usage:
    """What an answer used: the prompt with its cached tokens, the answer with its reasoning."""
    match answer:
        case {"usage": {**counted}}:
            return used(
                count(counted.get("input_tokens")),
                count(counted.get("output_tokens")),
                dollars=counted.get("cost"),
                cached=inner(counted, "input_tokens_details", "cached_tokens"),
                written=inner(counted, "input_tokens_details", "cache_write_tokens"),
                reasoning=inner(counted, "output_tokens_details", "reasoning_tokens"),
            )
        case _:
            return Usage()


RESPONSES = Dialect(
    name="responses",
    service=OPENAI,
    path="/responses",
    body=body,
    texts=texts,
    usage=usage,
    names={
        "logprobs": ("logprobs", "top_logprobs", "include", _LOGPROBS),
        "temperature": ("temperature",),
        "top_p": ("top_p",),
    },
    lacks=frozenset({"n", "seed", "stop"}),
    most=1,
    least=16,
    likely=likely,
    items=7,
)
