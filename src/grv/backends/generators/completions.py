"""Drafts from answers in OpenAI's format, of chats and of plain completions.

Servers leave out different fields. Missing fields are tolerated; an answer without choices is a
`ValueError`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ...files import is_number
from ..protocols import Draft, Usage

_MOST_TOKENS = 2**53  # larger counts are ignored


def seed_of(seed: int, problem_id: str, candidate: int) -> int:
    """The seed of one candidate. The seeds of a problem's candidates are consecutive.

    llama.cpp and vLLM also give the choices of a request consecutive seeds, so a candidate does not
    depend on how candidates are divided into requests. Seeds are below 2^31, as some servers need.
    """
    digest = hashlib.sha256(f"{seed}\n{problem_id}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") % 2**30 + candidate


def drafts(answer: object, seconds: float = 0.0) -> list[Draft]:
    """The drafts of an answer, at least one; a ValueError if there is none.

    The first one carries the prompt's tokens and the time.
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
    """The log-probabilities of the likely first tokens; empty if the server sent none."""
    match _choices(answer):
        case [{"logprobs": {"content": [{"top_logprobs": [*tops]}, *_]}}, *_]:
            pairs = [
                (top.get("token"), top.get("logprob")) for top in tops if isinstance(top, Mapping)
            ]
        case [{"logprobs": {"top_logprobs": [{**by_token}, *_]}}, *_]:
            pairs = list(by_token.items())
        case _:
            pairs = []
    return {
        token: float(value) for token, value in pairs if isinstance(token, str) and is_number(value)
    }


def usage(answer: object, seconds: float) -> Usage:
    """The usage of a request."""
    return Usage(*_counts(answer), seconds)


def _choices(answer: object) -> list[Any]:
    """The choices, sorted by index."""
    match answer:
        case {"choices": [*choices]}:
            known = [each for each in choices if isinstance(each, Mapping)]
        case {"error": error}:
            raise ValueError(f"an error instead of an answer: {error}")
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
    """One number per token; None if any is missing."""
    values: list[Any]
    match choice.get("logprobs"):
        case {"content": [*tokens]}:
            values = [each.get("logprob") if isinstance(each, Mapping) else None for each in tokens]
        case {"token_logprobs": [*given]}:
            values = given
        case _:
            return None
    if set(map(type, values)) == {float} and math.isfinite(sum(values)):  # nearly always
        return tuple(values)
    numbers = tuple(float(value) for value in values if is_number(value))
    return numbers if numbers and len(numbers) == len(values) else None


def _counts(answer: object) -> tuple[int, int]:
    """The tokens of the prompt and of the completions, as the server counts them."""
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
    """The tokens of each choice: those seen, plus an equal share of the others in the report.

    Some servers count only one choice, so there may be more tokens than reported.
    """
    rest = max(0, reported - sum(seen))
    part, extra = divmod(rest, len(seen))
    return [count + part + (at < extra) for at, count in enumerate(seen)]


def _encodable(text: str) -> str:
    """The text with surrogate pairs joined, and lone surrogates replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
