"""inspect_ai: a solver that generates until an answer is verified, and scorers with grv's checks.

    eval(task, solver=verified(costs=(1, 10), budget=100), model="openai/gpt-5-mini")

Inspect's model, limits, cache and concurrency are used. The log of each sample has outcome and bill
in its metadata, under `grv`, and each step as an event. With a ledger, a retry pays for nothing
twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import replace
from typing import Any

from ..backends.protocols import Finding, Problem
from ..core.errors import UsageError, VerifierError
from ..core.values import Verdict
from ..runtime.framework_search import (
    Attempt,
    FrameworkResult,
    FrameworkSearch,
    finding_on,
    framework,
    search_options,
)
from ..runtime.rewards import check_in
from ..usage import Usage

_PACKAGE = ("inspect_ai", "grv.adapters.inspect_ai")
_config = framework("inspect_ai.model._generate_config", *_PACKAGE)  # no public name has it
_log = framework("inspect_ai.log", *_PACKAGE)
_model = framework("inspect_ai.model", *_PACKAGE)
_scorer = framework("inspect_ai.scorer", *_PACKAGE)
_solver = framework("inspect_ai.solver", *_PACKAGE)
_util = framework("inspect_ai.util", *_PACKAGE)

Check = Mapping[str, Any] | str
_VERDICTS = {Verdict.PASSED: "C", Verdict.FAILED: "I"}
_REPORT = "grv"  # in the metadata of a sample
_SCORE = "score"  # in the evidence of a finding


@_solver.solver  # type: ignore[untyped-decorator]
def verified(
    policy: Any = None,
    costs: Any = (1, 10),
    budget: float | str | None = None,
    score: Callable[[Any], Any] | None = None,
    check: Check | None = None,
    *,
    cache: Any = None,
    **options: Any,
) -> Any:
    """A solver that generates until an answer is verified.

    Args:
        policy: decides what to do next, as in `grv.solve`.
        costs: the price list: of a candidate, of a verification.
        budget: the highest cost of one sample.
        score: a function of the `TaskState` of a candidate that returns a number.
        check: a check of grv, or the field of a sample's metadata that has it. By default the first
            scorer of the task verifies: a candidate passes if its value is 1.
        cache: inspect's cache for the model: True, False, a `CachePolicy` or its expiry, as `1W`.
            By default what the evaluation says (`inspect eval --cache`). Each candidate has its own
            entry.
        options: further options of `grv.solve`, such as `ledger` and `total_budget`.
    """
    given = {**options, "policy": policy, "costs": costs, "budget": budget}
    found = search_options(given, "verified")

    async def solve(state: Any, generate: Any) -> Any:
        sample = _Sample(state, cache)
        search = FrameworkSearch(
            _problem(state, check),
            f"inspect_ai {state.model}",
            sample.make,
            sample.restored,
            sample.passes if check is None else None,
            score,
            found,
            said=lambda made: str(made.output.completion),
        )
        sample.search = search
        try:
            return _reported(state, await search.run())
        except _util.LimitExceededError:
            for last in [*search.results.values()][-1:]:
                _answer(state, last)
            raise

    return solve


class _Sample:
    """The candidates of a sample."""

    search: FrameworkSearch

    def __init__(self, state: Any, cache: Any) -> None:
        self.state = state
        self.cache = cache

    async def make(self, number: int) -> Attempt:
        seed = _setting("seed")  # with one seed for all, so would be the texts
        own = {
            "cache": _cached(self.cache, number),
            "seed": None if seed is None else seed + number,
        }
        with _Measured() as used:
            made = await _solver.fork(self.state, _solver.generate(**own))
        found = made.output.choices[0].logprobs if made.output.choices else None
        logprobs = None if found is None else tuple(each.logprob for each in found.content)
        return Attempt(made, made.output.completion, used.usage, logprobs)

    def restored(self, text: str) -> Any:
        """A candidate of the ledger."""
        made = deepcopy(self.state)
        made.output = _model.ModelOutput.from_content(str(made.model), text)
        made.messages.append(made.output.message)
        return made

    async def passes(self, made: Any) -> Finding:
        """What the first scorer of the task says."""
        with _Measured() as used:
            try:
                scores = await _scorer.score(made)
            except _util.LimitExceededError as error:
                raise self.search.stop(error) from error
        if not scores:
            reason = "the task has no scorer: give verified() a check"
            raise VerifierError(reason, fault="stop")
        first = scores[0]
        value = _scorer.value_to_float()(first.value)
        verdict = Verdict.PASSED if value == 1 else Verdict.FAILED
        if math.isnan(value):
            verdict = Verdict.BROKEN
        said = {_SCORE: first.model_dump(mode="json", exclude_none=True)}
        return Finding(verdict, str(first.explanation or first.value), said, used.usage)


class _Measured:
    """Measures what the models use in its context."""

    usage: Usage

    def __enter__(self) -> _Measured:
        self._limits = ExitStack()
        self._tokens = self._limits.enter_context(_util.token_limit(None))
        self._written = self._limits.enter_context(_util.token_limit(None, type="output"))
        self._dollars = self._limits.enter_context(_util.cost_limit(None))
        return self

    def __exit__(self, *_: object) -> None:
        self._limits.close()
        tokens = int(self._tokens.usage)
        written = int(self._written.usage)
        is_known = self._dollars.usage or not tokens  # without prices, inspect adds up nothing
        dollars = float(self._dollars.usage) if is_known else None
        self.usage = Usage(tokens - written, written, dollars=dollars)


def _setting(name: str) -> Any:
    """A setting of the evaluation, or else of its model."""
    active = getattr(_config.active_generate_config(), name, None)
    return getattr(_model.get_model().config, name, None) if active is None else active


def _cached(cache: Any, number: int) -> Any:
    """The cache of a candidate: without a scope of its own it would be the first one again."""
    if cache is None:
        cache = _setting("cache")
    if not cache:
        return False
    policy = _model.CachePolicy() if cache is True else cache
    if isinstance(cache, str):
        policy = _model.CachePolicy.from_string(cache)
        if policy is None:
            raise UsageError(f"cache={cache!r}: give True, False, a CachePolicy, or a time as 1W")
    return policy.model_copy(update={"scopes": {**policy.scopes, _REPORT: str(number)}})


def _problem(state: Any, check: Check | None) -> Problem:
    """A sample in an epoch; another attempt of inspect at it is the same problem."""
    name = f"{state.sample_id}/{state.epoch}"
    messages = [{"role": each.role, "content": each.text} for each in state.messages]
    problem = Problem(name, state.input_text, messages=tuple(messages))
    if check is None:
        return problem
    return replace(problem, check=_check_of(state, check))


def _check_of(state: Any, check: Check) -> Mapping[str, Any]:
    if not isinstance(check, str):
        return check_in(check, "check")
    if check not in (state.metadata or {}):
        raise UsageError(f"sample {state.sample_id}: its metadata has no field {check}")
    return check_in(state.metadata[check], f"sample {state.sample_id}: {check}")


def _answer(state: Any, made: Any) -> None:
    state.messages = made.messages
    state.output = made.output


def _reported(state: Any, found: FrameworkResult) -> Any:
    """The state with the answer; outcome, bill and steps are in the log."""
    for step in found.steps:
        verdicts = {str(each): verdict.value for each, verdict in step.verdicts.items()}
        data = {"step": step.kind, "why": step.reason, "spent": step.spent, "ids": [*step.ids]}
        _log.transcript().info({**data, "verdicts": verdicts}, source=_REPORT)
    if found.result is not None:
        _answer(state, found.result)
    evidence = found.solution.finding.evidence if found.solution.finding is not None else {}
    report = found.report
    if _SCORE in evidence:
        report[_SCORE] = {**evidence[_SCORE], "of": state.output.completion}
    state.metadata = {**(state.metadata or {}), _REPORT: report}
    return state


@_scorer.scorer(metrics=[_scorer.accuracy(), _scorer.stderr()])  # type: ignore[untyped-decorator]
def checked(check: Check = "check") -> Any:
    """A scorer that carries out a check of grv: `C` for a pass, `I` for a failure.

    A broken verdict is no score: inspect leaves the sample out of its metrics.

    Args:
        check: the check, or the field of a sample's metadata that has it.
    """

    async def score(state: Any, target: Any) -> Any:
        text = state.output.completion
        found = await finding_on(_check_of(state, check), text, state.input_text)
        more = {"verdict": found.verdict.value, "evidence": dict(found.evidence)}
        if found.verdict is Verdict.BROKEN:
            return _scorer.Score(value=float("nan"), explanation=found.reason, metadata=more)
        value = _VERDICTS[found.verdict]
        return _scorer.Score(value=value, answer=text, explanation=found.reason, metadata=more)

    return score


@_scorer.scorer(metrics=[_scorer.accuracy(), _scorer.stderr()])  # type: ignore[untyped-decorator]
def once(scorer: Any) -> Any:
    """A scorer that is not asked again about the answer that `verified()` has found with it.

    Use it if the scorer costs money: `Task(..., scorer=once(model_graded_qa()))`.

    Args:
        scorer: the scorer.
    """

    async def score(state: Any, target: Any) -> Any:
        known = dict((state.metadata or {}).get(_REPORT, {}).get(_SCORE) or {})
        if known and known.pop("of") == state.output.completion:
            return _scorer.Score(**known)
        return await scorer(state, target)

    return score


__all__ = ["checked", "once", "verified"]
