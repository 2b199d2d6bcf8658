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
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from ..core.values import Verdict
from .protocols import Draft, Finding, Problem, Score

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

_NAME = "grv"
_LONGEST = 100  # characters of a name that comes from a record
_TEXTS = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_ASKED = ("true", "span_only", "span_and_event")
_LABELS = {Verdict.PASSED: 1.0, Verdict.FAILED: 0.0}
_PARENT = "traceparent"
_EVENT = "gen_ai.evaluation.result"

Results = Sequence[Draft] | Sequence[Score] | Sequence[Finding]


class TracedCall(NamedTuple):
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
# kinds of spans
CLIENT = "CLIENT"
SERVER = "SERVER"
INTERNAL = "INTERNAL"


class _Recorder:
    """What a provider and the API of OpenTelemetry offer, looked up once."""

    def __init__(self, provider: Any) -> None:
        from opentelemetry.context import attach, detach
        from opentelemetry.trace import SpanKind, set_span_in_context

        self.start = provider.get_tracer(_NAME).start_span
        self.attach = attach
        self.detach = detach
        self.in_context = set_span_in_context
        self.kinds = {kind.name: kind for kind in SpanKind}


_recorders: dict[Any, _Recorder] = {}  # of the provider of this process


def recorder() -> _Recorder | None:
    """What makes spans; None if nobody in this process records any."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    provider = api.get_tracer_provider()
    known = _recorders.get(provider)
    if known is None:
        if isinstance(provider, api.ProxyTracerProvider):
            return None
        _recorders.clear()
        known = _recorders[provider] = _Recorder(provider)
    return known


def searching(problem: Problem, search: str) -> AbstractContextManager[Told]:
    """The span of a search, from its turn's begin to its end."""
    known = recorder()
    if known is None:
        return _NOTHING
    attributes = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": _NAME,
        "grv.search.id": search,
    }
    if _texts_wanted():  # the id of a problem may be its prompt
        attributes["grv.problem.id"] = _text(problem.id)
    return _Span(known, f"invoke_workflow {_NAME}", attributes)


def calling(made: object, backend: object) -> AbstractContextManager[Told]:
    """The span of a call with its retries, if `made` has the property `traced`."""
    known = recorder()
    if known is None:
        return _NOTHING
    call: TracedCall | None = getattr(made, "traced", None)
    if call is None:
        return _NOTHING
    if call.kind != "generate":
        what = _evaluation(call, backend)
        return _Span(known, f"{call.kind} {what}", {}, call, evaluation=what)
    chat = getattr(backend, "chat", None)
    operation = (
        "chat" if chat is True else "text_completion" if chat is False else "generate_content"
    )
    number = len(call.candidates)
    attributes = dict(_request(operation, call.provider, call.model, call.url, number))
    if texts := _texts_wanted():
        attributes["gen_ai.input.messages"] = _messages("user", [call.problem.prompt])
    name = f"{operation} {call.model}".strip()
    return _Span(known, name, attributes, call, kind=CLIENT, texts=texts)


def answering(scope: Mapping[str, Any]) -> AbstractContextManager[Told]:
    """The span of a request to this server, below that of its client if it names one."""
    known = recorder()
    if known is None:
        return _NOTHING
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    given = [value for name, value in scope["headers"] if name == _PARENT.encode()]
    carrier = {_PARENT: given[0].decode("latin-1")} if len(given) == 1 else {}
    parent = TraceContextTextMapPropagator().extract(carrier)
    method = scope["method"][:16]
    attributes = {"http.request.method": method}
    return _Span(known, method, attributes, kind=SERVER, parent=parent)


def headers() -> dict[str, str] | None:
    """What a request to another server says about the span that it belongs to."""
    if recorder() is None:
        return None
    context = sys.modules["opentelemetry.trace"].get_current_span().get_span_context()
    if not context.is_valid:
        return None
    ids = f"{context.trace_id:032x}-{context.span_id:016x}"
    return {_PARENT: f"00-{ids}-{context.trace_flags:02x}"}


class _Span(Told):
    """The current span of a context. An error leaves its class in it, never its message.

    Args:
        recorder: starts it.
        name: its name.
        attributes: what it says at its start, for samplers too.
        call: the call, if it is one.
        kind: a `SpanKind`, by name.
        parent: the span of a client.
        evaluation: what gives scores or verdicts, if the call does.
        texts: whether to add the texts of drafts.
    """

    __slots__ = (
        "_attributes",
        "_call",
        "_evaluation",
        "_kind",
        "_name",
        "_parent",
        "_recorder",
        "_span",
        "_texts",
        "_token",
    )

    def __init__(
        self,
        recorder: _Recorder,
        name: str,
        attributes: Mapping[str, Any],
        call: TracedCall | None = None,
        *,
        kind: str = INTERNAL,
        parent: Context | None = None,
        evaluation: str = "",
        texts: bool = False,
    ) -> None:
        self._recorder = recorder
        self._name = name
        self._attributes = attributes
        self._call = call
        self._kind = kind
        self._parent = parent
        self._evaluation = evaluation
        self._texts = texts

    def __enter__(self) -> Told:
        known = self._recorder
        kind = known.kinds[self._kind]
        self._span: Span = known.start(self._name, self._parent, kind, self._attributes)
        self._token = known.attach(known.in_context(self._span))
        return self

    def __exit__(self, kind: type[BaseException] | None, *about: object) -> None:
        if kind is not None:
            self._tell_error(kind)
        self._recorder.detach(self._token)
        self._span.end()

    def _tell_error(self, kind: type[BaseException]) -> None:
        from opentelemetry.trace import Status, StatusCode

        self._span.set_attribute("error.type", kind.__name__)
        if issubclass(kind, Exception):  # neither a cancelled call nor Ctrl-C is an error
            self._span.set_status(Status(StatusCode.ERROR))

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
        about: dict[str, Any] = {"grv.candidate": call.candidates[0]}
        received = 0
        written = 0
        for each in every:
            received += each.usage.prompt_tokens
            written += each.usage.completion_tokens
        # nothing is said of what is free
        if received:
            about["gen_ai.usage.input_tokens"] = received
        if written:
            about["gen_ai.usage.output_tokens"] = written
        if cost := call.cost(every):
            about["grv.cost"] = cost
        if dollars := call.dollars(every):
            about["grv.cost.dollars"] = dollars
        match results:
            case Finding():
                about["grv.verdict"] = results.verdict.value
                number = _LABELS.get(results.verdict)
                self._event(call.candidates[0], results.verdict.value, number, results.reason)
            case _ if self._evaluation:
                for id, score in zip(call.candidates, every, strict=False):
                    self._event(id, None, score.value, score.reason)
            case _ if self._texts:
                texts = _messages("assistant", [draft.text for draft in every])
                about["gen_ai.output.messages"] = texts
        self._span.set_attributes(about)

    def _event(self, id: int, label: str | None, value: float | None, why: str) -> None:
        """What was found about a candidate. Reasons may repeat texts of a model."""
        found: dict[str, Any] = {"gen_ai.evaluation.name": self._evaluation, "grv.candidate": id}
        if value is not None:
            found["gen_ai.evaluation.score.value"] = value
        if label is not None:
            found["gen_ai.evaluation.score.label"] = label
        if why and _texts_wanted():
            found["gen_ai.evaluation.explanation"] = _text(why)
        self._span.add_event(_EVENT, found)


def _evaluation(call: TracedCall, backend: object) -> str:
    """What gives a score or a verdict: the kind of the check, or the class of the backend."""
    kind = call.problem.check.get("kind") if call.kind == "verify" else None
    return _text(kind)[:_LONGEST] if isinstance(kind, str) else type(backend).__name__


@lru_cache
def _request(operation: str, provider: str, model: str, url: str, count: int) -> Mapping[str, Any]:
    """What a span says of a request: of the address only the host and the port."""
    about: dict[str, Any] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": provider or "_OTHER",
        "gen_ai.request.choice.count": count,
        "gen_ai.request.model": model or None,
    }
    with suppress(ValueError):
        parts = urlsplit(url)
        about |= {"server.address": parts.hostname, "server.port": parts.port}
    return {name: each for name, each in about.items() if each is not None}


def _texts_wanted() -> bool:
    return os.environ.get(_TEXTS, "").lower() in _ASKED


def _messages(role: str, texts: Iterable[str]) -> str:
    """Messages as the conventions write them."""
    parts = [{"role": role, "parts": [{"type": "text", "content": each}]} for each in texts]
    return json.dumps(parts)


def _text(text: str) -> str:
    """A text that an exporter can encode."""
    return text.encode("utf-8", "replace").decode()
