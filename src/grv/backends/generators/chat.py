"""Chats: the messages of a request, and fields of it that a user adds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...core.errors import UsageError
from ...files import parse_json, shown
from ..http.secrets import HIDDEN, names_secret
from ..http.web import without_secrets
from ..protocols import Problem

Message = Mapping[str, Any]  # {"role": ..., "content": ...}, as OpenAI's endpoints take it

_OPTIONS = ("temperature", "top_p", "max_tokens", "stop", "seed", "response_format")
_OURS = ("model", "messages", "prompt", "n", "stream", "logprobs", "top_logprobs")


def parse_messages(given: Any) -> tuple[Message, ...]:
    """The messages of a problem's record; a UsageError says what is wrong."""
    if not isinstance(given, list) or not given:
        raise UsageError(f"'messages' must be a list of messages, not {shown(given)}")
    for at, each in enumerate(given):
        match each:
            case {"role": str(), "content": str()}:
                pass
            case {"role": str(), "content": [*parts]} if all(isinstance(p, dict) for p in parts):
                pass
            case _:
                raise UsageError(
                    f'messages[{at}] must be {{"role": ..., "content": ...}}, not {shown(each)}'
                )
    return tuple(given)


def transcript(messages: Sequence[Message]) -> str:
    """The messages as one text, for scorers and verifiers that read a prompt."""
    said = [(each["role"], _said(each)) for each in messages]
    return said[0][1] if len(said) == 1 else "\n\n".join(f"{who}: {text}" for who, text in said)


def _said(message: Message) -> str:
    """What a message says, with its tool calls."""
    content = message.get("content")
    texts = [] if content is None else [_text(content)]
    for call in message.get("tool_calls", ()):
        function = call["function"]
        texts.append(f"{function['name']}({function['arguments']})")
    return "\n".join(texts)


def _text(content: str | list[Mapping[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in content)


def messages_of(problem: Problem, system: str) -> list[Message]:
    """What a chat model is sent. A problem's own system message replaces the common one."""
    own: list[Message] = [*problem.messages] or [{"role": "user", "content": problem.prompt}]
    if system and own[0].get("role") not in ("system", "developer"):
        own.insert(0, {"role": "system", "content": system})
    return own


def parse_format(given: Any) -> dict[str, Any]:
    """A response format: its type alone, or JSON, or the table of a job file."""
    if isinstance(given, str) and given.replace("_", "").isalpha():
        given = {"type": given}
    found = _object(given)
    if not isinstance(found.get("type"), str):
        raise UsageError('give a type, as in json_object, or JSON such as {"type": "json_schema"}')
    return found


def parse_extra(given: Any) -> dict[str, Any]:
    """Further fields of a request: JSON, or the table of a job file."""
    found = _object(given)
    for name in found:
        if name in _OPTIONS:
            raise UsageError(f"{name} has an option of its own, --{name.replace('_', '-')}")
        if name in _OURS:
            raise UsageError(f"{name} is a field that grv sets itself")
    return found


def _object(given: Any) -> dict[str, Any]:
    try:
        found = parse_json(given) if isinstance(given, str) else given
    except ValueError as error:
        raise UsageError(f"not JSON: {error}") from error
    if not isinstance(found, dict):
        raise UsageError('give a JSON object, as in {"top_k": 20}')
    return found


def without_keys(data: Any, *, addresses: bool = True) -> Any:
    """JSON data as a ledger may store it: without keys, tokens, passwords and parts of addresses.

    `addresses` is whether parts of addresses are hidden, too.

    >>> without_keys({"top_k": 20, "api_key": "sk-1", "max_tokens": 5})
    {'top_k': 20, 'api_key': '***', 'max_tokens': 5}
    """
    if isinstance(data, Mapping):
        return {
            name: HIDDEN if names_secret(name) else without_keys(value, addresses=addresses)
            for name, value in data.items()
        }
    if isinstance(data, list):
        return [without_keys(each, addresses=addresses) for each in data]
    return without_secrets(data) if addresses and isinstance(data, str) else data


def keys_in(data: Any) -> Iterator[str]:
    """The texts that `without_keys` hides, so that no message repeats them."""
    values = data.items() if isinstance(data, Mapping) else ()
    for name, value in values:
        if names_secret(name) and isinstance(value, str):
            yield value
        else:
            yield from keys_in(value)
    for each in data if isinstance(data, list) else ():
        yield from keys_in(each)
