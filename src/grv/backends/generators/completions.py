"""Drafts from answers in OpenAI's format, of chats and of plain completions.

Servers leave out different fields. Missing fields are tolerated; an answer without choices is a
`ValueError`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...files import is_number
from ..http.bodies import LARGEST_CHOICE
from ..protocols import Draft, Usage

TOO_LARGE = f"the answer has more than {LARGEST_CHOICE >> 20} MB, so grv has not kept it"
HALF_A_CHARACTER = "the answer has half a character in it, which no file can hold"
ONLY_THOUGHT = "the model spent all its tokens on thinking"
WITHHELD = "the server's filter withheld the answer"
CALLS_TOOLS = "the model calls tools, and was offered none"
CALLS_OFFERED = "the model calls tools that it was offered"
_MOST_TOKENS = 2**53  # larger counts are ignored
_OF_MESSAGES = (  # what is read of them
    "content",
    "refusal",
    "reasoning_content",
    "reasoning",
    "tool_calls",
)
_LONGEST_CALLS = 1 << 20  # characters of the tool calls of an answer
_MOST_DOLLARS = 1e9  # so are larger charges


def seed_of(seed: int, problem_id: str, candidate: int) -> int:
    """The seed of one candidate. The seeds of a problem's candidates are consecutive.

    llama.cpp and vLLM also give the choices of a request consecutive seeds, so a candidate does not
    depend on how candidates are divided into requests. Seeds are below 2^31, as some servers need.
    """
    digest = hashlib.sha256(f"{seed}\n{problem_id}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") % 2**30 + candidate


class Moderated(ValueError):
    """The server withholds its answer because of what the prompt says."""


class FailedInside(ValueError):
    """An answer that says that the server failed, although its status is 200.

    `status` is the status that it should have; None if it says none.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(f"an error instead of an answer: {message}")
        self.status = status


def drafts(answer: object, seconds: float = 0.0, *, most: int | None = None) -> list[Draft]:
    """The drafts of an answer, at least one and at most `most`; a ValueError if there is none."""
    return billed(texts(answer)[:most], usage(answer), seconds)


def billed(texts: Sequence[Draft], usage: Usage, seconds: float) -> list[Draft]:
    """The drafts with what they used.

    The first one carries the prompt's tokens, the time, and the dollars if the server says them.
    All tokens of the answer are shared out: choices that were not asked for are paid for too.
    """
    total = replace(usage, seconds=seconds)
    shares = _shared([len(draft.logprobs or ()) for draft in texts], usage.completion_tokens)
    thoughts = _shared([0] * len(texts), usage.reasoning_tokens)
    made = []
    for index, draft in enumerate(texts):
        own = replace(
            _rest(total, shares[index]) if index else total,
            completion_tokens=shares[index],
            reasoning_tokens=min(thoughts[index], shares[index]),
        )
        made.append(replace(draft, usage=own))
    return made


def _rest(total: Usage, tokens: int) -> Usage:
    """What a choice after the first used besides its tokens: nothing, if the request is counted."""
    is_counted = total.prompt_tokens or total.completion_tokens
    is_paid = total.dollars is not None or (is_counted and not tokens)
    return Usage(dollars=0.0 if is_paid else None)


def texts(answer: object) -> list[Draft]:
    """The drafts of an answer, at least one, without what they used."""
    choices = [choice for choice in _choices(answer) if _text(choice) is not None or _calls(choice)]
    if not choices:
        raise ValueError("an answer without choices")
    return [_draft(choice) for choice in choices]


def _draft(choice: Mapping[str, Any]) -> Draft:
    if choice.get("too_large") is True:
        return Draft("", broken=TOO_LARGE)
    finish = choice.get("finish_reason")
    thought = _thought(choice)
    if finish == "content_filter":
        return Draft("", broken=WITHHELD)
    if calls := _calls(choice):
        return calling(_text(choice) or "", calls)
    match choice:
        case {"message": {"content": None | "", "refusal": str(refusal)}} if refusal:
            return Draft("", broken=refused(refusal))
        case {"error": {"message": str(message)}}:  # as OpenRouter says that its provider failed
            return Draft("", broken=_line(f"the server failed within the answer: {message}"))
    return draft_of(
        _text(choice) or "",
        _logprobs(choice),
        thought or "",
        is_cut=finish == "length",
        may_think=thought is not None or _is_null(choice),
    )


def calling(text: str, calls: Sequence[Mapping[str, str]]) -> Draft:
    """The draft of an answer that calls tools. It is no candidate: its log has what it says.

    Each call has an id, a name and arguments, which are a text as the model wrote it.
    """
    said = json.dumps({"text": text, "calls": list(calls)})
    if len(said) > _LONGEST_CALLS:
        return Draft("", broken=TOO_LARGE)
    return Draft("", broken=CALLS_TOOLS, log=said)


def _calls(choice: Mapping[str, Any]) -> list[Mapping[str, str]]:
    """The tool calls of a choice; what is not of their form is left out."""
    message = choice.get("message")
    given = message.get("tool_calls") if isinstance(message, Mapping) else None
    calls: list[Mapping[str, str]] = []
    for index, call in enumerate(given if isinstance(given, list) else ()):
        match call:
            case {"function": {"name": str(name), **function}}:
                arguments = function.get("arguments")
                if not isinstance(arguments, str):  # as Ollama sends them
                    arguments = json.dumps(arguments or {})
                id = call.get("id")
                known = id if isinstance(id, str) and id else f"call_{index}"
                calls.append({"id": known, "name": name, "arguments": arguments})
    return calls


def draft_of(
    text: str,
    logprobs: tuple[float, ...] | None,
    thought: str,
    *,
    is_cut: bool,
    may_think: bool = True,
) -> Draft:
    """The draft of a text, which is never changed; one that cannot be kept is broken.

    Args:
        text: the answer.
        logprobs: those of its tokens.
        thought: what the model thought before it.
        is_cut: whether its tokens ran out.
        may_think: whether they may have run out while the model was thinking.
    """
    if is_cut and may_think and not text.strip():
        return Draft("", None, broken=ONLY_THOUGHT)
    joined = _joined(text)
    if joined is None:
        return Draft("", None, broken=HALF_A_CHARACTER)
    return Draft(joined, logprobs, reasoning=_joined(thought) or "", is_cut=is_cut)


def refused(refusal: str) -> str:
    """Why a candidate is broken whose model says that it will not answer."""
    return _line(f"the model refuses to answer: {refusal}")


def _line(text: str) -> str:
    """The beginning of a text that a server sent, as one line."""
    return " ".join(text.split())[:200].encode(errors="replace").decode()


def _thought(choice: Mapping[str, Any]) -> str | None:
    """What the model thought, where the server says it apart from the answer."""
    match choice.get("message"):
        case {"reasoning_content": str(thought)} | {"reasoning": str(thought)}:
            return thought
        case _:
            return None


def _is_null(choice: Mapping[str, Any]) -> bool:
    match choice:
        case {"message": {"content": None}}:
            return True
        case _:
            return False


def reduced(choice: Any) -> Any:
    """What `drafts` reads of a choice: its text and the numbers of its tokens."""
    if not isinstance(choice, Mapping):
        return choice
    kept: dict[str, Any] = {
        name: choice[name] for name in ("index", "text", "finish_reason") if name in choice
    }
    message = choice.get("message")
    if isinstance(message, Mapping) and ("content" in message or "tool_calls" in message):
        kept["message"] = {name: message[name] for name in _OF_MESSAGES if name in message}
    if (numbers := _logprobs(choice)) is not None:
        kept["logprobs"] = {"token_logprobs": list(numbers)}
    return kept


def first_token(answer: object) -> dict[str, float]:
    """The log-probabilities of the likely first tokens; empty if the server sent none."""
    match _choices(answer):
        case [{"logprobs": {"content": [{"top_logprobs": [*tops]}, *_]}}, *_]:
            return numbered((top, "token", "logprob") for top in tops)
        case [{"logprobs": {"top_logprobs": [{**by_token}, *_]}}, *_]:
            return {str(token): float(v) for token, v in by_token.items() if is_number(v)}
        case _:
            return {}


def numbered(tokens: Iterable[tuple[object, str, str]]) -> dict[str, float]:
    """The numbers of tokens, given records with the names of the token and of the number."""
    found: dict[str, float] = {}
    for record, token, number in tokens:
        if not isinstance(record, Mapping):
            continue
        word = record.get(token)
        value = record.get(number)
        if isinstance(word, str) and is_number(value):
            found[word] = float(value)
    return found


def usage(answer: object, seconds: float = 0.0) -> Usage:
    """The usage of a request, as the server counts it; dollars only if it says what it charged."""
    counted = answer.get("usage") if isinstance(answer, Mapping) else None
    if not isinstance(counted, Mapping):
        return Usage(seconds=seconds)
    return used(
        count(counted.get("prompt_tokens")),
        count(counted.get("completion_tokens")),
        seconds,
        dollars=counted.get("cost"),
        cached=inner(counted, "prompt_tokens_details", "cached_tokens"),
        written=inner(counted, "prompt_tokens_details", "cache_write_tokens"),
        reasoning=inner(counted, "completion_tokens_details", "reasoning_tokens"),
    )


def used(
    prompt: int,
    completion: int,
    seconds: float = 0.0,
    *,
    dollars: object = None,
    cached: int = 0,
    written: int = 0,
    reasoning: int = 0,
) -> Usage:
    """A usage whose parts are not larger than the whole."""
    cached = min(prompt, cached)
    return Usage(
        prompt,
        completion,
        seconds,
        _dollars(dollars),
        cached,
        min(prompt - cached, written),
        min(completion, reasoning),
    )


def inner(counted: Mapping[Any, Any], part: str, name: str) -> int:
    """A number of tokens inside an object of the usage; 0 if there is none."""
    details = counted.get(part)
    return count(details.get(name)) if isinstance(details, Mapping) else 0


def _dollars(cost: object) -> float | None:
    """What a server says a request cost, as OpenRouter does; None if that is no amount."""
    if isinstance(cost, int | float) and is_number(cost) and 0 <= cost < _MOST_DOLLARS:
        return float(cost)
    return None


def _choices(answer: object) -> list[Any]:
    """The choices, sorted by index."""
    match answer:
        case {"choices": [*choices]}:
            known = [each for each in choices if isinstance(each, Mapping)]
        case {"error": {"message": str(message), "code": int(code)}}:  # as OpenRouter does
            raise FailedInside(message, code if 400 <= code < 600 else None)
        case {"error": {"message": str(message)} | str(message)}:
            raise FailedInside(message)
        case {"error": error}:
            raise FailedInside(str(error))
        case _:
            raise ValueError("an answer without choices")
    if all(isinstance(each.get("index"), int) for each in known):
        known.sort(key=lambda each: each["index"])
    return known


def _text(choice: Mapping[str, Any]) -> str | None:
    match choice:
        case {"too_large": True}:
            return ""
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


def count(number: object) -> int:
    """A number of tokens as a server reports it; 0 if it is none."""
    return number if isinstance(number, int) and 0 < number < _MOST_TOKENS else 0


def _shared(seen: Sequence[int], reported: int) -> list[int]:
    """The tokens of each choice: those seen, plus an equal share of the others in the report.

    Some servers count only one choice, so there may be more tokens than reported.
    """
    rest = max(0, reported - sum(seen))
    part, extra = divmod(rest, len(seen))
    return [count + part + (at < extra) for at, count in enumerate(seen)]


def _joined(text: str) -> str | None:
    """The text with surrogate pairs joined; None if it has half a pair, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            return None
    return text
