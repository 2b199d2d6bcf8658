"""Spans: what the SDK exports of searches, calls and requests, and what it never does."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

import grv
from grv.backends import tracing
from grv.backends.generators.openai import OpenaiGenerator
from support.commands import refuses
from support.servers import FaultyServer
from support.serving import check, serving, write_job

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@contextmanager
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What is exported in this process: a provider of a process cannot be replaced."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    monkeypatch.undo()
    provider.shutdown()


def by_name(spans: Any) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans}


def solved(**more: Any) -> grv.Solution:
    found: grv.Solution = grv.solve_now(
        grv.Problem("secret name", "a secret question", {"kind": "own"}),
        generator=more.pop("generator", lambda problem: "a secret text"),
        scorer=lambda problem, text: 0.5,
        verifier=more.pop("verifier", lambda problem, text: True),
        costs=grv.Costs(1, 10),
        budget=100,
        **more,
    )
    return found


def test_a_search_and_its_calls_are_spans_with_cost_and_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with recorded(monkeypatch) as exporter:
        solution = solved()
    spans = by_name(exporter.get_finished_spans())
    search = spans["invoke_workflow grv"]
    generate = spans["generate_content"]
    score = spans["score CallableScorer"]
    verify = spans["verify own"]

    for call in (generate, score, verify):
        assert call.parent is not None
        assert call.parent.span_id == search.context.span_id
    assert dict(search.attributes or {}) == {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "grv",
        "grv.search.id": solution.search,
        "grv.outcome": "solved",
        "grv.verified": True,
        "grv.policy": solution.policy,
        "grv.generated": 1,
        "grv.verifications": 1,
        "grv.cost": 11.0,
    }
    assert (generate.attributes or {})["grv.cost"] == 1
    assert (verify.attributes or {})["grv.cost"] == 10
    assert (verify.attributes or {})["grv.verdict"] == "passed"
    assert [(each.name, dict(each.attributes or {})) for each in verify.events] == [
        (
            "gen_ai.evaluation.result",
            {
                "gen_ai.evaluation.name": "own",
                "gen_ai.evaluation.score.value": 1.0,
                "gen_ai.evaluation.score.label": "passed",
                "grv.candidate": 0,
            },
        )
    ]
    assert (score.events[0].attributes or {})["gen_ai.evaluation.score.value"] == 0.5


def test_spans_have_texts_only_if_the_operator_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(problem: grv.Problem, text: str) -> bool:
        raise ValueError("a secret reason")

    with recorded(monkeypatch) as exporter:
        solved()
        with pytest.raises(grv.GrvError):
            solved(generator=failing)
        without = "".join(span.to_json() for span in exporter.get_finished_spans())
        exporter.clear()
        monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
        solved()
        texts = by_name(exporter.get_finished_spans())["generate_content"].attributes or {}

    assert "secret" not in without
    assert "a secret question" in str(texts["gen_ai.input.messages"])
    assert json.loads(str(texts["gen_ai.output.messages"]))[0]["parts"] == [
        {"type": "text", "content": "a secret text"}
    ]


def test_a_model_server_learns_the_span_of_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultyServer() as server, recorded(monkeypatch) as exporter:
        generator = OpenaiGenerator("m", base_url=server.url)
        solved(generator=generator)
    span = by_name(exporter.get_finished_spans())["chat"]
    given = server.received[0].headers["traceparent"]

    flags = f"{span.context.trace_flags:02x}"
    assert given == f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-{flags}"
    assert span.context.trace_flags.sampled
    assert "traceparent" not in _headers_without_spans()


def _headers_without_spans() -> dict[str, str]:
    with FaultyServer() as server:
        solved(generator=OpenaiGenerator("m", base_url=server.url))
        return dict(server.received[0].headers)


@pytest.mark.slow
def test_nothing_is_imported_for_spans_that_nobody_records() -> None:
    code = (
        "import sys, grv; grv.solve_now('4', generator=lambda p: '4', scorer=lambda p, t: 0.0,"
        " verifier=lambda p, t: True, budget=50); print('opentelemetry' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert shown.stdout == "False\n"


def test_a_call_without_a_provider_has_no_span() -> None:
    with tracing.calling(object(), object()) as span:
        assert type(span) is tracing.Told
    assert tracing.headers() is None


def test_an_exporter_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "nowhere")
    words = ["solve", tmp_path / "problems.jsonl", "--generator", "embedded", "-o", tmp_path / "a"]
    said = refuses(words, "OTEL_TRACES_EXPORTER nowhere: no such exporter is installed")

    assert "console" in said


@pytest.mark.slow
def test_a_request_its_search_and_the_model_are_one_trace(tmp_path: Path) -> None:
    """With the file exporter of OTLP, through `grv serve`."""
    pytest.importorskip("opentelemetry.exporter.otlp.json.file", reason="it is not installed")
    with FaultyServer(text=lambda request, seed: "It is \\boxed{42}") as model:
        write_job(tmp_path, model)
        # The exporter writes to standard output, after the line with the address.
        env = {"OTEL_TRACES_EXPORTER": "otlp_json_file", "OTEL_BSP_SCHEDULE_DELAY": "100"}
        with serving(tmp_path, env=env) as server:
            client = openai.OpenAI(base_url=server.url, api_key="any", max_retries=0)
            client.chat.completions.create(
                model="m",
                messages=[{"role": "user", "content": "What is 6 times 7?"}],
                extra_body={"grv": check()},
                extra_headers={"traceparent": PARENT},
            )
            server.stop()
            assert server.process.stdout is not None
            lines = server.process.stdout.read().splitlines()
    spans = [
        span
        for line in lines
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    names = {span["name"]: span for span in spans}
    request = names["POST /v1/chat/completions"]
    search = names["invoke_workflow grv"]
    chats = [span for span in spans if span["name"].startswith("chat")]
    told = [each.headers["traceparent"].split("-")[2] for each in model.received]

    assert {span["traceId"] for span in spans} == {PARENT.split("-")[1]}
    assert request["parentSpanId"] == PARENT.split("-")[2]
    assert search["parentSpanId"] == request["spanId"]
    assert {span["parentSpanId"] for span in chats} == {search["spanId"]}
    assert sorted(told) == sorted(span["spanId"] for span in chats)
