"""Comparisons with a price of failures: rows, pairs, hindsight, files, bounds, batches."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grv.comparing.compare import compare
from grv.comparing.portfolio import compare_generators
from grv.comparing.settings import ComparisonSettings, SimulationSize
from grv.comparing.simulation.populations import POPULATIONS
from grv.comparing.simulation.simulate import simulate
from grv.core.errors import UsageError
from grv.core.limits import Limits
from grv.core.values import Costs, Measured
from grv.learning.fit import prior_of
from grv.learning.history import History, Payments, mean_prices, past
from grv.learning.prior_file import from_text
from grv.logs.log import Log, LoggedProblem
from grv.policies import Learned
from grv.policies.learned.prior import Prior
from grv.policies.spec import parse
from grv.replay.engine import replay
from grv.replay.orders import Orders
from grv.report.inputs import read_comparison
from grv.testing.worlds import tied
from support.examples import examples

COSTS = Costs(1, 10, failure=2)
POLICIES = ("default", "adaptive", "verify-all", "balanced", "fixed(8, 3)", "adaptive-all")
LOG = Log(
    tuple(tied(40, levels=12, pass_rate=0.1, seed=seed).logged(f"p{seed}") for seed in range(12))
)


@pytest.mark.parametrize("width", [1, 3, None])
def test_every_row_costs_what_the_engine_says(width: int | None) -> None:
    found = compare(POLICIES, LOG, COSTS, orders=3, width=width)
    orders = Orders(LOG.problems, 3)
    for name in ("verify-all", "balanced", "fixed(8, 3)"):
        policy = parse(name)
        totals = [
            replay(policy, batch.problem, COSTS, Limits(width=width), order=order).bill.total
            for batch in orders.batches(0, len(LOG.problems))
            for order in batch.orders.tolist()
        ]
        assert found[name].cost == pytest.approx(np.mean(totals))


def test_a_policy_does_what_it_does_at_the_price_of_a_failure() -> None:
    both = compare(POLICIES[:-1], LOG, [COSTS, COSTS.planning], orders=3)
    for name in POLICIES[:-1]:
        row = both[name, "1,10,2"]
        cheap = both[name, "1,2"]
        assert (row.generated, row.verified) == (cheap.generated, cheap.verified)
        assert row.cost == pytest.approx(cheap.cost + 8 * row.solved)


def test_hindsight_and_pairs_are_chosen_by_the_failure_and_billed_with_the_pass() -> None:
    rows = ("adaptive", "hindsight", "uniform-matched", "difficulty-1", "difficulty-3")
    both = compare(rows, LOG, [COSTS, COSTS.planning], orders=3)
    for name in rows:
        row, cheap = both[name, "1,10,2"], both[name, "1,2"]
        if name != "uniform-matched":
            assert row.cost == pytest.approx(cheap.cost + 8 * row.solved)
    matched = both["uniform-matched", "1,10,2"]
    assert matched.cost <= both["adaptive", "1,10,2"].cost * (1 + 1e-9)


def test_a_saved_comparison_reads_back(tmp_path: Path) -> None:
    found = compare(["default", "verify-all"], LOG, [COSTS, Costs(1, 10)], orders=2)
    path = tmp_path / "compared.json"
    found.save(path)
    record = json.loads(path.read_text())
    assert record["rows"][0]["costs"] == {"generate": 1, "verify": 10, "failure": 2}
    assert record["rows"][2]["costs"] == {"generate": 1, "verify": 10}
    assert record["settings"]["costs"] == [[1, 10, 2], [1, 10]]
    again = read_comparison(str(path))
    assert [row.costs for row in again.rows] == [row.costs for row in found.rows]
    assert again["default", COSTS].cost == found["default", "1,10,2"].cost
    head, first = found.to_csv().splitlines()[:2]
    assert dict(zip(head.split(","), first.split(","), strict=True))["cost_failure"] == "2"


@st.composite
def censored_logs(draw: st.DrawFn) -> tuple[Log, Log]:
    """A log with missing labels, and the log with the labels that are missing."""
    known, true = [], []
    for at in range(draw(st.integers(1, 3))):
        size = draw(st.integers(2, 12))
        scores = np.array(
            draw(st.lists(st.integers(0, 5), min_size=size, max_size=size)), dtype=float
        )
        passes = st.lists(st.booleans(), min_size=size - 1, max_size=size - 1)
        labels = np.array([True, *draw(passes)])
        hidden = np.array([False, *draw(passes)])
        unknown = hidden if hidden.any() else None
        known.append(LoggedProblem(str(at), scores, labels & ~hidden, unknown=unknown))
        true.append(LoggedProblem(str(at), scores, labels))
    return Log(tuple(known), unlabelled=1), Log(tuple(true))


@settings(max_examples=examples(25), deadline=None)
@given(censored_logs(), st.sampled_from([float("inf"), 60.0]))
def test_the_true_costs_are_within_the_bounds(logs: tuple[Log, Log], value: float) -> None:
    rows = ("default", "adaptive", "verify-all", "balanced", "fixed(6, 2)")
    given, true = (compare(rows, log, COSTS, orders=3, value=value) for log in logs)
    if not given.is_bounded:
        return
    for found, real in zip(given.rows, true.rows, strict=True):
        assert found.bounds is not None
        low, high = found.bounds.cost
        assert low - 1e-9 <= real.cost <= high + 1e-9
        if found.bounds.ratio is not None and real.ratio is not None:
            assert found.bounds.ratio[0] - 1e-9 <= real.ratio <= found.bounds.ratio[1] + 1e-9
        if found.bounds.net is not None and real.net is not None:
            assert found.bounds.net[0] - 1e-9 <= real.net <= found.bounds.net[1] + 1e-9


def test_missing_labels_and_several_at_once_are_refused() -> None:
    problem = LOG.problems[0]
    unknown = np.zeros(len(problem), dtype=np.bool_)
    unknown[-1] = True
    hidden = LoggedProblem("a", problem.scores, problem.passed & ~unknown, unknown=unknown)
    log = Log((hidden, LOG.problems[1]), unlabelled=1)
    with pytest.raises(UsageError, match="give --costs G,V or --width 1"):
        compare(["verify-all"], log, COSTS, width=3)


@pytest.mark.slow
def test_a_batch_is_billed_by_both_prices() -> None:
    cheap = compare(["default"], LOG, COSTS, orders=2, total_budget="50%")
    dear = compare(["default"], LOG, Costs(1, 10), orders=2, total_budget="50%")
    assert cheap.batches[0].prices == "1,10,2"
    assert cheap.batches[0].budget < dear.batches[0].budget


@pytest.mark.slow
def test_several_generators_are_billed_by_both_prices() -> None:
    world = LOG.problems[0]
    half = np.arange(len(world)) % 2
    problems = tuple(
        LoggedProblem(
            each.id, each.scores, each.passed, generators=half.astype(np.int32)[: len(each)]
        )
        for each in LOG.problems
    )
    log = Log(problems, generators=("small", "large"))
    plan = ComparisonSettings(orders=2)
    costs = {"small": Costs(1, 10, failure=2), "large": Costs(5, 10, failure=2)}
    found = compare_generators(log, costs, plan)
    dear = compare_generators(log, {name: Costs(c.generate, 10) for name, c in costs.items()}, plan)
    assert found.settings["costs"] == {"small": [1, 10, 2], "large": [5, 10, 2]}
    assert found["portfolio"].cost < dear["portfolio"].cost


def test_a_simulation_has_an_optimum_with_both_prices() -> None:
    few = {"coding": POPULATIONS["coding"]}
    plan = SimulationSize(problems=2, orders=2)
    found = simulate(few, ["verify-all"], [COSTS, COSTS.planning], plan=plan)
    first, second = (row for row in found.rows if row.policy == "verify-all")
    assert first.optimum == pytest.approx(second.optimum + 8)
    assert first.cost == pytest.approx(second.cost + 8)


def _priced(log: Log, *, fail: float, right: float) -> Log:
    problems = [
        LoggedProblem(
            each.id,
            each.scores,
            each.passed,
            generate_costs=np.full(len(each), 0.5),
            verify_costs=np.where(each.passed, right, fail),
        )
        for each in log.problems
    ]
    return Log(tuple(problems))


def test_measured_costs_of_a_log_begin_with_what_failures_cost() -> None:
    log = _priced(LOG, fail=2.0, right=20.0)
    assert log.mean_failure_cost == 2
    assert log.mean_pass_cost == 20
    measured = log.measured
    assert measured.failure == 2
    assert 2 < measured.verify < 20  # the mean of all
    assert measured.planning.verify == 2
    dear = _priced(LOG, fail=20.0, right=2.0).measured
    assert dear.planning.verify == dear.verify == 20  # no failure costs more than a verification


def test_a_prior_stores_what_its_history_paid_and_learned_begins_with_it() -> None:
    log = _priced(LOG, fail=2.0, right=20.0)
    problems = past(log)
    prices = mean_prices(problems)
    assert prices[0] == pytest.approx(0.5)
    assert prices[2] == pytest.approx(2.0)
    assert 2 < prices[1] < 20
    prior = prior_of(History.of(problems, "score", ["made-up"]))
    assert prior.prices == prices
    assert from_text(prior.to_text()).prices == prices
    assert prior.ratio(Measured(1, 100)) == pytest.approx(4)
    assert prior.ratio(Costs(1, 100)) == 100  # a price list is what the user says
    bare = prior_of(History.of(past(LOG), "score", ["made-up"]))
    assert bare.prices == ()
    assert '"prices"' not in bare.to_text()  # its checksum is as before
    assert bare.ratio(Measured(1, 100)) == 100
    with pytest.raises(UsageError, match="three prices"):
        from_text(prior.to_text().replace('"prices": [', '"prices": [1,'))


def test_a_prior_with_prices_makes_up_for_a_wrong_first_guess() -> None:
    log = _priced(LOG, fail=2.0, right=20.0)
    prior = prior_of(History.of(past(log), "score", ["made-up"]))
    guess = Measured(0.5, 500.0)  # failures cost 2

    def spent(by: Prior) -> float:
        found = [replay(Learned(by), each, guess) for each in log.problems]
        assert all(each.solved for each in found)
        return sum(each.bill.total for each in found)

    assert spent(prior) < 0.95 * spent(dataclasses.replace(prior, prices=()))


def test_payments_without_a_sum_are_no_prices() -> None:
    assert Payments().prices == ()
    assert Payments(generated=3, generating=0.0, failed=2, failing=1.0).prices == ()
    assert mean_prices([]) == ()
