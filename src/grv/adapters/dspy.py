"""DSPy: a module that runs another one until a prediction is verified, within a budget.

    Verified(dspy.ChainOfThought("question -> answer"), passes, costs=(1, 10), budget=100)

It is called as every module is, also with `acall`. Each candidate has a rollout of its own, so that
DSPy's cache does not repeat it. The module's history has the calls of all candidates.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ..core.errors import UsageError
from ..runtime.arguments import one_problem
from ..runtime.framework_search import (
    Attempt,
    FrameworkResult,
    FrameworkSearch,
    framework,
    priced,
    search_options,
)
from ..runtime.rewards import check_in
from ..text import checksum
from ..usage import NOTHING, Usage

dspy = framework("dspy", "dspy", "grv.adapters.dspy")
_Module: Any = dspy.Module

Deciding = Callable[[Mapping[str, Any], Any], Any]  # of the inputs and the prediction


class _Made(NamedTuple):
    """A prediction, and what its predictors did, which optimizers read."""

    prediction: Any
    trace: list[Any]


class Verified(_Module):  # type: ignore[misc]
    """A module that runs another one until a prediction is verified.

    The prediction has the field `grv` with outcome and bill. `prediction.grv["answer_verified"]`
    says whether it passed; if none did, it is the best candidate, and its fields are None if there
    is no candidate at all.

    Args:
        module: makes the candidates.
        verifier: a function of the inputs and the prediction, as `reward_fn` of `dspy.BestOfN`,
            that returns whether it is right: True or False, not a reward.
        score: a function of the same that returns a number, higher for better predictions.
        costs: the price list: of a candidate, of a verification.
        budget: the highest cost of one call.
        check: in place of a verifier, a check of grv, or a function of the inputs that returns it.
        field: the output field that the check is about; by default the last one.
        options: further options of `grv.solve`, such as `policy`, `ledger`, `total_budget`.
    """

    def __init__(
        self,
        module: Any,
        verifier: Deciding | None = None,
        score: Deciding | None = None,
        costs: Any = (1, 10),
        budget: float | str | None = None,
        *,
        check: Mapping[str, Any] | Callable[[Mapping[str, Any]], Any] | None = None,
        field: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        if (verifier is None) == (check is None):
            raise UsageError("grv.adapters.dspy: give a verifier or a check")
        self.module = module
        self.options = search_options({**options, "costs": costs, "budget": budget}, "Verified")
        self.functions = (verifier, score, check)
        self.field = field

    def forward(self, **inputs: Any) -> Any:
        """Search for a verified prediction."""
        return self._reported(self._search(inputs, self._attempt).run_now())

    async def aforward(self, **inputs: Any) -> Any:
        """Search for a verified prediction."""
        return self._reported(await self._search(inputs, self._asynchronous_attempt).run())

    def _search(self, inputs: Mapping[str, Any], attempt: Callable[..., Any]) -> FrameworkSearch:
        verifier, score, check = self.functions
        asked = json.dumps(dspy.Example(**inputs).toDict(), sort_keys=True, default=str)
        problem = one_problem(asked)
        if check is not None:
            found = check(inputs) if callable(check) else check
            problem = replace(problem, check=check_in(found, "check"))
        return FrameworkSearch(
            problem,
            self._name(),
            lambda number: attempt(_Rollout(self.module, number), inputs),
            lambda text: _Made(dspy.Prediction(**json.loads(text)), []),
            _of_prediction(verifier, inputs),
            _of_prediction(score, inputs),
            self.options,
            said=self._said,
            functions=(verifier, score),
        )

    def _attempt(self, rollout: _Rollout, inputs: Mapping[str, Any]) -> Attempt:
        with dspy.context(trace=[]):
            try:
                return rollout.attempt(rollout(**inputs))
            except dspy.utils.exceptions.AdapterParseError as error:
                return rollout.broken(error)

    async def _asynchronous_attempt(self, rollout: _Rollout, inputs: Mapping[str, Any]) -> Attempt:
        with dspy.context(trace=[]):
            try:
                return rollout.attempt(await rollout.acall(**inputs))
            except dspy.utils.exceptions.AdapterParseError as error:
                return rollout.broken(error)

    def _outputs(self) -> list[str]:
        """The output fields of the module's last predictor."""
        predictors = self.module.predictors()
        return [*predictors[-1].signature.output_fields] if predictors else []

    def _said(self, made: _Made) -> str:
        names = [self.field] if self.field else (self._outputs() or [*made.prediction.keys()])[-1:]
        return str(made.prediction.get(names[0], "")) if names else ""

    def _name(self) -> str:
        """The module with its prompts and models, as the ledger names it."""
        models = [repr(_model(each).model) for each in self.module.predictors()]
        state = json.dumps([self.module.dump_state(), models], sort_keys=True, default=str)
        return f"dspy {type(self.module).__name__} {checksum(state)[:16]}"

    def _reported(self, found: FrameworkResult) -> Any:
        if found.result is None:
            return dspy.Prediction(**dict.fromkeys(self._outputs()), grv=found.report)
        prediction, trace = found.result
        if dspy.settings.trace is not None:
            dspy.settings.trace.extend(trace)
        prediction.grv = found.report
        return prediction


class _Rollout(_Module):  # type: ignore[misc]
    """One run of a module. Its history has the calls of this run only."""

    def __init__(self, module: Any, number: int) -> None:
        super().__init__()
        self.module = module.deepcopy()
        for predictor in self.module.predictors():
            model = _model(predictor)
            rollout = (model.kwargs.get("rollout_id") or 0) + number
            warmth = model.kwargs.get("temperature") or 1.0
            predictor.lm = model.copy(rollout_id=rollout, temperature=warmth)

    def forward(self, **inputs: Any) -> Any:
        return self.module(**inputs)

    async def aforward(self, **inputs: Any) -> Any:
        return await self.module.acall(**inputs)

    def attempt(self, prediction: Any) -> Attempt:
        """The prediction, with what its calls used."""
        text = json.dumps(prediction.toDict(), sort_keys=True, default=str)
        return Attempt(_Made(prediction, [*(dspy.settings.trace or ())]), text, self._usage())

    def broken(self, error: Exception) -> Attempt:
        """An answer that does not have the fields of the signature."""
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return Attempt(None, "", self._usage(), broken=lines[0])

    def _usage(self) -> Usage:
        return sum(map(_usage_of, self.history), NOTHING)


def _usage_of(entry: Mapping[str, Any]) -> Usage:
    """What a call used, as the history says; an answer of the cache used nothing."""
    used = entry.get("usage") or {}
    if not used:
        return NOTHING
    prompt = int(used.get("prompt_tokens") or 0)
    completion = int(used.get("completion_tokens") or 0)
    usage = Usage(prompt, completion, dollars=entry.get("cost"))
    if usage.dollars is not None:
        return usage
    provider, _, model = str(entry.get("model")).partition("/")
    return priced(usage, model, provider)


def _model(predictor: Any) -> Any:
    model = predictor.lm or dspy.settings.lm
    if model is None:
        raise UsageError("no language model: dspy.configure(lm=dspy.LM(...))")
    return model


def _of_prediction(function: Deciding | None, inputs: Mapping[str, Any]) -> Any:
    """A function of the inputs and the prediction as one of what was made."""
    if function is None:
        return None
    return lambda made: function(inputs, made.prediction)


__all__ = ["Verified"]
