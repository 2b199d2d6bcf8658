"""Several generators in the live commands: their backends and the options of their searches."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from ...backends.models import Generators
from ...core.errors import UsageError
from ...core.search import Policy
from ...core.values import Measured
from .live import LiveOptions, backends_of, check_measured, check_policy, verifier_of

if TYPE_CHECKING:
    from ...backends.protocols import Problem
    from ...learning.joint import PastAttempts
    from ...runtime.options import Spending
    from ...runtime.prices import Prices
    from ...runtime.solve import SolveOptions


@contextmanager
def portfolio_options(
    options: LiveOptions, generators: Generators, problems: Sequence[Problem], prices: Prices
) -> Iterator[SolveOptions]:
    """The options of `grv.solve_many` for several generators, which share one verifier."""
    from ...runtime.prices import Meter, model_of

    alone = {name: _alone(options, generators, name) for name in generators.by_name}
    named = generators.by_name
    with ExitStack() as stack:
        verifier = stack.enter_context(verifier_of(options, problems))
        made = {
            name: stack.enter_context(backends_of(each, problems, verifier))
            for name, each in alone.items()
        }
        how: SolveOptions = {
            "generator": {name: each.generator for name, each in made.items()},
            "scorer": {name: each.scorer for name, each in made.items()},
            "verifier": verifier,
        }
        how["keys"] = options.keys
        how["identity"] = {"generators": {name: each.about for name, each in alone.items()}}
        how["costs"] = {name: each.costs for name, each in named.items()}
        if any(isinstance(each.costs, Measured) for each in named.values()):
            models = {name: model_of(each.generator) for name, each in named.items()}
            how["meter"] = {name: Meter(prices, model) for name, model in models.items()}
        yield how


def check_portfolio(generators: Generators, spending: Spending, prices: Prices) -> None:
    """Refuse costs, prices and budgets that contradict each other, before any work."""
    for each in generators.by_name.values():
        check_measured(each.generator, dataclasses.replace(spending, costs=each.costs), prices)


def _alone(options: LiveOptions, generators: Generators, name: str) -> LiveOptions:
    """The options with one of the generators only."""
    own = generators.by_name[name]
    changed: dict[str, Any] = {"generator": own.generator}
    changed |= {} if own.score is None else {"score": own.score}
    changed |= {} if own.base_url is None else {"base_url": own.base_url}
    models = dataclasses.replace(options.models, **changed)
    if models.cascade is not None:
        raise UsageError(f"{name}: a cascade does not work with several generators")
    return dataclasses.replace(options, models=models)


def policies_of(
    generators: Generators, policy: str, score: str, alike: str | None = None
) -> Policy | dict[str, Policy]:
    """The policy of the search, or of each generator's; a prior must fit the score it is used on.

    Args:
        generators: several generators, if there are any.
        policy: the policy that holds where a generator has none of its own.
        score: the score that holds where a generator has none of its own.
        alike: the score whose equal values count as evidence.
    """
    if not generators:
        return _checked(policy, score, alike)
    return {
        name: _checked(each.policy or policy, each.score or score)
        for name, each in generators.by_name.items()
    }


def _checked(policy: str, score: str, alike: str | None = None) -> Policy:
    from ...learning.prior_file import parse_policy

    found = parse_policy(policy)
    check_policy(found, score, alike)
    return found


def past_of(history: Sequence[str], about: Mapping[str, Any]) -> list[PastAttempts]:
    """What the generators did on earlier problems.

    Args:
        history: logs and ledgers.
        about: the settings of each generator, by name.
    """
    if not history:
        return []
    from ...learning.joint_history import read_attempts
    from ...learning.ledger_history import score_of

    scores = {name: score_of(each) for name, each in about.items()}
    return [attempts for path in history for attempts in read_attempts(path, scores)]
