"""The configuration of a search with several generators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...backends.protocols import Problem
from ...core.errors import UsageError
from ...core.values import Costs, Measured
from ...ledger.entries import Started
from ...policies import Learning
from ...policies.portfolio import (
    ByExpectedPasses,
    BySpending,
    Chooser,
    JointPrior,
    Portfolio,
    root_shares,
    steered_by,
)
from ...policies.portfolio.shares import attempt
from ..config import SearchConfig, name_of, search_id, started_entry

if TYPE_CHECKING:
    from ...learning.joint import PastAttempts


@dataclass(frozen=True)
class PortfolioConfig:
    """How to search for the answer to a problem with several generators.

    Attributes:
        members: for each generator by name, its backends, policy and costs. Budget, value, width
            and number of answers are those of the whole, equal in all.
        about: other settings that results depend on; see `SearchConfig`.
        past: what the generators did on earlier problems, which count as finished before the first.
        prior: what the finished problems say about the generators; None shares out the spending.
    """

    members: Mapping[str, SearchConfig]
    about: Mapping[str, Any] = field(default_factory=dict)
    past: Sequence[PastAttempts] = ()
    prior: JointPrior | None = None

    def __post_init__(self) -> None:
        if not self.members:
            raise UsageError("several generators are a mapping of names; it is empty")
        if len({isinstance(each.costs, Measured) for each in self.members.values()}) > 1:
            raise UsageError("the costs of all generators must be measured, or none of them")
        if any(hasattr(each.backends.scorer, "pinned") for each in self.members.values()):
            raise UsageError("a trained score works with one generator, not with several")
        if self.past:
            lacking = [n for n in self.members if not any(n in each for each in self.past)]
            if lacking:
                raise UsageError(f"the history has no generator {lacking[0]!r}")

    @property
    def _one(self) -> SearchConfig:
        return next(iter(self.members.values()))

    @property
    def budget(self) -> float:
        """The highest cost allowed per problem, over all generators."""
        return self._one.budget

    @property
    def costs(self) -> Costs:
        """The price list of the generator whose attempts cost most."""
        return max((each.costs for each in self.members.values()), key=attempt)

    @property
    def answers(self) -> int:
        """How many different answers to find."""
        return self._one.answers

    @property
    def chooser(self) -> Chooser:
        """Decides which generator acts next."""
        shares = root_shares({name: each.costs for name, each in self.members.items()})
        return BySpending(shares) if self.prior is None else ByExpectedPasses(self.prior, shares)

    def portfolio(self) -> Portfolio:
        """A new portfolio."""
        chooser = self.chooser
        steered = steered_by(chooser, self.members)
        searches = {
            name: replace(each, policy=steered.get(name, each.policy)).search()
            for name, each in self.members.items()
        }
        return Portfolio(searches, chooser, answers=self.answers, steered=steered)

    async def aclose(self) -> None:
        """Close the connections of all backends."""
        for each in self.members.values():
            await each.aclose()

    def search_id(self, problem: Problem) -> str:
        """The id of the search in a ledger."""
        return search_id(problem, self._named)

    @property
    def _named(self) -> dict[str, Any]:
        generators = {name: dict(each.about) for name, each in self.members.items()}
        return {**self.about, "generators": generators}

    @property
    def policy_name(self) -> str:
        """The policies as a ledger names them; or the prior that decides instead."""
        if self.prior is not None:
            return f"portfolio-learned(hash={self.prior.hash!r})"
        return ", ".join(dict.fromkeys(name_of(each.policy) for each in self.members.values()))

    @property
    def learns(self) -> bool:
        """Whether finished problems decide: if there are earlier ones, or all policies learn."""
        return bool(self.past) or all(isinstance(m.policy, Learning) for m in self.members.values())

    def chosen(self, prior: JointPrior | None) -> PortfolioConfig:
        """The configuration of a search that this prior decides."""
        return replace(self, prior=prior) if self.learns else self

    def recorded(self, started: Started | None) -> PortfolioConfig | None:
        """The configuration with which a search was started; None if it was not, or by another."""
        if not self.learns:
            return self
        if started is None:
            return None
        if started.prior:
            return self.chosen(JointPrior.from_text(started.prior))
        return self.chosen(None) if started.about.get("portfolio") == "cold" else None

    def started(self, problem: Problem, account: str = "") -> Started:
        """The first ledger entry of the search."""
        one = self._one.started(problem, account)
        own = {name: each.costs for name, each in self.members.items()}
        plan = {name: one.about[name] for name in one.about if name not in self._one.about}
        dear = self.costs
        plan |= {
            "costs": [dear.generate, dear.verify, dear.score],  # the highest, for the pages
            "costs_by_generator": {n: [c.generate, c.verify, c.score] for n, c in own.items()},
            "policy": self.policy_name,
            "portfolio": "cold" if self.prior is None else f"learned, {self.prior.hash}",
        }
        started = started_entry(problem, {**self._named, **plan}, account)
        return replace(started, prior="" if self.prior is None else self.prior.to_text())


AnyConfig = SearchConfig | PortfolioConfig


def portfolio_config(
    options: Mapping[str, Any], one: Callable[[Mapping[str, Any]], SearchConfig]
) -> PortfolioConfig:
    """The configuration of options of `solve`; `one` makes that of a single generator."""
    about = options.get("identity") or options.get("about") or {}
    common = {name: value for name, value in about.items() if name != "generators"}
    members = {name: one(each) for name, each in _by_generator(options).items()}
    return PortfolioConfig(members, common, options.get("past") or ())


def _by_generator(options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The options of `solve` for each generator alone, if several are given by name."""
    names, costs = tuple(options["generator"]), options.get("costs")
    for name in names:
        if not isinstance(costs, Mapping) or name not in costs:
            raise UsageError(f"generator {name!r} has no costs: give costs for each generator")
    found = {}
    for name in names:
        found[name] = {
            each: value[name] if each in _EACH and isinstance(value, Mapping) else value
            for each, value in options.items()
            if not (each in _EACH and isinstance(value, Mapping) and name not in value)
        }
        lacking = [
            each
            for each in ("scorer", "policy", "meter")
            if each in options and each not in found[name]
        ]
        if lacking:
            raise UsageError(f"generator {name!r} has no {lacking[0]}")
        if options.get("width") is not None:
            found[name]["width"] = 1  # several generators do not look ahead
        if options.get("identity") is not None:
            found[name]["identity"] = options["identity"].get("generators", {}).get(name, {})
    return found


_EACH = ("generator", "scorer", "policy", "costs", "meter", "most")  # may differ by generator
