"""The front door of live search, `grv.solve`: one problem, with whatever generates and verifies."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from ..backends.callables import (
    Answer,
    CallableGenerator,
    CallableScorer,
    CallableVerifier,
    Given,
    Made,
)
from ..backends.protocols import Generator, Problem, Scorer, Verifier
from ..core.errors import LedgerError
from ..core.search import Policy
from ..core.values import Costs
from ..ledger.ledger import Ledger, MemoryLedger
from ..ledger.sqlite import SqliteLedger
from ..policies import DEFAULT, spec
from .calls import Calls
from .desk import Backends, Keying
from .solve import Job, Solution, solve_many

Generating = Generator | Callable[[Problem], Made | Awaitable[Made]]
Scoring = Scorer | Callable[[Problem, str], Given | Awaitable[Given]]
Verifying = Verifier | Callable[[Problem, str], Answer | Awaitable[Answer]]

_LONGEST_NAME = 60


async def solve(
    problem: Problem | str,
    *,
    generator: Generating,
    scorer: Scoring,
    verifier: Verifying,
    policy: Policy | str | None = None,
    costs: Costs | None = None,
    budget: float = math.inf,
    value: float = math.inf,
    width: int | None = 1,
    ledger: Ledger | str | Path | None = None,
    key: Keying | None = None,
    about: Mapping[str, Any] | None = None,
    calls: Calls | None = None,
) -> Solution:
    """Search for a verified answer to one problem.

    Args:
        problem: the problem, or its prompt.
        generator: a function of the problem that gives one text a call, or a `Generator`.
        scorer: a function of the problem and a text that gives a number, or a `Scorer`.
        verifier: a function of the problem and a text that says yes or no, or a `Verifier`.
        policy: what decides, or its specification; `grv.policies.DEFAULT` where not given.
        costs: the price list it plans with; a verification costs ten candidates where not given.
        budget: the most that may be spent, in the unit of the costs.
        value: what an answer is worth, in that unit: it gives up when the expected cost to go
            exceeds that.
        width: verifications in flight at once; `None` is a whole step of the plan.
        ledger: where what is paid for is kept, or its file. What it holds is not paid for again.
        key: a function of the problem and a draft that names its equivalence class; None is in no
            class. Drafts of one class must pass or fail together: grv verifies one of them.
        about: what makes candidates, scores and verdicts what they are (model, temperature, seed):
            results in the ledger are used again where this, the problem and the names of generator,
            scorer and verifier are the same.
        calls: how calls are made: attempts, timeouts, how many at once.

    Raises:
        LedgerError: the ledger cannot be used, or another process is at this very search.
    """
    backends = Backends(
        _generator(generator), _scorer(scorer), _verifier(verifier), key, own_keys=key is not None
    )
    names = {"generator": generator, "scorer": scorer, "verifier": verifier}
    job = Job(
        backends,
        spec.parse(policy) if isinstance(policy, str) else policy or DEFAULT,
        costs or Costs(),
        budget,
        width,
        {**{what: _name(who) for what, who in names.items()}, **(about or {})},
        value=value,
    )
    asked = problem if isinstance(problem, Problem) else Problem(_title(problem), problem)
    async with (
        _opened(ledger) as book,
        aclosing(solve_many([asked], job, ledger=book, calls=calls)) as solutions,
    ):
        async for solution in solutions:
            return solution
    raise LedgerError(f"another process is working on {asked.id!r}, or this one is already")


def solve_now(problem: Problem | str, **options: Any) -> Solution:
    """`solve`, for programs that are not asynchronous; connections are closed at its end."""
    return anyio.run(partial(_solve_and_close, problem, **options))


async def _solve_and_close(problem: Problem | str, **options: Any) -> Solution:
    try:
        return await solve(problem, **options)
    finally:
        for name in ("generator", "scorer", "verifier"):
            close = getattr(options.get(name), "aclose", None)
            if close is not None:
                await close()


@asynccontextmanager
async def _opened(ledger: Ledger | str | Path | None) -> AsyncIterator[Ledger]:
    if not isinstance(ledger, str | Path):
        yield ledger if ledger is not None else MemoryLedger()
        return
    opened = SqliteLedger(ledger)
    try:
        yield opened
    finally:
        opened.close()


def _generator(given: Generating) -> Generator:
    return given if hasattr(given, "generate") else CallableGenerator(given)


def _scorer(given: Scoring) -> Scorer:
    return given if hasattr(given, "score") else CallableScorer(given)


def _verifier(given: Verifying) -> Verifier:
    return given if hasattr(given, "verify") else CallableVerifier(given)


def _title(prompt: str) -> str:
    """A name for a problem that has none."""
    line = prompt.strip().partition("\n")[0]
    return line if len(line) <= _LONGEST_NAME else f"{line[: _LONGEST_NAME - 3]}..."


def _name(backend: object) -> str:
    """What a backend is called in a ledger, the same in the next process."""
    if type(backend).__repr__ is not object.__repr__ and not hasattr(backend, "__qualname__"):
        return repr(backend)
    return str(getattr(backend, "__qualname__", type(backend).__qualname__))
