"""A dialect of the server: how one interface writes requests, responses, streams and errors.

A dialect is pure functions and some data. One loop (`serve.app`) and one guard serve them all. In
between, a request is what OpenAI's chats say: messages, and tools in their form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import ApiError

if TYPE_CHECKING:
    from ..profiles import Profile
    from .requests import CompletionRequest

Fields = Mapping[str, Any]

# Fields of every dialect.
COMMON = ("model", "stream", "grv")


@dataclass(frozen=True)
class ToolCall:
    """A tool call of the model. The arguments are as the model wrote them, in JSON if it can."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Asked:
    """What a request says, whatever its dialect.

    Attributes:
        messages: a chat, as OpenAI's endpoints take it; empty if it continues a text.
        prompt: the text to continue.
        sampling: the fields of `Sampling` that it changes; None changes nothing.
        passed_on: further fields that reach the model.
        tools: the tools that the model is offered, with what is said about their use.
        may_call: whether the model may call them now.
        answers: how many different answers it wants.
        include_usage: whether a stream ends with the usage.
    """

    messages: tuple[Fields, ...] = ()
    prompt: str = ""
    sampling: Fields = field(default_factory=dict)
    passed_on: Fields = field(default_factory=dict)
    tools: Fields = field(default_factory=dict)
    may_call: bool = False
    answers: int = 1
    include_usage: bool = False


@dataclass(frozen=True)
class Answered:
    """What a request is answered with.

    Attributes:
        texts: the answers, one unless more were asked for.
        calls: the tools that the model calls instead; then `texts` has what it says beside them.
        prompt_tokens, completion_tokens: of all candidates.
        grv: what the search found, and what it cost.
    """

    texts: Sequence[str]
    calls: Sequence[ToolCall]
    prompt_tokens: int
    completion_tokens: int
    grv: Fields

    @property
    def text(self) -> str:
        """The first answer."""
        return self.texts[0]


@dataclass(frozen=True)
class ServerDialect:
    """One interface.

    Attributes:
        path: where requests are sent.
        prefix: how the ids of its responses begin.
        known: the fields that it knows besides those that all dialects have.
        fixed: the fields that it knows with these values only.
        read: what a request says, given its fields and its profile.
        body: a response that is not streamed.
        opening: the first events of a stream, before anything is found.
        progress: the events that tell what the search has done so far.
        closing: the events of the answer.
        failure: the events of an error.
        error: the body of an error.
        chat: whether requests have messages; otherwise they have a text to continue.
        named: whether an event has its type as a name, and a number.
        end: what ends a stream.
    """

    path: str
    prefix: str
    known: tuple[str, ...]
    fixed: Mapping[str, tuple[Any, ...]]
    read: Callable[[Fields, Profile], Asked]
    body: Callable[[CompletionRequest, Answered], dict[str, Any]]
    opening: Callable[[CompletionRequest], list[Fields]]
    progress: Callable[[CompletionRequest, Fields], list[Fields]]
    closing: Callable[[CompletionRequest, Answered], list[Fields]]
    failure: Callable[[CompletionRequest, ApiError], list[Fields]]
    error: Callable[[ApiError], dict[str, Any]] = lambda error: error.body
    chat: bool = True
    named: bool = False
    numbered: bool = False
    end: bytes = b""

    def id_of(self, request: CompletionRequest) -> str:
        """The id of a response."""
        return f"{self.prefix}{request.search}"


def as_json(data: Fields) -> bytes:
    """JSON in ASCII: texts may contain what UTF-8 cannot express."""
    return json.dumps(data).encode("ascii")


class EventWriter:
    """Writes the events of one stream, as its dialect wants them."""

    def __init__(self, dialect: ServerDialect) -> None:
        self._dialect = dialect
        self._number = 0

    def __call__(self, events: Sequence[Fields]) -> bytes:
        """Server-sent events."""
        return b"".join(map(self._written, events))

    def _written(self, event: Fields) -> bytes:
        name = f"event: {event['type']}\n".encode() if self._dialect.named else b""
        if self._dialect.numbered:
            event = {**event, "sequence_number": self._number}
            self._number += 1
        return name + b"data: " + as_json(event) + b"\n\n"
