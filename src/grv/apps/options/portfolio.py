"""Several generators in the live commands: their backends and the options of their searches."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from ...backends.models import Generators, Models, NamedGenerator
from ...core.errors import UsageError
from ...core.search import Policy
from ...core.values import Measured
from .live import LiveOptions, backends_of, check_measured, check_policy, pricing_of, verifier_of

if TYPE_CHECKING:
    from ...backends.protocols import Problem
    from ...learning.joint import PastAttempts
    from ...runtime.config import GeneratorConfig
    from ...runtime.options import Spending
    from ...runtime.prices import Prices


@contextmanager
def generators_of(
    options: LiveOptions,
    generators: Generators,
    problems: Sequence[Problem],
    policies: Mapping[str, Policy],
    prices: Prices,
) -> Iterator[dict[str, GeneratorConfig]]:
    """Several generators by name, which share one verifier."""
    from ...runtime.config import GeneratorConfig

    alone = {name: _alone(options, generators, name) for name in generators.by_name}
    with ExitStack() as stack:
        verifier = stack.enter_context(verifier_of(options, problems))
        made = {}
        for name, entry in generators.by_name.items():
            backends = stack.enter_context(backends_of(alone[name], problems, verifier))
            pricing = pricing_of(alone[name].models, prices)
            measured = isinstance(entry.costs, Measured)
            made[name] = GeneratorConfig(
                backends,
                policies[name],
                entry.costs,
                pricing if measured else None,
                about=alone[name].about,
                pricing=pricing,
            )
        yield made


def check_portfolio(
    generators: Generators, models: Models, spending: Spending, prices: Prices
) -> None:
    """Refuse costs, prices and budgets that contradict each other, before any work."""
    for entry in generators.by_name.values():
        pricing = pricing_of(own_models(models, entry), prices)
        check_measured(pricing, dataclasses.replace(spending, costs=entry.costs))


def own_models(models: Models, own: NamedGenerator) -> Models:
    """The models of one of several generators."""
    changed: dict[str, Any] = {"generator": own.generator}
    changed |= {} if own.score is None else {"score": own.score}
    changed |= {} if own.base_url is None else {"base_url": own.base_url}
    return dataclasses.replace(models, **changed)


def _alone(options: LiveOptions, generators: Generators, name: str) -> LiveOptions:
    """The options with one of the generators only."""
    models = own_models(options.models, generators.by_name[name])
    if models.cascade is not None:
        raise UsageError(f"{name}: a cascade does not work with several generators")
    return dataclasses.replace(options, models=models)


def policies_of(
    generators: Generators, policy: str, score: str, alike: str | None = None
) -> dict[str, Policy]:
    """The policy of each generator, by name; a prior must fit the score it is used on.

    A single generator has the empty name.

    Args:
        generators: several generators, if there are any.
        policy: the policy that holds where a generator has none of its own.
        score: the score that holds where a generator has none of its own.
        alike: the score whose equal values count as evidence.
    """
    if not generators:
        return {"": _checked(policy, score, alike)}
    return {
        name: _checked(each.policy or policy, each.score or score)
        for name, each in generators.by_name.items()
    }


def _checked(policy: str, score: str, alike: str | None = None) -> Policy:
    from ...learning.prior_file import operators, parse_policy

    found = operators(parse_policy(policy))
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
    from ...ledger.address import OperatorAddress

    scores = {name: score_of(each) for name, each in about.items()}
    return [
        attempts for path in history for attempts in read_attempts(OperatorAddress(path), scores)
    ]
