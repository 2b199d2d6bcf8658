"""Profiles: what a request may name as its model."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..backends.generators.sampling import Sampling
from ..backends.protocols import Problem
from ..backends.sandbox.limits import RunLimits
from ..core.errors import UsageError
from ..core.limits import Limits
from ..core.search import Policy
from ..core.values import Costs
from ..files import shown
from ..options import did_you_mean
from ..policies import DEFAULT
from ..runtime.calls import Caller
from ..runtime.config import GeneratorConfig, SearchConfig
from ..runtime.executor import Backends
from ..runtime.prices import Meter
from .completions.require import Require
from .completions.tools import ToolTurns, without_calls
from .errors import ApiError, wrong

_OWNER = "grv/"
LARGEST_STEP = 10_000  # candidates that a request may ask for at once


@dataclass(frozen=True)
class SearchPlan:
    """How a search is made, where a request may say something else than its profile."""

    policy: Policy = DEFAULT
    costs: Costs = field(default_factory=Costs)
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class Profile:
    """What stands behind a model's name: backends, a plan, and named checks.

    Attributes:
        name: the model's name in requests.
        backends: generator, scorer and verifier.
        about: what determines candidates, scores and verdicts; see `SearchConfig.about`.
        sampling: how candidates are sampled, unless a request says otherwise.
        caller: makes the calls of all its searches.
        plan: the policy, the costs and the limits. A request may lower the budget, not raise it.
        checks: the checks that a request may name.
        check: the name of the check of requests that have none; empty if they need one.
        require: which answers a request accepts, unless it says so.
        own_verifier: whether the server's own code verifies, and requests have no check.
        run_limits: what programs may use. The check of a request may lower them.
        chat: whether the generator takes messages.
        meter: computes the measured cost of calls, if costs are measured.
        pricing: computes the dollars of calls; see `GeneratorConfig`.
        joined: see `SearchConfig`.
    """

    name: str
    backends: Backends
    about: Mapping[str, Any]
    sampling: Sampling
    caller: Caller
    plan: SearchPlan
    checks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    check: str = ""
    require: Require = Require.VERIFIED
    own_verifier: bool = False
    run_limits: RunLimits = field(default_factory=RunLimits)
    chat: bool = True
    meter: Meter | None = None
    pricing: Meter | None = None
    joined: bool = False
    _configs: dict[tuple[tuple[str, Any], ...], SearchConfig] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not math.isfinite(self.plan.limits.budget):
            raise UsageError(
                f"profile {self.name}: give a budget; without one, a request that has no right"
                " answer never ends"
            )
        if self.check and self.check not in self.checks:
            raise UsageError(
                f"profile {self.name}: check {self.check} is not in [checks], which has"
                f" {', '.join(self.checks) or 'none'}"
            )
        self.config(self.plan, self.sampling, {}).check_plans()
        for name in self.checks:
            self.prepare(Problem(f"[checks.{name}]", "", self.checks[name]))

    @property
    def takes_tools(self) -> bool:
        """Whether the generator takes tools, and what a chat says about them."""
        return getattr(getattr(self.backends.generator, "dialect", None), "tools", False)

    def config(
        self,
        plan: SearchPlan,
        sampling: Sampling,
        more: Mapping[str, Any],
        *,
        may_call: bool = False,
    ) -> SearchConfig:
        """The configuration of a search; `more` is what also distinguishes it from others.

        A plan of a request is checked here, that of the profile once. Requests that change neither
        plan nor sampling share a configuration. `may_call` is whether the first response may call
        tools.
        """
        if plan is not self.plan or sampling is not self.sampling or may_call:
            return self._new_config(plan, sampling, more, may_call=may_call)
        key = tuple(more.items())
        if key not in self._configs:
            self._configs[key] = self._new_config(plan, sampling, more, may_call=False)
        return self._configs[key]

    def _new_config(
        self, plan: SearchPlan, sampling: Sampling, more: Mapping[str, Any], *, may_call: bool
    ) -> SearchConfig:
        backends = self.backends
        sampled = getattr(backends.generator, "sampled", None)
        if sampling != self.sampling and sampled is not None:
            generator = sampled(sampling)
            if may_call:
                generator = ToolTurns(generator, sampled(without_calls(sampling)))
            backends = replace(backends, generator=generator)
        config = SearchConfig.alone(
            GeneratorConfig(backends, plan.policy, plan.costs, self.meter, pricing=self.pricing),
            plan.limits,
            {**self.about, **sampling.about(), "stop": list(sampling.stop), **more},
            joined=self.joined,
            largest_step=LARGEST_STEP,
        )
        if plan != self.plan:
            config.check_plans()
        return config

    def prepare(self, problem: Problem) -> None:
        """Parse the check of a problem; a UsageError says what is wrong with it."""
        prepare = getattr(self.backends.verifier, "prepare", None)
        if prepare is not None:
            prepare(problem)


def profile_named(name: Any, profiles: Mapping[str, Profile]) -> Profile:
    """The profile that a client names as its model; an ApiError if there is none."""
    if not isinstance(name, str):
        raise wrong("model", f"must be one of {', '.join(profiles)}")
    name = without_owner(name, profiles)
    if name not in profiles:
        hint = did_you_mean(name, [*profiles]) or "; GET /v1/models lists them"
        message = f"there is no model {shown(name)}{hint}"
        raise ApiError(404, message, code="model_not_found", param="model")
    return profiles[name]


def without_owner(name: str, profiles: Container[str]) -> str:
    """The name of a model without `grv/`, with which gateways may name it."""
    return name if name in profiles else name.removeprefix(_OWNER)
