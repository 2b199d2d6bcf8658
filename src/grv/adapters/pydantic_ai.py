"""Pydantic AI: runs an agent again until its output is verified, within a budget.

    found = await verified_run(agent, "What is 2 + 2?", passes, costs=(1, 10), budget=100)

An output validator asks the same conversation again; this starts a new run for each candidate. The
function of a validator can be the verifier: what raises `ModelRetry` has failed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..backends.callables import call
from ..backends.protocols import Finding
from ..core.errors import UsageError
from ..core.values import Verdict
from ..runtime.arguments import one_problem
from ..runtime.framework_search import (
    Attempt,
    FrameworkResult,
    FrameworkSearch,
    framework,
    search_options,
)
from ..runtime.rewards import check_in
from ..usage import NOTHING, Usage

_framework = framework("pydantic_ai", "pydantic-ai-slim", "grv.adapters.pydantic_ai")
_pydantic = framework("pydantic", "pydantic-ai-slim", "grv.adapters.pydantic_ai")

Deciding = Callable[[Any], Any]  # of the output


@dataclass(frozen=True)
class VerifiedRun:
    """What `verified_run` found.

    Attributes:
        output: the verified output, or the best one without a pass; None if there is none.
        verified: whether it passed.
        report: outcome and bill, as JSON data.
        result: the agent's result with its messages; None if the ledger had the output.
    """

    output: Any
    verified: bool
    report: Mapping[str, Any]
    result: Any = None


async def verified_run(
    agent: Any,
    prompt: Any,
    verifier: Deciding | None = None,
    score: Deciding | None = None,
    costs: Any = (1, 10),
    budget: float | str | None = None,
    *,
    check: Mapping[str, Any] | None = None,
    run: Mapping[str, Any] | None = None,
    **options: Any,
) -> VerifiedRun:
    """Run an agent until its output is verified.

    Args:
        agent: makes the candidates, each in a run of its own.
        prompt: what the user asks.
        verifier: a function of the output that says whether it is right: it returns a bool. Or that
            of an output validator, which returns the output or raises `ModelRetry`.
        score: a function of the output that returns a number, higher for better outputs.
        costs: the price list: of a candidate, of a verification.
        budget: the highest cost.
        check: in place of a verifier, a check of grv.
        run: arguments of `agent.run`, such as `deps` and `usage_limits`.
        options: further options of `grv.solve`, such as `policy`, `ledger`, `total_budget`.
    """
    given = {**options, "costs": costs, "budget": budget}
    made = _Runs(agent, prompt, run or {})
    return _found(await made.search(verifier, score, check, given).run())


def verified_run_sync(
    agent: Any,
    prompt: Any,
    verifier: Deciding | None = None,
    score: Deciding | None = None,
    costs: Any = (1, 10),
    budget: float | str | None = None,
    *,
    check: Mapping[str, Any] | None = None,
    run: Mapping[str, Any] | None = None,
    **options: Any,
) -> VerifiedRun:
    """As `verified_run`, for callers without an event loop."""
    given = {**options, "costs": costs, "budget": budget}
    made = _Runs(agent, prompt, run or {})
    return _found(made.search(verifier, score, check, given).run_now())


@dataclass(frozen=True)
class _Made:
    """An output, and the agent's result that has it."""

    output: Any
    result: Any = None


@dataclass(frozen=True)
class _Runs:
    """Runs of an agent on one prompt."""

    agent: Any
    prompt: Any
    arguments: Mapping[str, Any]

    def search(
        self,
        verifier: Deciding | None,
        score: Deciding | None,
        check: Mapping[str, Any] | None,
        options: Mapping[str, Any],
    ) -> FrameworkSearch:
        if (verifier is None) == (check is None):
            raise UsageError("grv.adapters.pydantic_ai: give a verifier or a check")
        problem = one_problem(self.prompt if isinstance(self.prompt, str) else repr(self.prompt))
        if check is not None:
            problem = replace(problem, check=check_in(check, "check"))
        return FrameworkSearch(
            problem,
            self._name(),
            self._make,
            self._restore,
            _verifier_of(verifier),
            _of_output(score),
            search_options(options, "verified_run"),
            said=lambda made: _text(made.output),
            functions=(verifier, score),
        )

    async def _make(self, number: int) -> Attempt:
        with _framework.capture_run_messages() as messages:
            try:
                result = await self.agent.run(self.prompt, **self.arguments)
            except _framework.UnexpectedModelBehavior as error:  # no output that can be read
                earlier = len(self.arguments.get("message_history") or ())
                return Attempt(None, "", _usage(messages[earlier:]), broken=error.message)
        made = _Made(result.output, result)
        return Attempt(made, _text(result.output), _usage(result.new_messages()))

    def _restore(self, text: str) -> _Made:
        kind = self.arguments.get("output_type") or self.agent.output_type
        if kind is str:
            return _Made(text)
        try:
            return _Made(_pydantic.TypeAdapter(kind).validate_json(text))
        except (_pydantic.PydanticSchemaGenerationError, _pydantic.ValidationError):
            pass  # several types, or a function that makes the output
        try:
            return _Made(json.loads(text))
        except ValueError:
            return _Made(text)

    def _name(self) -> str:
        """The agent and its model, as the ledger names them."""
        model = self.arguments.get("model") or self.agent.model
        return f"pydantic_ai {self.agent.name or 'agent'} {getattr(model, 'model_id', model)}"


def _usage(messages: Sequence[Any]) -> Usage:
    responses = [each for each in messages if each.kind == "response"]
    return sum(map(_usage_of, responses), NOTHING)


def _usage_of(response: Any) -> Usage:
    used = response.usage
    try:
        dollars = float(response.cost().total_price)
    except (AssertionError, LookupError, ValueError):  # no price is known
        dollars = None
    return Usage(
        used.input_tokens,
        used.output_tokens,
        dollars=dollars,
        cached_tokens=used.cache_read_tokens,
        cache_write_tokens=used.cache_write_tokens,
    )


def _text(output: Any) -> str:
    if isinstance(output, str):
        return output
    return str(_pydantic.TypeAdapter(Any).dump_json(output).decode())


def _verifier_of(function: Deciding | None) -> Any:
    """A function of an output, perhaps of an output validator, as one of what was made."""
    if function is None:
        return None

    async def verify(made: _Made) -> Any:
        said = await call(function, made.output)
        if isinstance(said, _framework.ModelRetry):
            return Finding(Verdict.FAILED, said.message)
        if isinstance(said, BaseException):
            raise said
        return True if said is made.output and not isinstance(said, bool) else said

    return verify


def _of_output(function: Deciding | None) -> Any:
    return None if function is None else lambda made: function(made.output)


def _found(found: FrameworkResult) -> VerifiedRun:
    made = found.result or _Made(None)
    return VerifiedRun(made.output, found.solution.verified, found.report, made.result)


__all__ = ["VerifiedRun", "verified_run", "verified_run_sync"]
