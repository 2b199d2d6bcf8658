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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..core.values import Verdict
from .protocols import Draft, Finding, Problem, Score
from .protocols import Usage as Usage

if TYPE_CHECKING:
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

    def results(self, results: Any) -> None:
        """Add what a call returned."""

    def attributes(self, attributes: Callable[[], Mapping[str, Any]]) -> None:
        """Add attributes; None stands for one that is unknown."""

    def answered(self, scope: Mapping[str, Any], status: int) -> None:
        """Add how a request was answered; `scope` is that of its ASGI application."""


_NOTHING = nullcontext(Told())


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
    return _span(found, f"invoke_workflow {_NAME}", attributes)


def calling(made: object, backend: object) -> AbstractContextManager[Told]:
    """The span of a call with its retries; `made` has the property `traced` if it is to have one."""
    found = tracer()
    if found is None:
        return _NOTHING
    call: TracedCall | None = getattr(made, "traced", None)
    if call is None:
        return _NOTHING
    attributes: dict[str, Any] = {"grv.call": call.kind, "grv.candidates": list(call.candidates)}
    if call.kind == "generate":
        operation = {True: "chat", False: "text_completion"}.get(
            getattr(backend, "chat", None), "generate_content"
        )
        name = f"{operation} {call.model}".strip()
        attributes["gen_ai.operation.name"] = operation
        attributes["gen_ai.provider.name"] = call.provider or "_OTHER"
        attributes["gen_ai.request.choice.count"] = len(call.candidates)
        if call.model:
            attributes["gen_ai.request.model"] = call.model
        if call.url:
            attributes |= _server(call.url)
        if _texts_wanted():
            attributes["gen_ai.input.messages"] = _messages("user", [call.problem.prompt])
        return _span(found, name, attributes, call, kind=_CLIENT)
    what = _evaluation(call, backend)
    return _span(found, f"{call.kind} {what}", attributes, call, evaluation=what)


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
    return _span(found, method, attributes, kind=_SERVER, parent=parent)


def headers() -> dict[str, str] | None:
    """What a request to another server says about the span that it belongs to."""
    if tracer() is None:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return {_PARENT: carrier[_PARENT]} if _PARENT in carrier else None


_CLIENT = "CLIENT"
_SERVER = "SERVER"
_INTERNAL = "INTERNAL"


@contextmanager
def _span(
    tracer: Tracer,
    name: str,
    attributes: Mapping[str, Any],
    call: TracedCall | None = None,
    *,
    kind: str = _INTERNAL,
    parent: Context | None = None,
    evaluation: str = "",
) -> Iterator[Told]:
    """The current span. An error leaves its class in it, never its message."""
    from opentelemetry.trace import SpanKind, Status, StatusCode

    with tracer.start_as_current_span(
        name,
        parent,
        SpanKind[kind],
        attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield _Recorded(span, call, evaluation)
        except BaseException as error:
            span.set_attribute("error.type", type(error).__name__)
            if isinstance(error, Exception):  # neither a cancelled call nor Ctrl-C is an error
                span.set_status(Status(StatusCode.ERROR))
            raise


@dataclass(frozen=True, slots=True)
class _Recorded(Told):
    """Adds to a span.

    Attributes:
        span: the span.
        call: the call, if it is one.
        evaluation: what gives scores or verdicts, if the call does.
    """

    span: Span
    call: TracedCall | None
    evaluation: str

    def attributes(self, attributes: Callable[[], Mapping[str, Any]]) -> None:
        if self.span.is_recording():
            self._add(attributes())

    def answered(self, scope: Mapping[str, Any], status: int) -> None:
        route = getattr(scope.get("route"), "path", None)
        if route is not None:
            self.span.update_name(f"{scope['method'][:16]} {route}")
        about = {"http.route": route, "grv.search.id": scope["grv"].get("search")}
        self._add({**about, "http.response.status_code": status})

    def _add(self, attributes: Mapping[str, Any]) -> None:
        self.span.set_attributes({n: each for n, each in attributes.items() if each is not None})

    def results(self, results: Any) -> None:
        call = self.call
        if call is None or not self.span.is_recording():
            return
        every = [results] if isinstance(results, Finding) else list(results)
        usage = [each.usage for each in every]
        self._add(
            {
                "gen_ai.usage.input_tokens": sum([each.prompt_tokens for each in usage]) or None,
                "gen_ai.usage.output_tokens": sum([u.completion_tokens for u in usage]) or None,
                "grv.cost": call.cost(every),
                "grv.cost.dollars": call.dollars(every),
            }
        )
        match results:
            case Finding():
                self.span.set_attribute("grv.verdict", results.verdict.value)
                self._event(results.verdict.value, _LABELS.get(results.verdict), results.reason)
            case _ if self.evaluation:
                for id, score in zip(call.candidates, every, strict=False):
                    self._event("", score.value, score.reason, id)
            case _ if _texts_wanted():
                texts = _messages("assistant", [draft.text for draft in every])
                self.span.set_attribute("gen_ai.output.messages", texts)

    def _event(self, label: str, value: float | None, why: str, id: int | None = None) -> None:
        """What was found about a candidate. Reasons may repeat texts of a model."""
        found = {
            "gen_ai.evaluation.name": self.evaluation,
            "gen_ai.evaluation.score.value": value,
            "gen_ai.evaluation.score.label": label or None,
            "gen_ai.evaluation.explanation": _text(why) if why and _texts_wanted() else None,
            "grv.candidate": id,
        }
        known = {name: each for name, each in found.items() if each is not None}
        self.span.add_event("gen_ai.evaluation.result", known)


def _evaluation(call: TracedCall, backend: object) -> str:
    """What gives a score or a verdict: the kind of the check, or the class of the backend."""
    kind = call.problem.check.get("kind") if call.kind == "verify" else None
    return _text(kind)[:_LONGEST] if isinstance(kind, str) else type(backend).__name__


def _server(url: str) -> dict[str, Any]:
    """The host and the port of an address; nothing else of it."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return {}
    known = {"server.address": parts.hostname, "server.port": port}
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
