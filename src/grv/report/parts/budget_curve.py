"""The share of trials solved against the mean cost: the best single pair, and the policies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...comparing.compare import LARGEST_TABLE
from ...comparing.rows import DEFAULT_ROW, REFERENCE
from ...core.limits import Limits
from ...core.values import Costs
from ...replay.hindsight import least_checks_of, paid_checks_of
from ...replay.orders import OrderBatch
from ...theory.uniform import PairRows, PairTable
from .. import columns as c
from ..dataset import HINDSIGHT, IN_ORDER
from ..drawing import COST_AXIS, Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema, price_name
from ..table import significant

_MOST_STEPS = 150
_EPSILON = 1e-12  # shares closer than this are equal
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
    curves = {costs: Curve() for costs in dataset.plain_costs}
    for block in pairs.blocks():
        for costs, curve in curves.items():
            curve.add(block, costs)
    for costs in dataset.costs:
        if costs not in curves:
            words = "there is no curve for measured costs, because a pair has no single price"
            rows.note(BUDGET_CURVE, f"{dataset.name}: {words}.")
            continue
        for step in curves[costs].steps():
            rows.add(BUDGET_CURVE, dataset.name, price_name(costs), _BEST_PAIR, "curve", *step)


def _checks(batch: OrderBatch, limits: Limits) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """The least and the paid verifications of a problem's trials, in a small type if possible."""
    least = least_checks_of(batch)
    paid = paid_checks_of(batch, least, limits)
    kind = np.int16 if len(batch.problem) < np.iinfo(np.int16).max else np.int32
    return least.astype(kind), paid.astype(kind)


class Curve:
    """The largest share solved within each budget, from pairs that come a few rows at a time."""

    def __init__(self) -> None:
        none = np.empty(0, dtype=np.intp)
        self._best = _Steps(np.empty(0), np.empty(0), none, none)

    def add(self, pairs: PairRows, costs: Costs) -> None:
        """Add pairs; what is not the best within its price is dropped."""
        # A pair that solves no more than with one verification less is never a step.
        more = np.diff(pairs.solved, axis=1, prepend=-1.0) > 0
        m, k = np.nonzero(np.tril(more, pairs.start))
        cost = pairs.prices(costs)[m, k]
        own = _Steps(cost, pairs.solved[m, k], pairs.start + m + 1, k + 1)
        self._best = self._best.joined(own.rising()).rising()

    def steps(self) -> list[tuple[float, float, int, int]]:
        """The steps: cost, share, m, k.

        If there are more than a drawing shows, those that raise the share least are left out; the
        first and the last always stay.
        """
        best = self._best
        rises = np.flatnonzero(np.diff(best.share, prepend=-1.0) > _EPSILON)
        if len(rises) > _MOST_STEPS:
            # Spread evenly over the share solved, so that a steep curve keeps many steps.
            wanted = np.linspace(best.share[rises[0]], best.share[rises[-1]], _MOST_STEPS)
            rises = rises[np.unique(np.searchsorted(best.share[rises], wanted - _EPSILON))]
        return [
            (significant(cost), significant(share), int(m), int(k))
            for cost, share, m, k in zip(*best.at(rises), strict=True)
        ]


class _Steps(NamedTuple):
    """Pairs with their costs and the shares that they solve, in four arrays."""

    cost: NDArray[np.float64]
    share: NDArray[np.float64]
    m: NDArray[np.intp]
    k: NDArray[np.intp]

    def joined(self, other: _Steps) -> _Steps:
        """Both."""
        return _Steps(
            np.concatenate([self.cost, other.cost]),
            np.concatenate([self.share, other.share]),
            np.concatenate([self.m, other.m]),
            np.concatenate([self.k, other.k]),
        )

    def at(self, places: NDArray[np.intp]) -> _Steps:
        """Those at these places."""
        return _Steps(self.cost[places], self.share[places], self.m[places], self.k[places])

    def rising(self) -> _Steps:
        """By cost, those that solve more than all cheaper ones; of equals, the least m and k."""
        order = np.lexsort((self.k, self.m, -self.share, self.cost))
        best = np.maximum.accumulate(self.share[order])
        return self.at(order[np.diff(best, prepend=-1.0) > 0])


PART = Part("costs", (BUDGET_CURVE,), of_log=add_log, stages=1)
