"""The configuration of a search: backends, policy, costs and limits."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..backends.callables import CallableGenerator, CallableScorer, CallableVerifier
from ..backends.protocols import Problem
from ..core.errors import UsageError
from ..core.pace import Pace
from ..core.search import Policy, Search
from ..core.values import Cascade, Costs, Measured
from ..learning.online import HISTORY
from ..learning.prior_file import from_text, parse_policy
from ..ledger.entries import Started
from ..own_code import digest_of
from ..pacing import PACE
from ..policies import DEFAULT, Learning, spec
from ..policies.learned.prior import Prior
from .executor import Backends, Keying
from .prices import Meter
from .search_record import OWN_KEYS


@dataclass(frozen=True)
class SearchConfig:
    """How to search for the answer to a problem.

    Attributes:
        backends: the generator, scorer and verifier.
        policy: decides what to do next.
        costs: the price list that the policy plans with.
        budget: the highest cost allowed per problem.
        width: the number of verifications in flight at once; None means a whole step of the plan.
        about: other settings that results depend on (model, temperature, seed). Recorded results
            are reused if these and the problem are equal; policy and budget may differ.
        value: what an answer is worth. A search gives up when the expected remaining cost is
            higher.
        most: the highest cost of one candidate and of one verification, if costs are measured.
            Budgets reserve this amount.
        meter: computes the measured cost of calls, if costs are measured.
        cascade: how to use second scores, if there are any.
        prior: the prior that `learning` has chosen for this search, as text; see `chosen`.
        pace: how far to look ahead if the width is above 1, what waiting costs, and the deadline.
        answers: how many different answers to find.
    """

    backends: Backends
    policy: Policy = DEFAULT
    costs: Costs = field(default_factory=Costs)
    budget: float = math.inf
    width: int | None = 1
    about: Mapping[str, Any] = field(default_factory=dict)
    value: float = math.inf
    most: Costs | None = None
    meter: Meter | None = None
    cascade: Cascade | None = None
    prior: str = ""
    pace: Pace = PACE
    answers: int = 1

    def __post_init__(self) -> None:
        self.search()  # checks policy, budget, value and width
        if isinstance(self.costs, Measured) != (self.meter is not None):
            raise UsageError("measured costs need prices, and prices need measured costs")
        if (self.cascade is None) != (self.backends.second is None):
            raise UsageError("a cascade needs a second scorer, and a second scorer a cascade")
        if self.meter is not None and self.most is None and math.isfinite(self.budget):
            raise UsageError(
                "a budget over measured costs needs `most`, the highest cost of one candidate"
                " and of one verification"
            )

    @property
    def reserve(self) -> Costs:
        """The amounts to reserve for a candidate and for a verification."""
        return self.costs if self.most is None else self.most

    @property
    def second_cost(self) -> float:
        """The amount to reserve for a second score."""
        return 0.0 if self.cascade is None else self.cascade.cost

    def search(self) -> Search:
        """A new search."""
        return Search(
            self.policy,
            self.costs,
            budget=self.budget,
            value=self.value,
            most=self.most,
            cascade=self.cascade,
            width=self.width,
            pace=self.pace,
            answers=self.answers,
        )

    async def aclose(self) -> None:
        """Close the connections of the backends."""
        await self.backends.aclose()

    def search_id(self, problem: Problem) -> str:
        """The id of the search in a ledger: a hash of `about` and the problem."""
        return search_id(problem, self.about)

    def started(self, problem: Problem, account: str = "", scorer: str = "") -> Started:
        """The first ledger entry of the search."""
        plan: dict[str, Any] = {
            "policy": self.policy_name,
            "costs": [self.costs.generate, self.costs.verify, self.costs.score],
            "budget": None if math.isinf(self.budget) else self.budget,
            "width": self.width,
        }
        if self.backends.own_keys:
            plan[OWN_KEYS] = True
        if math.isfinite(self.value):
            plan["value"] = self.value
        if self.meter is not None:
            plan["measured"] = True
        if self.most is not None:
            plan["most"] = [self.most.candidate, self.most.verify]
        if self.pace != PACE:
            plan["pace"] = _pace_record(self.pace)
        if self.cascade is not None:
            plan["cascade"] = [self.cascade.top, self.cascade.cost]
        if self.answers > 1:
            plan["answers"] = self.answers
        started = started_entry(problem, {**self.about, **plan}, account)
        return replace(started, prior=self.prior, scorer=scorer)

    def chosen(self, prior: Prior | None) -> SearchConfig:
        """The configuration of a search that the policy `learning` decides by this prior."""
        if not isinstance(self.policy, Learning):
            return self
        text = "" if prior is None else prior.to_text()
        return replace(self, policy=self.policy.chosen(prior), prior=text)

    def recorded(self, started: Started | None) -> SearchConfig | None:
        """The configuration with which a search of the policy `learning` was started.

        None if it was not started, or by another policy.
        """
        if not isinstance(self.policy, Learning):
            return self
        if started is None:
            return None
        if started.prior:
            return self.chosen(from_text(started.prior, HISTORY))
        cold = self.chosen(None)
        return cold if started.about.get("policy") == cold.policy_name else None

    @property
    def policy_name(self) -> str:
        """The policy as a ledger names it."""
        return name_of(self.policy)


def search_id(problem: Problem, about: Mapping[str, Any]) -> str:
    """The id of a search with these settings: a hash of them and the problem."""
    content: list[Any] = [problem.id, problem.prompt, dict(problem.check), dict(about)]
    if about.get("score_question"):
        content.append(problem.question)
    if problem.messages:
        content.append([*problem.messages])
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def started_entry(problem: Problem, about: Mapping[str, Any], account: str = "") -> Started:
    """The first entry of a search, with what is asked and how it is checked."""
    check = json.dumps(dict(problem.check), sort_keys=True, default=str) if problem.check else ""
    return Started(problem.id, about, problem.prompt, check, account)


def _pace_record(pace: Pace) -> dict[str, Any]:
    """What differs from the default."""
    fields = dataclasses.asdict(pace)
    return {name: each for name, each in fields.items() if each != getattr(PACE, name)}


def name_of(policy: Policy) -> str:
    """The policy's specification; else its repr, with the digest of the user's code if it is in it.

    A repr with an address in memory would differ in every process.
    """
    try:
        return spec.spec(policy)
    except ValueError:
        own = digest_of(policy)
        plain = type(policy).__repr__ is object.__repr__ and own
        return f"{type(policy).__name__ if plain else policy!r}" + (f" {own}" if own else "")


def one_config(options: Any) -> SearchConfig:
    """The configuration of options of `solve` with one generator."""
    names = {what: _backend_name(options[what]) for what in ("generator", "scorer", "verifier")}
    identity = options.get("identity")
    policy = options.get("policy")
    return SearchConfig(
        _backends(options),
        parse_policy(policy) if isinstance(policy, str) else policy or DEFAULT,
        options.get("costs") or Costs(),
        options.get("budget", math.inf),
        _width(options),
        identity if identity is not None else {**names, **(options.get("about") or {})},
        value=options.get("value", math.inf),
        most=options.get("most"),
        meter=options.get("meter"),
        cascade=options.get("cascade"),
        pace=options.get("pace", PACE),
        answers=options.get("answers", 1),
    )


def _width(options: Any) -> int | None:
    """The width, but not more than the workers of the verifier: others would only wait."""
    width: int | None = options.get("width", 1)
    workers = getattr(options["verifier"], "workers", None)
    return min(width, workers) if width is not None and isinstance(workers, int) else width


def _backends(options: Any) -> Backends:
    generator, scorer, verifier = options["generator"], options["scorer"], options["verifier"]
    own = options.get("key")
    key: Keying | None = own
    if own is None and options.get("keys", True):
        key = getattr(verifier, "key", None)
    return Backends(
        generator if hasattr(generator, "generate") else CallableGenerator(generator),
        scorer if hasattr(scorer, "score") else CallableScorer(scorer),
        verifier if hasattr(verifier, "verify") else CallableVerifier(verifier),
        key,
        options.get("second_scorer"),
        own_keys=own is not None,
        refutation=getattr(verifier, "refutation", None),
    )


def _backend_name(backend: object) -> str:
    """The name of a backend in a ledger. It is the same in every process."""
    if type(backend).__repr__ is not object.__repr__ and not hasattr(backend, "__qualname__"):
        return repr(backend)
    return str(getattr(backend, "__qualname__", type(backend).__qualname__))
