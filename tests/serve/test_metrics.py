"""Metrics come from the ledger: a restart does not reset them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from grv.backends.protocols import Usage
from grv.core.values import Verdict
from grv.ledger.entries import Ended, Entry, Failed, Found, Intended, Made, Settled, Started
from grv.ledger.opening import open_ledger
from grv.ledger.tables import TableLedger
from grv.runtime.prices import Meter, Prices
from grv.serve.metrics import Metrics
from support.postgres import Server


def fill(ledger: TableLedger, name: str = "s") -> None:
    first: list[Entry] = [
        Started("secret problem", {}, account="alice"),
        Intended("generate", (0,), 2.0),
    ]
    ledger.append(f"{name}1", [*first, Made(0, "secret text"), Intended("verify", (0,), 10.0)])
    found = Found(0, Verdict.PASSED, evidence={"verdict": "failed"})
    ledger.append(f"{name}1", [found, Ended("solved", 0, 1, 1, 12.0)])
    ledger.append(f"{name}2", [Started("p", {}), Intended("generate", (0,), 2.0), Failed("broken")])
    started: list[Entry] = [Started('q"\n', {}, account='b"\\'), Intended("generate", (0, 1), 4.0)]
    ledger.append(f"{name}3", [*started, Made(0, "x"), Settled("generate", (0, 1), 1.0)])


def values(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def holds(ledger: TableLedger) -> None:
    fill(ledger)
    metrics = Metrics(ledger, 100.0)
    text = metrics.text(2)
    found = values(text)
    assert found['grv_spent{account="alice"}'] == 12
    assert found['grv_reserved{account="alice"}'] == 0
    assert found['grv_spent{account=""}'] == 2
    assert found['grv_reserved{account="b\\"\\\\"}'] == 3
    assert found['grv_searches{outcome="solved"}'] == 1
    assert found['grv_searches{outcome="failed"}'] == 1
    assert found['grv_searches{outcome="unfinished"}'] == 1
    assert found["grv_candidates_total"] == 2
    assert found["grv_dollars_total"] == 0
    assert found["grv_calls_of_unknown_cost_total"] == 2  # nobody says what the drafts cost
    assert found['grv_verdicts_total{verdict="passed"}'] == 1
    assert found['grv_verdicts_total{verdict="failed"}'] == 0
    assert found["grv_search_seconds_count"] == found['grv_search_seconds_bucket{le="+Inf"}'] == 2
    assert (found["grv_total_budget"], found["grv_searches_running"]) == (100, 2)
    assert "secret" not in text
    assert Metrics(ledger, 100.0).text(2) == text, "a restart changed them"
    fill(ledger, "t")
    more = values(metrics.text(2))
    assert more["grv_candidates_total"] == 4
    assert more == values(Metrics(ledger, 100.0).text(2))


def test_metrics_of_a_ledger_in_a_file(tmp_path: Path) -> None:
    with closing(open_ledger(tmp_path / "ledger")) as ledger:
        assert values(Metrics(ledger, 100.0).text(0))["grv_search_seconds_count"] == 0
        holds(ledger)


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_metrics_of_a_ledger_in_a_database(postgres: Server) -> None:
    with closing(open_ledger(postgres.new_database())) as ledger:
        holds(ledger)


def test_dollars_are_counted_where_they_are_known(tmp_path: Path) -> None:
    listed = Meter(Prices({"m": {"completion": 1e6}}, {"verify_call": 0.5}), "m")
    about = {"pricing": {"": listed.as_data()}}
    with closing(open_ledger(tmp_path / "ledger")) as ledger:
        ledger.append("a", [Started("a", about), Made(0, "x", usage=Usage(0, 3))])
        ledger.append("a", [Found(0, Verdict.PASSED, usage=Usage(seconds=1))])
        ledger.append("b", [Started("b", {}), Made(0, "y", usage=Usage(0, 3, 0.0, 2.0))])
        ledger.append("c", [Started("c", {}), Made(0, "z", usage=Usage(0, 3))])
        found = values(Metrics(ledger, 100.0).text(0))
    assert found["grv_dollars_total"] == 3 + 0.5 + 2
    assert found["grv_calls_of_unknown_cost_total"] == 1
