"""Verdicts on a candidate that a client brings: a search whose only candidate is given.

So a verdict is recorded, paid for, queued and shared as that of any other search.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...backends.protocols import NOTHING, Draft, Finding, Problem, Score
from ...core.errors import UsageError
from ...core.values import REFUTED, Costs, Verdict
from ...ledger.tables import TableLedger
from ...policies import Fixed
from ...runtime.config import GeneratorConfig, SearchConfig
from ...runtime.record import SearchRecord
from ...text import checksum
from ..completions import checks
from ..completions.chat_dialect import TEXT
from ..completions.requests import CompletionRequest
from ..errors import ApiError, wrong
from ..fields import number
from ..profiles import Profile

GENERATOR = "given"  # the name of the generator in a ledger: no history of a model includes it
_ONE = Fixed(1, 1)
_FREE = 1e-240  # of a verification: a price list has no 0, and sums with this are unchanged


@dataclass(frozen=True)
class GivenCandidate:
    """A generator of one candidate, which it was given. It costs nothing, and so does its score."""

    text: str

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """The candidate, once."""
        return [] if first else [Draft(self.text, usage=NOTHING)]

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """The same score for all."""
        return [Score(0.0, NOTHING) for _ in drafts]


def parse_given(
    given: Mapping[str, Any], profile: Profile, client: str, longest_wait: float
) -> CompletionRequest:
    """The request for a verdict on the field `candidate`, by the field `check`.

    It may take long, because checks are compiled.
    """
    text = given.get("candidate")
    if not isinstance(text, str) or not text:
        raise wrong("candidate", "must be the text to verify")
    asked = given.get("problem", "")
    if not isinstance(asked, str):
        raise wrong("problem", "must be a text")
    check, name = checks.named_or_own(profile, given.get("check"))
    content = json.dumps([asked, dict(check), text], sort_keys=True)
    problem = Problem(f"given {checksum(content)[:16]}", asked, check, asked)
    checks.prepare(profile, problem)
    budget = number(given, "budget", least=0, most=profile.plan.limits.budget)
    more = {"named_check": name} if name else {}
    if client:
        more["client"] = client
    try:
        config = _config(profile, text, budget, more)
    except UsageError as error:
        raise ApiError(400, str(error), code="invalid_value") from error
    deadline = number(given, "deadline", least=1e-3, most=longest_wait)
    return CompletionRequest(
        TEXT, profile=profile, problem=problem, config=config, check=name, deadline=deadline
    )


def _config(
    profile: Profile, text: str, budget: float | None, more: Mapping[str, Any]
) -> SearchConfig:
    """The search of one given candidate: only its verification is paid for."""
    given = GivenCandidate(text)
    plan = profile.plan
    limits = replace(
        plan.limits,
        budget=plan.limits.budget if budget is None else budget,
        value=math.inf,
        cascade=None,
        most=None if plan.limits.most is None else _only_verifying(plan.limits.most),
    )
    generator = GeneratorConfig(
        replace(profile.backends, generator=given, scorer=given, second=None),
        _ONE,
        _only_verifying(plan.costs),
        profile.meter,
        pricing=profile.pricing,
    )
    about = {**profile.about, "generator": GENERATOR, "score": GENERATOR, **more}
    return SearchConfig.alone(generator, limits, about)


def _only_verifying(costs: Costs) -> Costs:
    return replace(costs, generate=costs.verify * _FREE, score=0.0)


def without_given(request: CompletionRequest, bill: Mapping[str, Any]) -> dict[str, Any]:
    """The bill without the given candidate, which nobody generated."""
    free = bill["generated"] * request.config.costs.candidate
    return {**bill, "generated": 0, "cost": max(0.0, bill["cost"] - free)}


def finding_on_given(ledger: TableLedger, request: CompletionRequest) -> Finding | None:
    """What is on record about the given candidate; None if it has no verdict."""
    conditions = request.config.conditions(request.problem)
    record = SearchRecord(None, request.search, ledger.read(request.search), conditions)
    found = record.found.get(0)
    if found is not None:
        return Finding(found.verdict, found.reason, found.evidence)
    scored = record.scored.get(0)
    if scored is not None and scored.key == REFUTED:
        return Finding(Verdict.FAILED, scored.reason or "it certainly fails")
    return None
