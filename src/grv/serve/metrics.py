"""Metrics for Prometheus, computed from the ledger: a restart does not reset them."""

from __future__ import annotations

import math
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from ..core.errors import LedgerError
from ..ledger.entries import Found, from_text
from ..ledger.tables import TableLedger, Totals

_BUCKETS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
_AT_ONCE = 20_000  # entries that are read together


class Metrics:
    """Reads the ledger. Entries that were counted once are not read again."""

    def __init__(self, ledger: TableLedger, total: float) -> None:
        self._ledger, self._total = ledger, total
        self._position, self._candidates = 0, 0
        self._verdicts: Counter[str] = Counter()
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
            for position, kind, body in rows:
                self._position = int(position)
                if kind == "made":
                    self._candidates += 1
                    continue
                try:
                    found = from_text(kind, body)
                except LedgerError:
                    continue  # a damaged entry: grv runs check reports it
                if isinstance(found, Found):
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


def _durations(totals: Iterable[Totals]) -> Iterator[str]:
    ended = [each for each in totals if each.outcome is not None]
    name, count = "grv_search_seconds", sum(each.searches for each in ended)
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
