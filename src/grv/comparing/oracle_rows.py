"""The lowest possible cost of each problem of a log, if its law or its labels were known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..core.errors import LogError
from ..core.values import Costs
from ..logs.log import Log
from ..parallel import divided, in_parts
from ..replay.hindsight import hindsight_trials, least_checks_of
from ..replay.orders import OrderBatch, Orders
from ..replay.scheme import Scheme
from ..theory.optimum import Law, best_threshold, optimum

PART = 16_384  # candidates of the problems that are priced together


@dataclass(frozen=True)
class OracleRow:
    """One problem. Its logged candidates are treated as the whole distribution.

    J* and J_t draw from it with replacement. Hindsight does not: it generates each logged candidate
    once, and knows the order and the labels. So it may cost less than J*.

    Attributes:
        problem: the problem's id.
        candidates: the number of logged candidates.
        pass_rate: the share that passed.
        tau: the break-even chance of passing, tau*.
        optimum: J*, the lowest expected cost if the pass rate at each score is known. If all scores
            differ, this means that every label is known.
        threshold: the best threshold: verify candidates with at least this score. None if
            everything is verified, including candidates without a score.
        threshold_cost: J_t, the expected cost of verifying each candidate with at least that score.
            It equals J* if higher scores pass no less often.
        hindsight: the mean cost of the cheapest pair that would have found a pass.
    """

    problem: str
    candidates: int
    pass_rate: float
    tau: float | None = None
    optimum: float | None = None
    threshold: float | None = None
    threshold_cost: float | None = None
    hindsight: float | None = None


def oracle(
    log: Log,
    costs: Costs,
    *,
    orders: int = 10,
    seed: int = 0,
    scheme: Scheme | str = Scheme.STABLE,
    progress: Callable[[int, int], None] = lambda done, total: None,
    jobs: int | None = None,
) -> tuple[OracleRow, ...]:
    """One row per problem; problems without any pass have no optimum."""
    log.require_labels()
    if not log.solvable:
        raise LogError("no problem has a candidate that passed", path=log.path)
    drawn = Orders(log.problems, orders, seed=seed, scheme=scheme)
    sizes = [len(problem) for problem in drawn.problems]
    parts = divided(sizes, PART)
    results = in_parts(
        lambda number: [_row(batch, costs) for batch in drawn.batches(*parts[number])],
        len(parts),
        jobs,
        orders * sum(sizes),
    )
    rows: list[OracleRow] = []
    for part in results:
        for row in part:
            rows.append(row)
            progress(len(rows), len(log.problems))
    order = sorted(range(len(rows)), key=drawn.places.__getitem__)
    return tuple(rows[at] for at in order)


def _row(batch: OrderBatch, costs: Costs) -> OracleRow:
    problem = batch.problem
    row = OracleRow(problem.id, len(problem), problem.pass_rate)
    if not problem.solvable:
        return row
    law = Law.empirical(problem.scores.tolist(), problem.passed.tolist())
    best = optimum(law, costs)
    from_score = best_threshold(law, costs)
    spent = hindsight_trials(batch, least_checks_of(batch), costs).costs(costs)
    return OracleRow(
        problem.id,
        len(problem),
        problem.pass_rate,
        *best,
        from_score.score if math.isfinite(from_score.score) else None,
        from_score.cost,
        float(spent.mean()),
    )
