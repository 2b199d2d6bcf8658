"""Replays a portfolio over the logged candidates of several generators.

It drives the same `Portfolio` as live runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.limits import Limits
from ..core.search import Policy, Search
from ..core.values import Costs, Generate, Generated, Rescore, Stop, Verdict, Verified, Verify
from ..logs.log import LoggedProblem
from ..policies.portfolio import Chooser, Portfolio, steered_by
from .engine import code_name


@dataclass(frozen=True)
class Entrant:
    """A generator in a replay: its costs, and the policy of its search unless it is steered."""

    costs: Costs
    policy: Policy


def orders_of(
    problem: LoggedProblem, names: Sequence[str], number: int, seed: int = 0
) -> dict[str, list[int]]:
    """For each generator, the rows of its candidates in a random order of arrival.

    An order depends on the seed, the problem, the generator and its number only.
    """
    assert problem.generators is not None
    found = {}
    for at, name in enumerate(names):
        rows = np.flatnonzero(problem.generators == at)
        label = hashlib.blake2b(f"{problem.id}\0{name}".encode(), digest_size=8).digest()
        random = np.random.default_rng([seed, int.from_bytes(label, "big"), number])
        found[name] = rows[random.permutation(len(rows))].tolist()
    return found


def replayed_portfolio(
    entrants: Mapping[str, Entrant],
    chooser: Chooser,
    problem: LoggedProblem,
    orders: Mapping[str, Sequence[int]],
    limits: Limits = Limits(),  # noqa: B008 (a frozen value)
    *,
    keys: bool = True,
) -> Portfolio:
    """The portfolio after it has ended.

    Args:
        entrants: the generators by name.
        chooser: decides which of them acts next.
        problem: the logged candidates of all generators.
        orders: for each generator, the rows of its candidates in order of arrival.
        limits: what all searches together may do.
        keys: whether the log's keys are used.
    """
    steered = steered_by(chooser, entrants)
    searches = {
        name: Search(steered.get(name, each.policy), each.costs, limits.of(problem.id))
        for name, each in entrants.items()
    }
    portfolio = Portfolio(searches, chooser, steered=steered)
    scores = problem.scores.tolist()
    passed = problem.passed.tolist()
    numbers = problem.codes(keyed=keys)
    codes = None if numbers is None else numbers.tolist()
    while True:
        request = portfolio.ask()
        arrivals = orders[request.name]
        match request.action:
            case Generate(n):
                at = len(searches[request.name].pool)
                batch = arrivals[at : at + n]
                names = () if codes is None else tuple(code_name(codes[i]) for i in batch)
                portfolio.tell(Generated(tuple(scores[i] for i in batch), names))
            case Verify(ids):
                found = {i: Verdict.PASSED if passed[arrivals[i]] else Verdict.FAILED for i in ids}
                portfolio.tell(Verified(found))
            case Rescore():
                raise AssertionError("a portfolio in replay has no second scores")
            case Stop():
                return portfolio
