"""Google's Gemini interface: generateContent."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ...files import is_number
from ..http.service import Service
from ..protocols import Draft, Usage
from .chat import Message
from .completions import TOO_LARGE, Moderated, count, draft_of, numbered, used
from .dialect import Dialect, Request, image_data, image_url, schema_of, split_system

GEMINI_SERVICE = Service(
    address="https://generativelanguage.googleapis.com",
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    base_url="GOOGLE_GEMINI_BASE_URL",
    key_header="x-goog-api-key",
    key_prefix="",
    versions=("v1beta", "v1", "v1alpha"),
)
_MOST = 8  # candidates of a request
_ENDED = (None, "STOP", "MAX_TOKENS", "FINISH_REASON_UNSPECIFIED")  # others withhold the answer


def body(request: Request) -> dict[str, Any]:
    """The body of a request. The model's name is in the path."""
    system, messages = split_system(request.messages)
    fields: dict[str, Any] = {"contents": [_content(message) for message in messages]}
    if system:
        fields["systemInstruction"] = {"parts": [{"text": system}]}
    given: dict[str, Any] = {
        "temperature": request.temperature,
        "topP": request.top_p,
        "maxOutputTokens": request.max_tokens,
        "stopSequences": list(request.stop) or None,
        "seed": request.seed,
        "candidateCount": request.n if request.n > 1 else None,
        "responseLogprobs": request.logprobs or None,
        "logprobs": request.tops if request.logprobs and request.tops > 1 else None,
        "thinkingConfig": _thinking(request.effort),
    }
    form = request.response_format
    if form is not None and form["type"] != "text":
        given["responseMimeType"] = "application/json"
        given["responseJsonSchema"] = schema_of(form)
    config = {name: value for name, value in given.items() if value is not None}
    if config:
        fields["generationConfig"] = config
    return fields


def _thinking(effort: str | None) -> dict[str, Any] | None:
    if effort is None:
        return None
    return {"thinkingBudget": 0} if effort == "none" else {"thinkingLevel": effort}


def _content(message: Message) -> dict[str, Any]:
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    role = "model" if message["role"] == "assistant" else message["role"]
    return {"role": role, "parts": [_part(part) for part in parts]}


def _part(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part of a message; one that is in this dialect already stays as it is."""
    if part.get("type") == "text":
        return {"text": part.get("text", "")}
    url = image_url(part)
    if url is None:
        return part
    if (data := image_data(url)) is not None:
        return {"inlineData": {"mimeType": data[0], "data": data[1]}}
    kind = mimetypes.guess_type(urlsplit(url).path)[0] or "image/jpeg"
    return {"fileData": {"mimeType": kind, "fileUri": url}}


def texts(answer: object) -> list[Draft]:
    """The drafts of an answer; what the model thought is kept apart."""
    match answer:
        case {"error": {"message": str(message)}} | {"error": str(message)}:
            raise ValueError(f"an error instead of an answer: {message}")
        case {"promptFeedback": {"blockReason": str(reason)}}:
            raise Moderated(f"the server's filter refuses this prompt (blockReason: {reason})")
        case {"candidates": [*candidates]}:
            known = [each for each in candidates if isinstance(each, Mapping)]
        case _:
            known = []
    if not known:
        raise ValueError("an answer without candidates")
    return [_draft(candidate) for candidate in known]


def _draft(candidate: Mapping[str, Any]) -> Draft:
    if candidate.get("too_large") is True:
        return Draft("", broken=TOO_LARGE)
    reason = candidate.get("finishReason")
    if reason not in _ENDED:
        return Draft("", broken=f"the server withheld the answer (finishReason: {reason})"[:200])
    text = ""
    thought = ""
    match candidate:
        case {"content": {"parts": [*parts]}}:
            pass
        case _:
            parts = []
    for part in parts:
        match part:
            case {"text": str(said), "thought": True}:
                thought += said
            case {"text": str(said)}:
                text += said
    return draft_of(text, _logprobs(candidate), thought, is_cut=reason == "MAX_TOKENS")


def _logprobs(candidate: Mapping[str, Any]) -> tuple[float, ...] | None:
    match candidate:
        case {"logprobsResult": {"chosenCandidates": [*tokens]}}:
            values = [
                token.get("logProbability") if isinstance(token, Mapping) else None
                for token in tokens
            ]
        case _:
            return None
    numbers = tuple(float(value) for value in values if is_number(value))
    return numbers if numbers and len(numbers) == len(values) else None


def likely(answer: object) -> dict[str, float]:
    """The tokens with which an answer could have begun, with their log-probabilities."""
    match answer:
        case {
            "candidates": [{"logprobsResult": {"topCandidates": [{"candidates": [*tops]}, *_]}}, *_]
        }:
            return numbered((top, "token", "logProbability") for top in tops)
        case _:
            return {}


def usage(answer: object) -> Usage:
    """What an answer used. Thoughts are counted apart from candidates, and paid like them."""
    match answer:
        case {"usageMetadata": {**counted}}:
            reasoning = count(counted.get("thoughtsTokenCount"))
            prompt = count(counted.get("promptTokenCount"))
            return used(
                prompt + count(counted.get("toolUsePromptTokenCount")),
                count(counted.get("candidatesTokenCount")) + reasoning,
                cached=count(counted.get("cachedContentTokenCount")),
                reasoning=reasoning,
            )
        case _:
            return Usage()


GEMINI = Dialect(
    name="gemini",
    service=GEMINI_SERVICE,
    path="/v1beta/{model}:generateContent",
    body=body,
    texts=texts,
    usage=usage,
    names={
        "logprobs": ("responseLogprobs", "response_logprobs", "logprobs"),
        "n": ("candidateCount", "candidate_count", "multiple candidates"),
        "seed": ("seed",),
        "stop": ("stopSequences", "stop_sequences"),
        "temperature": ("temperature",),
        "top_p": ("topP", "top_p"),
    },
    most=_MOST,
    likely=likely,
    efforts=("none", "minimal", "low", "medium", "high", "xhigh"),
)
