"""The configuration of a search: one generator or several, their policies and costs, the limits."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import math
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ..backends.callables import backend_of
from ..backends.protocols import Problem
from ..backends.scorers.auto import AUTO, BY_LOGPROB, AutoScorer
from ..backends.scorers.trained.scorer import TrainedScorer
from ..conditions import Conditions
from ..core.errors import UsageError
from ..core.limits import Limits
from ..core.pace import Pace
from ..core.search import Policy, Search
from ..core.values import (
    Action,
    Costs,
    Generate,
    Generated,
    Measured,
    Rescored,
    Stop,
    Verdict,
    Verified,
    Verify,
)
from ..learning.online import HISTORY
from ..learning.prior_file import from_text, operators, parse_policy
from ..ledger.entries import Started, recorded_prices
from ..ledger.labels import OWN_KEYS
from ..own_code import digest_of
from ..policies import DEFAULT, FOR_GUESTS, POLICIES, Learning, spec
from ..policies.learned.prior import Prior
from ..policies.portfolio import (
    ByExpectedPasses,
    BySpending,
    Chooser,
    JointPrior,
    Portfolio,
    root_shares,
    steered_by,
)
from ..policies.portfolio.shares import attempt
from ..text import checksum
from ..theory.confirmations import ErringRule
from .executor import Backends, Keying
from .prices import PRICING, Meter

if TYPE_CHECKING:
    from ..learning.joint import PastAttempts

ALONE = ""  # the name of a generator that is the only one
LARGEST_STEP = 100_000  # candidates that are requested at once
_TRIED = 8  # actions of a plan that are tried before it is used
_TRIED_CANDIDATES = 20_000


@dataclass(frozen=True)
class GeneratorConfig:
    """One of the generators of a search, with its scorer, its policy and its costs.

    Attributes:
        backends: the generator, scorer and verifier.
        policy: decides what to do next.
        costs: the price list that the policy plans with.
        meter: computes the measured cost of calls, if costs are measured.
        pricing: computes the dollars of calls, which are reported whatever the costs are; by
            default it is `meter`, or knows no prices.
        most: the highest cost of one candidate and of one verification, if it is not that of the
            limits of the search.
        about: the settings that results depend on, if there are several generators.
    """

    backends: Backends
    policy: Policy = DEFAULT
    costs: Costs = field(default_factory=Costs)
    meter: Meter | None = None
    most: Costs | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    pricing: Meter | None = None

    def __post_init__(self) -> None:
        if isinstance(self.policy, type) or not hasattr(self.policy, "plan"):
            raise UsageError(f"give a policy, as in Balanced(), or its name, not {self.policy!r}")
        if isinstance(self.costs, Measured) != (self.meter is not None):
            raise UsageError("measured costs need prices, and prices need measured costs")


@dataclass(frozen=True)
class SearchConfig:
    """How to search for the answer to a problem.

    Attributes:
        generators: one generator, named `ALONE`, or one or several by name.
        limits: what the search may do; with several generators, all together.
        about: the settings that results depend on (model, temperature, seed). Recorded results are
            reused if these and the problem are equal; policy and limits may differ.
        past: what several generators did on earlier problems, which count as finished before the
            first.
        prior: what the finished problems say, if the search learns from them; see `chosen`.
        joined: whether `learning` learns from the searches of all clients of a server.
        largest_step: the most candidates that are requested at once.
        waits: whether searches wait for each other. Then the hard ones are still open when the
            easy ones have ended, so `learning` counts open ones too.
    """

    generators: Mapping[str, GeneratorConfig]
    limits: Limits = field(default_factory=Limits)
    about: Mapping[str, Any] = field(default_factory=dict)
    past: Sequence[PastAttempts] = ()
    prior: Prior | JointPrior | None = None
    joined: bool = False
    largest_step: int = LARGEST_STEP
    waits: bool = False

    def __post_init__(self) -> None:
        if not self.generators:
            raise UsageError("several generators are a mapping of names; it is empty")
        for name, generator in self.generators.items():
            if (self.limits.cascade is None) != (generator.backends.second is None):
                raise UsageError(
                    "a cascade needs a second scorer, and a second scorer a cascade: give"
                    " second_scorer= and cascade=grv.core.Cascade(top=4)"
                )
            most = self.limits_of(name).most
            if generator.meter is not None and most is None and math.isfinite(self.limits.budget):
                raise UsageError(
                    "a budget over measured costs needs `most`, the highest cost of one candidate"
                    " and of one verification"
                )
        if self.is_named:
            self._check_named()

    def _check_named(self) -> None:
        members = self.generators.values()
        if len({isinstance(each.costs, Measured) for each in members}) > 1:
            raise UsageError("the costs of all generators must be measured, or none of them")
        if any(isinstance(each.backends.scorer, TrainedScorer) for each in members):
            raise UsageError("a trained score works with one generator, not with several")
        if self.past:
            lacking = [n for n in self.generators if not any(n in each for each in self.past)]
            if lacking:
                raise UsageError(f"the history has no generator {lacking[0]!r}")

    @classmethod
    def alone(
        cls,
        generator: GeneratorConfig,
        limits: Limits,
        about: Mapping[str, Any],
        *,
        joined: bool = False,
        largest_step: int = LARGEST_STEP,
    ) -> SearchConfig:
        """The configuration of a search with one generator, which needs no name."""
        return cls({ALONE: generator}, limits, about, joined=joined, largest_step=largest_step)

    @property
    def is_named(self) -> bool:
        """Whether generators have names, which the ledger records."""
        return [*self.generators] != [ALONE]

    @property
    def first(self) -> GeneratorConfig:
        """The only generator, or the first one. All have the same verifier."""
        return next(iter(self.generators.values()))

    @property
    def costs(self) -> Costs:
        """The price list of the generator whose attempts cost most."""
        return max((each.costs for each in self.generators.values()), key=attempt)

    @cached_property
    def meters(self) -> Mapping[str, Meter]:
        """What computes the dollars of calls, by the name of the generator."""
        return {
            name: each.pricing or each.meter or Meter() for name, each in self.generators.items()
        }

    def limits_of(self, name: str) -> Limits:
        """The limits of the search of one generator."""
        most = self.generators[name].most
        return self.limits if most is None else replace(self.limits, most=most)

    def confirming(self, rule: ErringRule | None) -> SearchConfig:
        """The same for a check that errs, which may be asked several times about a candidate.

        What all calls may cost is reserved. Measured costs have their own highest costs.
        """
        if rule is None:
            return self
        generators = {
            name: each
            if each.meter is not None or self.limits_of(name).most is not None
            else replace(each, most=rule.most(each.costs, self.limits.budget))
            for name, each in self.generators.items()
        }
        return replace(self, generators=generators)

    @cached_property
    def chooser(self) -> Chooser:
        """Decides which generator acts next."""
        shares = root_shares({name: each.costs for name, each in self.generators.items()})
        if isinstance(self.prior, JointPrior):
            return ByExpectedPasses(self.prior, shares)
        return BySpending(shares)

    def portfolio(self, problem: str = "") -> Portfolio:
        """A new search, of all generators, for the problem with this id."""
        chooser = self.chooser
        steered = steered_by(chooser, self.generators)
        searches = {
            name: Search(
                steered.get(name, each.policy), each.costs, self.limits_of(name).of(problem)
            )
            for name, each in self.generators.items()
        }
        return Portfolio(searches, chooser, steered=steered)

    def check_step(self, action: Action) -> None:
        """Refuse an action with more candidates than a machine can request at once.

        Raises:
            UsageError: it has more than `largest_step`.
        """
        number = 0
        if isinstance(action, Generate):
            number = action.n
        elif isinstance(action, Verify):
            number = action.meanwhile
        if number > self.largest_step:
            raise UsageError(
                f"{self.policy_name} asks for {_shown_number(number)} candidates at once, and"
                f" {self.largest_step:,} are the most: lower the budget, the cost of a verification"
                " or the policy's parameters"
            )

    def check_plans(self) -> None:
        """Check the first steps of policies of ours, as if no candidate passed.

        So a plan that cannot be carried out is refused before anything is paid for.
        """
        trusted = [POLICIES[name] for name in FOR_GUESTS]
        for name, generator in self.generators.items():
            if type(generator.policy) in trusted:
                self._check_plan(Search(generator.policy, generator.costs, self.limits_of(name)))

    def _check_plan(self, search: Search) -> None:
        for _ in range(_TRIED):
            action = search.ask()
            self.check_step(action)
            match action:
                case Stop():
                    return
                case Generate(n):
                    search.tell(Generated((0.0,) * n))
                case Verify(ids, _, ahead):
                    more = Generated((0.0,) * ahead) if ahead else None
                    search.tell(Verified(dict.fromkeys(ids, Verdict.FAILED), meanwhile=more))
                case _:
                    search.tell(Rescored(dict.fromkeys(action.ids, 0.0)))
            if search.arrived > _TRIED_CANDIDATES:
                return

    async def aclose(self) -> None:
        """Close the connections of all backends."""
        for generator in self.generators.values():
            await generator.backends.aclose()

    def conditions(self, problem: Problem) -> Conditions | None:
        """What verdicts depend on besides the text. Candidates do not depend on it."""
        return self.first.backends.conditions(problem)

    def search_id(self, problem: Problem) -> str:
        """The id of the search in a ledger: a hash of the settings and the problem."""
        return _id_of(problem, self.about, self._identity_text)

    @cached_property
    def _identity_text(self) -> str:
        return _identity_text(self.identity)

    @property
    def identity(self) -> Mapping[str, Any]:
        """What results depend on, of all generators."""
        if not self.is_named:
            return self.about
        generators = {name: dict(each.about) for name, each in self.generators.items()}
        return {**self.about, "generators": generators}

    def started(self, problem: Problem, account: str = "") -> Started:
        """The first ledger entry of the search."""
        check = _check_text(problem)
        prior = "" if self.prior is None else self.prior.to_text()
        return Started(problem.id, self.settings, problem.prompt, check, account, prior)

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """What the ledger records of the configuration: what results depend on, and the plan."""
        limits = self.limits_of(next(iter(self.generators)))
        plan: dict[str, Any] = {
            "policy": self.policy_name,
            "costs": recorded_prices(self.costs),  # the highest, for the pages
            "budget": None if math.isinf(limits.budget) else limits.budget,
            "width": limits.width,
        }
        if self.first.backends.own_keys:
            plan[OWN_KEYS] = True
        if math.isfinite(limits.value):
            plan["value"] = limits.value
        if self.first.meter is not None:
            plan["measured"] = True
        if limits.most is not None:
            plan["most"] = [limits.most.candidate, limits.most.verify]
        if limits.pace != Pace():
            plan["pace"] = _pace_record(limits.pace)
        if limits.cascade is not None:
            plan["cascade"] = [limits.cascade.top, limits.cascade.cost]
        if limits.answers > 1:
            plan["answers"] = limits.answers
        pricing = {name: each.as_data() for name, each in self.meters.items()}
        if any(pricing.values()):
            plan[PRICING] = pricing
        if self.is_named:
            own = {name: recorded_prices(each.costs) for name, each in self.generators.items()}
            plan["costs_by_generator"] = own
            plan["portfolio"] = _COLD if self.prior is None else f"learned, {self.prior.hash}"
        return {**self.identity, **plan}

    @cached_property
    def settings_text(self) -> str:
        """The settings as JSON."""
        return _JSON.encode(self.settings)

    @cached_property
    def policy_name(self) -> str:
        """The policies as a ledger names them; or the prior that decides instead."""
        if isinstance(self.prior, JointPrior):
            return f"portfolio-learned(hash={self.prior.hash!r})"
        return ", ".join(dict.fromkeys(name_of(each.policy) for each in self.generators.values()))

    @property
    def is_auto(self) -> bool:
        """Whether candidates may be ranked by a score that is trained on the run's own ledger."""
        scorers = [each.backends.scorer for each in self.generators.values()]
        return any(isinstance(scorer, AutoScorer) for scorer in scorers)

    @property
    def learns(self) -> bool:
        """Whether finished problems decide: if there are earlier ones, or all policies learn."""
        policies = [each.policy for each in self.generators.values()]
        return bool(self.past) or all(isinstance(policy, Learning) for policy in policies)

    def chosen(self, prior: Prior | JointPrior | None) -> SearchConfig:
        """The configuration of a search that this prior decides, if it learns."""
        if not self.learns:
            return self
        if self.is_named:
            return replace(self, prior=prior)
        assert isinstance(self.first.policy, Learning)
        assert not isinstance(prior, JointPrior)
        policy = self.first.policy.chosen(prior)
        return replace(self, generators={ALONE: replace(self.first, policy=policy)}, prior=prior)

    def recorded(self, started: Started | None) -> SearchConfig | None:
        """The configuration with which a search was started that learns.

        None if it was not started, or by another policy.
        """
        if not self.learns:
            return self
        if started is None:
            return None
        if started.prior:
            named = self.is_named
            return self.chosen(
                JointPrior.from_text(started.prior) if named else from_text(started.prior, HISTORY)
            )
        cold = self.chosen(None)
        if self.is_named:
            return cold if started.about.get("portfolio") == _COLD else None
        # `--policy varied` on the same ledger, or an older grv, has no guard.
        unguarded = replace(cold, generators={ALONE: replace(self.first, policy=DEFAULT)})
        for config in (cold, unguarded):
            if started.about.get("policy") == config.policy_name:
                return config
        return None


_JSON = json.JSONEncoder(sort_keys=True, default=str)
_COLD = "cold"  # in a ledger, several generators without a prior


def search_id(problem: Problem, about: Mapping[str, Any]) -> str:
    """The id of a search with these settings: a hash of them and the problem.

    Other labels of a check do not change it: candidates and scores are the same.
    """
    return _id_of(problem, about, _identity_text(about))


def _identity_text(about: Mapping[str, Any]) -> str:
    """The settings as they are hashed, as JSON. They are the same for many searches."""
    return _JSON.encode(_hashed(about))


def _id_of(problem: Problem, about: Mapping[str, Any], identity: str) -> str:
    """The id of a search, given the JSON of its settings: a hash of a list in JSON."""
    check = {name: value for name, value in problem.check.items() if name != "labels"}
    content = [*map(_JSON.encode, (problem.id, problem.prompt, check)), identity]
    if about.get("score_question"):
        content.append(_JSON.encode(problem.question))
    if problem.messages:
        content.append(_JSON.encode([*problem.messages]))
    text = f"[{', '.join(content)}]"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _hashed(about: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as they are hashed: `auto` is hashed as `logprob`, which was the default before.

    So a run goes on that was started with either of them, and does not pay again.
    """
    hashed = dict(about)
    if hashed.get("score") == AUTO:
        hashed["score"] = BY_LOGPROB
    if isinstance(generators := hashed.get("generators"), Mapping):
        hashed["generators"] = {
            name: _hashed(own) if isinstance(own, Mapping) else own
            for name, own in generators.items()
        }
    return hashed


def started_entry(problem: Problem, about: Mapping[str, Any], account: str = "") -> Started:
    """The first entry of a search, with what is asked and how it is checked."""
    return Started(problem.id, about, problem.prompt, _check_text(problem), account)


def _check_text(problem: Problem) -> str:
    return json.dumps(dict(problem.check), sort_keys=True, default=str) if problem.check else ""


def _shown_number(number: int) -> str:
    """A number of any size, for people."""
    return f"{number:,}" if number < 10**15 else f"about 1e{len(str(number)) - 1}"


def _pace_record(pace: Pace) -> dict[str, Any]:
    """What differs from the default."""
    default = Pace()
    fields = dataclasses.asdict(pace)
    return {name: each for name, each in fields.items() if each != getattr(default, name)}


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


def config_of(options: Mapping[str, Any]) -> SearchConfig:
    """The configuration that options of `solve` describe."""
    options = {"scorer": AutoScorer(), **options}
    about = options.get("about") or {}
    identity = options.get("identity")
    if not isinstance(options["generator"], Mapping):
        settings = {**_names(options), **about} if identity is None else identity
        return SearchConfig.alone(_generator(options), _limits(options), settings)
    generators = {}
    verifier = options["verifier"]  # made for the first generator, and shared
    for name, own in _by_generator(options).items():
        settings = {**_names(own), **about}
        if identity is not None:
            settings = identity.get("generators", {}).get(name, {})
        made = _generator({**own, "verifier": verifier})
        verifier = made.backends.verifier
        generators[name] = replace(made, most=own.get("most"), about=settings)
    common = {name: value for name, value in (identity or about).items() if name != "generators"}
    limits = apart(_limits({name: options[name] for name in options if name != "most"}))
    return SearchConfig(generators, limits, common, options.get("past") or ())


def _limits(options: Mapping[str, Any]) -> Limits:
    """The limits: given whole, or one by one; those that are given one by one take precedence."""
    names = [each.name for each in dataclasses.fields(Limits)]
    fields = {name: options[name] for name in names if name in options}
    return within_workers(replace(options.get("limits") or Limits(), **fields), options["verifier"])


def within_workers(limits: Limits, verifier: object) -> Limits:
    """The limits, with a width of at most the workers of the verifier: others would only wait."""
    workers = getattr(verifier, "workers", None)
    if limits.width is None or not isinstance(workers, int) or limits.width <= workers:
        return limits
    return replace(limits, width=workers)


def apart(limits: Limits) -> Limits:
    """The limits of several generators, which do not look ahead."""
    return limits if limits.width is None else replace(limits, width=1)


def _generator(options: Mapping[str, Any]) -> GeneratorConfig:
    """One generator, from options of `solve` that are its own."""
    policy = options.get("policy")
    return GeneratorConfig(
        _backends(options),
        parse_policy(policy) if isinstance(policy, str) else operators(policy or DEFAULT),
        options.get("costs") or Costs(),
        options.get("meter"),
    )


def _names(options: Mapping[str, Any]) -> dict[str, str]:
    """The names of the backends, which results depend on."""
    return {what: backend_name(options[what]) for what in ("generator", "scorer", "verifier")}


def _by_generator(options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The options of `solve` for each generator alone, if several are given by name."""
    names = tuple(options["generator"])
    costs = options.get("costs")
    for name in names:
        if name == ALONE:
            raise UsageError("the name of a generator is empty: name every generator")
        if not isinstance(costs, Mapping) or name not in costs:
            raise UsageError(f"generator {name!r} has no costs: give costs for each generator")
    by_name = {}
    for name in names:
        own: dict[str, Any] = {
            option: value[name] if option in _EACH and isinstance(value, Mapping) else value
            for option, value in options.items()
            if not (option in _EACH and isinstance(value, Mapping) and name not in value)
        }
        lacking = [
            option
            for option in ("scorer", "policy", "meter")
            if option in options and option not in own
        ]
        if lacking:
            raise UsageError(f"generator {name!r} has no {lacking[0]}")
        by_name[name] = own
    return by_name


_EACH = ("generator", "scorer", "policy", "costs", "meter", "most")  # may differ by generator


def _backends(options: Mapping[str, Any]) -> Backends:
    generator = backend_of(options["generator"], "generator")
    scorer = backend_of(options["scorer"], "scorer")
    verifier = backend_of(options["verifier"], "verifier")
    second = options.get("second_scorer")
    own = options.get("key")
    key: Keying | None = own
    if own is None and options.get("keys", True):
        key = getattr(verifier, "key", None)
    return Backends(
        generator,
        scorer,
        verifier,
        key,
        None if second is None else backend_of(second, "scorer", option="second_scorer"),
        own_keys=own is not None,
        refutation=getattr(verifier, "refutation", None),
    )


def backend_name(backend: object) -> str:
    """The name of a backend in a ledger. It is the same in every process.

    That of a function, or of an object without a repr of its own, has a checksum of its source: the
    results of an edited function are not those of the old one.
    """
    if type(backend).__repr__ is not object.__repr__ and not hasattr(backend, "__qualname__"):
        return repr(backend)
    named: Any = backend if hasattr(backend, "__qualname__") else type(backend)
    if not isinstance(named, type | FunctionType):
        return _with_checksum(named)
    if named not in _NAMES:
        _NAMES[named] = _with_checksum(named)
    return _NAMES[named]


# Of functions and classes whose source was read: to find a class, its whole file is parsed.
_NAMES: WeakKeyDictionary[type | FunctionType, str] = WeakKeyDictionary()


def _with_checksum(named: Any) -> str:
    """The name of a function or a class, with a checksum of its source if there is one."""
    try:
        source = inspect.getsource(named)
    except (OSError, TypeError, SyntaxError, tokenize.TokenError):  # typed in, or compiled
        return str(named.__qualname__)
    return f"{named.__qualname__} {checksum(source)[:16]}"
