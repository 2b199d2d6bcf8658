"""The frontier of cost and time: block sizes, and the best that any can do, on real logs.

    python bench/width_frontier.py --data FOLDER [--orders N] [--json]

The logs, costs and seconds of `width.py`; width 16, each figure relative to width 1 of the same
policy on the same orders.

- `ramps`: blocks of `start + (growth - 1) k` after k verifications, with overlap, for `varied`, for
  `learned` (five folds; its prior comes from searches of `varied` on the others) and `learning`;
  then ramps with a random phase u for each problem, blocks of which end at growth^(i + u) - shift.
- `bounds`, for `varied`, whose course costs the same for every problem: the least time of all
  sequences of block sizes that know only k, by dynamic programming over the distribution of the
  first pass on this very log. The cost is limited by a price of time, and the bound holds for
  mixtures too. Then with generation that takes no time after the first block; then if the
  distribution of each problem is known; then if the first pass is known.
- `belief`: `learned` with blocks that end when another verification would lower the chance of a
  pass per cost, by the posterior; a round of waiting costs `kappa` verifications. Beside it the
  ramps in the same simplified accounting: what the course generates is paid for, 5 s per block.
  Also on two populations, 100 problems each.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grv.comparing.arrivals import Arrivals, by_repetition, left_by
from grv.core.limits import Limits
from grv.core.pace import Pace, SearchClock
from grv.core.search import Policy, Search
from grv.core.values import Generate, Generated, Stop, Verdict, Verified
from grv.learning.online import fitted_prior
from grv.learning.score_combination import read_scored
from grv.logs.log import LoggedProblem
from grv.policies import Alternate, Learned, Learning, Varied
from grv.policies.learned.belief import Belief
from grv.replay.engine import replayed
from grv.replay.kernels.dispatch import many_trials
from grv.replay.kernels.paths import failing_course, slot_stages
from grv.replay.orders import OrderBatch, Orders
from grv.replay.trials import Trials
from grv.testing.worlds import POPULATIONS
from width import COSTS, LATENCY, LOGS, Row, table

WIDTH = 16
FOLDS = 5
GOAL = 1.25
SHAPES = [(start, growth) for start in (1, 2, 3, 4) for growth in (1.5, 2, 3)]
RANDOM = [(shift, growth) for shift in (0, 1, 2, 3) for growth in (2, 3)]
PRICES = tuple(float(x) for x in np.geomspace(0.05, 5, 25))  # of a second
Numbers = NDArray[np.float64]
Ints = NDArray[np.integer]
Rule = Callable[[int, Sequence[float]], int]  # the block after k verifications, by all chances


@dataclasses.dataclass(frozen=True)
class Ramp(Pace):
    """A ramp of another shape."""

    start: int = 2
    growth: float = 2.0

    def block(
        self, width: int, verified: int, round_cost: float, clock: SearchClock, pending: float
    ) -> int:
        """The size of the block after `verified` verifications."""
        return min(width, max(1, int(self.start + (self.growth - 1) * verified)))


@dataclasses.dataclass(frozen=True)
class RandomRamp(Pace):
    """A ramp with a random phase u: blocks end at floor(growth^(i + u)) - shift."""

    shift: int = 1
    growth: float = 2.0

    def block(
        self, width: int, verified: int, round_cost: float, clock: SearchClock, pending: float
    ) -> int:
        """The size of the block after `verified` verifications."""
        places = (self.growth ** (i + self.phase) for i in range(WIDTH * len(PRICES)))
        end = next(end for place in places if (end := int(place) - self.shift) > verified)
        doubled = (self.growth - 1) * (verified + self.shift)
        return width if doubled >= width else min(width, end - verified)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {}
    for name, (file, score) in LOGS.items():
        log = read_scored(str(given.data / file), score)
        problems = [problem for problem in log.problems if problem.solvable]
        orders = Orders(problems, given.orders)
        found[name] = {"ramps": ramps(score, orders), "bounds": bounds(orders)}
        found[name]["belief"] = belief(score, orders)
    for name in ("coding", "math"):
        law = POPULATIONS[name]
        made = [law.problem(f"p{number:03}", 256, (0, number)) for number in range(100)]
        found[name] = {"ramps": {}, "bounds": {}, "belief": belief("score", Orders(made, 2))}
    print(json.dumps(found, indent=1) if given.json else text(found))


def ramps(score: str, orders: Orders) -> dict[str, Any]:
    """Every shape with every policy."""
    paces: dict[str, tuple[int, Pace]] = {"width 1": (1, Pace(overlap=False))}
    for start, growth in SHAPES:
        ramp = Ramp(ramp=False, overlap=True, start=start, growth=growth)
        paces[f"start {start}, growth {growth:g}"] = (WIDTH, ramp)
    for shift, growth in RANDOM:
        random = RandomRamp(ramp=False, random_phase=True, shift=shift, growth=growth)
        paces[f"random, shift {shift}, growth {growth:g}"] = (WIDTH, random)
    batches = list(orders.batches())
    folds: dict[str, list[Policy]] = {"varied": [Varied()] * FOLDS}
    folds["learned"] = _learned(score, batches)
    found = {}
    for name, each in folds.items():
        rows = {pace: _row(_folded(each, batches, *how)) for pace, how in paces.items()}
        found[name] = table(rows)
    rows = {}
    for pace, (width, how) in paces.items():
        replay = Arrivals(orders, score, limits=Limits(width=width, pace=how))
        repetitions = range(len(batches[0].orders))
        rows[pace] = _row(
            [by_repetition([replay.trials(Learning(), COSTS, r) for r in repetitions])]
        )
    found["learning"] = table(rows)
    return found


def _learned(score: str, batches: Sequence[OrderBatch]) -> list[Policy]:
    """The policy of each fold, from searches of `varied` on the problems of the others."""
    left = [
        left_by(
            replayed(Varied(), b.problem, COSTS, order=b.orders[0].tolist()),
            b.problem,
            b.orders[0],
        )
        for b in batches
    ]
    priors = [
        fitted_prior([each for at, each in enumerate(left) if at % FOLDS != fold], score)
        for fold in range(FOLDS)
    ]
    return [Learned(prior) for prior in priors if prior is not None]


def _folded(
    policies: Sequence[Policy], batches: Sequence[OrderBatch], width: int, pace: Pace
) -> list[Trials]:
    found: list[Trials] = []
    for fold, policy in enumerate(policies):
        found += many_trials(policy, batches[fold::FOLDS], COSTS, Limits(width=width, pace=pace))
    return found


def _row(found: Sequence[Trials]) -> Row:
    """The means of each problem."""
    cost = np.concatenate([np.atleast_2d(each.costs(COSTS)).mean(axis=1) for each in found])
    seconds = np.concatenate([np.atleast_2d(each.seconds(LATENCY)).mean(axis=1) for each in found])
    return Row(cost, seconds, 1.0)


def bounds(orders: Orders) -> dict[str, Any]:
    """The least time for at most `GOAL` times the cost of width 1, as times sooner."""
    passes = [each.verified for each in many_trials(Varied(), list(orders.batches()), COSTS)]
    first = np.array(passes)
    size = len(orders.problems[0])
    assert all(len(problem) == size for problem in orders.problems)
    how = Limits(width=1, pace=Pace(overlap=False))
    course = failing_course(slot_stages(Alternate(), COSTS, size, 1), COSTS, how, size)
    made = np.array([0, *(counts[0] for counts in course.sent)])
    one = Course(made, LATENCY.generate)
    cost, seconds = (float(each[first].mean()) for each in one.blocks(lambda _: 1))
    each = np.array([(first > k).mean(axis=1) for k in range(size + 1)]).T
    alive = each.mean(axis=0)[None, :]
    free = Course(made, 0.0)
    known = [
        sum(
            LATENCY.verify + LATENCY.generate * (made[min(k + WIDTH, n)] > made[k])
            for k in range(0, n, WIDTH)
        )
        for n in first.ravel().tolist()
    ]
    limit = GOAL * cost
    return {
        "knows k": round(seconds / one.least(alive, limit), 2),
        "knows k, free generation": round(seconds / free.least(alive, limit), 2),
        "knows the problem": round(seconds / one.least(each, limit), 2),
        "knows the first pass": round(seconds / float(np.mean(known)), 2),
        "frontier": [
            [round(spent / cost, 3), round(seconds / took, 2)]
            for price in PRICES[::2]
            for spent, took in [one.best(alive, price)]
        ],
    }


class Course:
    """What blocks cost and how long they take, for a course that all problems share."""

    def __init__(self, made: Ints, generate: float) -> None:
        self.made = made
        self.size = len(made) - 1
        self._generate = generate

    def _seconds(self, start: int, end: int) -> float:
        more = self.made[end] > self.made[start]
        generate = self._generate if start else LATENCY.generate
        return LATENCY.verify + generate * bool(more)

    def blocks(self, rule: Callable[[int], int]) -> tuple[Numbers, Numbers]:
        """Cost and seconds by the number of the first pass, for block sizes by k."""
        cost, seconds = np.zeros((2, self.size + 1))
        at = 0
        took = 0.0
        while at < self.size:
            end = min(self.size, at + rule(at))
            took += self._seconds(at, end)
            cost[at + 1 : end + 1] = COSTS.of(int(self.made[end]), end)
            seconds[at + 1 : end + 1] = took
            at = end
        return cost, seconds

    def best(self, alive: Numbers, price: float) -> tuple[float, float]:
        """Mean cost and time with the blocks that minimise cost + price * time, for each law.

        Dynamic programming over block ends; `alive[law, k]` is the chance of more than k.
        """
        laws = np.arange(len(alive))
        value = np.zeros((self.size + 1, 3, len(alive)))  # the sum to minimise, cost, seconds
        for k in range(self.size - 1, -1, -1):
            ends = range(k + 1, min(self.size, k + WIDTH) + 1)
            costs = [COSTS.of(int(self.made[end] - self.made[k]), end - k) for end in ends]
            seconds = [self._seconds(k, end) for end in ends]
            now = np.array([np.add(costs, price * np.array(seconds)), costs, seconds]).T
            options = now[:, :, None] * alive[:, k] + value[k + 1 : k + 1 + len(ends)]
            value[k] = options[options[:, 0].argmin(axis=0), :, laws].T
        return float(value[0, 1].mean()), float(value[0, 2].mean())

    def least(self, alive: Numbers, limit: float) -> float:
        """A lower bound on the mean time of all block sizes whose mean cost is within a limit."""
        found = [(price, *self.best(alive, price)) for price in PRICES]
        return max(seconds + (cost - limit) / price for price, cost, seconds in found)


def belief(score: str, orders: Orders) -> dict[str, Any]:
    """Rules by the posterior of `learned`, beside ramps, on courses of its searches."""
    batches = list(orders.batches())
    policies = _learned(score, batches)
    courses = [
        [recorded(policies[at % FOLDS], batch.problem, order) for order in batch.orders.tolist()]
        for at, batch in enumerate(batches)
    ]
    rules: dict[str, Rule] = {"width 1": lambda k, chances: 1}
    for start, growth in SHAPES:
        ramp = Ramp(start=start, growth=growth)
        rules[f"start {start}, growth {growth:g}"] = lambda k, chances, ramp=ramp: ramp.block(  # type: ignore[misc]
            WIDTH, k, 1.0, SearchClock(None), 0.0
        )
    for kappa in (1, 2, 3, 4, 6):
        rules[f"kappa {kappa}"] = lambda k, chances, kappa=kappa: by_belief(k, chances, kappa)  # type: ignore[misc]
    rows = {}
    for name, rule in rules.items():
        figures = np.array([[_priced(each, rule) for each in problem] for problem in courses])
        cost, seconds = figures.mean(axis=1).T
        rows[name] = Row(cost, seconds, 1.0)
    return table(rows)


Recorded = tuple[int, list[int], list[float]]  # the first pass, candidates made, chances


def recorded(policy: Policy, problem: LoggedProblem, order: list[int]) -> Recorded:
    """The course of a search, to a block beyond its first pass, with the chances of passing."""
    search = Search(policy, COSTS)
    scores = problem.scores.tolist()
    passed = problem.passed.tolist()
    made: list[int] = []
    first = len(order) + 1
    with _watched() as chances:
        while not isinstance(action := search.ask(), Stop) and len(made) <= first + WIDTH:
            if isinstance(action, Generate):
                batch = order[search.arrived : search.arrived + action.n]
                search.tell(Generated(tuple(scores[i] for i in batch)))
                continue
            (id,) = action.ids
            made.append(search.arrived)
            if passed[order[id]]:
                first = min(first, len(made))
            search.tell(Verified({id: Verdict.FAILED}))
        return first, made, list(chances)


class _watched:
    """Records the chance of passing before each failure that a belief takes in."""

    def __enter__(self) -> list[float]:
        found: list[float] = []
        self._fail = fail = Belief.fail

        def watched(self: Belief, bin: int, count: float = 1.0) -> None:
            weights = np.exp(np.array(self._logs) - max(self._logs))
            failing = np.exp(np.array(self._tables.failing[bin]))
            found.append(1 - float(weights @ failing / weights.sum()))
            fail(self, bin, count)

        Belief.fail = watched  # type: ignore[method-assign]
        return found

    def __exit__(self, *_: object) -> None:
        Belief.fail = self._fail  # type: ignore[method-assign]


def by_belief(k: int, chances: Sequence[float], kappa: float) -> int:
    """Add verifications while one more, as likely as the others, raises the chance per cost."""
    fails = 1.0
    for size, chance in enumerate(chances[k : k + WIDTH], 1):
        fails *= 1 - chance
        like_others = 1 - fails ** (1 / size)
        if fails * like_others * (kappa + size) < 1 - fails:
            return size
    return WIDTH


def _priced(course: Recorded, rule: Rule) -> tuple[float, float]:
    """Cost and seconds of a search with these blocks."""
    first, made, chances = course
    end = 0
    before = 0
    seconds = 0.0
    while end < min(first, len(made)):
        end = min(len(made), end + max(1, rule(end, chances)))
        seconds += LATENCY.verify + LATENCY.generate * (made[end - 1] > before)
        before = made[end - 1]
    return COSTS.of(before, end), seconds


def text(found: dict[str, Any]) -> str:
    """The tables as text."""
    lines: list[str] = []
    for log, parts in found.items():
        lines += [log, f"  bounds: {json.dumps(parts['bounds'])}"]
        tables = {**parts["ramps"], "learned, simplified": parts["belief"]}
        for name, rows in tables.items():
            lines += [f"  {name}", *_lines(rows)]
    return "\n".join(lines)


def _lines(rows: dict[str, Any]) -> Iterator[str]:
    for name, row in rows.items():
        dearer = "{:.2f} ({:.2f}-{:.2f})".format(*row["dearer"])
        sooner = "{:.2f} ({:.2f}-{:.2f})".format(*row["sooner"])
        yield f"    {name:22}{row['cost']:8.1f}{row['seconds']:9.1f}  {dearer:19}  {sooner}"


if __name__ == "__main__":
    main()
