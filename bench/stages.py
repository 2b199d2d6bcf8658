"""What it saves to run the test first that refutes for the least money, and to tell the policy so.

    python bench/stages.py --data=FOLDER [--orders=N] [--outcomes=FILE] [--quick] [--laws]
    python bench/stages.py --data=FOLDER --equality=N

FOLDER has `humaneval_programs.jsonl.gz` (prompts, tests, completions, labels) and
`humaneval_codegen16b.parquet` (scores of the same completions). Each assert is a stage: a test
in which the other asserts are left out, run in the sandbox. FILE keeps the outcomes, which take
some minutes. Without a folder, a population is generated.

A candidate costs 1. A suite costs 10, which its tests share: equally, or in proportion to prices
between 1 and 100 that are drawn evenly on a logarithmic scale, anew for each order (`unequal`). A
verification is billed for the tests that ran. The policy is `varied`, or verify-all if there is no
score. All rows of a table have the same orders of candidates. `told` is the price of a verification
that the policy plans with. What a price depends on is measured on one half of the problems, and the
cost on the other half, both ways round. Ratios are of mean costs over the problems that can be
solved, with 95 % intervals from 2,000 resamples of the problems.

`--laws` shows on what the ratios with unequal prices depend: the same by the law of the prices.

`--equality` verifies N different completions in the sandbox, by the tests as they are, three times:
in file order, learned order and reversed order. It counts the verdicts that differ.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import gzip
import json
import math
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grv.backends.protocols import Stage
from grv.backends.sandbox import plain
from grv.backends.sandbox.limits import End, RunLimits
from grv.backends.verifiers.programs.checks import AssertsCheck, call, load, loading
from grv.backends.verifiers.suite import Suite, TestOrder
from grv.backends.verifiers.worker_pair import WorkerPair
from grv.core.search import Policy, Search
from grv.core.values import Costs, Generate, Generated, Measured, Stop, Verdict, Verified, Verify
from grv.logs.log import LoggedProblem
from grv.policies import Varied, VerifyAll

SUITE = 10.0  # the price of all tests of a candidate, in candidates
WHOLE = Costs(1.0, SUITE)
LIMITS = RunLimits(seconds=0.5)
SHORT = RunLimits(seconds=2.0)
RESAMPLES = 2000
ANSWER = "grv_answer"
HARNESS = """

def grv_answer(test):
    names = dict(globals())
    exec(test, names)
    names["check"]({name})
    return True
"""
Record = dict[str, Any]
Outcomes = NDArray[np.bool_]  # [candidates, tests]: whether each passes
Law = Callable[[random.Random, int], Sequence[float]]  # draws the prices of so many tests


def records(folder: Path) -> list[Record]:
    with gzip.open(folder / "humaneval_programs.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def tests_of(record: Record) -> list[str]:
    """One test per assert of `check`: the other asserts are left out."""
    tree = ast.parse(record["test"])
    (check,) = (node for node in tree.body if getattr(node, "name", "") == "check")
    assert isinstance(check, ast.FunctionDef)
    body = check.body
    chosen = [node for node in body if isinstance(node, ast.Assert)]
    found = []
    alone: Sequence[ast.Assert | None] = chosen or [None]
    for one in alone:
        check.body = [node for node in body if node is one or not isinstance(node, ast.Assert)] or [
            ast.Pass()
        ]
        found.append(ast.unparse(tree))
    return found


def outcomes_of(record: Record, pair: WorkerPair) -> Outcomes:
    """Whether each completion passes each test, alone."""
    tests = tests_of(record)
    known: dict[str, list[bool]] = {}
    for text in record["completions"]:
        if text not in known:
            source = record["prompt"] + text + HARNESS.format(name=record["entry_point"])
            known[text] = passes(source, tests, pair)
    return np.array([known[text] for text in record["completions"]])


def passes(source: str, tests: Sequence[str], pair: WorkerPair) -> list[bool]:
    """Whether a program passes each test. After one that does not end, the others count as failed.

    Such a program fails whatever the others say; few do not end.
    """
    found: list[bool] = []
    first = loading(source, ANSWER, LIMITS, 0)
    with pair.candidate.run("candidate", LIMITS, tests=len(tests) + 1, first=first) as run:
        if load(run, ANSWER, LIMITS) is None:
            for test in tests:
                run.clock.begin()
                answer = call(run, {"args": plain.encode([test])})
                found.append(isinstance(answer, dict) and answer.get("value") is True)
                if isinstance(answer, End):
                    break
    return found + [False] * (len(tests) - len(found))


@dataclass(frozen=True, eq=False)
class Suites:
    """A problem: the scores of its candidates, and which test each passes, at which price."""

    name: str
    scores: dict[str, NDArray[np.float64]]
    outcomes: Outcomes
    prices: NDArray[np.float64]

    @property
    def passed(self) -> NDArray[np.bool_]:
        """Whether each candidate passes all tests."""
        return np.asarray(self.outcomes.all(axis=1))

    def logged(self, score: str) -> LoggedProblem:
        """The problem as a log has it; without a score, all candidates have the same."""
        scores = self.scores.get(score, np.zeros(len(self.outcomes)))
        return LoggedProblem(self.name, scores, self.passed)


def real(folder: Path, outcomes: Path | None, quick: bool) -> list[Suites]:
    """The problems of the folder; those whose tests do not agree with the labels are counted."""
    import pyarrow.parquet as parquet

    table = parquet.read_table(folder / "humaneval_codegen16b.parquet").to_pydict()
    rows: dict[str, list[int]] = {}
    for row, problem in enumerate(table["problem"]):
        rows.setdefault(problem, []).append(row)
    known = {}
    if outcomes is not None and outcomes.exists():
        known = {name: np.array(found) for name, found in json.loads(outcomes.read_text()).items()}
    found = []
    differ = 0
    pair = WorkerPair()
    for record in records(folder)[: 8 if quick else None]:
        name = record["problem"]
        if name not in known:
            known[name] = outcomes_of(record, pair)
            print(f"{name}: {known[name].shape[1]} tests", file=sys.stderr, flush=True)
            if outcomes is not None:
                outcomes.write_text(json.dumps({n: each.tolist() for n, each in known.items()}))
        labels = np.array(record["passed"], dtype=bool)
        differ += int((known[name].all(axis=1) != labels).sum())
        scores = {
            score: np.array([table[score][row] for row in rows[name]])
            for score in ("score_codet", "score_text_lr")
        }
        prices = np.full(known[name].shape[1], SUITE / known[name].shape[1])
        found.append(Suites(name, scores, known[name], prices))
    pair.close()
    print(f"{differ} labels differ from those recorded", file=sys.stderr)
    return found


def generated(problems: int = 60, candidates: int = 100) -> list[Suites]:
    """A population: a candidate has a defect or none, and each test finds some defects."""
    draw = np.random.default_rng(0)
    found = []
    for number in range(problems):
        tests = int(draw.integers(3, 12))
        rate = draw.beta(0.4, 1.2)
        kinds = 8
        finds = draw.random((kinds, tests)) < draw.beta(0.6, 0.9, size=tests)
        finds[np.arange(kinds), draw.integers(0, tests, kinds)] = True
        defect = draw.choice(kinds, size=candidates, p=draw.dirichlet(np.full(kinds, 0.5)))
        right = draw.random(candidates) < rate
        outcomes = np.where(right[:, None], True, ~finds[defect])
        noise = draw.normal(size=(2, candidates))
        scores = {"score_codet": right + noise[0], "score_text_lr": 0.6 * right + noise[1]}
        found.append(Suites(f"{number}", scores, outcomes, np.full(tests, SUITE / tests)))
    return found


def log_uniform(most: float) -> Law:
    """Between 1 and `most`, evenly on a logarithmic scale."""
    return lambda draw, tests: [math.exp(draw.uniform(0, math.log(most))) for _ in range(tests)]


def exponential(draw: random.Random, tests: int) -> list[float]:
    """Exponential with mean 1."""
    return [draw.expovariate(1.0) for _ in range(tests)]


def one_dear(draw: random.Random, tests: int) -> list[float]:
    """One test, any of them, costs ten times what each other costs."""
    dear = draw.randrange(tests)
    return [10.0 if test == dear else 1.0 for test in range(tests)]


UNEQUAL = log_uniform(100)
LAWS: dict[str, Law] = {
    "log-uniform, 1 to 10": log_uniform(10),
    "log-uniform, 1 to 100": UNEQUAL,
    "log-uniform, 1 to 1000": log_uniform(1000),
    "exponential": exponential,
    "one test ten times dearer": one_dear,
}


def priced(problem: Suites, law: Law, seed: str) -> Suites:
    """The problem with other prices of its tests, whose sum is that of the suite."""
    prices = np.array(law(random.Random(seed), len(problem.prices)))
    return dataclasses.replace(problem, prices=SUITE * prices / prices.sum())


def verified(problem: Suites, score: str, costs: Costs, order: Sequence[int]) -> tuple[int, ...]:
    """The candidates generated (the first number), and those verified, in their order.

    With `Measured` costs, the search is told what each verification cost in learned order.
    """
    policy: Policy = Varied() if score else VerifyAll()
    search = Search(policy, costs)
    scores = problem.logged(score).scores
    passed = problem.passed
    prices = Learned(problem)
    ids: list[int] = []
    while True:
        match search.ask():
            case Generate(n):
                batch = order[search.arrived : search.arrived + n]
                search.tell(Generated(tuple(scores[id] for id in batch), paid=float(len(batch))))
            case Verify(places):
                chosen = [order[place] for place in places]
                verdicts = {
                    place: Verdict.PASSED if passed[id] else Verdict.FAILED
                    for place, id in zip(places, chosen, strict=True)
                }
                paid = sum(prices.of(id) for id in chosen)
                search.tell(Verified(verdicts, paid if isinstance(costs, Measured) else None))
                ids += chosen
            case Stop():
                return (search.arrived, *ids)


def whole(problem: Suites, ids: Sequence[int]) -> list[float]:
    """What each verification costs without an early exit."""
    return [float(problem.prices.sum())] * len(ids)


def in_order(problem: Suites, ids: Sequence[int], order: Sequence[int]) -> list[float]:
    """What each costs if tests run in a fixed order, to the first failure."""
    outcomes = problem.outcomes[np.ix_(ids, order)]
    sums = np.cumsum(problem.prices[list(order)])
    ends = np.where(outcomes.all(axis=1), len(order) - 1, np.argmin(outcomes, axis=1))
    return [float(each) for each in sums[ends]]


def in_file_order(problem: Suites, ids: Sequence[int]) -> list[float]:
    return in_order(problem, ids, range(len(problem.prices)))


def cheapest_first(problem: Suites, ids: Sequence[int]) -> list[float]:
    return in_order(problem, ids, np.argsort(problem.prices, kind="stable").tolist())


def in_hindsight(problem: Suites, ids: Sequence[int]) -> list[float]:
    """Greedy over the candidates that are verified: failures per price among those left."""
    left = ~problem.outcomes[ids]
    order: list[int] = []
    while len(order) < len(problem.prices):
        kills = left.sum(axis=0) / problem.prices
        kills[order] = -1
        order.append(int(np.argmax(kills)))
        left = left[~left[:, order[-1]]]
    return in_order(problem, ids, order)


class Learned:
    """What verifications cost as the verifier orders tests: the same `Suite`, from nothing."""

    def __init__(self, problem: Suites) -> None:
        self._outcomes = problem.outcomes
        self._prices: list[float] = problem.prices.tolist()
        self._suite = Suite()

    def of(self, id: int) -> float:
        """The price of the next verification, which is that of this candidate."""
        ran = []
        for test in self._suite.order(len(self._prices), self._prices):
            passed = bool(self._outcomes[id, test])
            verdict = Verdict.PASSED if passed else Verdict.FAILED
            ran.append((test, Stage(self._suite.name(test), verdict, cost=self._prices[test])))
            if not passed:
                break
        self._suite.note(ran)
        return sum(self._prices[test] for test, _ in ran)


def learned(problem: Suites, ids: Sequence[int]) -> list[float]:
    """What each costs in learned order."""
    prices = Learned(problem)
    return [prices.of(id) for id in ids]


Pricing = Callable[[Suites, Sequence[int]], list[float]]
PRICINGS: dict[str, Pricing] = {
    "no early exit": whole,
    "file order": in_file_order,
    "cheapest first": cheapest_first,
    "learned order": learned,
    "best fixed order in hindsight (greedy)": in_hindsight,
}


@dataclass(frozen=True)
class Bench:
    """The problems, and the orders in which their candidates arrive.

    Attributes:
        problems: all of them.
        orders: how many orders there are of each problem.
        law: of the prices of tests, if they are not equal.
        is_anew: whether prices are drawn anew for each order, not once for each problem.
        searches: those made before, by problem, order, score and price list. They do not depend on
            the prices of tests, unless costs are measured.
    """

    problems: Sequence[Suites]
    orders: int
    law: Law | None = None
    is_anew: bool = True
    searches: dict[tuple[int, int, str, Costs], tuple[int, ...]] = field(default_factory=dict)

    @functools.cached_property
    def solvable(self) -> list[int]:
        """The numbers of the problems with a candidate that passes."""
        return [number for number, each in enumerate(self.problems) if each.passed.any()]

    def trials(self, number: int) -> Iterator[tuple[Suites, list[int]]]:
        """A problem, and an order in which its candidates arrive."""
        candidates = len(self.problems[number].outcomes)
        for trial in range(self.orders):
            problem = self.problems[number]
            seed = f"{number} {trial}"
            if self.law is not None:
                problem = priced(problem, self.law, seed if self.is_anew else f"{number}")
            yield problem, random.Random(seed).sample(range(candidates), candidates)

    def searched(
        self, number: int, score: str, told: Costs
    ) -> Iterator[tuple[Suites, int, list[int]]]:
        """A problem, how many candidates a search for it generated, and which it verified."""
        for trial, (problem, order) in enumerate(self.trials(number)):
            key = (number, trial, score, told)
            if isinstance(told, Measured):
                ids = verified(problem, score, told, order)
            else:
                if key not in self.searches:
                    self.searches[key] = verified(problem, score, told, order)
                ids = self.searches[key]
            yield problem, ids[0], list(ids[1:])

    def cost(self, number: int, score: str, told: Costs, pricing: Pricing) -> float:
        """The mean cost of a search for one problem."""
        totals = [
            generated + sum(pricing(problem, ids))
            for problem, generated, ids in self.searched(number, score, told)
        ]
        return float(np.mean(totals))

    def told(self, numbers: Sequence[int], score: str, *, failures: bool) -> float:
        """The mean price of a verification on these problems in learned order, or of a failure."""
        prices = []
        for number in numbers:
            for problem, _, ids in self.searched(number, score, WHOLE):
                paid = zip(ids, learned(problem, ids), strict=True)
                passed = problem.passed
                prices += [price for id, price in paid if not (failures and passed[id])]
        return float(np.mean(prices))

    def halves(self) -> list[tuple[list[int], list[int]]]:
        """Two ways to divide the problems: what is chosen on the first is used on the second."""
        drawn = random.Random(2).sample(self.solvable, len(self.solvable))
        middle = len(drawn) // 2
        return [(drawn[:middle], drawn[middle:]), (drawn[middle:], drawn[:middle])]


def ratio(costs: Sequence[float], base: Sequence[float]) -> dict[str, float]:
    """The ratio of two means over the same problems, with its interval."""
    both = np.array([costs, base])
    draw = np.random.default_rng(3)
    chosen = draw.integers(0, both.shape[1], size=(RESAMPLES, both.shape[1]))
    means = both[:, chosen].mean(axis=2)
    low, high = np.quantile(means[0] / means[1], [0.025, 0.975])
    value = both[0].mean() / both[1].mean()
    return {"ratio": round(float(value), 3), "low": round(low, 3), "high": round(high, 3)}


def orders_of_tests(
    bench: Bench, score: str, rows: Sequence[str] = tuple(PRICINGS)
) -> dict[str, Any]:
    """The cost by the order of tests, over early exit in file order; the same searches."""
    costs = {
        name: [bench.cost(number, score, WHOLE, PRICINGS[name]) for number in bench.solvable]
        for name in rows
    }
    return {name: ratio(each, costs["file order"]) for name, each in costs.items()}


TOLD = ("suite", "mean", "failure", "failure, measured", "verify-all")


def prices_told(bench: Bench, score: str, wanted: Sequence[str] = TOLD) -> dict[str, Any]:
    """The cost in learned order by the price that the policy is told, over that of the suite.

    - `mean`, `failure`: the mean price of a verification, or of one that fails, in the searches of
      the other half of the problems.
    - `failure, measured`: the same at first, then the mean of this search's own failures.
    """
    costs: dict[str, list[float]] = defaultdict(list)
    told: dict[str, list[float]] = defaultdict(list)
    for first, second in bench.halves():
        mean = bench.told(first, score, failures=False)
        failure = bench.told(first, score, failures=True)
        rows = {
            "suite": WHOLE,
            "mean": Costs(1.0, mean),
            "failure": Costs(1.0, SUITE, failure=failure),
            "failure, measured": Measured(1.0, SUITE, failure=failure),
        }
        for name, prices in [(name, rows[name]) for name in wanted if name in rows]:
            told[name].append(round(prices.planning.verify, 2))
            costs[name] += [bench.cost(number, score, prices, learned) for number in second]
        if "verify-all" in wanted:
            costs["verify-all"] += [bench.cost(number, "", WHOLE, learned) for number in second]
    found = {name: ratio(each, costs["suite"]) for name, each in costs.items()}
    return {name: {**row, "told": told.get(name, [])} for name, row in found.items()}


TWO_ORDERS = ("file order", "learned order")
TWO_PRICES = ("suite", "failure, measured")


def by_law(problems: Sequence[Suites], orders: int, score: str) -> dict[str, Any]:
    """By the law of the prices: the learned order over file order, and the price that is told.

    `told` is the last row of `prices_told` over its first one.
    """
    equal = Bench(problems, orders)
    once = dataclasses.replace(equal, law=UNEQUAL, is_anew=False)
    benches = {
        "equal": equal,
        **{name: dataclasses.replace(equal, law=law) for name, law in LAWS.items()},
        "log-uniform, 1 to 100, once for each problem": once,
    }
    return {
        name: {
            "learned order": orders_of_tests(bench, score, TWO_ORDERS)["learned order"],
            "told": prices_told(bench, score, TWO_PRICES)["failure, measured"],
        }
        for name, bench in benches.items()
    }


class ReversedSuite(Suite):
    """Tests from the last to the first."""

    def order(self, tests: int, prices: Sequence[float | None] = ()) -> Sequence[int]:
        """The last one first."""
        return range(tests)[::-1]


def equality(folder: Path, count: int) -> dict[str, Any]:
    """How many verdicts depend on the order of the tests."""
    pair = WorkerPair()
    verdicts: Counter[str] = Counter()
    stages: Counter[str] = Counter()
    differ: list[str] = []
    everything = [
        (number, text)
        for number, record in enumerate(records(folder))
        for text in set(record["completions"])
    ]
    chosen = sorted(random.Random(4).sample(everything, min(count, len(everything))))
    all_records = records(folder)
    checks: dict[int, dict[str, AssertsCheck]] = {}
    for number, text in chosen:
        record = all_records[number]
        if number not in checks:
            made = {
                name: AssertsCheck(record["entry_point"], record["test"], record["prompt"], SHORT)
                for name in ("file", "learned", "reversed")
            }
            made["file"].suite.order_tests = TestOrder.FILE
            made["reversed"] = dataclasses.replace(made["reversed"], suite=ReversedSuite("assert"))
            checks[number] = made
        findings = {name: how.judge(text, pair) for name, how in checks[number].items()}
        for name, finding in findings.items():
            stages[name] += len(finding.stages)
        found = {finding.verdict.value for finding in findings.values()}
        verdicts[findings["file"].verdict.value] += 1
        if len(found) > 1:
            said = {name: (each.verdict.value, each.reason) for name, each in findings.items()}
            differ.append(f"{record['problem']}: {said}")
    pair.close()
    return {
        "programs": len(chosen),
        "verdicts": dict(verdicts),
        "asserts_run": dict(stages),
        "different_verdicts": differ,
    }


def main() -> None:
    flags = dict(word.removeprefix("--").partition("=")[::2] for word in sys.argv[1:])
    quick = "quick" in flags
    if "equality" in flags:
        print(json.dumps(equality(Path(flags["data"]), int(flags["equality"])), indent=1))
        return
    if "data" in flags:
        outcomes = Path(flags["outcomes"]) if "outcomes" in flags else None
        problems = real(Path(flags["data"]), outcomes, quick)
    else:
        problems = generated(12 if quick else 60)
    orders = int(flags.get("orders", 3 if quick else 20))
    if "laws" in flags:
        print(json.dumps(by_law(problems, orders, "score_codet"), indent=1))
        return
    equal = Bench(problems, orders)
    dear = Bench(problems, orders, UNEQUAL)
    figures = {
        "problems": len(problems),
        "solvable": len(equal.solvable),
        "orders": orders,
        "order_of_tests": {
            "no score": orders_of_tests(equal, ""),
            "codet": orders_of_tests(equal, "score_codet"),
            "no score, unequal": orders_of_tests(dear, ""),
            "codet, unequal": orders_of_tests(dear, "score_codet"),
        },
        "price_told": {
            "codet": prices_told(equal, "score_codet"),
            "text_lr": prices_told(equal, "score_text_lr"),
            "codet, unequal": prices_told(dear, "score_codet"),
        },
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
