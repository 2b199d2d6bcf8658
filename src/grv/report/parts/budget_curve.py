"""The share of trials solved against the mean cost: the best single pair, and the policies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...comparing.compare import LARGEST_TABLE
from ...comparing.rows import DEFAULT_ROW, REFERENCE
from ...core.limits import Limits
from ...core.values import Costs
from ...replay.hindsight import least_checks_of, paid_checks_of
from ...replay.orders import OrderBatch
from ...theory.uniform import PairTable
from .. import columns as c
from ..dataset import HINDSIGHT, IN_ORDER
from ..drawing import COST_AXIS, Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema, price_name
from ..table import significant

_MOST_STEPS = 150
_BEST_PAIR = "best uniform pair"
# Marks of all default rows would hide each other.
_MARKED = (HINDSIGHT, DEFAULT_ROW, REFERENCE, IN_ORDER)

BUDGET_CURVE = TableSchema(
    name="budget_curve",
    title="Solved rate against budget",
    caption="The curve shows the best single pair within each mean cost, chosen with knowledge of"
    " the verdicts. The marks show the main policies at their mean costs; the numbers include the"
    " others.",
    alt="A rising step curve of the share solved against cost, with a mark for each policy.",
    columns=(
        c.LOG,
        c.COSTS,
        c.text("series", "series", f"`{_BEST_PAIR}`, or the name of a policy"),
        c.text(
            "kind",
            "kind",
            "`curve`: a step that holds up to the next one; `mark`; or `row`, which is not drawn",
        ),
        c.COST,
        c.SOLVED,
        c.PAIR_M,
        c.PAIR_K,
    ),
    drawings=(
        Drawing(
            COST_AXIS,
            Axis("solved", zero=True),
            (
                Layer("step", "cost", "solved", series=_BEST_PAIR, where=("kind", "curve")),
                Layer("points", "cost", "solved", by="series", where=("kind", "mark")),
            ),
        ),
    ),
)


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """The marks of the policies, then the steps of the curve."""
    for row in dataset.main.rows:
        is_marked = bool(dataset.request.policies) or row.policy in _MARKED
        head = (dataset.name, price_name(row.costs), row.policy, "mark" if is_marked else "row")
        rows.add(BUDGET_CURVE, *head, row.cost, row.solved, row.m, row.k)
    size = max(len(problem) for problem in dataset.problems)
    if size > LARGEST_TABLE:
        rows.note(
            BUDGET_CURVE,
            f"{dataset.name}: there is no curve, because a problem has {size} candidates. All pairs"
            f" of more than {LARGEST_TABLE} candidates do not fit into memory.",
        )
        return
    pairs = PairTable(size)
    limits = Limits(width=dataset.request.width)
    with dataset.progress.stage() as tell:
        for least, paid in dataset.visit(lambda batch: _checks(batch, limits), progress=tell):
            pairs.add(least, paid)
    solved = pairs.solved()
    for costs in dataset.costs:
        if type(costs) is not Costs:
            words = "there is no curve for measured costs, because a pair has no single price"
            rows.note(BUDGET_CURVE, f"{dataset.name}: {words}.")
            continue
        for step in best_within_each(pairs.prices(costs), solved):
            rows.add(BUDGET_CURVE, dataset.name, price_name(costs), _BEST_PAIR, "curve", *step)


def _checks(batch: OrderBatch, limits: Limits) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """The least and the paid verifications of a problem's trials, in a small type if possible."""
    least = least_checks_of(batch)
    paid = paid_checks_of(batch, least, limits)
    kind = np.int16 if len(batch.problem) < np.iinfo(np.int16).max else np.int32
    return least.astype(kind), paid.astype(kind)


def best_within_each(
    prices: NDArray[np.float64], solved: NDArray[np.float64]
) -> list[tuple[float, float, int, int]]:
    """The steps of the largest share solved within a budget: cost, share, m, k.

    Both arrays are `[m - 1, k - 1]`. If there are more steps than a drawing shows, those that raise
    the share least are left out; the first and the last always stay.
    """
    # A pair that solves no more than with one verification less is never a step.
    more = np.diff(solved, axis=1, prepend=-1.0) > 0
    m, k = np.nonzero(np.tril(more))
    cost = prices[m, k]
    share = solved[m, k]
    order = np.lexsort((k, m, -share, cost))
    best = np.maximum.accumulate(share[order])
    rises = np.flatnonzero(np.diff(best, prepend=-1.0) > 1e-12)
    if len(rises) > _MOST_STEPS:
        # Spread evenly over the share solved, so that a steep curve keeps many steps.
        wanted = np.linspace(best[rises[0]], best[rises[-1]], _MOST_STEPS)
        rises = rises[np.unique(np.searchsorted(best[rises], wanted - 1e-12))]
    return [
        (significant(cost[at]), significant(share[at]), int(m[at]) + 1, int(k[at]) + 1)
        for at in order[rises].tolist()
    ]


PART = Part("costs", (BUDGET_CURVE,), of_log=add_log, stages=1)
