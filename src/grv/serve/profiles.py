"""Profiles: what a request may name as its model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..backends.generators.sampling import Sampling
from ..backends.protocols import Problem
from ..backends.sandbox.limits import Limits
from ..core.errors import UsageError
from ..core.pace import Pace
from ..core.search import Policy
from ..core.values import Cascade, Costs
from ..pacing import PACE
from ..policies import DEFAULT
from ..runtime.calls import Caller
from ..runtime.config import SearchConfig
from ..runtime.executor import Backends
from ..runtime.prices import Meter
from .completions.require import Require


@dataclass(frozen=True)
class Plan:
    """How a search is made, where a request may say something else than its profile."""

    policy: Policy = DEFAULT
    costs: Costs = field(default_factory=Costs)
    budget: float = math.inf
    value: float = math.inf


@dataclass(frozen=True)
class Profile:
    """What stands behind a model's name: backends, a plan, and named checks.

    Attributes:
        name: the model's name in requests.
        backends: generator, scorer and verifier.
        about: what determines candidates, scores and verdicts; see `SearchConfig.about`.
        sampling: how candidates are sampled, unless a request says otherwise.
        caller: makes the calls of all its searches.
        plan: the policy, the costs and the budget. A request may lower the budget, not raise it.
        checks: the checks that a request may name.
        check: the name of the check of requests that have none; empty if they need one.
        require: which answers a request accepts, unless it says so.
        own_verifier: whether the server's own code verifies, and requests have no check.
        limits: what programs may use. The check of a request may lower them.
        chat: whether the generator takes messages.
        most, meter, cascade, width, pace: see `SearchConfig`.
    """

    name: str
    backends: Backends
    about: Mapping[str, Any]
    sampling: Sampling
    caller: Caller
    plan: Plan
    checks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    check: str = ""
    require: Require = Require.VERIFIED
    own_verifier: bool = False
    limits: Limits = field(default_factory=Limits)
    chat: bool = True
    most: Costs | None = None
    meter: Meter | None = None
    cascade: Cascade | None = None
    width: int | None = 1
    pace: Pace = PACE

    def __post_init__(self) -> None:
        if not math.isfinite(self.plan.budget):
            raise UsageError(
                f"profile {self.name}: give a budget; without one, a request that has no right"
                " answer never ends"
            )
        if self.check and self.check not in self.checks:
            raise UsageError(
                f"profile {self.name}: check {self.check} is not in [checks], which has"
                f" {', '.join(self.checks) or 'none'}"
            )
        self.config(self.plan, self.sampling, {})
        for name in self.checks:
            self.prepare(Problem(f"[checks.{name}]", "", self.checks[name]))

    def config(self, plan: Plan, sampling: Sampling, more: Mapping[str, Any]) -> SearchConfig:
        """The configuration of a search; `more` is what also distinguishes it from others."""
        generator = self.backends.generator
        sampled = getattr(generator, "sampled", None)
        if sampling != self.sampling and sampled is not None:
            generator = sampled(sampling)
        return SearchConfig(
            replace(self.backends, generator=generator),
            plan.policy,
            plan.costs,
            plan.budget,
            self.width,
            {**self.about, **sampling.about(), "stop": list(sampling.stop), **more},
            value=plan.value,
            most=self.most,
            meter=self.meter,
            cascade=self.cascade,
            pace=self.pace,
        )

    def prepare(self, problem: Problem) -> None:
        """Parse the check of a problem; a UsageError says what is wrong with it."""
        prepare = getattr(self.backends.verifier, "prepare", None)
        if prepare is not None:
            prepare(problem)
