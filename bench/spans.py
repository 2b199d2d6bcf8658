"""What spans cost: processor time per request of grv with and without them, in turns.

    python bench/spans.py [--quick]

grv asks a server on loopback, with 64 requests in flight and a ledger on disk, as in
`bench/live.py`; every eighth candidate is verified. With spans, the SDK sends them to a collector
on loopback that throws them away. Each turn is a process of its own; its processor time is that of
all threads, with the export.

* `at_once`: the server answers at once. This is the worst case: no model answers so fast. `more` is
  the processor time with spans over that without, minus 1.
* `after_a_second`: every answer takes a second, so there are at most 64 requests a second. `points`
  is the part of one processor that the spans take then, in percent: 64 times what a request costs
  more.
* `parts`: microseconds per request, of one thread that does nothing else: to record the spans of a
  request, and to encode them for the collector.
* `off_ns`: what a call costs besides if nobody records spans.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import live

_SINK = """
import http.server
class Sink(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *given): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
print(server.server_port, flush=True)
server.serve_forever()
"""


@contextmanager
def collector() -> Iterator[str]:
    call = [sys.executable, "-c", _SINK]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1/traces"
        process.terminate()


def turn(url: str, requests: int, sink: str | None) -> dict[str, float]:
    """Milliseconds of processor time per request."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    asyncio.run(live.grv(url, 64, live.IN_FLIGHT))
    provider = TracerProvider()
    if sink is not None:
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(sink)))
        trace.set_tracer_provider(provider)
    started = time.process_time()
    asyncio.run(live.grv(url, requests, live.IN_FLIGHT))
    provider.shutdown()
    return {"ms": 1000 * (time.process_time() - started) / requests}


def parts() -> dict[str, float]:
    """Microseconds per request that recording and encoding take: the best of some rounds."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

    from grv.backends import tracing
    from grv.backends.protocols import Draft, Problem, Score, Usage

    class Kept(SpanProcessor):
        def __init__(self) -> None:
            self.spans: list[ReadableSpan] = []

        def on_end(self, span: ReadableSpan) -> None:
            self.spans.append(span)

    class Made:
        def __init__(self, kind: str) -> None:
            self.traced = tracing.TracedCall(
                kind, problem, (3,), "m", "openai", "http://127.0.0.1:1/v1", lambda _: 1.0, nothing
            )

    class Generator:
        chat = False

    def nothing(results: tracing.Results) -> None:
        return None

    problem = Problem("p", "What is 1?")
    drafts = [Draft("x" * 100, (-0.5,) * 8, Usage(20, 32, 0.1))]
    scores = [Score(0.5)]
    generating = Made("generate")
    scoring = Made("score")
    generator = Generator()
    kept = Kept()
    provider = TracerProvider()
    provider.add_span_processor(kept)
    trace.set_tracer_provider(provider)

    def record() -> None:
        with tracing.calling(generating, generator) as span:
            tracing.headers()
            span.results(drafts)
        with tracing.calling(scoring, generator) as span:
            span.results(scores)

    with tracing.searching(problem, "s"):
        recording = min(timeit.repeat(record, timer=time.thread_time, number=500, repeat=5)) / 500
    spans = kept.spans[:1000]
    encoding = timeit.repeat(
        lambda: encode_spans(spans).SerializeToString(),
        timer=time.thread_time,
        number=1,
        repeat=5,
    )
    return {"record_us": round(1e6 * recording, 1), "encode_us": round(2e3 * min(encoding), 1)}


def off() -> float:
    """Nanoseconds that the hooks of a call take if nobody records spans."""
    from grv.backends import tracing

    def hooks() -> None:
        with tracing.calling(None, None) as span:
            tracing.headers()
            span.results(())

    rounds = timeit.repeat(hooks, timer=time.thread_time, number=10_000, repeat=20)
    return 1e9 * min(rounds) / 10_000


def alone(what: str, *arguments: object) -> Any:
    call = [sys.executable, __file__, "--one", what, *map(json.dumps, arguments)]
    return json.loads(subprocess.run(call, check=True, stdout=subprocess.PIPE).stdout)


def compared(seconds: float, requests: int, turns: int) -> dict[str, Any]:
    with live.server(seconds) as url, collector() as sink:
        pairs = [
            (alone("turn", url, requests, None)["ms"], alone("turn", url, requests, sink)["ms"])
            for _ in range(turns)
        ]
    figures: dict[str, Any] = {
        "requests": requests,
        "in_flight": live.IN_FLIGHT,
        "off_ms": round(statistics.median(without for without, _ in pairs), 3),
        "on_ms": round(statistics.median(on for _, on in pairs), 3),
        "more": round(statistics.median(on / without for without, on in pairs) - 1, 3),
        "each_turn": [round(on / without - 1, 3) for without, on in pairs],
    }
    if seconds:
        rate = live.IN_FLIGHT / seconds
        points = [rate * (on - without) / 10 for without, on in pairs]
        figures["points"] = round(statistics.median(points), 2)
        figures["points_each_turn"] = [round(each, 2) for each in points]
    return figures


def main() -> None:
    quick = "--quick" in sys.argv
    requests = 256 if quick else 2048
    turns = 2 if quick else 3
    figures = {
        "off_ns": round(alone("off")),
        "parts": alone("parts"),
        "at_once": compared(0, requests, turns),
        "after_a_second": compared(1, requests // 2, turns),
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parent))
    if "--one" in sys.argv:
        _, _, name, *given = sys.argv
        print(json.dumps(globals()[name](*map(json.loads, given))))
    else:
        main()
