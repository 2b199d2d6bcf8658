"""The replay of `learning`: the same as a live job, and as the engine."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest

from grv.backends.protocols import Draft, Finding, Problem, Score
from grv.comparing import arrivals
from grv.comparing.arrivals import Arrivals, arrival, cost_by_position, positions
from grv.comparing.compare import compare
from grv.comparing.simulation.simulate import simulate
from grv.core.errors import UsageError
from grv.core.limits import Limits
from grv.core.pace import Pace
from grv.core.values import Costs, Latency, Measured, Verdict
from grv.ledger.ledger import MemoryLedger
from grv.logs.log import Log, LoggedProblem
from grv.policies import DEFAULT, Learning
from grv.replay.orders import Orders
from grv.runtime.solution import Solution
from grv.runtime.solve import solve_many

COSTS = Costs(1, 10)


def log(
    problems: int = 30,
    *,
    tied: bool = False,
    keyed: bool = False,
    refuted: bool = False,
    alike: bool = False,
) -> Log:
    found = []
    for number in range(problems):
        chance = np.random.default_rng([3, number])
        size = int(chance.integers(20, 60))
        passed = chance.random(size) < chance.choice([0.05, 0.2, 0.5])
        passed[int(chance.integers(size))] = True
        scores = chance.standard_normal(size) + 1.5 * passed
        if tied:
            scores = np.round(scores, 1)
        keys = 2 * chance.integers(0, 8, size) + passed if keyed else None
        sure = (chance.random(size) < 0.2) & ~passed if refuted else None
        groups = 2.0 * chance.integers(0, 12, size) + passed if alike else None
        found.append(LoggedProblem(f"p{number}", scores, passed, keys, refuted=sure, alike=groups))
    return Log(tuple(found), "score")


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [{}, {"tied": True}, {"keyed": True, "tied": True}, {"refuted": True}, {"alike": True}],
)
@pytest.mark.parametrize("width", [1, 8])
def test_the_kernel_equals_the_engine(width: int, kind: dict[str, bool], monkeypatch: Any) -> None:
    made = log(**kind)
    orders = Orders(made.problems, 2, keyed=kind.get("keyed", False))
    replay = Arrivals(orders, "score", limits=Limits(width=width))
    fast = [replay.trials(Learning(), COSTS, r) for r in range(2)]
    monkeypatch.setattr(Arrivals, "_by_kernel", None)
    monkeypatch.setattr(arrivals, "Learned", int)  # no policy is of this class
    slow = [replay.trials(Learning(), COSTS, r) for r in range(2)]

    for ours, theirs in zip(fast, slow, strict=True):
        for name in ("solved", "generated", "verified", "rounds"):
            assert (getattr(ours, name) == getattr(theirs, name)).all(), name


class Logged:
    """Backends whose candidates are those of a log, in given orders."""

    def __init__(self, made: Log, orders: dict[str, list[int]]) -> None:
        self.log, self.orders = made, orders

    def _at(self, problem: Problem, draft: Draft) -> int:
        return self.orders[problem.id][int(draft.text)]

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> list[Draft]:
        stop = min(first + n, len(self.orders[problem.id]))
        return [Draft(str(at)) for at in range(first, stop)]

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> list[Score]:
        logged, at = self.log[problem.id], [self._at(problem, each) for each in drafts]
        alike = [None] * len(at) if logged.alike is None else logged.alike[at].tolist()
        return [
            Score(score, alike=value)
            for score, value in zip(logged.scores[at].tolist(), alike, strict=True)
        ]

    async def verify(self, problem: Problem, draft: Draft) -> Finding:
        passed = self.log[problem.id].passed[self._at(problem, draft)]
        return Finding(Verdict.PASSED if passed else Verdict.FAILED)


def live(made: Log, seed: int = 0, width: int = 1) -> dict[str, Solution]:
    """The solutions of a live job with the problems in the order of the first repetition."""
    batches = list(Orders(made.problems, 1, seed=seed).batches())
    backends = Logged(made, {b.problem.id: b.orders[0].tolist() for b in batches})
    order = arrival(len(batches), 0, seed)

    async def run() -> dict[str, Solution]:
        found = solve_many(
            [Problem(batches[at].problem.id, "") for at in order],
            generator=backends,
            scorer=backends,
            verifier=backends,
            policy="learning",
            costs=COSTS,
            at_once=1,
            ledger=MemoryLedger(),
            width=width,
            pace=Pace(overlap=False),
        )
        return {solution.problem: solution async for solution in found}

    return anyio.run(run)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [{}, {"tied": True}, {"alike": True}])
@pytest.mark.parametrize("width", [1, 4])
def test_a_replay_equals_a_live_job(kind: dict[str, bool], width: int) -> None:
    made = log(24, **kind)
    solutions = live(made, width=width)
    orders = Orders(made.problems, 1)
    replay = Arrivals(orders, "score", limits=Limits(width=width, pace=Pace(overlap=False)))
    trials = replay.trials(Learning(), COSTS, 0)

    for at, problem in enumerate(made.problems):
        bill = solutions[problem.id].bill
        assert (bill.generated, bill.verified) == (trials.generated[at], trials.verified[at])
    assert sum(each.policy.startswith("learned(") for each in solutions.values()) == 18


@pytest.mark.parametrize(
    "how", [{"width": 6}, {"width": 6, "ramp": False}, {"answers": 2}], ids=str
)
def test_a_comparison_gives_its_limits_to_the_searches(how: dict[str, Any]) -> None:
    made = log(12)
    (row,) = compare(["learning"], made, COSTS, orders=1, **how).rows
    pace = Pace(how.get("ramp", True))
    limits = Limits(width=how.get("width", 1), pace=pace, answers=how.get("answers", 1))
    replay = Arrivals(Orders(made.problems, 1), "score", limits=limits)
    assert row.cost == pytest.approx(replay.trials(Learning(), COSTS, 0).costs(COSTS).mean())
    (single,) = compare(["learning"], made, COSTS, orders=1).rows
    assert row.cost > single.cost


def test_every_repetition_has_an_order_of_its_own() -> None:
    orders = [arrival(50, r, seed).tolist() for r in range(3) for seed in range(2)]
    assert all(sorted(each) == list(range(50)) for each in orders)
    assert len({tuple(each) for each in orders}) == 6


def test_the_cost_by_position_follows_the_arrivals() -> None:
    spent = np.arange(6.0)[:, None] * [1, 10]
    first, second = arrival(6, 0, 4), arrival(6, 1, 4)
    expected = [(a + 10 * b) / 2 for a, b in zip(first, second, strict=True)]
    assert cost_by_position(spent, positions(range(6), 2, 4)) == tuple(expected)
    moved = [3, 1, 0, 2, 5, 4]  # where the problems are that orders are drawn for in turn
    back = cost_by_position(spent[np.argsort(moved)], positions(moved, 2, 4))
    assert back == tuple(expected)


def test_a_comparison_has_the_cost_by_position_of_every_row(tmp_path: Path) -> None:
    found = compare(["learning", "varied(factor=5)"], log(), COSTS, orders=3)
    found.save(tmp_path / "table.json")
    rows = json.loads((tmp_path / "table.json").read_text())["rows"]

    for row in rows:
        assert len(row["cost_by_position"]) == 30
        assert np.mean(row["cost_by_position"]) == pytest.approx(row["cost"])
    early = [row["cost_by_position"][:6] for row in rows]
    assert early[0] == early[1]  # the first problems are searched by the default, guarded
    assert rows[0]["cost"] < rows[1]["cost"]
    without = compare(["default"], log(), COSTS, orders=3)
    assert without.rows[0].cost_by_position is None


def test_the_numbers_do_not_depend_on_the_number_of_processes() -> None:
    tables = [compare(["learning"], log(12), COSTS, orders=4, jobs=jobs).rows for jobs in (1, 2)]
    assert tables[0] == tables[1]


def test_it_is_replayed_with_values_measured_costs_and_delays() -> None:
    made = log(12)
    problems = tuple(
        dataclasses.replace(p, generate_costs=np.full(len(p), 2.0), verify_costs=np.full(len(p), 9))
        for p in made.problems
    )
    priced = Log(problems, "score")
    listed = compare(["learning", "default"], priced, COSTS, orders=2, value=40.0)
    assert all(row.cost <= 40 for row in listed.rows)
    measured = compare(
        ["learning"], priced, Measured(1, 10), orders=2, latency=Latency(1.0, 2.0)
    ).rows[0]
    assert measured.seconds is not None
    assert measured.cost == pytest.approx(2 * measured.generated + 9 * measured.verified)


def test_a_history_comes_first(tmp_path: Path) -> None:
    from grv.ledger.sqlite import SqliteLedger
    from support.learning import Problems

    made, path = Problems(), tmp_path / "old.ledger"

    async def run() -> None:
        ledger = SqliteLedger(path)
        how: dict[str, Any] = {"generator": made, "scorer": made, "verifier": made}
        how |= {"ledger": ledger, "about": {"score": "score"}, "budget": 400.0}
        async for _ in solve_many(made.problems(8), **how):
            pass
        ledger.close()

    anyio.run(run)
    found = compare({"cold": DEFAULT, "warm": Learning((str(path),))}, log(8), COSTS, orders=2)
    assert found["cold"].cost != found["warm"].cost


def test_simulated_problems_have_no_order() -> None:
    with pytest.raises(UsageError, match="learning learns from one problem to the next"):
        simulate({}, ["learning"])
