"""OpenAI's chats and plain completions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ...files import shown
from ..errors import ApiError, wrong
from ..fields import flag, number, only, record, whole
from ..profiles import Profile
from .answers import tokens as usage
from .dialect import Answered, Asked, Fields, ServerDialect
from .formats import parse_format
from .messages import parse_messages
from .sampling_fields import effort, randomness, seed, stops, tokens
from .tools import chat_tools

if TYPE_CHECKING:
    from .requests import CompletionRequest

_MOST_ANSWERS = 16
_PASSED_ON = ("frequency_penalty", "presence_penalty")
_KNOWN = (
    "stream_options",
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "stop",
    "seed",
    "n",
    *_PASSED_ON,
    "response_format",
    "reasoning_effort",
    # Fields without influence on the answer.
    "user",
    "metadata",
    "store",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
)
_FIXED: dict[str, tuple[Any, ...]] = {
    "best_of": (1,),
    "logprobs": (False,),
    "echo": (False,),
    "suffix": ("",),
    "modalities": (["text"],),
}


def _common(given: Fields, profile: Profile) -> dict[str, Any]:
    """What chats and plain completions both say."""
    sampling = randomness(given) | {
        "max_tokens": tokens(
            given, profile.sampling.max_tokens, "max_completion_tokens", "max_tokens"
        ),
        "seed": seed(given),
        "stop": stops(given.get("stop"), "stop"),
        "effort": effort(given.get("reasoning_effort"), "reasoning_effort"),
    }
    if "response_format" in given:
        sampling["response_format"] = parse_format(given["response_format"])
    options = record(given.get("stream_options", {}), "stream_options", "stream_options")
    only(options, "stream_options.", ("include_usage", "include_obfuscation"))
    more = {name: number(given, name, least=-2, most=2) for name in _PASSED_ON if name in given}
    return {
        "sampling": sampling,
        "passed_on": more,
        "answers": whole(given, "n", most=_MOST_ANSWERS) or 1,
        "include_usage": flag(options, "include_usage"),
    }


def read_chat(given: Fields, profile: Profile) -> Asked:
    """What a chat says."""
    tools, may_call = chat_tools(given)
    messages = parse_messages(given.get("messages"))
    return Asked(messages, tools=tools, may_call=may_call, **_common(given, profile))


def read_text(given: Fields, profile: Profile) -> Asked:
    """What a plain completion says."""
    prompt = given.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        (prompt,) = prompt
    if not isinstance(prompt, str):
        raise wrong("prompt", f"must be one text, not {shown(prompt)}")
    return Asked(prompt=prompt, **_common(given, profile))


def _head(request: CompletionRequest, kind: str) -> dict[str, Any]:
    """The fields that every response has."""
    return {
        "id": request.dialect.id_of(request),
        "object": kind,
        "created": int(time.time()),
        "model": request.profile.name,
    }


def _choice(index: int, finish: str | None, **said: Any) -> dict[str, Any]:
    return {"index": index, "finish_reason": finish, "logprobs": None, **said}


def _calls(answer: Answered, *, numbered: bool) -> list[dict[str, Any]]:
    """The tool calls; in a stream they are numbered."""
    return [
        {
            **({"index": index} if numbered else {}),
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for index, call in enumerate(answer.calls)
    ]


def _usage(answer: Answered) -> dict[str, int]:
    return usage(answer.prompt_tokens, answer.completion_tokens)


def chat_body(request: CompletionRequest, answer: Answered) -> dict[str, Any]:
    """The response to a chat."""
    if answer.calls:
        message = {
            "role": "assistant",
            "content": answer.text or None,
            "tool_calls": _calls(answer, numbered=False),
        }
        choices = [_choice(0, "tool_calls", message=message)]
    else:
        choices = [
            _choice(index, "stop", message={"role": "assistant", "content": text})
            for index, text in enumerate(answer.texts)
        ]
    head = _head(request, "chat.completion")
    return {**head, "choices": choices, "usage": _usage(answer), "grv": answer.grv}


def text_body(request: CompletionRequest, answer: Answered) -> dict[str, Any]:
    """The response to a plain completion."""
    choices = [_choice(index, "stop", text=text) for index, text in enumerate(answer.texts)]
    head = _head(request, "text_completion")
    return {**head, "choices": choices, "usage": _usage(answer), "grv": answer.grv}


def _kind(request: CompletionRequest) -> str:
    return "chat.completion.chunk" if request.dialect.chat else "text_completion"


def _chunk(request: CompletionRequest, choices: list[Fields], **more: Any) -> Fields:
    return {**_head(request, _kind(request)), "choices": choices, **more}


def _opening(request: CompletionRequest) -> list[Fields]:
    return []


def _progress(request: CompletionRequest, done: Fields) -> list[Fields]:
    """A chunk without choices."""
    return [_chunk(request, [], grv=done)]


def _closing(request: CompletionRequest, answer: Answered) -> list[Fields]:
    """A chunk with each text, one with their ends, and one with the usage if it is wanted."""
    chat = request.dialect.chat
    chunks = []
    for index, text in enumerate(answer.texts):
        said: dict[str, Any] = {"role": "assistant", "content": text}
        if answer.calls:
            said["tool_calls"] = _calls(answer, numbered=True)
        choice = _choice(index, None, delta=said) if chat else _choice(index, None, text=text)
        chunks.append(_chunk(request, [choice]))
    finish = "tool_calls" if answer.calls else "stop"
    nothing: dict[str, Any] = {"delta": {}} if chat else {"text": ""}
    ends: list[Fields] = [_choice(index, finish, **nothing) for index, _ in enumerate(answer.texts)]
    chunks.append(_chunk(request, ends, grv=answer.grv))
    if request.include_usage:
        chunks.append(_chunk(request, [], usage=_usage(answer)))
    return chunks


def _failure(request: CompletionRequest, error: ApiError) -> list[Fields]:
    return [error.body]


CHAT = ServerDialect(
    path="/v1/chat/completions",
    prefix="chatcmpl-",
    known=("messages", "tools", "tool_choice", "parallel_tool_calls", *_KNOWN),
    fixed=_FIXED,
    read=read_chat,
    body=chat_body,
    opening=_opening,
    progress=_progress,
    closing=_closing,
    failure=_failure,
    end=b"data: [DONE]\n\n",
)
TEXT = ServerDialect(
    path="/v1/completions",
    prefix="cmpl-",
    known=("prompt", *_KNOWN),
    fixed=_FIXED | {"tools": ([],), "tool_choice": ("none",), "parallel_tool_calls": (True, False)},
    read=read_text,
    body=text_body,
    opening=_opening,
    progress=_progress,
    closing=_closing,
    failure=_failure,
    chat=False,
    end=b"data: [DONE]\n\n",
)
