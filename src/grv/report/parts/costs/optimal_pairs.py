"""The cheapest pair that finds a pass, per problem, averaged over many orders."""

from __future__ import annotations

from ....core.values import Measured
from ....replay.hindsight import hindsight_trials, least_checks_of
from ....replay.orders import OrderBatch
from ... import columns as c
from ...drawing import Axis, Drawing, Layer
from ...part import Dataset, Part, RowCollector, TableSchema, price_name
from ...table import Cell, points, significant

OPTIMAL_PAIRS = TableSchema(
    name="optimal_pairs",
    title="The cheapest pair for each problem",
    caption="For each problem, the cheapest pair that finds a pass: how many candidates to generate"
    " and how many of the best to verify, averaged over many orders. Dashed lines join pairs of"
    " equal cost.",
    alt="A point for each problem: generated across, verified up, both on logarithmic axes,"
    " coloured by cost, over faint lines of equal cost.",
    columns=(
        *(c.LOG, c.COSTS, c.PROBLEM, c.PASS_RATE, c.GENERATED, c.VERIFIED, c.COST),
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
    found: dict[str, list[tuple[Cell, ...]]] = {price_name(costs): [] for costs in dataset.costs}
    most = dataset.request.many_orders
    with dataset.progress.stage() as tell:
        for done, batch in enumerate(dataset.batches(most), 1):
            if batch.problem.solvable:
                least = least_checks_of(batch)
                for costs in dataset.costs:
                    # With a cost per candidate, pairs are replayed one by one, which is slow.
                    measured = isinstance(costs, Measured)
                    orders = min(most, dataset.request.orders) if measured else most
                    part = OrderBatch(batch.problem, batch.orders[:orders], batch.keyed)
                    pairs = hindsight_trials(part, least[:orders], costs)
                    means = (pairs.generated.mean(), pairs.verified.mean())
                    row = points((*means, pairs.costs(costs).mean()))
                    rate = significant(batch.problem.pass_rate)
                    found[price_name(costs)].append((batch.problem.id, rate, *row, orders))
            tell(done, len(dataset.problems))
    for prices, of_prices in found.items():
        for row_of_problem in of_prices:
            rows.add(OPTIMAL_PAIRS, dataset.name, prices, *row_of_problem)


PART = Part("costs", (OPTIMAL_PAIRS,), of_log=add_log, stages=1)
