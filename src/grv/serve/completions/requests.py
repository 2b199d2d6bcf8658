"""Requests: the ordinary fields of a completion, and `grv`. Every mistake names its field.

A request is data. What it says can choose among what the server's file allows; it cannot name
addresses, commands, files or code.
"""

from __future__ import annotations

import dataclasses
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ...backends.generators.chat import transcript
from ...backends.generators.sampling import Sampling
from ...backends.protocols import Problem
from ...core.errors import UsageError
from ...core.search import Policy
from ...core.values import Costs, Measured
from ...files import shown
from ...parsing import parse_costs
from ...policies import spec
from ...runtime.config import SearchConfig
from ...text import checksum
from ..errors import ApiError, wrong
from ..fields import flag, number, only, record
from ..profiles import Profile, SearchPlan, profile_named
from . import checks
from .dialect import COMMON, Asked, ServerDialect
from .require import Require
from .tools import OneTurn

LONGEST_WAIT = 86_400.0  # seconds
_LONGEST_NAME = 200  # characters of a policy, or of `fresh`
_LARGEST_VALUE = 1e100  # of an answer: sums of such amounts are still numbers

GRV = ("check", "policy", "costs", "budget", "value", "require", "deadline", "fresh")


@dataclass(frozen=True)
class CompletionRequest:
    """A valid request.

    Attributes:
        dialect: how it is answered.
        profile: what its model stands for.
        problem: what to answer, and how the answer is verified.
        config: how to search.
        check: the name of the check, if the server has it.
        require: which answers it accepts.
        deadline: seconds after which it is answered, however far the search is.
        stream: whether the answer is streamed.
        include_usage: whether a stream ends with the usage.
        turn: how to find the model's first response, if that may call tools.
    """

    dialect: ServerDialect
    profile: Profile
    problem: Problem
    config: SearchConfig
    check: str = ""
    require: Require = Require.VERIFIED
    deadline: float | None = None
    stream: bool = False
    include_usage: bool = False
    turn: SearchConfig | None = None

    @cached_property
    def search(self) -> str:
        """The id of its search: a hash of all that matters."""
        return self.config.search_id(self.problem)

    @cached_property
    def key(self) -> tuple[str, str, str]:
        """What requests have in common that share a running search: also policy and budget.

        Two profiles may differ only in how strictly they verify.
        """
        conditions = str(self.config.conditions(self.problem))
        return self.search, self.config.settings_text, conditions


def parse_request(
    body: Any, profiles: Mapping[str, Profile], dialect: ServerDialect, *, client: str = ""
) -> CompletionRequest:
    """The request in a body, of a client that may use these profiles.

    It may take long, because checks are compiled.
    """
    given = record(body, "", "the request")
    only(given, "", (*COMMON, *dialect.known, *dialect.fixed))
    for name, allowed in dialect.fixed.items():
        if name in given and given[name] not in allowed:
            raise wrong(name, f"{shown(given[name])} is not supported")
    profile = profile_named(given.get("model"), profiles)
    wanted = record(given.get("grv", {}), "grv", "grv")
    only(wanted, "grv.", GRV)
    check, name = checks.named_or_own(profile, wanted.get("check"))
    asked = dialect.read(given, profile)
    problem = _problem(asked, profile, check, _fresh(wanted), chat=dialect.chat)
    checks.prepare(profile, problem)
    more = {"client": client} if client else {}
    if name:
        more["named_check"] = name
    plan = _plan(wanted, profile, asked.answers)
    sampling = _sampling(asked, profile)
    turn = None
    try:
        config = profile.config(plan, sampling, more, may_call=asked.may_call)
        if asked.may_call:
            one = replace(plan, policy=OneTurn())
            turn = profile.config(one, sampling, more, may_call=True)
    except UsageError as error:
        raise ApiError(400, str(error), code="invalid_value") from error
    return CompletionRequest(
        dialect,
        profile,
        problem,
        config,
        name,
        _require(wanted, profile),
        number(wanted, "deadline", "grv.", least=1e-3, most=LONGEST_WAIT),
        flag(given, "stream"),
        asked.include_usage,
        turn,
    )


def _problem(
    asked: Asked, profile: Profile, check: Mapping[str, Any], fresh: str, *, chat: bool
) -> Problem:
    """The problem. Its id is a hash of its content, so that equal requests are the same problem."""
    messages = asked.messages
    if chat:
        if not profile.chat:
            message = f"{profile.name} continues a text: use /v1/completions"
            raise ApiError(400, message, code="invalid_value", param="model")
        about_tools = any(each["role"] == "tool" or "tool_calls" in each for each in messages)
        if (asked.tools or about_tools) and not profile.takes_tools:
            raise wrong("tools", f"{profile.name} takes no tools")
        prompt = transcript(messages)
        said = transcript([each for each in messages if each["role"] == "user"][-1:] or messages)
    else:
        prompt = said = asked.prompt
    content = json.dumps([chat, messages or prompt, dict(check), fresh], sort_keys=True)
    return Problem(f"request {checksum(content)[:16]}", prompt, check, said, messages=messages)


def _sampling(asked: Asked, profile: Profile) -> Sampling:
    """The profile's sampling with what the request says."""
    sampling = profile.sampling
    changes = {name: value for name, value in asked.sampling.items() if value is not None}
    more = {**asked.passed_on, **asked.tools}
    if more:
        changes["extra_body"] = (sampling.extra_body or {}) | more
    return dataclasses.replace(sampling, **changes) if changes else sampling


def _plan(asked: Mapping[str, Any], profile: Profile, answers: int) -> SearchPlan:
    """The profile's plan with what the request says. It may lower a budget, not raise it."""
    plan = profile.plan
    changes = asked.keys() & {"policy", "costs", "budget", "value"}
    if not changes and answers == plan.limits.answers:
        return plan
    budget = number(asked, "budget", "grv.", least=0, most=plan.limits.budget)
    value = number(asked, "value", "grv.", least=0, most=_LARGEST_VALUE)
    return SearchPlan(
        _policy(asked["policy"]) if "policy" in asked else plan.policy,
        _costs(asked["costs"], plan.costs) if "costs" in asked else plan.costs,
        replace(
            plan.limits,
            budget=plan.limits.budget if budget is None else budget,
            value=plan.limits.value if value is None else value,
            answers=answers,
        ),
    )


def _policy(given: Any) -> Policy:
    if not isinstance(given, str) or len(given) > _LONGEST_NAME:
        raise wrong("grv.policy", f"must be the name of a policy, not {shown(given)}")
    try:
        return spec.parse_guest(given)
    except UsageError as error:
        raise wrong("grv.policy", str(error)) from error


def _costs(given: Any, least: Costs) -> Costs:
    """The costs of a request. Lower ones would make its budget, and the total, say less."""
    text = ",".join(map(str, given[:4])) if isinstance(given, list) else str(given)
    if len(text) > _LONGEST_NAME:
        raise wrong("grv.costs", "give two or three numbers, as in 1,10 or 1,10,2")
    try:
        costs = parse_costs(text)
    except UsageError as error:
        raise wrong("grv.costs", str(error)) from error
    if isinstance(least, Measured):
        # a first guess: what is paid is measured
        return Measured(costs.generate, costs.verify, failure=costs.failure)
    given_prices = (costs.generate, costs.verify, costs.failure)
    lowest = (least.generate, least.verify, least.failure)
    if any(price < low for price, low in zip(given_prices, lowest, strict=True)):
        shown_prices = lowest[: 3 if costs.has_failure or least.has_failure else 2]
        allowed = ",".join(f"{price:g}" for price in shown_prices)
        raise wrong("grv.costs", f"must be at least {allowed}")
    return Costs(costs.generate, costs.verify, failure=costs.failure, score=least.score)


def _require(asked: Mapping[str, Any], profile: Profile) -> Require:
    given = asked.get("require", profile.require.value)
    if given not in [each.value for each in Require]:
        raise wrong("grv.require", f'must be "verified", "judged" or "best", not {shown(given)}')
    return Require(given)


def _fresh(asked: Mapping[str, Any]) -> str:
    """What distinguishes a fresh search: a text of the client, or a random one."""
    given = asked.get("fresh", False)
    if isinstance(given, str) and 0 < len(given) <= _LONGEST_NAME:
        return given
    if not isinstance(given, bool):
        raise wrong("grv.fresh", f"must be true, or a text, not {shown(given)}")
    return uuid.uuid4().hex if given else ""
