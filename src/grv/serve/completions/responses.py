"""Responses: a solution as OpenAI's clients read it, with the field `grv`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ...backends.protocols import NOTHING, Finding, Usage, verified_part
from ...runtime.budget import ACCOUNT_SPENT, TOTAL_SPENT
from ...runtime.solution import FAILED, UNFINISHED, Solution
from ..errors import ApiError
from .requests import CompletionRequest
from .require import Require


def text_of(request: CompletionRequest, solution: Solution, *, detailed: bool) -> str:
    """The text that answers a request.

    Raises:
        ApiError: there is none that the request accepts. It has the bill.
    """
    found = found_of(request, solution)
    if solution.outcome == FAILED:
        reason = f": {solution.message}" if detailed else ""
        message = f"the search failed{reason}"
        raise ApiError(502, message, code="search_failed", grv=found, retry_after=5)
    if solution.draft is not None and request.require.accepts(solution.status):
        return solution.draft.text
    if solution.message in (ACCOUNT_SPENT, TOTAL_SPENT):
        raise ApiError(429, solution.message, code="insufficient_quota", grv=found)
    if solution.outcome == UNFINISHED:
        message = "no verified answer before the deadline; the same request continues"
        raise ApiError(422, message, code="deadline", param="grv.deadline", grv=found)
    if solution.status == "judged":
        message = 'the answer was judged, not verified; "require": "judged" accepts it'
        raise ApiError(422, message, code="not_verified", param="grv.require", grv=found)
    if request.require is Require.BEST:
        bill = solution.bill
        message = (
            f"there is no candidate to return ({solution.outcome}): of {bill.generated} candidates,"
            f" {bill.verified + bill.shared} failed and {bill.refuted} were refuted"
        )
        raise ApiError(422, message, code="not_verified", grv=found)
    why = f": {solution.message}" if solution.message else ""
    message = f"no verified answer ({solution.outcome}){why}"
    raise ApiError(422, message, code="not_verified", grv=found)


def found_of(request: CompletionRequest, solution: Solution) -> dict[str, Any]:
    """The field `grv`: what the search found, and what it cost."""
    bill = solution.bill
    return {
        "outcome": solution.outcome,
        "verified": solution.verified,
        "status": solution.status,
        "wrong_probability": solution.wrong_probability,
        "search": solution.search,
        "answer_program": solution.answer_program,
        "bill": {
            "cost": bill.total,
            "generated": bill.generated,
            "verified": bill.verified,
            "shared": bill.shared,
            "refuted": bill.refuted,
            "rescored": bill.rescored,
            "lost": sum(solution.lost.values()),
            "dollars": sum(solution.usage.values(), NOTHING).dollars,
        },
        "evidence": evidence_of(solution.finding, request.check),
        **(verified_part(solution.finding.evidence) if solution.finding is not None else {}),
    }


def evidence_of(finding: Finding | None, check: str) -> dict[str, Any] | None:
    """What the verifier found. Of a check of the server, clients learn the name only."""
    if finding is None:
        return None
    said = {"verdict": finding.verdict.value, "reason": finding.reason}
    return {**said, "check": check} if check else {**said, "details": _details(finding)}


def _details(finding: Finding) -> dict[str, Any]:
    """The evidence, without the program: that is a field of its own."""
    return {name: value for name, value in finding.evidence.items() if name != "answer_program"}


def usage_of(solution: Solution) -> dict[str, int]:
    """The tokens of all candidates."""
    used = solution.usage.get("generate", Usage())
    return tokens(used.prompt_tokens, used.completion_tokens)


def tokens(prompt: int, completion: int) -> dict[str, int]:
    """A usage as OpenAI's clients read it."""
    counts = {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}
    return {**counts, "total_tokens": sum(counts.values())}


def completion(request: CompletionRequest, solution: Solution, text: str) -> dict[str, Any]:
    """The body of a response that is not streamed."""
    choice = {"index": 0, "finish_reason": "stop", "logprobs": None}
    said = {"message": {"role": "assistant", "content": text}} if request.chat else {"text": text}
    return {
        **head(request, "chat.completion" if request.chat else "text_completion"),
        "choices": [choice | said],
        "usage": usage_of(solution),
        "grv": found_of(request, solution),
    }


def chunk(
    request: CompletionRequest, choices: list[Mapping[str, Any]], **more: Any
) -> dict[str, Any]:
    """A chunk of a stream."""
    kind = "chat.completion.chunk" if request.chat else "text_completion"
    return {**head(request, kind), "choices": choices, **more}


def choices(request: CompletionRequest, text: str | None) -> list[Mapping[str, Any]]:
    """The choice of a chunk with a text; None is the end."""
    finish = "stop" if text is None else None
    choice = {"index": 0, "finish_reason": finish, "logprobs": None}
    if request.chat:
        delta = {} if text is None else {"role": "assistant", "content": text}
        return [choice | {"delta": delta}]
    return [choice | {"text": text or ""}]


def head(request: CompletionRequest, kind: str) -> dict[str, Any]:
    """The fields that every response has."""
    prefix = "chatcmpl" if request.chat else "cmpl"
    return {
        "id": f"{prefix}-{request.search}",
        "object": kind,
        "created": int(time.time()),
        "model": request.profile.name,
    }
