"""Answers: what a solution says to a request, and the field `grv`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...backends.protocols import Finding, Usage, verified_part
from ...runtime.budget import ACCOUNT_SPENT, TOTAL_SPENT
from ...runtime.solution import FAILED, UNFINISHED, Solution
from ...usage import total_of
from ..errors import ApiError
from .dialect import Answered
from .requests import CompletionRequest
from .require import Require
from .tools import calls_of, calls_tools


def answered(request: CompletionRequest, solution: Solution, *, detailed: bool) -> Answered:
    """What a request is answered with, whatever its dialect.

    Raises:
        ApiError: there is nothing that the request accepts. It has the bill.
    """
    used = solution.usage.get("generate", Usage())
    counts = (int(used.prompt_tokens), int(used.completion_tokens))
    found = found_of(request, solution)
    if solution.draft is not None and calls_tools(solution.draft):
        text, calls = calls_of(solution.draft)
        return Answered([text], calls, *counts, {**found, "calls_tools": True})
    return Answered(texts_of(request, solution, found, detailed=detailed), (), *counts, found)


def texts_of(
    request: CompletionRequest, solution: Solution, found: Mapping[str, Any], *, detailed: bool
) -> list[str]:
    """The texts that answer a request: as many different ones as it wants.

    Raises:
        ApiError: there are fewer, and the request does not accept the best.
    """
    first = text_of(request, solution, found, detailed=detailed)
    wanted = request.config.limits.answers
    texts = [draft.text for draft in solution.answers] or [first]
    if len(texts) < wanted and request.require is not Require.BEST:
        message = (
            f"{len(texts)} of {wanted} different verified answers ({solution.outcome});"
            ' "require": "best" returns those'
        )
        raise ApiError(422, message, code="not_verified", param="n", grv=found)
    return texts


def text_of(
    request: CompletionRequest, solution: Solution, found: Mapping[str, Any], *, detailed: bool
) -> str:
    """The text that answers a request; `found` is the field `grv`.

    Raises:
        ApiError: there is none that the request accepts. It has the bill.
    """
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
        failed = bill.verified + bill.shared
        others = bill.generated - failed - bill.refuted
        message = (
            f"there is no candidate to return ({solution.outcome}): of {bill.generated} candidates,"
            f" {failed} failed and {bill.refuted} were refuted"
        )
        message += f"; {others} equal one that failed, or have no score" if others > 0 else ""
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
        **_programs(solution),
        "bill": {
            "cost": bill.total,
            "generated": bill.generated,
            "verified": bill.verified,
            "shared": bill.shared,
            "refuted": bill.refuted,
            "rescored": bill.rescored,
            "lost": sum(solution.lost.values()),
            "dollars": total_of([usage.dollars for usage in solution.usage.values()]),
        },
        "evidence": evidence_of(solution.finding, request.check),
        **(verified_part(solution.finding.evidence) if solution.finding is not None else {}),
    }


def _programs(solution: Solution) -> dict[str, Any]:
    """The programs of all answers, if there are several."""
    if len(solution.answers) < 2:
        return {}
    return {"answer_programs": [*solution.answer_programs]}


def evidence_of(finding: Finding | None, check: str) -> dict[str, Any] | None:
    """What the verifier found. Of a check of the server, clients learn the name only."""
    if finding is None:
        return None
    said = {"verdict": finding.verdict.value, "reason": finding.reason}
    return {**said, "check": check} if check else {**said, "details": _details(finding)}


def _details(finding: Finding) -> dict[str, Any]:
    """The evidence, without the program: that is a field of its own."""
    return {name: value for name, value in finding.evidence.items() if name != "answer_program"}


def tokens(prompt: int, completion: int) -> dict[str, int]:
    """A usage as OpenAI's clients read it."""
    counts = {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}
    return {**counts, "total_tokens": sum(counts.values())}
