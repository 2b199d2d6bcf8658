"""Metrics for Prometheus, computed from the ledger: a restart does not reset them."""

from __future__ import annotations

import json
import math
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from ..backends.protocols import Usage
from ..core.errors import LedgerError
from ..files import parse_json
from ..ledger.entries import Call, Found, from_text
from ..ledger.tables import TableLedger, Totals
from ..runtime.prices import PRICING, Meter, meters_of

_CALLS: dict[str, Call] = {  # by the kind of entry
    "made": "generate",
    "scored": "score",
    "scoredagain": "rescore",
    "found": "verify",
}
_BUCKETS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
_AT_ONCE = 20_000  # entries that are read together


class Metrics:
    """Reads the ledger. Entries that were counted once are not read again."""

    def __init__(self, ledger: TableLedger, total: float) -> None:
        self._ledger = ledger
        self._total = total
        self._position = 0
        self._candidates = 0
        self._verdicts: Counter[str] = Counter()
        self._shared = 0
        self._bill = _DollarBill()
        self._lock = threading.Lock()

    def text(self, running: int) -> str:
        """All metrics in the text format. May take long at first: it reads the whole ledger."""
        with self._lock:
            self._count()
            totals = self._ledger.totals(_BUCKETS)
            lines = [*self._money(totals), *self._counts(totals), *_durations(totals)]
        lines += _metric(
            "grv_searches_running", "gauge", "Searches of this process.", [("", running)]
        )
        return "\n".join(lines) + "\n"

    def _count(self) -> None:
        while rows := self._ledger.results_since(self._position, _AT_ONCE):
            for position, search, kind, body in rows:
                self._position = int(position)
                results = self._bill.add(search, kind, body)
                if kind == "made":
                    self._candidates += results
                if kind != "found":
                    continue
                try:
                    found = from_text(kind, body)
                except LedgerError:
                    continue  # a damaged entry: grv runs check reports it
                if isinstance(found, Found) and found.shared:
                    self._shared += 1
                elif isinstance(found, Found):
                    self._verdicts[found.verdict.value] += 1

    def _money(self, totals: Iterable[Totals]) -> Iterator[str]:
        spent: defaultdict[str, float] = defaultdict(float)
        reserved: defaultdict[str, float] = defaultdict(float)
        for each in totals:
            (reserved if each.outcome is None else spent)[each.account] += each.paid
        accounts = sorted({*spent, *reserved})
        yield from _metric(
            "grv_spent",
            "gauge",
            "What searches that have ended have possibly paid, by account.",
            [(_label("account", name), spent[name]) for name in accounts],
        )
        yield from _metric(
            "grv_reserved",
            "gauge",
            "What searches that go on have paid, or reserved for calls in flight, by account.",
            [(_label("account", name), reserved[name]) for name in accounts],
        )
        yield from _metric(
            "grv_dollars_total",
            "counter",
            "What calls with a result cost in dollars, as far as it is known.",
            [("", self._bill.dollars)],
        )
        yield from _metric(
            "grv_calls_of_unknown_cost_total",
            "counter",
            "Candidates, scores and verdicts whose dollars are unknown. They are in no sum.",
            [("", self._bill.unknown)],
        )
        if math.isfinite(self._total):
            yield from _metric(
                "grv_total_budget", "gauge", "The most that may be spent.", [("", self._total)]
            )

    def _counts(self, totals: Iterable[Totals]) -> Iterator[str]:
        outcomes: Counter[str] = Counter()
        for each in totals:
            outcomes[each.outcome or "unfinished"] += each.searches
        yield from _metric(
            "grv_searches",
            "gauge",
            "Searches on the ledger, by outcome.",
            [(_label("outcome", name), number) for name, number in sorted(outcomes.items())],
        )
        yield from _metric(
            "grv_candidates_total", "counter", "Candidates generated.", [("", self._candidates)]
        )
        verdicts = {"passed": 0, "failed": 0, "broken": 0} | self._verdicts
        yield from _metric(
            "grv_verdicts_total",
            "counter",
            "Verifications, by verdict.",
            [(_label("verdict", name), number) for name, number in verdicts.items()],
        )
        yield from _metric(
            "grv_verdicts_shared_total",
            "counter",
            "Verdicts that were known, so that nothing was run for them.",
            [("", self._shared)],
        )


class _DollarBill:
    """Adds up the dollars of results on the ledger."""

    def __init__(self) -> None:
        self.dollars = 0.0
        self.unknown = 0
        self._meters: dict[str, dict[str, Meter]] = {}
        self._known: dict[str, dict[str, Meter]] = {}  # equal settings share their meters

    def add(self, search: str, kind: str, body: str) -> int:
        """Add a row up; return how many entries it has.

        A damaged one is left out: grv runs check reports it.
        """
        try:
            content = parse_json(body)
        except ValueError:
            return 1
        records = content if isinstance(content, list) else [content]
        for record in records:
            if not isinstance(record, dict):
                continue
            if kind == "started":
                self._start(search, record.get("about"))
            else:
                self._add_result(search, kind, record)
        return len(records)

    def _add_result(self, search: str, kind: str, record: dict[str, Any]) -> None:
        usage = record.get("usage")
        used = Usage.of(usage if isinstance(usage, dict) else {})
        if record.get("shared") is True:
            return
        meters = self._meters.get(search, {})
        meter = meters.get(str(record.get("generator") or "")) or next(iter(meters.values()), None)
        dollars = (meter or Meter()).price(_CALLS[kind], used)
        if dollars is None:
            self.unknown += 1
        else:
            self.dollars += dollars

    def _start(self, search: str, about: object) -> None:
        if not isinstance(about, dict):
            return
        settings = json.dumps([about.get(PRICING), about.get("generator")])
        if settings not in self._known:
            self._known[settings] = meters_of(about)
        self._meters[search] = self._known[settings]


def _durations(totals: Iterable[Totals]) -> Iterator[str]:
    ended = [each for each in totals if each.outcome is not None]
    name = "grv_search_seconds"
    count = sum(each.searches for each in ended)
    yield f"# HELP {name} Seconds from the start of a search to its end."
    yield f"# TYPE {name} histogram"
    for at, bucket in enumerate(_BUCKETS):
        yield f'{name}_bucket{{le="{bucket:g}"}} {sum(each.within[at] for each in ended)}'
    yield f'{name}_bucket{{le="+Inf"}} {count}'
    yield f"{name}_sum {sum(each.seconds for each in ended):g}"
    yield f"{name}_count {count}"


def _metric(name: str, kind: str, help: str, values: Iterable[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values:
        yield f"{name}{labels} {value:.12g}"


def _label(name: str, value: str) -> str:
    escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'{{{name}="{escaped}"}}'
