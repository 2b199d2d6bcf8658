"""The cheapest pair that finds a pass, per problem, averaged over many orders."""

from __future__ import annotations

from functools import partial

from ...core.values import Measured
from ...replay.hindsight import hindsight_trials, least_checks_of
from ...replay.orders import OrderBatch
from .. import columns as c
from ..drawing import Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema
from ..table import Cell, points, significant

OPTIMAL_PAIRS = TableSchema(
    name="optimal_pairs",
    title="The cheapest pair for each problem",
    caption="For each problem, the cheapest pair that finds a pass: how many candidates to generate"
    " and how many of the best to verify, averaged over many orders. Dashed lines join pairs of"
    " equal cost.",
    alt="A point for each problem: generated across, verified up, both on logarithmic axes,"
    " coloured by cost, over faint lines of equal cost.",
    columns=(
        c.LOG,
        c.COSTS,
        c.PROBLEM,
        c.PASS_RATE,
        c.GENERATED,
        c.VERIFIED,
        c.COST,
        c.number("orders", "orders", "the number of orders the pair is averaged over"),
    ),
    drawings=(
        Drawing(
            Axis("generated", "log"),
            Axis("verified", "log"),
            (Layer("iso"), Layer("points", "generated", "verified", hue="cost")),
        ),
    ),
)


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """One row per solvable problem and price list."""
    most = dataset.request.many_orders
    with dataset.progress.stage() as tell:
        found = dataset.visit(partial(_rows, dataset), orders=most, progress=tell)
        solvable = [each for each in found if each]
    for at, (_, prices) in enumerate(dataset.named_costs):
        for each in solvable:
            rows.add(OPTIMAL_PAIRS, dataset.name, prices, *each[at])


def _rows(dataset: Dataset, batch: OrderBatch) -> list[tuple[Cell, ...]]:
    """The row of a problem at each price list; none if it is not solvable."""
    if not batch.problem.solvable:
        return []
    least = least_checks_of(batch)
    most = dataset.request.many_orders
    found: list[tuple[Cell, ...]] = []
    for costs in dataset.costs:
        # With a cost per candidate, pairs are replayed one by one, which is slow.
        orders = min(most, dataset.request.orders) if isinstance(costs, Measured) else most
        part = OrderBatch(batch.problem, batch.orders[:orders], batch.keyed)
        pairs = hindsight_trials(part, least[:orders], costs)
        means = (pairs.generated.mean(), pairs.verified.mean())
        row = points((*means, pairs.costs(costs).mean()))
        found.append((batch.problem.id, significant(batch.problem.pass_rate), *row, orders))
    return found


PART = Part("costs", (OPTIMAL_PAIRS,), of_log=add_log, stages=1)
