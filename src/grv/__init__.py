"""Generate, rank, verify: a verified answer from a language model for the least money.

Names that need numpy or an event loop are loaded at first use, so that `import grv` stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .core.errors import (
    BackendError,
    EventError,
    GrvError,
    LedgerError,
    LogError,
    PolicyError,
    RunStopped,
    UsageError,
)
from .core.pace import Pace
from .core.pool import Pool
from .core.search import Policy, Search
from .core.values import (
    Bill,
    CandidateId,
    Cascade,
    Costs,
    Generate,
    Generated,
    Latency,
    Measured,
    Outcome,
    Reason,
    Rounds,
    Stop,
    Turn,
    Verdict,
    Verified,
    Verify,
)
from .policies import *  # noqa: F403 (every policy is public)
from .policies import POLICIES as _POLICIES

if TYPE_CHECKING:
    from .backends.protocols import Draft, Finding, Problem, Score
    from .experiments.compare import compare
    from .experiments.comparison import Comparison
    from .experiments.oracle import oracle
    from .experiments.rows import DEFAULT_ROWS
    from .ledger.sqlite import SqliteLedger
    from .logs.log import Log, LoggedProblem
    from .runtime.results.solution import Solution
    from .runtime.solve import solve, solve_many, solve_many_now, solve_now

__version__ = "0.1.0"

_LAZY = {
    "DEFAULT_ROWS": "experiments.rows",
    "Comparison": "experiments.comparison",
    "Draft": "backends.protocols",
    "Finding": "backends.protocols",
    "Log": "logs.log",
    "LoggedProblem": "logs.log",
    "Problem": "backends.protocols",
    "Score": "backends.protocols",
    "Solution": "runtime.results.solution",
    "SqliteLedger": "ledger.sqlite",
    "compare": "experiments.compare",
    "oracle": "experiments.oracle",
    "solve": "runtime.solve",
    "solve_many": "runtime.solve",
    "solve_many_now": "runtime.solve",
    "solve_now": "runtime.solve",
}

__all__ = [
    "DEFAULT_ROWS",
    "BackendError",
    "Bill",
    "CandidateId",
    "Cascade",
    "Comparison",
    "Costs",
    "Draft",
    "EventError",
    "Finding",
    "Generate",
    "Generated",
    "GrvError",
    "Latency",
    "LedgerError",
    "Log",
    "LogError",
    "LoggedProblem",
    "Measured",
    "Outcome",
    "Pace",
    "Policy",
    "PolicyError",
    "Pool",
    "Problem",
    "Reason",
    "Rounds",
    "RunStopped",
    "Score",
    "Search",
    "Solution",
    "SqliteLedger",
    "Stop",
    "Turn",
    "UsageError",
    "Verdict",
    "Verified",
    "Verify",
    "compare",
    "oracle",
    "solve",
    "solve_many",
    "solve_many_now",
    "solve_now",
    *(policy.__name__ for policy in _POLICIES.values()),
]


def __getattr__(name: str) -> Any:
    """The public names that are loaded late."""
    if name not in _LAZY:
        raise AttributeError(f"module 'grv' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
