"""Where the spans of a command go, as the environment variables of OpenTelemetry say."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from .. import __version__
from ..core.errors import UsageError, installing
from .console import say

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

VARIABLE = "OTEL_TRACES_EXPORTER"
_GROUP = "opentelemetry_traces_exporter"  # of entry points
_ALIASES = {"otlp": "otlp_proto_http"}
_UNNAMED = "unknown_service"  # how the SDK calls a service without a name


@contextmanager
def exported() -> Iterator[None]:
    """Send the spans of this process to the exporters that the environment names, if it does."""
    is_off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if is_off or os.environ[VARIABLE].lower() in ("", "none"):
        yield
        return
    try:
        import opentelemetry.sdk.trace
    except ImportError as error:
        raise UsageError(
            f"{VARIABLE} is set, and spans need opentelemetry-sdk: {installing('otel')}"
        ) from error
    logger = logging.getLogger("opentelemetry")
    logger.addHandler(_OneLine())
    logger.propagate = False
    provider = _provider()
    opentelemetry.trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()


class _OneLine(logging.Handler):
    """Prints what the SDK complains about in one line, without a traceback, once."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record, if none like it was printed."""
        if record.msg not in self._told:
            self._told.add(record.msg)
            say(f"grv: spans: {record.getMessage()}", err=True)


def _provider() -> TracerProvider:
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({SERVICE_VERSION: __version__})
    if str(resource.attributes[SERVICE_NAME]).startswith(_UNNAMED):
        resource = resource.merge(Resource({SERVICE_NAME: "grv"}))
    provider = TracerProvider(resource=resource)
    for name in os.environ[VARIABLE].split(","):
        provider.add_span_processor(BatchSpanProcessor(_exporter(name.strip().lower())))
    return provider


def _exporter(name: str) -> SpanExporter:
    known = {each.name: each for each in entry_points(group=_GROUP)}
    wanted = _ALIASES.get(name, name)
    if wanted not in known:
        names = ", ".join(sorted(known)) or "none"
        raise UsageError(f"{VARIABLE} {name}: no such exporter is installed; there are {names}")
    exporter: SpanExporter = known[wanted].load()()
    return exporter
