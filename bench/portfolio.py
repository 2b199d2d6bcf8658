"""What portfolios of generators cost on a log: `python bench/portfolio.py LOG [--orders N]`.

The log needs the columns `generator` and `key`. Each table compares simple orders, a ladder, the
cold portfolio and the learned one, on the problems that any of the generators solves. All rows see
the same candidates in the same orders. Intervals are 95 %, by resampling problems. Learned rows are
fitted to other problems only: in order of arrival, from the verdicts that the portfolio itself paid
for, or cross-fitted in five parts, from all labels of the other parts. There are two for each score
and two without a score; the other rows use none.

`--record` instead prints as JSON, for the prices above with keys and for made-up populations, what
the portfolio that learns in order of arrival costs: over the best of the cold portfolio and the two
simple orders, over the better simple order, and over the oracle generator.

`--known` needs no log. For each made-up population without a score, of at most three generators, it
prints what the best rule costs that knows the law, in expectation and exactly.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from grv.comparing.portfolio.compare import oracle_of
from grv.comparing.portfolio.trials import GeneratorsInOrder, GeneratorTrials, Trier
from grv.comparing.settings import ComparisonSettings
from grv.comparing.significance import Resampled
from grv.core.values import Costs
from grv.learning.joint import fit_joint
from grv.learning.joint_history import attempts_of_log
from grv.learning.prior_file import parse_policy
from grv.logs.generators import read_generators
from grv.logs.log import Log, LoggedProblem
from grv.policies.portfolio import (
    ByExpectedPasses,
    BySpending,
    Chooser,
    Member,
    equal_shares,
    root_shares,
)
from grv.policies.portfolio.shares import attempt
from grv.replay.portfolio import Entrant
from grv.text import aligned

VERIFY = 10.0
FOLDS = 5
RUNGS = 4
SCORES = ("score_similarity", "score_neglen", "score_parses")
THREE: tuple[Mapping[str, float], ...] = (
    {"codegen-16b": 1, "codellama-34b-instruct": 4, "gpt-4": 20},
    {"codegen-16b": 1, "gpt-3.5-turbo": 4, "gpt-4": 20},
)
STRENGTH = (  # by pass rate, the weakest first
    "codegen-16b",
    "codellama-34b-instruct",
    "gpt-3.5-turbo-0125",
    "gpt-3.5-turbo",
    "paircoder-gpt-3.5-turbo",
    "gpt-4",
    "paircoder-deepseek-coder",
    "paircoder-gpt-4o",
)
# Two price lists: in one the stronger generator is always dearer; in the other one of the strongest
# is cheap, so that little is left to gain.
EIGHT: tuple[Mapping[str, float], ...] = (
    dict(zip(STRENGTH, (1, 4, 8, 16, 24, 32, 48, 64), strict=True)),
    dict(zip(STRENGTH, (1, 4, 3, 4, 12, 20, 6, 30), strict=True)),
)


@dataclass(frozen=True)
class Ladder:
    """Some candidates of each generator, the rest of the last one, then what is left."""

    rungs: Mapping[str, int]
    steers: ClassVar[bool] = False

    def choose(self, members: Sequence[Member]) -> Member:
        """The first generator with candidates left on its rung."""
        for member in members:
            pool = member.search.pool
            if len(pool) < self.rungs.get(member.name, 10**9) or pool.waiting:
                return member
        return members[-1]


# Made-up populations: the levels of the generators, what they share of a problem, what is
# particular to a generator on it, the strength of the score, and the prices.
MADE_UP: Mapping[str, tuple[tuple[float, ...], float, float, float, tuple[float, ...]]] = {
    "easy": ((-1, 0, 1.5), 1, 0.5, 0, (1, 4, 20)),
    "nothing particular": ((-3, -2, -1), 2, 0, 0, (1, 4, 20)),
    "nothing shared": ((-3, -2, -1), 0, 2.5, 0, (1, 4, 20)),
    "hard": ((-4, -1), 1.5, 1, 0, (1, 40)),
    "eight": ((-4, -3, -2.5, -2, -1, -1, 0, 0.5), 2, 1.5, 0, (1, 4, 3, 4, 12, 20, 6, 30)),
    "a good score": ((-3, -2, -1), 1.5, 1, 1.5, (1, 4, 20)),
    "only the strong one": ((-6, -5, 1), 1, 0.5, 0, (1, 4, 20)),
    "the cheap one": ((-0.5, 0, 0.5), 1, 0.3, 0, (1, 10, 60)),
}
SEEDS = 3
PROBLEMS = 60
EACH = 40  # candidates per problem and generator
KNOWN_SEED = 100
KNOWN_PROBLEMS = 200  # for the oracle, whose cost is not exact


def made_up(name: str, seed: int, orders: int, number: int = PROBLEMS) -> Trier:
    """A population; without keys."""
    levels, common, particular, strength, prices = MADE_UP[name]
    random = np.random.default_rng([seed, list(MADE_UP).index(name)])
    names = tuple(f"g{at}" for at in range(len(levels)))
    problems = []
    for place in range(number):
        odds = np.array(levels) + common * random.normal()
        odds = np.repeat(odds + particular * random.normal(size=len(levels)), EACH)
        scores = random.normal(size=len(odds))
        passed = random.random(len(odds)) < 1 / (1 + np.exp(-odds - strength * scores))
        own = np.repeat(np.arange(len(levels), dtype=np.int32), EACH)
        scores = scores if strength else np.zeros(len(odds))
        problems.append(LoggedProblem(f"p{place:02}", scores, passed, generators=own))
    log = Log(tuple(problems), generators=names)
    policy = parse_policy("verify-all")
    entrants = {n: Entrant(Costs(p, VERIFY), policy) for n, p in zip(names, prices, strict=True)}
    return Trier(log, log.solvable, entrants, ComparisonSettings(orders=orders))


def record(given: argparse.Namespace) -> dict[str, Any]:
    """The ratios of each population, with intervals over problems, and their geometric means."""
    triers = {
        f"log, {len(prices)} generators, prices {at}": _trier(given, prices, None, keys=True)
        for kind in (THREE, EIGHT)
        for at, prices in enumerate(kind, start=1)
    }
    triers |= {
        f"{name}, seed {seed}": made_up(name, seed, given.orders)
        for name in MADE_UP
        for seed in range(SEEDS)
    }
    found = {name: _ratios(trier) for name, trier in triers.items()}
    means = {}
    for kind in ("of_the_best", "of_the_best_simple_order", "of_the_oracle"):
        ratios = [each[kind]["ratio"] for each in found.values()]
        means[kind] = round(float(np.exp(np.log(ratios).mean())), 3)
    return {"orders": given.orders, "geometric_means": means, "populations": found}


def _ratios(trier: Trier) -> dict[str, Any]:
    """What learning in order of arrival costs on one population."""
    costs = {name: each.costs for name, each in trier.entrants.items()}
    names = list(costs)
    cheap = sorted(names, key=lambda name: attempt(costs[name]))
    others = {
        "cheap first": trier.fixed(cheap, GeneratorsInOrder()),
        "strong first": trier.fixed(cheap[::-1], GeneratorsInOrder()),
        "cold": trier.fixed(names, BySpending(root_shares(costs))),
    }
    oracle = oracle_of([trier.fixed([name], GeneratorsInOrder()) for name in names])
    learned = trier.learned()
    resampled = Resampled(len(trier.problems), 0)

    def over(base: GeneratorTrials) -> dict[str, Any]:
        interval = resampled.ratio(learned.costs, base.costs) or (math.nan, math.nan)
        ratio = learned.costs.mean() / base.costs.mean()
        return {"ratio": round(ratio, 3), "interval": [round(each, 3) for each in interval]}

    by_cost = sorted(others, key=lambda name: others[name].costs.mean())
    simple = next(name for name in by_cost if name != "cold")
    return {
        "best": by_cost[0],
        "of_the_best": over(others[by_cost[0]]),
        "of_the_best_simple_order": over(others[simple]),
        "of_the_oracle": over(oracle),
    }


def known() -> dict[str, dict[str, float]]:
    """What the best rule that knows the law costs on each population, and its ratios."""
    found = {}
    for name, (levels, common, particular, strength, prices) in MADE_UP.items():
        if strength or len(levels) > 3:
            continue
        attempts = [price + VERIFY for price in prices]
        alive = _alive(levels, common, particular)
        least = _least(alive, attempts)
        up = range(len(levels))
        simple = min(_in_order(alive, attempts, up), _in_order(alive, attempts, up[::-1]))
        trier = made_up(name, KNOWN_SEED, 4, KNOWN_PROBLEMS)
        only = [trier.fixed([generator], GeneratorsInOrder()) for generator in trier.entrants]
        found[name] = {
            "least": round(least, 2),
            "of_the_best_simple_order": round(least / simple, 3),
            "of_the_oracle": round(least / oracle_of(only).costs.mean(), 3),
        }
    return found


def _alive(levels: Sequence[float], common: float, particular: float) -> NDArray[np.float64]:
    """`[attempts of each generator]`: the chance that all failed, given that some will pass.

    Until it stops, a rule sees failures only. So it is a path in this table, from no attempts on.
    """
    points = np.linspace(-5, 5, 81)
    weights = np.exp(-(points**2) / 2)
    weights /= weights.sum()
    numbers = np.arange(EACH + 1)[:, None, None]
    alive = weights
    for level in levels:
        odds = level + common * points[:, None] + particular * points
        failing = ((1 + np.exp(odds)) ** -1.0) ** numbers @ weights
        alive = alive[..., None, :] * failing
    chances: NDArray[np.float64] = alive.sum(-1)
    return (chances - chances.flat[-1]) / (1 - chances.flat[-1])


def _least(alive: NDArray[np.float64], attempts: Sequence[float]) -> float:
    """The cost of the cheapest path: an attempt is paid for if all before it failed."""
    least = np.zeros_like(alive)
    for at in reversed(list(np.ndindex(alive.shape))[:-1]):
        nexts = [
            cost * alive[at] + least[(*at[:generator], at[generator] + 1, *at[generator + 1 :])]
            for generator, cost in enumerate(attempts)
            if at[generator] < EACH
        ]
        least[at] = min(nexts)
    return float(least.flat[0])


def _in_order(alive: NDArray[np.float64], attempts: Sequence[float], order: Sequence[int]) -> float:
    """The cost of one generator to its end, then the next."""
    at = [0] * len(attempts)
    total = 0.0
    for generator in order:
        for _ in range(EACH):
            total += attempts[generator] * alive[tuple(at)]
            at[generator] += 1
    return float(total)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("log", nargs="?")
    parser.add_argument("--orders", type=int, default=20)
    parser.add_argument("--score", action="append", help="repeatable; default: three of them")
    parser.add_argument("--policy", default="verify-all", help="of the cold searches")
    parser.add_argument("--only", choices=("three", "eight"), default=None)
    parser.add_argument("--keys", action="store_true", help="only the tables with keys")
    parser.add_argument("--record", action="store_true", help="ratios as JSON; see above")
    parser.add_argument("--known", action="store_true", help="what the best rule costs; see above")
    given = parser.parse_args()
    if given.known:
        print(json.dumps(known(), indent=1))
        return
    if given.log is None:
        parser.error("a log is needed")
    if given.record:
        print(json.dumps(record(given), indent=1))
        return
    for prices in (*THREE, *EIGHT):
        if given.only is None or (given.only == "eight") == (prices in EIGHT):
            for keys in (True,) if given.keys else (False, True):
                table(given, prices, keys=keys)


def table(given: argparse.Namespace, prices: Mapping[str, float], *, keys: bool) -> None:
    """Print what each row costs with these prices."""
    trier = _trier(given, prices, None, keys=keys)
    names = list(prices)
    costs = {name: each.costs for name, each in trier.entrants.items()}
    cheap = sorted(names, key=lambda name: attempt(costs[name]))
    rungs = dict.fromkeys(cheap[:-1], RUNGS)
    found = {
        "cheap first": trier.fixed(cheap, GeneratorsInOrder()),
        "dear first": trier.fixed(cheap[::-1], GeneratorsInOrder()),
        f"ladder, {RUNGS} each": trier.fixed(cheap, Ladder(rungs)),
        "cold, equal shares": trier.fixed(names, BySpending(equal_shares(names))),
        "cold portfolio": trier.fixed(names, BySpending(root_shares(costs))),
    }
    for score in (None, *(given.score or SCORES)):
        own = _trier(given, prices, score, keys=keys)
        what = "no score" if score is None else score.removeprefix("score_")
        found[f"learned, {what}, order of arrival"] = own.learned()
        found[f"learned, {what}, cross-fitted"] = cross_fitted(own, costs)
    if len(names) > 3:
        pairs = {
            pair: trier.fixed(pair, GeneratorsInOrder())
            for pair in itertools.permutations(names, 2)
        }
        # The cheapest order among those that solve most.
        best = min(pairs, key=lambda p: (-round(pairs[p].solved.mean(), 3), pairs[p].costs.mean()))
        found[f"best two: {', '.join(best)}"] = pairs[best]
    found["oracle generator"] = oracle_of(
        [trier.fixed([name], GeneratorsInOrder()) for name in names]
    )
    say(found, prices, trier, keys=keys)


def say(
    found: Mapping[str, GeneratorTrials],
    prices: Mapping[str, float],
    trier: Trier,
    *,
    keys: bool,
) -> None:
    """Print the rows with intervals, and ratios to the best simple order."""
    orders = {name: each for name, each in found.items() if name.endswith("first")}
    orders |= {name: each for name, each in found.items() if name.startswith("best two")}
    base = min(orders, key=lambda name: orders[name].costs.mean())
    resampled = Resampled(len(trier.problems), 0)
    rows = []
    for name, each in found.items():
        low, high = resampled.ratio(each.costs, np.ones_like(each.costs)) or (0.0, 0.0)
        ratio = each.costs.mean() / orders[base].costs.mean()
        between = resampled.ratio(each.costs, orders[base].costs) or (0.0, 0.0)
        rows.append(
            (
                name,
                f"{each.costs.mean():.1f}",
                f"{low:.1f}-{high:.1f}",
                f"x{ratio:.2f}",
                f"{between[0]:.2f}-{between[1]:.2f}",
                f"{each.solved.mean():.1%}",
            )
        )
    listed = ", ".join(f"{name} {price:g}" for name, price in prices.items())
    shared = "equal texts share failures" if keys else "no keys"
    print(
        f"\n{listed}; verification {VERIFY:g}; {shared};"
        f" {len(trier.problems)} problems, {trier.settings.orders} orders; ratios to {base}"
    )
    print(aligned(("row", "cost", "95 %", "ratio", "95 %", "solved"), rows, left=1), flush=True)


def cross_fitted(trier: Trier, costs: Mapping[str, Costs]) -> GeneratorTrials:
    """Every problem with a prior that was fitted to the problems of the other parts."""
    names = list(costs)
    shares = root_shares(costs)
    ids = [problem.id for problem in trier.log.problems]
    past = dict(zip(ids, attempts_of_log(trier.log), strict=True))
    part = np.random.default_rng(0).permutation(len(trier.problems)) % FOLDS
    choosers: list[Chooser] = []
    for fold in range(FOLDS):
        others = [p.id for p, at in zip(trier.problems, part, strict=True) if at != fold]
        choosers.append(ByExpectedPasses(fit_joint([past[id] for id in others], names), shares))
    return trier.fitted(lambda at: choosers[part[at]])


def _trier(
    given: argparse.Namespace, prices: Mapping[str, float], score: str | None, *, keys: bool
) -> Trier:
    """What runs the rows; without a score all candidates have the same one."""
    log = read_generators(given.log, list(prices), score=score or SCORES[0])
    if score is None:
        same = [replace(each, scores=np.zeros(len(each))) for each in log.problems]
        log = replace(log, problems=tuple(same))
    policy = parse_policy(given.policy)
    entrants = {name: Entrant(Costs(price, VERIFY), policy) for name, price in prices.items()}
    return Trier(log, log.solvable, entrants, ComparisonSettings(orders=given.orders, keys=keys))


if __name__ == "__main__":
    main()
