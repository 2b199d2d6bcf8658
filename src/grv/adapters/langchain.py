"""LangChain and LangGraph: a Runnable that runs another one until its output is verified.

    Verified(prompt | model, passes, costs=(1, 10), budget=100).invoke({"question": "2 + 2"})

It returns `{"output": ..., "verified": ..., "grv": ...}`; `grv` has outcome and bill.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

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
from ..usage import NOTHING, UNUSED, Usage

_PACKAGE = ("langchain-core", "grv.adapters.langchain")
_callbacks = framework("langchain_core.callbacks", *_PACKAGE)
_exceptions = framework("langchain_core.exceptions", *_PACKAGE)
_messages = framework("langchain_core.messages", *_PACKAGE)
_runnables = framework("langchain_core.runnables", *_PACKAGE)
_CallbackHandler: Any = _callbacks.BaseCallbackHandler
_Runnable: Any = _runnables.Runnable

Deciding = Callable[[Any, Any], Any]  # of the input and the output


class Verified(_Runnable):  # type: ignore[misc]
    """A Runnable that runs another one until its output is verified.

    Args:
        runnable: makes the candidates: a model, a chain, an agent, a compiled graph.
        verifier: a function of the input and the output that says whether it is right.
        score: a function of the same that returns a number, higher for better outputs.
        costs: the price list: of a candidate, of a verification.
        budget: the highest cost of one call.
        check: in place of a verifier, a check of grv, or a function of the input that returns it.
        options: further options of `grv.solve`, such as `policy`, `ledger`, `total_budget`.
    """

    def __init__(
        self,
        runnable: Any,
        verifier: Deciding | None = None,
        score: Deciding | None = None,
        costs: Any = (1, 10),
        budget: float | str | None = None,
        *,
        check: Mapping[str, Any] | Callable[[Any], Any] | None = None,
        **options: Any,
    ) -> None:
        if (verifier is None) == (check is None):
            raise UsageError("grv.adapters.langchain: give a verifier or a check")
        self.runnable = runnable
        self.verifier = verifier
        self.score = score
        self.check = check
        self.options = search_options({**options, "costs": costs, "budget": budget}, "Verified")

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> dict[str, Any]:
        """Search for a verified output."""
        found = self._call_with_config(self._solve_now, input, config, **kwargs)
        return dict(found)

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> dict[str, Any]:
        """Search for a verified output."""
        found = await self._acall_with_config(self._solve, input, config, **kwargs)
        return dict(found)

    def _solve_now(self, given: Any, config: Any, **kwargs: Any) -> dict[str, Any]:
        def make(number: int) -> Attempt:
            used = _UsageHandler()
            try:
                output = self.runnable.invoke(given, used.added_to(config), **kwargs)
            except _exceptions.OutputParserException as error:
                return used.broken(error)
            return used.attempt(output)

        return _reported(self._search(given, make).run_now())

    async def _solve(self, given: Any, config: Any, **kwargs: Any) -> dict[str, Any]:
        async def make(number: int) -> Attempt:
            used = _UsageHandler()
            try:
                output = await self.runnable.ainvoke(given, used.added_to(config), **kwargs)
            except _exceptions.OutputParserException as error:
                return used.broken(error)
            return used.attempt(output)

        return _reported(await self._search(given, make).run())

    def _search(self, given: Any, make: Callable[[int], Any]) -> FrameworkSearch:
        problem = one_problem(given if isinstance(given, str) else _as_text(given))
        if self.check is not None:
            found = self.check(given) if callable(self.check) else self.check
            problem = replace(problem, check=check_in(found, "check"))
        return FrameworkSearch(
            problem,
            f"langchain {self.runnable.get_name()}",
            make,
            _restored,
            _of_output(self.verifier, given),
            _of_output(self.score, given),
            self.options,
            said=_said,
            functions=(self.verifier, self.score),
        )


class _UsageHandler(_CallbackHandler):  # type: ignore[misc]
    """Adds up what the models of one candidate used."""

    def __init__(self) -> None:
        self.usage = NOTHING

    def added_to(self, config: Any) -> Any:
        """The configuration of a call, with this handler."""
        return _runnables.config.merge_configs(config, {"callbacks": [self]})

    def on_llm_end(self, response: Any, **_: Any) -> None:
        for generations in response.generations:
            for each in generations:
                said = getattr(each, "message", None)
                self.usage += _usage_of(said)

    def attempt(self, output: Any) -> Attempt:
        return Attempt(output, _as_text(output), self.usage)

    def broken(self, error: Exception) -> Attempt:
        """An answer that the parser of the chain cannot read."""
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return Attempt(None, "", self.usage, broken=lines[0])


def _usage_of(message: Any) -> Usage:
    """What a model used for a message; its dollars, if the price of the model is known."""
    said = getattr(message, "usage_metadata", None)
    if not said:
        return UNUSED
    prompt = said.get("input_token_details") or {}
    completion = said.get("output_token_details") or {}
    usage = Usage(
        said.get("input_tokens", 0),
        said.get("output_tokens", 0),
        cached_tokens=prompt.get("cache_read") or 0,
        cache_write_tokens=prompt.get("cache_creation") or 0,
        reasoning_tokens=completion.get("reasoning") or 0,
    )
    by = message.response_metadata
    return priced(usage, str(by.get("model_name", "")), str(by.get("model_provider", "")))


def _as_text(output: Any) -> str:
    """An output as JSON; of a message, only what it says and the tools that it calls."""
    if isinstance(output, _messages.BaseMessage):
        calls = getattr(output, "tool_calls", None) or []
        return json.dumps({"content": output.content, "tool_calls": calls}, default=str)
    return json.dumps({"data": output}, default=_plain, sort_keys=True)


def _restored(text: str) -> Any:
    data = json.loads(text)
    return data["data"] if "data" in data else _messages.AIMessage(**data)


def _plain(value: Any) -> Any:
    """A value without a form in JSON of its own."""
    if isinstance(value, _messages.BaseMessage):
        return {"role": value.type, "content": value.content}
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)


def _said(output: Any) -> str:
    """The text that a check is about."""
    if isinstance(output, str):
        return output
    if isinstance(output, _messages.BaseMessage):
        return str(output.text)
    return json.dumps(output, default=_plain, sort_keys=True)


def _of_output(function: Deciding | None, given: Any) -> Any:
    return None if function is None else lambda output: function(given, output)


def _reported(found: FrameworkResult) -> dict[str, Any]:
    return {
        "output": found.result,
        "verified": found.solution.verified,
        "grv": found.report,
    }


__all__ = ["Verified"]
