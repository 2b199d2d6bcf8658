"""A report's tables: equal to `compare`, to recomputation, and never empty without a word."""

from __future__ import annotations

import dataclasses
import itertools
import json

import numpy as np
import pytest

from grv.core.errors import LogError, UsageError
from grv.core.values import Cascade, Costs, Measured
from grv.experiments.compare import compare
from grv.experiments.comparison import Resampled
from grv.experiments.rows import DEFAULT_ROWS
from grv.logs.log import Log, LoggedProblem
from grv.policies import Fixed
from grv.replay.kernels.dispatch import trials
from grv.replay.orders import batches
from grv.report.advice_tables import changed
from grv.report.build import make_report
from grv.report.contents import BY_NAME, FIGURES
from grv.report.dataset import Request, default_rows, runs_live
from grv.report.monotone_tables import rests_on
from grv.report.report import Report
from grv.report.score_tables import aucs_of
from grv.report.source import Source, parse_comparison
from grv.report.trial_tables import best_within_each
from grv.testing import World, all_wrong, population
from grv.theory.optimum import rule_cost

PRICES = (Costs(1, 10), Costs(1, 3))
REQUEST = Request(costs=PRICES, orders=4, many_orders=20)
FEW = ("hindsight", "adaptive", "verify-all", "uniform-matched")


def with_hopeless(log: Log) -> Log:
    return Log((all_wrong(20).logged("a hopeless one"), *log.problems))


LOG = with_hopeless(population("coding", problems=8, candidates=60, seed=4))
OTHER = population("math", problems=8, candidates=60, seed=5)


@pytest.fixture(scope="module")
def report() -> Report:
    return make_report([Source("first", log=LOG), Source("second", log=OTHER)], REQUEST)


def test_costs_are_those_of_compare(report: Report) -> None:
    for name, log in (("first", LOG), ("second", OTHER)):
        saved = compare(default_rows(), log, PRICES, orders=4).to_json()["rows"]
        rows = report["summary"].only(log=name).records()
        assert len(rows) == len(saved)
        for row, said in zip(rows, saved, strict=True):
            same = ("policy", "cost", "generated", "verified", "solved", "ratio", "low", "high")
            assert {key: row[key] for key in same} == {key: said[key] for key in same}
            assert row["m"] == said.get("m")
            assert row["costs"] == "{generate:g},{verify:g}".format(**said["costs"])


def test_tables_side_by_side_have_the_same_numbers(report: Report) -> None:
    long = {(r["log"], r["costs"], r["policy"]): r for r in report["summary"].records()}
    by_price, by_log = report["ratio_ablation"].records(), report["per_log"].records()
    for (log, costs, policy), row in long.items():
        wide = next(r for r in by_price if (r["log"], r["policy"]) == (log, policy))
        assert wide[f"cost {costs}"] == row["cost"]
        assert wide[f"ratio {costs}"] == row["ratio"]
        wide = next(r for r in by_log if (r["costs"], r["policy"]) == (costs, policy))
        assert wide[f"cost {log}"] == row["cost"]
        assert wide[f"solved {log}"] == row["solved"]


def test_every_table_is_there_and_none_is_empty_without_a_word(report: Report) -> None:
    assert [table.name for table in report.tables] == [figure.name for figure in FIGURES]
    for table in report.tables:
        assert table.rows or table.notes, table.name


def test_what_is_saved_is_json_and_comes_back(report: Report) -> None:
    text = json.dumps(report.to_json(), allow_nan=False)
    again = Report.from_json(json.loads(text))
    assert again.tables == report.tables
    assert again.to_json() == json.loads(text)


def test_the_same_report_is_made_twice(report: Report) -> None:
    again = make_report([Source("first", log=LOG), Source("second", log=OTHER)], REQUEST)
    assert again.to_json() == report.to_json()


def test_auc_is_a_count_of_pairs(report: Report) -> None:
    values = []
    for problem in OTHER.problems:
        good, bad = problem.scores[problem.passed], problem.scores[~problem.passed]
        wins = (good[:, None] > bad).sum() + (good[:, None] == bad).sum() / 2
        values.append(wins / (len(good) * len(bad)))
    row = report["auc_summary"].only(log="second").records()[0]
    assert row["mean"] == pytest.approx(np.mean(values))
    assert row["median"] == pytest.approx(np.median(values))
    assert row["above_chance"] == pytest.approx(np.mean(np.array(values) > 0.5))
    counts = report["auc"].only(log="second").column("problems")
    assert sum(int(count or 0) for count in counts) == len(values)


def test_the_tables_of_a_score_recomputed_by_hand() -> None:
    worlds = ("9- 8+ 7- 6- 5+ 4-", "9+ 8- 7- 6- 5- 4-", "9- 8- 7- 6+ 5+ 4+")
    log = Log(tuple(World.of(text).logged(name) for name, text in zip("abc", worlds, strict=True)))
    made = make_report([Source("x", log=log)], Request(orders=1, many_orders=1, policies=FEW))
    passed = [[word[-1] == "+" for word in text.split()] for text in worlds]  # best first
    for k, row in enumerate(made["coverage"].records(), 1):
        draws = [list(itertools.combinations(flags, k)) for flags in passed]
        at_random = np.mean([np.mean([any(each) for each in sets]) for sets in draws])
        assert row["at_random"] == pytest.approx(at_random, abs=1e-4)
        assert row["by_score"] == pytest.approx(np.mean([any(f[:k]) for f in passed]), abs=1e-4)
    by_rank = np.mean(passed, axis=0)
    assert made["rank_pass"].column("pass_rate") == pytest.approx(by_rank.tolist(), abs=1e-4)
    (row,) = made["calibration"].records()  # 6 of 18, Wilson: (0.1628, 0.5626)
    assert (row["candidates"], row["passed"]) == (18, 6)
    assert (row["low"], row["high"]) == pytest.approx((0.1628, 0.5626), abs=2e-4)
    worse, better = made["monotonicity"].records()  # the lower half of each ranking and the upper
    rates = [np.mean([flags[3:] for flags in passed]), np.mean([flags[:3] for flags in passed])]
    assert [worse["pass_rate"], better["pass_rate"]] == pytest.approx(rates, abs=1e-4)
    pooled = [np.mean(rates)] * 2 if rates[0] > rates[1] else rates
    assert [worse["isotonic"], better["isotonic"]] == pytest.approx(pooled, abs=1e-4)
    assert rates[0] > rates[1]


def test_the_budget_curve_is_the_best_of_all_pairs() -> None:
    log = Log((World.of("9- 8- 7+ 6- 5+").logged("a"), World.of("9+ 8- 7- 3- 2-").logged("b")))
    asked = Request(costs=(Costs(1, 3),), policies=("adaptive",), orders=3)
    curve = make_report([Source("x", log=log)], asked)["budget_curve"].only(kind="curve")
    pairs = []
    for m, k in itertools.combinations_with_replacement(range(1, 6), 2):
        found = [
            trials(Fixed(k, m), batch, Costs(1, 3), width=1) for batch in batches(log.problems, 3)
        ]
        cost = np.mean([each.costs(Costs(1, 3)) for each in found])
        pairs.append((cost, np.mean([each.solved for each in found])))
    for row in curve.records():
        within = [share for cost, share in pairs if cost <= float(row["cost"] or 0) + 1e-3]
        assert row["solved"] == pytest.approx(max(within), abs=1e-4)
    assert curve.column("solved")[-1] == pytest.approx(max(share for _, share in pairs))


def test_a_long_curve_keeps_its_ends() -> None:
    size = 300
    prices = np.arange(size * size, dtype=float).reshape(size, size)
    steps = best_within_each(prices, np.tril(prices) / prices.max())
    assert len(steps) <= 150
    assert steps[0][1] == 0
    assert steps[-1][1] == 1


def test_trials_are_sorted_by_hindsight_and_add_up(report: Report) -> None:
    rows = report["trials"].only(log="second", costs="1,10").records()
    hindsight = [float(row["hindsight"] or 0) for row in rows]
    assert hindsight == sorted(hindsight)
    assert rows[-1]["place"] == 8 * 4
    summary = {r["policy"]: r for r in report["summary"].only(log="second", costs="1,10").records()}
    for policy in ("hindsight", "adaptive"):
        mean = np.mean([float(row[policy] or 0) for row in rows])
        assert mean == pytest.approx(float(summary[policy]["cost"] or 0), rel=1e-4)
    failed = np.mean([float(row["failed"] or 0) for row in rows])
    assert 1 - failed == pytest.approx(float(summary["uniform-matched"]["solved"] or 0))


def test_the_rolling_median_is_that_of_the_neighbours(report: Report) -> None:
    rows = report["trials"].only(log="second", costs="1,10").records()
    spent = [float(row["adaptive"] or 0) for row in rows]  # 32 trials, 2 neighbours on each side
    for at, row in enumerate(rows):
        around = spent[max(at - 2, 0) : at + 3]
        assert row["median"] == pytest.approx(np.median(around), rel=1e-4)
        assert row["low"] == pytest.approx(np.quantile(around, 0.25), rel=1e-4)
        assert row["high"] == pytest.approx(np.quantile(around, 0.75), rel=1e-4)


def test_many_trials_are_averaged() -> None:
    log = population("coding", problems=3, candidates=12, seed=1)
    asked = Request(
        orders=400, many_orders=1, policies=("hindsight", "adaptive", "uniform-matched")
    )
    table = make_report([Source("x", log=log)], asked)["trials"]
    assert len(table) == 1000
    assert sum(int(n or 0) for n in table.column("trials")) == 1200
    assert table.column("place")[-1] == 1200


def test_optimal_pairs_are_hindsight_over_many_orders(report: Report) -> None:
    found = compare(["hindsight"], OTHER, Costs(1, 10), orders=20)
    spent = found.trials[0].costs(Costs(1, 10)).mean(axis=1)
    rows = report["optimal_pairs"].only(log="second", costs="1,10").records()
    assert [row["problem"] for row in rows] == list(found.problems)
    assert [row["cost"] for row in rows] == pytest.approx(spent.tolist(), rel=1e-4)


def test_the_cheapest_policy_is_counted_over_the_resamples_of_compare(report: Report) -> None:
    rows = report["which_policy"].only(log="second", costs="1,10").records()
    names = [str(row["policy"]) for row in rows]
    assert all(map(runs_live, names))
    found = compare(names, OTHER, Costs(1, 10), orders=4)
    by_problem = [t.costs(Costs(1, 10)).mean(axis=1) for t in found.trials]
    totals = np.array([Resampled(8, 0).totals(each) for each in by_problem])
    first = np.mean(totals.argmin(axis=0) == 0)
    assert rows[0]["cheapest"] == pytest.approx(first, abs=0.01)
    assert sum(float(row["cheapest"] or 0) for row in rows) == pytest.approx(1)
    assert [row["cost"] for row in rows] == sorted(row.cost for row in found.rows)


def test_a_policy_that_solves_fewer_is_not_the_cheapest() -> None:
    log = population("math", problems=6, candidates=40, seed=2)
    asked = Request(policies=("fixed(1, 1)", "verify-all", "adaptive"), orders=2, many_orders=1)
    rows = make_report([Source("x", log=log)], asked)["which_policy"].records()
    assert rows[-1]["policy"] == "fixed(1, 1)"
    assert (rows[-1]["cheapest"], rows[-1]["words"]) == (None, "solves fewer")


def test_savings_are_against_verifying_in_order(report: Report) -> None:
    summary = {r["policy"]: r for r in report["summary"].only(log="first", costs="1,3").records()}
    in_order = float(summary["verify-all"]["cost"] or 0)
    for row in report["pays_for_itself"].only(log="first", costs="1,3").records():
        mine = summary[row["policy"]]
        assert row["in_order"] == in_order
        saved = in_order - float(mine["cost"] or 0)
        assert row["saving"] == pytest.approx(saved / in_order)
        assert row["worth"] == pytest.approx(saved / float(mine["generated"] or 0))
        assert float(row["low"] or 0) <= float(row["saving"] or 0) <= float(row["high"] or 0)


def test_a_cheaper_verifier_is_another_price_list(report: Report) -> None:
    saved = compare(["adaptive"], OTHER, Costs(1, 5), orders=4)["adaptive"]
    row = report["cheaper_verifier"].only(log="second", costs="1,10", price=0.5, policy="adaptive")
    assert row.column("cost") == [saved.cost]


def test_a_better_score_ranks_better_and_a_perfect_one_perfectly(report: Report) -> None:
    rows = report["better_score"].only(log="second", costs="1,10", policy="adaptive").records()
    aucs = [float(row["auc"] or 0) for row in rows]
    assert aucs == sorted(aucs)
    assert aucs[-1] == 1.0
    assert [row["saving"] for row in rows if row["now"]] == [0.0]
    assert abs(aucs[0] - 0.5) < 0.15


def test_a_score_as_it_is_keeps_its_order() -> None:
    again = changed(OTHER, 0.0, 0.0, seed=1)
    assert aucs_of(again) == aucs_of(OTHER)
    assert compare(["adaptive"], again, Costs(), orders=2).rows == (
        compare(["adaptive"], OTHER, Costs(), orders=2).rows
    )


def test_unsolved_problems_cost_what_compare_says(report: Report) -> None:
    saved = compare(["adaptive"], LOG, Costs(1, 10), orders=4, unsolvable="include")["adaptive"]
    row = report["unsolved"].only(log="first", costs="1,10", policy="adaptive").records()[0]
    assert row["cost"] == saved.unsolvable_cost == rule_cost(1.0, 1 / 20, Costs(1, 10))
    solvable = compare(["adaptive"], LOG, Costs(1, 10), orders=4)["adaptive"].cost
    assert row["solvable_cost"] == pytest.approx(solvable)
    assert row["share"] == pytest.approx(220 / (220 + 8 * solvable))
    included = make_report(
        [Source("x", log=LOG)], dataclasses.replace(REQUEST, unsolvable="include")
    )
    again = included["unsolved"].only(costs="1,10", policy="adaptive").records()[0]
    assert again["solvable_cost"] == pytest.approx(solvable)
    assert "first, 1,10: 1 problems have no candidate" in " ".join(report.findings)


def test_who_gives_up_spends_no_more_than_it_is_worth_in_vain() -> None:
    asked = Request(orders=2, many_orders=1, policies=("adaptive", "verify-all"), value=50.0)
    spent = make_report([Source("x", log=LOG)], asked)["unsolved"].column("cost")
    assert all(0 < float(cost or 0) <= 50 for cost in spent)
    with pytest.raises(UsageError, match="nothing is worth trying"):
        make_report([Source("x", log=LOG)], dataclasses.replace(asked, value=10.0))


def with_columns(log: Log) -> Log:
    """The log with measured costs and second scores."""
    rng = np.random.default_rng(1)
    problems = [
        dataclasses.replace(
            problem,
            generate_costs=rng.uniform(0.001, 0.003, len(problem)),
            verify_costs=rng.uniform(0.01, 0.05, len(problem)),
            second=problem.scores + 2 * problem.passed,
        )
        for problem in log.problems
    ]
    return dataclasses.replace(log, problems=tuple(problems), second="second")


def test_measured_costs_are_those_of_compare() -> None:
    log = with_columns(Log(OTHER.problems[:4]))
    asked = Request(costs=(Costs(1, 10), None), policies=FEW, orders=2, many_orders=3)
    made = make_report([Source("x", log=log)], asked)
    saved = compare(FEW, log, log.measured, orders=2).rows
    assert made["summary"].only(costs="measured").column("cost") == [row.cost for row in saved]
    assert made["optimal_pairs"].only(costs="measured").column("orders") == [2] * 4
    assert any("on average, as measured" in note for note in made["summary"].notes)
    assert "measured" in " ".join(made["cheaper_verifier"].notes)
    with pytest.raises(LogError, match="'generate_cost' is not there"):
        make_report([Source("x", log=OTHER)], asked)
    with pytest.raises(UsageError, match="given twice"):
        Request(costs=(None, Measured(1, 10)))


def test_a_cascade_is_that_of_compare() -> None:
    log, cascade = with_columns(Log(OTHER.problems[:4])), Cascade(4, 0.5)
    asked = Request(policies=FEW, orders=2, many_orders=1)
    made = make_report([Source("x", log=log, cascade=cascade)], asked)
    saved = compare(FEW, log, Costs(), orders=2, cascade=cascade).rows
    assert made["summary"].column("cost") == [row.cost for row in saved]
    assert made.logs[0].score == "score, then second for the best 4"
    assert "what second adds" in " ".join(made["auc_summary"].notes)


def test_logs_are_paired_on_the_problems_they_share() -> None:
    part = Log(OTHER.problems[2:5])
    worse = changed(part, 1.0, 0.0, seed=0)
    asked = Request(orders=3, many_orders=1, policies=("adaptive", "verify-all"))
    made = make_report([Source("all", log=OTHER), Source("noise", log=worse)], asked)
    for row in made["paired"].records():
        assert row["problems"] == 3
        first = compare([str(row["policy"])], part, Costs(), orders=3).rows[0].cost
        second = compare([str(row["policy"])], worse, Costs(), orders=3).rows[0].cost
        assert (row["cost"], row["first_cost"]) == pytest.approx((second, first))
        assert row["against"] == pytest.approx(second / first)
    same = made["paired"].only(policy="verify-all").records()[0]
    assert (same["against"], same["low"], same["high"]) == (1.0, 1.0, 1.0)


def test_a_saved_comparison_gives_the_same_costs_and_says_what_is_left_out(report: Report) -> None:
    saved = json.loads(json.dumps(compare(DEFAULT_ROWS, OTHER, PRICES, orders=4).to_json()))
    comparison = parse_comparison(saved)
    assert json.loads(json.dumps(comparison.to_json())) == saved
    made = make_report([Source("second", "comparison", None, comparison)])
    wanted = [r for r in report["summary"].only(log="second").rows if r[2] in DEFAULT_ROWS]
    assert list(made["summary"].rows) == wanted
    for name, figure in BY_NAME.items():
        if figure.needs_candidates:
            assert not made[name].rows
            assert "without candidates" in made[name].notes[0]


def test_what_is_no_comparison_is_refused() -> None:
    with pytest.raises(LogError, match="format 1"):
        parse_comparison({"format": 99})
    with pytest.raises(LogError, match="grv compare --json"):
        parse_comparison({"format": 1, "log": {}, "settings": {}, "rows": []})


def test_progress_ends_where_it_said_it_would() -> None:
    told: list[tuple[int, int]] = []
    asked = Request(orders=2, many_orders=2)
    make_report([Source("x", log=OTHER)], asked, progress=lambda *now: told.append(now))
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]


def test_logs_need_names_of_their_own() -> None:
    with pytest.raises(UsageError, match="names of their own"):
        make_report([Source("x", log=LOG), Source("x", log=OTHER)])
    with pytest.raises(UsageError, match="names of their own"):
        make_report([])


def problem(id: str, scores: list[float], passed: list[bool]) -> LoggedProblem:
    unscored = sum(score == -np.inf for score in scores)
    return LoggedProblem(id, np.array(scores), np.array(passed), unscored=unscored)


MIXED = [True, False, False, True, False, False]
DEGENERATE = {
    "one problem": (Log((problem("a", [1, 2, 3, 4, 5, 6], MIXED),)), "one problem alone"),
    "no solvable problem": (
        Log((problem("a", [1, 2, 3], [False] * 3), problem("b", [1, 2], [False] * 2))),
        "nothing to compare",
    ),
    "all passed": (
        Log((problem("a", [1, 2, 3], [True] * 3), problem("b", [1, 2], [True] * 2))),
        "all candidates passed",
    ),
    "all scores equal": (
        Log((problem("a", [2.0] * 6, MIXED), problem("b", [2.0] * 6, MIXED[::-1]))),
        "all scores are equal",
    ),
    "one candidate each": (
        Log((problem("a", [1.0], [True]), problem("b", [2.0], [False]))),
        "one candidate, so there is nothing to rank",
    ),
    "one candidate in all": (Log((problem("a", [1.0], [True]),)), "nothing to rank"),
    "missing scores": (
        Log((problem("a", [1, -np.inf, 3, -np.inf, 2, 0], MIXED),)),
        "2 of 6 candidates have no score",
    ),
    "no score at all": (
        Log((problem("a", [-np.inf] * 6, MIXED), problem("b", [-np.inf] * 2, [True, False]))),
        "no candidate has a score",
    ),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_a_log_that_says_little_is_said_to(name: str) -> None:
    log, words = DEGENERATE[name]
    made = make_report([Source("x", log=log)], Request(orders=3, many_orders=3))
    json.dumps(made.to_json(), allow_nan=False)
    notes = [note for table in made.tables for note in table.notes]
    assert any(words in note for note in notes), notes
    for table in made.tables:
        assert table.rows or table.notes
        if not table.rows:
            assert table.notes[0] != "There is nothing to show here.", table.name


def test_rows_that_nobody_asked_for_are_missed_in_words() -> None:
    asked = Request(policies=("balanced" if runs_live("balanced") else "adaptive",), orders=2)
    made = make_report([Source("x", log=OTHER)], asked)
    assert "hindsight" in made["trials"].notes[0]
    assert "no row difficulty-K" in " ".join(made["difficulty"].notes)
    hindsight_only = make_report(
        [Source("x", log=OTHER)], Request(policies=("hindsight",), orders=2)
    )
    assert "nothing to relate costs to" in " ".join(hindsight_only["summary"].notes)
    assert "could run live" in hindsight_only["which_policy"].notes[0]


def test_it_is_known_of_every_policy_what_it_rests_on() -> None:
    assert all(rests_on(name) != "not stated" for name in default_rows() if runs_live(name))


def test_an_inverted_score_is_warned_of_and_the_policies_that_rest_on_it_are_distrusted() -> None:
    log = population("coding", problems=12, candidates=80, seed=3)
    worst = changed(log, 0.0, -4.0, seed=0)
    asked = Request(orders=4, many_orders=2, policies=("adaptive", "verify-all"))
    made = make_report([Source("x", log=worst)], asked)
    summary = made["monotonicity_summary"].records()[0]
    assert summary["by_chance"] == 0
    assert float(summary["fall"] or 0) > 0.2
    assert summary["inverted"] == 12
    assert any("higher scores are worse" in warning for warning in made.warnings)
    verdicts = {row["policy"]: row["verdict"] for row in made["distrust"].records()}
    assert str(verdicts["adaptive"]).startswith("distrust")
    right = make_report([Source("x", log=changed(log, 0.0, 3.0, seed=0))], asked)
    assert float(right["monotonicity_summary"].records()[0]["by_chance"] or 0) > 0.05
    assert not right.warnings
