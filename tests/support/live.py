"""Live searches from a configuration, as tests drive them."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any

from grv.backends.protocols import Problem
from grv.core.limits import Limits
from grv.core.search import Policy
from grv.core.values import Costs
from grv.ledger.ledger import Ledger, MemoryLedger
from grv.policies import DEFAULT
from grv.runtime.budget import RunBudget
from grv.runtime.calls import Caller
from grv.runtime.config import GeneratorConfig, SearchConfig
from grv.runtime.executor import Backends
from grv.runtime.ledger_writer import LedgerWriter
from grv.runtime.live_search import LiveSearch
from grv.runtime.prices import Meter
from grv.runtime.solution import Solution
from grv.runtime.solve import SolveRun


def one_generator(
    backends: Backends,
    policy: Policy = DEFAULT,
    costs: Costs | None = None,
    *,
    meter: Meter | None = None,
    about: Mapping[str, Any] | None = None,
    **limits: Any,
) -> SearchConfig:
    """The configuration of a search with one generator; `limits` are fields of `Limits`."""
    generator = GeneratorConfig(backends, policy, costs or Costs(), meter)
    return SearchConfig.alone(generator, Limits(**limits), about or {})


async def search(
    problem: Problem,
    config: SearchConfig,
    *,
    ledger: Ledger | None = None,
    caller: Caller | None = None,
    total: float = math.inf,
) -> Solution:
    """One search, with the configuration given whole."""
    writer = LedgerWriter(ledger or MemoryLedger())
    budget = RunBudget(total, writer)
    return await LiveSearch(problem, config, writer, caller or Caller(), budget).run()


def search_many(
    problems: Iterable[Problem],
    config: SearchConfig,
    *,
    ledger: Ledger | None = None,
    calls: Caller | None = None,
    total_budget: float = math.inf,
    at_once: int | None = None,
    schedule: str | None = None,
) -> AsyncGenerator[Solution]:
    """`solve_many`, with the configuration given whole."""
    run = SolveRun(
        config,
        ledger or MemoryLedger(),
        calls or Caller(),
        total_budget,
        at_once,
        schedule=schedule,
    )
    return run.solutions(problems)
