"""What a search is made of: backends, policy, costs and limits."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..backends.protocols import Problem
from ..core.errors import UsageError
from ..core.search import Policy, Search
from ..core.values import Cascade, Costs, Measured
from ..ledger.entries import Started
from ..policies import DEFAULT, spec
from .executor import Backends
from .prices import Meter
from .search_record import OWN_KEYS


@dataclass(frozen=True)
class SearchConfig:
    """How problems are searched.

    Attributes:
        backends: what generates, scores and verifies.
        policy: what decides.
        costs: the price list that the policy plans with.
        budget: the most that one problem may cost.
        width: the number of verifications in flight at once; None is a whole step of the plan.
        about: what else makes a run what it is (model, temperature, seed). Results on record are
            used again where this and the problem are the same, whatever policy and budget are.
        value: what an answer is worth. A search gives up when the expected cost to go exceeds it.
        most: the most that one candidate and one verification can cost, where costs are measured.
            Budgets reserve it.
        meter: what calls really cost, where costs are measured.
        cascade: how second scores are used, if there are any.
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

    def __post_init__(self) -> None:
        self.search()  # checks policy, budget, value and width
        if isinstance(self.costs, Measured) != (self.meter is not None):
            raise UsageError("give prices with measured costs, and only with them")
        if (self.cascade is None) != (self.backends.second is None):
            raise UsageError("give a cascade with a second scorer, and only with one")
        if self.meter is not None and self.most is None and math.isfinite(self.budget):
            raise UsageError(
                "a budget over measured costs needs the most that one candidate and one"
                " verification can cost"
            )

    @property
    def reserve(self) -> Costs:
        """What is reserved for a candidate and for a verification before they are paid."""
        return self.costs if self.most is None else self.most

    @property
    def second_cost(self) -> float:
        """What is reserved for a second score."""
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
        )

    def search_id(self, problem: Problem) -> str:
        """The search's name in a ledger: a checksum of `about` and of the problem."""
        content = [problem.id, problem.prompt, dict(problem.check), dict(self.about)]
        text = json.dumps(content, sort_keys=True, default=str)
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()

    def started(self, problem: Problem) -> Started:
        """The entry with which such a search begins."""
        plan = {
            "policy": _name(self.policy),
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
        if self.cascade is not None:
            plan["cascade"] = [self.cascade.top, self.cascade.cost]
        return Started(problem.id, {**self.about, **plan})


def _name(policy: Policy) -> str:
    """A policy's specification; its repr where it is not one of ours."""
    try:
        return spec.spec(policy)
    except ValueError:
        return repr(policy)
