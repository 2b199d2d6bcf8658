"""Answers in OpenAI's format, of chats and of plain completions, as drafts.

Servers differ in what they leave out and in what they count. What cannot be read at all is a
`ValueError`; the rest is taken as it came.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from ...files import is_number
from ..protocols import Draft, Usage

_MOST_TOKENS = 2**53  # that a server can have counted


def seed_of(seed: int, problem_id: str, candidate: int) -> int:
    """The seed of one candidate; those of a problem are consecutive.

    Servers seed the choices of a request with consecutive numbers too (llama.cpp, vLLM), so that a
    candidate is the same however the candidates are divided into requests. Below 2^31, as some
    servers need it.
    """
    digest = hashlib.sha256(f"{seed}\n{problem_id}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") % 2**30 + candidate


def drafts(answer: object, seconds: float = 0.0) -> list[Draft]:
    """The drafts of an answer, at least one.

    What a request used as a whole, its prompt and its time, is on the first of them.

    Raises:
        ValueError: there is no choice to be read.
    """
    choices = [each for each in _choices(answer) if _text(each) is not None]
    if not choices:
        raise ValueError("an answer without choices")
    logprobs = [_logprobs(each) for each in choices]
    prompt, completion = _counts(answer)
    used = _shared([len(each or ()) for each in logprobs], completion)
    return [
        Draft(
            _encodable(_text(choice) or ""),
            logprobs[at],
            Usage(0 if at else prompt, used[at], 0.0 if at else seconds),
        )
        for at, choice in enumerate(choices)
    ]


def first_token(answer: object) -> dict[str, float]:
    """The log-probabilities of what the answer could have begun with; empty where not given."""
    match _choices(answer):
        case [{"logprobs": {"content": [{"top_logprobs": [*tops]}, *_]}}, *_]:
            pairs = [(top.get("token"), top.get("logprob")) for top in tops if _is_record(top)]
        case [{"logprobs": {"top_logprobs": [{**by_token}, *_]}}, *_]:
            pairs = list(by_token.items())
        case _:
            pairs = []
    return {token: float(value) for token, value in pairs if isinstance(token, str) and _ok(value)}


def usage(answer: object, seconds: float) -> Usage:
    """What a request used."""
    return Usage(*_counts(answer), seconds)


def _choices(answer: object) -> list[Any]:
    """The choices in their order."""
    match answer:
        case {"choices": [*choices]}:
            known = [each for each in choices if _is_record(each)]
        case {"error": error}:
            raise ValueError(f"an error in place of an answer: {error}")
        case _:
            raise ValueError("an answer without choices")
    if all(isinstance(each.get("index"), int) for each in known):
        known.sort(key=lambda each: each["index"])
    return known


def _text(choice: Mapping[str, Any]) -> str | None:
    match choice:
        case {"text": str(text)} | {"message": {"content": str(text)}}:
            return text
        case {"message": {"content": None}}:  # a refusal, or nothing but reasoning
            return ""
        case _:
            return None


def _logprobs(choice: Mapping[str, Any]) -> tuple[float, ...] | None:
    """One number a token. None where one of them is missing: the others would mislead."""
    match choice.get("logprobs"):
        case {"content": [*tokens]}:
            values = [each.get("logprob") if _is_record(each) else None for each in tokens]
        case {"token_logprobs": [*given]}:
            values = given
        case _:
            return None
    numbers = tuple(float(value) for value in values if _ok(value))
    return numbers if numbers and len(numbers) == len(values) else None


def _counts(answer: object) -> tuple[int, int]:
    """Tokens of the prompt and of the completions, as the server counts them."""
    match answer:
        case {"usage": {**counted}}:
            given = (counted.get("prompt_tokens"), counted.get("completion_tokens"))
            prompt, completion = (
                n if isinstance(n, int) and 0 < n < _MOST_TOKENS else 0 for n in given
            )
            return prompt, completion
        case _:
            return 0, 0


def _shared(seen: Sequence[int], reported: int) -> list[int]:
    """Tokens of each choice: those that were seen, and what else the server counted, in parts.

    Some servers count one choice only, so that more may be seen than is reported.
    """
    rest = max(0, reported - sum(seen))
    part, extra = divmod(rest, len(seen))
    return [count + part + (at < extra) for at, count in enumerate(seen)]


def _encodable(text: str) -> str:
    """The text with halves of characters joined, or replaced where the other half is missing."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _is_record(value: object) -> bool:
    return isinstance(value, Mapping)


def _ok(value: object) -> TypeGuard[float]:
    return is_number(value)
