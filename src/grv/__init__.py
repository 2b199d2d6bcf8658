"""Generate, rank, verify: a verified answer from a language model for the least money.

Bring a generator (a language model), a cheap score and a sure but expensive verifier. grv decides
when to generate another candidate and when to pay for verifying the best one.

    >>> import itertools
    >>> import grv
    >>> numbers = itertools.count(1)
    >>> solution = grv.solve_now(
    ...     "A multiple of 7",
    ...     generator=lambda problem: str(next(numbers)),
    ...     scorer=lambda problem, text: 0.0,
    ...     verifier=lambda problem, text: int(text) % 7 == 0,
    ...     costs=(1, 10),
    ...     budget=500,
    ... )
    >>> solution.outcome
    'solved'

Start with `help(grv.solve_now)`. `grv.solve_many_now` searches many problems; `grv.solve` and
`grv.solve_many` are the same for programs with an event loop. `grv.compare` says what each policy
would have cost on a log of candidates (`grv.Log`). `grv.Search` is the search itself, for programs
that make the calls on their own: it asks for `Generate` and `Verify`, and is told `Generated` and
`Verified`.

Everything else has one door:

    grv.generators  models: OpenAI, Embedded; what a generator of your own does
    grv.scorers     scores: Logprob, Length, Judge, Reward, Trained
    grv.verifiers   verdicts: Checks runs programs, compares answers, asks servers and people
    grv.policies    what to do next: Balanced, Learning, Fixed, ...; Pool, for your own
    grv.schedules   which of many problems is next: LeastSpent, InOrder, ...
    grv.prices      dollars: Prices, Meter, Usage
    grv.runtime     how calls are made: Calls; SolveOptions, Progress
    grv.ledger      the record of everything paid for: open_ledger
    grv.core        what limits and costs are made of: Pace, Cascade, Measured; bills and outcomes
    grv.logs, grv.comparing, grv.learning, grv.report, grv.serve, grv.theory
    grv.adapters    other frameworks, a module for each: grv.adapters.inspect_ai, ...
    grv.testing     worlds, fakes and contracts for your own policies and backends

Names that need numpy or an event loop are loaded at first use, so that `import grv` stays light.
"""

from __future__ import annotations

import importlib
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

from .core.errors import GrvError, LedgerError, LogError, RunStopped, UsageError
from .core.limits import Limits
from .core.search import Search
from .core.values import Costs, Generate, Generated, Stop, Verdict, Verified, Verify

if TYPE_CHECKING:
    from . import comparing as comparing
    from . import generators as generators
    from . import learning as learning
    from . import ledger as ledger
    from . import logs as logs
    from . import policies as policies
    from . import prices as prices
    from . import report as report
    from . import runtime as runtime
    from . import schedules as schedules
    from . import scorers as scorers
    from . import serve as serve
    from . import testing as testing
    from . import theory as theory
    from . import verifiers as verifiers
    from .backends.protocols import Draft, Problem
    from .comparing.compare import compare
    from .comparing.comparison import Comparison
    from .logs.log import Log
    from .runtime.solution import Solution
    from .runtime.solve import solve, solve_many, solve_many_now, solve_now

__version__ = "0.2.0"

_LAZY = {
    "Comparison": "comparing.comparison",
    "Draft": "backends.protocols",
    "Log": "logs.log",
    "Problem": "backends.protocols",
    "Solution": "runtime.solution",
    "compare": "comparing.compare",
    "solve": "runtime.solve",
    "solve_many": "runtime.solve",
    "solve_many_now": "runtime.solve",
    "solve_now": "runtime.solve",
}

# The modules that have the other public names.
DOORS = (
    "comparing",
    "core",
    "generators",
    "learning",
    "ledger",
    "logs",
    "policies",
    "prices",
    "report",
    "runtime",
    "schedules",
    "scorers",
    "serve",
    "testing",
    "theory",
    "verifiers",
)

__all__ = [
    "Comparison",
    "Costs",
    "Draft",
    "Generate",
    "Generated",
    "GrvError",
    "LedgerError",
    "Limits",
    "Log",
    "LogError",
    "Problem",
    "RunStopped",
    "Search",
    "Solution",
    "Stop",
    "UsageError",
    "Verdict",
    "Verified",
    "Verify",
    "compare",
    "solve",
    "solve_many",
    "solve_many_now",
    "solve_now",
]


def __getattr__(name: str) -> Any:
    """The public names and the doors, which are loaded late."""
    if name in _LAZY:
        return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    if name in DOORS:
        return importlib.import_module(f".{name}", __name__)
    hint = "" if name.startswith("_") else _elsewhere(name)
    raise AttributeError(f"module 'grv' has no attribute {name!r}{hint}")


def _elsewhere(name: str) -> str:
    """A hint, if one of the doors has this name; none for our modules.

    `from .. import html` asks for the attribute first. To look for it behind all doors would load
    them all.
    """
    if PathFinder.find_spec(f"{__name__}.{name}", __path__) is not None:
        return ""
    for door in DOORS:
        if name in importlib.import_module(f".{door}", __name__).__all__:
            return f"; write grv.{door}.{name}"
    return ""


def __dir__() -> list[str]:
    return [*__all__, *DOORS]
