"""Live searches from a configuration, as tests drive them."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Iterable
from typing import Any

from grv.backends.protocols import Problem
from grv.ledger.ledger import Ledger, MemoryLedger
from grv.runtime.calls import Caller
from grv.runtime.config import SearchConfig
from grv.runtime.ledger_writer import LedgerWriter
from grv.runtime.one_search import run_search
from grv.runtime.results.solution import Solution
from grv.runtime.solve import solve_many
from grv.runtime.spending import RunBudget


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
    return await run_search(problem, config, writer, caller or Caller(), budget)


def search_many(
    problems: Iterable[Problem], config: SearchConfig, **options: Any
) -> AsyncGenerator[Solution]:
    """`solve_many`, with the configuration given whole."""
    backends = config.backends
    return solve_many(
        problems,
        generator=backends.generator,
        scorer=backends.scorer,
        verifier=backends.verifier,
        second_scorer=backends.second,
        key=backends.key,
        keys=False,
        policy=config.policy,
        costs=config.costs,
        budget=config.budget,
        value=config.value,
        width=config.width,
        identity=config.about,
        most=config.most,
        meter=config.meter,
        cascade=config.cascade,
        **options,
    )
