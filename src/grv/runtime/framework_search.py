"""One search whose candidates are results of another framework, such as messages or predictions.

The framework makes the results, with its own models, retries and caches. The ledger records the
text that stands for each of them. A search that continues in a later process makes results of these
texts again, and pays for nothing twice.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import importlib
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..backends.callables import Answer, Given, call, finding_of, raised_text
from ..backends.protocols import Draft, Finding, ParkedCall, Problem, Usage
from ..backends.verifiers.pool import CheckVerifier
from ..core.errors import GeneratorError, GrvError, RunStopped, UsageError, VerifierError
from ..core.values import Measured
from ..ledger.ledger import Ledger, MemoryLedger
from ..ledger.opening import open_ledger
from ..ledger.view import RecordedStep, SearchView
from ..options import did_you_mean
from ..usage import UNUSED
from .answers import record_of
from .arguments import checked
from .config import backend_name
from .prices import Meter, Server
from .solution import Solution
from .solve import SolveOptions, solve, solve_now

_OWN = frozenset({"generator", "scorer", "verifier", "identity", "skip", "past"})


def framework(module: str, package: str, adapter: str) -> Any:
    """The module of a framework, or a UsageError that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f"{adapter} needs {module}: pip install {package}") from error


def search_options(given: Mapping[str, Any], adapter: str) -> dict[str, Any]:
    """Options of `grv.solve` that an adapter was given, checked before anything is paid for."""
    known = [name for name in SolveOptions.__annotations__ if name not in _OWN]
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) or "; help(grv.runtime.SolveOptions) lists them"
            raise UsageError(f"{adapter} has no option {name}{hint}")
    options = checked(given, {})
    if "total_budget" in options and "ledger" not in options:
        raise UsageError(
            f"{adapter}: total_budget needs ledger=, the file that counts what all calls cost"
        )
    if isinstance(options.get("costs"), Measured):
        options.setdefault("meter", Meter())  # the framework says what its calls cost
    return options


@dataclass(frozen=True)
class Attempt:
    """What a framework made.

    Attributes:
        result: the result.
        text: what stands for it in the ledger.
        usage: what it used, as the framework says.
        logprobs: the log-probabilities of its tokens, if they are known.
        broken: why there is no result, if the model's answer could not be read. It is paid for.
    """

    result: Any
    text: str
    usage: Usage = UNUSED
    logprobs: tuple[float, ...] | None = None
    broken: str = ""


def priced(usage: Usage, model: str, provider: str) -> Usage:
    """The usage with its dollars, if genai-prices knows the model of this provider."""
    dollars = Meter(model=model, server=Server(provider)).price("generate", usage)
    return replace(usage, dollars=dollars)


@dataclass(frozen=True)
class FrameworkResult:
    """What a search found.

    Attributes:
        result: the verified result, or the best one without a pass; None if there is none.
        solution: the outcome and the bill.
        steps: what happened, as the ledger has it.
    """

    result: Any
    solution: Solution
    steps: Sequence[RecordedStep] = ()

    @property
    def report(self) -> dict[str, Any]:
        """Outcome and bill as JSON data: the line that `grv solve` writes, without the answer."""
        return {name: each for name, each in record_of(self.solution).items() if name != "answer"}


@dataclass
class FrameworkSearch:
    """One search.

    Args:
        problem: what is asked; its check decides if there is no `verifier`.
        name: what makes the results. Recorded ones are used again only under the same name.
        make: makes a result; it gets the number of the candidate.
        restore: a result from its text.
        verifier: decides about a result.
        score: scores a result; None is the score `auto` of `grv.solve`.
        options: further options of `grv.solve`.
        said: the text of a result that a check is about.
        functions: what names verifier and score in the ledger, if these only pass on to others.
    """

    problem: Problem
    name: str
    make: Callable[[int], Attempt | Awaitable[Attempt]]
    restore: Callable[[str], Any]
    verifier: Callable[[Any], Answer | Awaitable[Answer]] | None
    score: Callable[[Any], Given | Awaitable[Given]] | None
    options: Mapping[str, Any]
    said: Callable[[Any], str] = str
    functions: tuple[Any, Any] = (None, None)
    batch: int = 1

    def __post_init__(self) -> None:
        self.results: dict[str, Any] = {}
        self._error: BaseException | None = None

    async def run(self) -> FrameworkResult:
        """Search. An error of the framework is raised as it is, and what was paid is recorded."""
        _check_loop()
        with self._opened() as ledger:
            return self._found(await solve(self.problem, **self._arguments(ledger)), ledger)

    def run_now(self) -> FrameworkResult:
        """As `run`, for callers without an event loop."""
        with self._opened() as ledger:
            return self._found(solve_now(self.problem, **self._arguments(ledger)), ledger)

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> list[Draft]:
        """The drafts of results."""
        return [await self._draft(number) for number in range(first, first + n)]

    async def _draft(self, number: int) -> Draft:
        started = time.monotonic()
        made = await call(self.make, number)
        seconds = time.monotonic() - started
        if isinstance(made, BaseException):
            self._error = made
            raise GeneratorError(raised_text(made), backend=self.name, fault="stop") from made
        if not made.broken:
            self.results.setdefault(made.text, made.result)
        text = "" if made.broken else made.text
        usage = replace(made.usage, seconds=made.usage.seconds or seconds)
        return Draft(text, made.logprobs, usage, made.broken)

    def result_of(self, text: str) -> Any:
        """The result that a text stands for."""
        if text not in self.results:
            self.results[text] = self.restore(text)
        return self.results[text]

    def stop(self, error: BaseException) -> VerifierError:
        """The error that ends the search, so that it is raised to the framework as it is."""
        self._error = error
        return VerifierError(raised_text(error), fault="stop")

    def _arguments(self, ledger: Ledger) -> dict[str, Any]:
        options: dict[str, Any] = {**self.options, "generator": self, "ledger": ledger}
        named: dict[str, Any] = {"generator": self.name}
        options["verifier"] = _CheckOfResults(self)
        if (verify := self.verifier) is not None:
            options["verifier"] = lambda problem, text: verify(self.result_of(text))
            named["verifier"] = backend_name(self.functions[0] or verify)
        if (score := self.score) is not None:
            options["scorer"] = lambda problem, text: score(self.result_of(text))
            named["scorer"] = backend_name(self.functions[1] or score)
        options["identity"] = {**named, **(self.options.get("about") or {})}
        return options

    @contextmanager
    def _opened(self) -> Iterator[Ledger]:
        """The ledger, for one search; errors of the framework leave as they came."""
        given = self.options.get("ledger")
        opened = open_ledger(given) if isinstance(given, str | Path) else None
        try:
            yield opened or given or MemoryLedger()
        except RunStopped:
            if self._error is not None and not isinstance(self._error, GrvError):
                raise self._error from None
            raise
        finally:
            if opened is not None:
                opened.close()

    def _found(self, solution: Solution, ledger: Ledger) -> FrameworkResult:
        steps = SearchView(ledger.read(solution.search)).steps if solution.search else []
        result = None if solution.draft is None else self.result_of(solution.draft.text)
        return FrameworkResult(result, solution, steps)


class _CheckOfResults:
    """The check of a problem, carried out on the text of a result."""

    def __init__(self, search: FrameworkSearch) -> None:
        self._search = search
        self._checks = _checks()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._checks, name)

    async def verify(self, problem: Problem, draft: Draft, **more: Any) -> Finding:
        """The finding on the text."""
        return await self._checks.verify(problem, self._said(draft), **more)

    def key(self, problem: Problem, draft: Draft) -> str | None:
        """The key of the text."""
        return self._checks.key(problem, self._said(draft))

    def refutation(self, problem: Problem, draft: Draft) -> str | None:
        """Why the text certainly fails."""
        return self._checks.refutation(problem, self._said(draft))

    def _said(self, draft: Draft) -> Draft:
        return replace(draft, text=self._search.said(self._search.result_of(draft.text)))


@functools.cache
def _checks() -> CheckVerifier:
    """The workers of this process that carry out checks."""
    verifier = CheckVerifier()
    atexit.register(verifier.close)
    return verifier


def _check_loop() -> None:
    """A UsageError if the framework runs on another library than asyncio."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise UsageError(
            "grv runs on asyncio, not on trio: change the framework's setting"
        ) from None


async def finding_on(check: Mapping[str, Any], text: str, prompt: str = "") -> Finding:
    """The finding of a check on one text; broken if its verifier fails."""
    _check_loop()
    problem = Problem("text", prompt, check)
    try:
        return await _checks().verify(problem, Draft(text))
    except ParkedCall:
        raise UsageError("a check of kind human needs a ledger: use grv solve") from None
    except VerifierError as error:
        return finding_of(error)
