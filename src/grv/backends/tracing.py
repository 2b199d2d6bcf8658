"""Spans of OpenTelemetry for searches, calls and requests, if this process records any.

A program records spans if it has set a tracer provider; `grv` does so if OTEL_TRACES_EXPORTER says
where they go. Otherwise nothing is imported, and a call costs one look into `sys.modules`.

Names are those of the conventions for generative AI, which are in development. What they lack has
the prefix `grv.`. No span has a text of a model, a prompt or a key, unless the operator asks for
texts by OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..core.values import Verdict
from .protocols import Draft, Finding, Problem, Score

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

_NAME = "grv"
_LONGEST = 100  # characters of a name that comes from a record
_TEXTS = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_ASKED = ("true", "span_only", "span_and_event")
_LABELS = {Verdict.PASSED: 1.0, Verdict.FAILED: 0.0}
_PARENT = "traceparent"

Results = Sequence[Draft] | Sequence[Score] | Sequence[Finding]
_tracers: dict[Any, Tracer] = {}  # of the provider of this process


@dataclass(frozen=True)
class TracedCall:
    """What a span says about a call before it is made, and what its results cost.

    Attributes:
        kind: generate, score, rescore or verify.
        problem: what the call is for.
        candidates: the numbers of the candidates in the ledger.
        model: the model of the generator; empty if it has none.
        provider: who serves it; empty if that is unknown.
        url: its address; empty if it is the provider's own.
        cost: what results cost, in the unit of the search; None if that is unknown.
        dollars: what results cost in dollars; None if that is unknown.
    """

    kind: str
    problem: Problem
    candidates: Sequence[int]
    model: str
    provider: str
    url: str
    cost: Callable[[Results], float | None]
    dollars: Callable[[Results], float | None]


class Told:
    """Takes what a span says at its end. This one records nothing."""

    __slots__ = ()

    def results(self, results: Any) -> None:
        """Add what a call returned."""

    def attributes(self, attributes: Callable[[], Mapping[str, Any]]) -> None:
        """Add attributes; None stands for one that is unknown."""

    def answered(self, scope: Mapping[str, Any], status: int) -> None:
        """Add how a request was answered; `scope` is that of its ASGI application."""


_NOTHING = nullcontext(Told())
_OPERATIONS = {"True": "chat", "False": "text_completion"}  # by what a generator takes
# kinds of spans
CLIENT = "CLIENT"
SERVER = "SERVER"
INTERNAL = "INTERNAL"


def tracer() -> Tracer | None:
    """What makes spans; None if nobody in this process records any."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    provider = api.get_tracer_provider()
    if isinstance(provider, api.ProxyTracerProvider):
        return None
    found = _tracers.get(provider)
    if found is None:
        _tracers.clear()
        found = _tracers[provider] = provider.get_tracer(_NAME)
    return found


def searching(problem: Problem, search: str) -> AbstractContextManager[Told]:
    """The span of a search, from its turn's begin to its end."""
    found = tracer()
    if found is None:
        return _NOTHING
    attributes = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": _NAME,
        "grv.search.id": search,
    }
    if _texts_wanted():  # the id of a problem may be its prompt
        attributes["grv.problem.id"] = _text(problem.id)
    return _Span(found, f"invoke_workflow {_NAME}", attributes)


def calling(made: object, backend: object) -> AbstractContextManager[Told]:
    """The span of a call with its retries, if `made` has the property `traced`."""
    found = tracer()
    if found is None:
        return _NOTHING
    call: TracedCall | None = getattr(made, "traced", None)
    if call is None:
        return _NOTHING
    if call.kind != "generate":
        what = _evaluation(call, backend)
        return _Span(found, f"{call.kind} {what}", {}, call, evaluation=what)
    operation = _OPERATIONS.get(str(getattr(backend, "chat", "")), "generate_content")
    attributes = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": call.provider or "_OTHER",
        "gen_ai.request.choice.count": len(call.candidates),
        **_model(call.model, call.url),
    }
    if _texts_wanted():
        attributes["gen_ai.input.messages"] = _messages("user", [call.problem.prompt])
    return _Span(found, f"{operation} {call.model}".strip(), attributes, call, kind=CLIENT)


def answering(scope: Mapping[str, Any]) -> AbstractContextManager[Told]:
    """The span of a request to this server, below that of its client if it names one."""
    found = tracer()
    if found is None:
        return _NOTHING
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    given = [value for name, value in scope["headers"] if name == _PARENT.encode()]
    carrier = {_PARENT: given[0].decode("latin-1")} if len(given) == 1 else {}
    parent = TraceContextTextMapPropagator().extract(carrier)
    method = scope["method"][:16]
    attributes = {"http.request.method": method}
    return _Span(found, method, attributes, kind=SERVER, parent=parent)


def headers() -> dict[str, str] | None:
    """What a request to another server says about the span that it belongs to."""
    if tracer() is None:
        return None
    context = sys.modules["opentelemetry.trace"].get_current_span().get_span_context()
    if not context.is_valid:
        return None
    ids = f"{context.trace_id:032x}-{context.span_id:016x}"
    return {_PARENT: f"00-{ids}-{context.trace_flags:02x}"}


class _Span(Told):
    """The current span of a context. An error leaves its class in it, never its message.

    Args:
        tracer: starts it.
        name: its name.
        attributes: what it says at its start.
        call: the call, if it is one.
        kind: a `SpanKind`, by name.
        parent: the span of a client.
        evaluation: what gives scores or verdicts, if the call does.
    """

    __slots__ = ("_call", "_evaluation", "_make", "_span", "_token")

    def __init__(
        self,
        tracer: Tracer,
        name: str,
        attributes: Mapping[str, Any],
        call: TracedCall | None = None,
        *,
        kind: str = INTERNAL,
        parent: Context | None = None,
        evaluation: str = "",
    ) -> None:
        self._make = partial(_started, tracer, name, parent, kind, attributes)
        self._call = call
        self._evaluation = evaluation

    def __enter__(self) -> Told:
        self._span, self._token = self._make()
        return self

    def __exit__(self, kind: type[BaseException] | None, *about: object) -> None:
        from opentelemetry.context import detach
        from opentelemetry.trace import Status, StatusCode

        if kind is not None:
            self._span.set_attribute("error.type", kind.__name__)
            if issubclass(kind, Exception):  # neither a cancelled call nor Ctrl-C is an error
                self._span.set_status(Status(StatusCode.ERROR))
        detach(self._token)
        self._span.end()

    def attributes(self, attributes: Callable[[], Mapping[str, Any]]) -> None:
        if self._span.is_recording():
            self._add(attributes())

    def answered(self, scope: Mapping[str, Any], status: int) -> None:
        route = getattr(scope.get("route"), "path", None)
        if route is not None:
            self._span.update_name(f"{scope['method'][:16]} {route}")
        about = {"http.route": route, "grv.search.id": scope["grv"].get("search")}
        self._add({**about, "http.response.status_code": status})

    def _add(self, attributes: Mapping[str, Any]) -> None:
        self._span.set_attributes({n: each for n, each in attributes.items() if each is not None})

    def results(self, results: Any) -> None:
        call = self._call
        if call is None or not self._span.is_recording():
            return
        every: list[Any] = [results] if isinstance(results, Finding) else list(results)
        usage = [each.usage for each in every]
        about = {
            "grv.candidate": call.candidates[0],
            "gen_ai.usage.input_tokens": sum([each.prompt_tokens for each in usage]) or None,
            "gen_ai.usage.output_tokens": sum([each.completion_tokens for each in usage]) or None,
            "grv.cost": call.cost(every) or None,  # nothing is said of what is free
            "grv.cost.dollars": call.dollars(every) or None,
        }
        match results:
            case Finding():
                about["grv.verdict"] = results.verdict.value
                number = _LABELS.get(results.verdict)
                self._event(call.candidates[0], results.verdict.value, number, results.reason)
            case _ if self._evaluation:
                for id, score in zip(call.candidates, every, strict=False):
                    self._event(id, None, score.value, score.reason)
            case _ if _texts_wanted():
                texts = _messages("assistant", [draft.text for draft in every])
                about["gen_ai.output.messages"] = texts
        self._add(about)

    def _event(self, id: int, label: str | None, value: float | None, why: str) -> None:
        """What was found about a candidate. Reasons may repeat texts of a model."""
        found = {
            "gen_ai.evaluation.name": self._evaluation,
            "gen_ai.evaluation.score.value": value,
            "gen_ai.evaluation.score.label": label,
            "gen_ai.evaluation.explanation": _text(why) if why and _texts_wanted() else None,
            "grv.candidate": id,
        }
        known = {name: each for name, each in found.items() if each is not None}
        self._span.add_event("gen_ai.evaluation.result", known)


def _started(
    tracer: Tracer, name: str, parent: Context | None, kind: str, attributes: Mapping[str, Any]
) -> tuple[Span, Token[Context]]:
    """A span that is the current one; and what ends that."""
    from opentelemetry.context import attach
    from opentelemetry.trace import SpanKind, set_span_in_context

    span = tracer.start_span(name, parent, SpanKind[kind], attributes)
    return span, attach(set_span_in_context(span))


def _evaluation(call: TracedCall, backend: object) -> str:
    """What gives a score or a verdict: the kind of the check, or the class of the backend."""
    kind = call.problem.check.get("kind") if call.kind == "verify" else None
    return _text(kind)[:_LONGEST] if isinstance(kind, str) else type(backend).__name__


@lru_cache
def _model(model: str, url: str) -> dict[str, Any]:
    """The model, and the host and the port of its address; nothing else of that."""
    known: dict[str, Any] = {"gen_ai.request.model": model or None}
    with suppress(ValueError):
        parts = urlsplit(url)
        known |= {"server.address": parts.hostname, "server.port": parts.port}
    return {name: each for name, each in known.items() if each is not None}


def _texts_wanted() -> bool:
    return os.environ.get(_TEXTS, "").lower() in _ASKED


def _messages(role: str, texts: Iterable[str]) -> str:
    """Messages as the conventions write them."""
    parts = [{"role": role, "parts": [{"type": "text", "content": each}]} for each in texts]
    return json.dumps(parts)


def _text(text: str) -> str:
    """A text that an exporter can encode."""
    return text.encode("utf-8", "replace").decode()
