"""Compares portfolios, single generators and simple orders of them on the same problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from ...core.errors import LogError, UsageError
from ...core.search import Policy
from ...core.values import Costs
from ...logs.log import Log
from ...parsing import list_of_prices
from ...policies import DEFAULT
from ...policies.portfolio import BySpending, root_shares
from ...policies.portfolio.shares import attempt
from ...replay.portfolio import Entrant
from ..settings import ComparisonSettings, Unsolvable
from ..significance import Resampled
from .table import GeneratorComparison, GeneratorRow, needed_by
from .trials import GeneratorsInOrder, GeneratorTrials, Trier

Progress = Callable[[int, int], None]
PORTFOLIO = "portfolio"
LEARNED = "portfolio-learned"
ORACLE = "oracle-generator"


def compare_generators(
    log: Log,
    costs: Mapping[str, Costs],
    settings: ComparisonSettings | None = None,
    *,
    policy: Policy | Mapping[str, Policy] = DEFAULT,
    progress: Progress | None = None,
) -> GeneratorComparison:
    """What portfolios, single generators and orders of them cost on a log.

    Args:
        log: the log, as `read_generators` reads it.
        costs: the price list of each generator.
        settings: orders, seed, keys, value and number of answers. The width is 1.
        policy: decides within each generator's search; or one for each generator.
        progress: called with the number of rows done and the total.
    """
    settings = settings or ComparisonSettings()
    _check(log, costs, settings)
    kept = [p for p in log.problems if p.solvable or settings.unsolvable is Unsolvable.INCLUDE]
    if not any(problem.solvable for problem in kept):
        raise LogError("no problem has a candidate that passed", path=log.path)
    policies = policy if isinstance(policy, Mapping) else dict.fromkeys(costs, policy)
    entrants = {name: Entrant(each, policies[name]) for name, each in costs.items()}
    trier = Trier(log, kept, entrants, settings)
    by_row: dict[str, GeneratorTrials] = {}
    tasks = _tasks(trier, costs)
    for number, (name, work) in enumerate(tasks.items()):
        by_row[name] = work()
        if progress is not None:
            progress(number + 1, len(tasks))
    only = [by_row[f"only({name})"] for name in costs]
    by_row[ORACLE] = oracle_of(only)
    baseline = settings.baseline or PORTFOLIO
    if baseline not in by_row:
        raise UsageError(f"baseline {baseline!r} is not a row; the rows are {', '.join(by_row)}")
    resampled = Resampled(len(kept), settings.seed)
    rows = tuple(
        GeneratorRow.of(name, trials, by_row[baseline], list(costs), resampled)
        for name, trials in by_row.items()
    )
    names = [problem.id for problem in kept]
    return GeneratorComparison(
        {
            "log": log.path,
            "costs": {name: list_of_prices(each) for name, each in costs.items()},
            "policy": {name: repr(each) for name, each in policies.items()},
            "baseline": baseline,
            **{k: v for k, v in settings.to_json().items() if k in _KEPT},
        },
        rows,
        left_out=tuple(p.id for p in log.problems if p not in kept),
        needed=needed_by(names, {n: t.solved for n, t in zip(costs, only, strict=True)}),
        problems=tuple(names),
        trials=by_row,
    )


_KEPT = ("orders", "seed", "keys", "unsolvable", "value", "answers")


def _tasks(trier: Trier, costs: Mapping[str, Costs]) -> dict[str, Callable[[], GeneratorTrials]]:
    """The rows and how each is computed; the oracle follows from the single generators."""
    cheap_first = sorted(costs, key=lambda name: attempt(costs[name]))
    shares = root_shares(costs)
    tasks: dict[str, Callable[[], GeneratorTrials]] = {
        PORTFOLIO: lambda: trier.fixed(list(costs), BySpending(shares)),
        LEARNED: trier.learned,
    }
    for name in costs:
        tasks[f"only({name})"] = partial(trier.fixed, [name], GeneratorsInOrder())
    for order in (cheap_first, cheap_first[::-1]) if len(costs) > 1 else ():
        tasks[f"in-order({', '.join(order)})"] = partial(trier.fixed, order, GeneratorsInOrder())
    return tasks


def oracle_of(only: list[GeneratorTrials]) -> GeneratorTrials:
    """For each problem, the generator that solves most of its orders, at the lowest mean cost."""
    keys = [(-each.solved.mean(axis=1), each.costs) for each in only]
    best = [
        min(range(len(only)), key=lambda at: (keys[at][0][problem], keys[at][1][problem]))
        for problem in range(len(only[0].solved))
    ]
    chosen = np.array(best)
    rows = np.arange(len(best))
    return GeneratorTrials(
        *(
            np.stack([getattr(each, name) for each in only])[chosen, rows]
            for name in ("spent", "solved", "answered")
        )
    )


def _check(log: Log, costs: Mapping[str, Costs], settings: ComparisonSettings) -> None:
    log.require_labels()
    if tuple(costs) != log.generators:
        raise UsageError("the price lists must be those of the log's generators, in their order")
    if settings.width != 1 or settings.latency is not None:
        raise UsageError("with --generator, --width must be 1, and --latency does not apply")
    if settings.keys and not log.has_keys:
        raise LogError("this log has no keys (column 'key'): leave out --keys", path=log.path)
