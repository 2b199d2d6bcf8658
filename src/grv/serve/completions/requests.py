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
from ...backends.generators.sampling import EFFORTS, Sampling
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
from ..fields import flag, number, only, record, whole
from ..profiles import Profile, SearchPlan, profile_named
from . import checks
from .formats import parse_format
from .messages import parse_messages
from .require import Require

LONGEST_WAIT = 86_400.0  # seconds
_LONGEST_NAME = 200  # characters of a policy, or of `fresh`
_MOST_STOPS = 16
_LONGEST_STOP = 1000  # characters: every call of the search sends them
_LARGEST_SEED = 2**62  # each candidate has a seed of its own, counted from this one
_LARGEST_VALUE = 1e100  # of an answer: sums of such amounts are still numbers

_COMMON = ("model", "stream", "stream_options", "grv")
_SAMPLING = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "seed")
_PASSED_ON = ("frequency_penalty", "presence_penalty")
# Fields without influence on the answer.
_IGNORED = ("user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key")
# Fields that are understood only with these values: grv gives one text.
_FIXED: Mapping[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "logprobs": (False,),
    "echo": (False,),
    "suffix": ("",),
    "tools": ([],),
    "tool_choice": ("none",),
    "parallel_tool_calls": (True, False),
    "modalities": (["text"],),
}
GRV = ("check", "policy", "costs", "budget", "value", "require", "deadline", "fresh")


@dataclass(frozen=True)
class CompletionRequest:
    """A valid request.

    Attributes:
        chat: whether it is a chat; otherwise it continues a text.
        profile: what its model stands for.
        problem: what to answer, and how the answer is verified.
        config: how to search.
        check: the name of the check, if the server has it.
        require: which answers it accepts.
        deadline: seconds after which it is answered, however far the search is.
        stream: whether the answer is streamed.
        include_usage: whether a stream ends with the usage.
    """

    chat: bool
    profile: Profile
    problem: Problem
    config: SearchConfig
    check: str = ""
    require: Require = Require.VERIFIED
    deadline: float | None = None
    stream: bool = False
    include_usage: bool = False

    @cached_property
    def search(self) -> str:
        """The id of its search: a hash of all that matters."""
        return self.config.search_id(self.problem)

    @cached_property
    def key(self) -> str:
        """What requests have in common that share a running search: also policy and budget.

        Two profiles may differ only in how strictly they verify.
        """
        about = self.config.started(self.problem).about
        conditions = str(self.config.conditions(self.problem))
        return json.dumps([self.search, about, conditions], sort_keys=True, default=str)


def parse_request(
    body: Any, profiles: Mapping[str, Profile], *, chat: bool, client: str = ""
) -> CompletionRequest:
    """The request in a body, of a client that may use these profiles.

    It may take long, because checks are compiled.
    """
    given = record(body, "", "the request")
    known = (
        *_COMMON,
        *_SAMPLING,
        *_PASSED_ON,
        *_IGNORED,
        *_FIXED,
        "response_format",
        "reasoning_effort",
    )
    only(given, "", (*known, "messages" if chat else "prompt"))
    for name, allowed in _FIXED.items():
        if name in given and given[name] not in allowed:
            raise wrong(name, f"{shown(given[name])} is not supported")
    profile = profile_named(given.get("model"), profiles)
    asked = record(given.get("grv", {}), "grv", "grv")
    only(asked, "grv.", GRV)
    check, name = checks.named_or_own(profile, asked.get("check"))
    problem = _problem(given, profile, check, _fresh(asked), chat=chat)
    checks.prepare(profile, problem)
    more = {"client": client} if client else {}
    if name:
        more["named_check"] = name
    try:
        config = profile.config(_plan(asked, profile), _sampling(given, profile), more)
    except UsageError as error:
        raise ApiError(400, str(error), code="invalid_value") from error
    stream = flag(given, "stream")
    options = record(given.get("stream_options", {}), "stream_options", "stream_options")
    only(options, "stream_options.", ("include_usage", "include_obfuscation"))
    return CompletionRequest(
        chat,
        profile,
        problem,
        config,
        name,
        _require(asked, profile),
        number(asked, "deadline", "grv.", least=1e-3, most=LONGEST_WAIT),
        stream,
        flag(options, "include_usage"),
    )


def _problem(
    given: Mapping[str, Any], profile: Profile, check: Mapping[str, Any], fresh: str, *, chat: bool
) -> Problem:
    """The problem. Its id is a hash of its content, so that equal requests are the same problem."""
    messages: tuple[Mapping[str, Any], ...] = ()
    if chat:
        if not profile.chat:
            message = f"{profile.name} continues a text: use /v1/completions"
            raise ApiError(400, message, code="invalid_value", param="model")
        messages = parse_messages(given.get("messages"))
        prompt = transcript(messages)
        asked = transcript([each for each in messages if each["role"] == "user"][-1:] or messages)
    else:
        prompt = asked = _prompt(given.get("prompt"))
    content = json.dumps([chat, messages or prompt, dict(check), fresh], sort_keys=True)
    return Problem(f"request {checksum(content)[:16]}", prompt, check, asked, messages=messages)


def _prompt(given: Any) -> str:
    if isinstance(given, list) and len(given) == 1:
        (given,) = given
    if not isinstance(given, str):
        raise wrong("prompt", f"must be one text, not {shown(given)}")
    return given


def _sampling(given: Mapping[str, Any], profile: Profile) -> Sampling:
    """The profile's sampling with what the request says."""
    sampling = profile.sampling
    changes: dict[str, Any] = {
        "temperature": number(given, "temperature", least=0, most=100),
        "top_p": number(given, "top_p", least=1e-9, most=1),
        "max_tokens": _tokens(given, sampling.max_tokens),
        "seed": whole(given, "seed", least=-_LARGEST_SEED, most=_LARGEST_SEED),
        "stop": _stops(given.get("stop")),
    }
    if "response_format" in given:
        changes["response_format"] = parse_format(given["response_format"])
    if "reasoning_effort" in given:
        changes["effort"] = _effort(given["reasoning_effort"])
    more = {name: number(given, name, least=-2, most=2) for name in _PASSED_ON if name in given}
    if more:
        changes["extra_body"] = (sampling.extra_body or {}) | more
    made = {name: value for name, value in changes.items() if value is not None}
    return dataclasses.replace(sampling, **made) if made else sampling


def _tokens(given: Mapping[str, Any], most: int | None) -> int | None:
    """The most tokens of a candidate: not more than the server's file allows."""
    for name in ("max_completion_tokens", "max_tokens"):
        if (found := whole(given, name, most=most)) is not None:
            return found
    return None


def _effort(given: Any) -> str:
    if not isinstance(given, str) or given not in EFFORTS:
        there = ", ".join(EFFORTS)
        raise wrong("reasoning_effort", f"must be one of {there}, not {shown(given)}")
    return given


def _stops(given: Any) -> tuple[str, ...] | None:
    if given is None:
        return None
    stops = [given] if isinstance(given, str) else given
    fits = isinstance(stops, list) and len(stops) <= _MOST_STOPS
    if not fits or not all(isinstance(each, str) and each for each in stops):
        raise wrong("stop", f"must be a text or a list of up to {_MOST_STOPS} texts")
    if any(len(each) > _LONGEST_STOP for each in stops):
        raise wrong("stop", f"must have at most {_LONGEST_STOP} characters in each text")
    return tuple(stops)


def _plan(asked: Mapping[str, Any], profile: Profile) -> SearchPlan:
    """The profile's plan with what the request says. It may lower a budget, not raise it."""
    plan = profile.plan
    if not asked.keys() & {"policy", "costs", "budget", "value"}:
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
