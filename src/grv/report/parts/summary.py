"""The costs of all policies: in one table, by price list, and by log."""

from __future__ import annotations

from ...comparing.comparison import Comparison
from .. import columns as c
from ..drawing import POLICY_AXIS, Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema, price_name

SUMMARY = TableSchema(
    name="summary",
    title="What each policy would have cost",
    caption="Means over trials. A trial is one problem with its candidates in one order; all"
    " policies see the same orders. The ratio compares with the baseline, with a 95 % interval over"
    " problems.",
    alt="A bar for the mean cost of each policy.",
    columns=(
        c.LOG,
        c.COSTS,
        c.POLICY,
        c.GENERATED,
        c.VERIFIED,
        c.COST,
        c.RATIO,
        c.LOW,
        c.HIGH,
        c.SOLVED,
        c.PAIR_M,
        c.PAIR_K,
        c.number("trials", "trials", "the number of trials"),
    ),
    drawings=(
        Drawing(
            Axis("cost", zero=True, label="mean cost of a trial"),
            POLICY_AXIS,
            (Layer("bars", "cost", "policy", by="policy"),),
        ),
    ),
)
BY_PRICES = TableSchema(
    name="ratio_ablation",
    title="Costs by price list",
    caption="The mean cost of each policy, its ratio to the cost of the baseline at the same price"
    " list, and the share of trials solved.",
    alt="A table of policies by price list.",
    columns=(c.LOG, c.POLICY, c.COSTS, c.COST, c.RATIO, c.SOLVED),
    compares="costs",
    spread=("cost", "ratio", "solved"),
)
BY_LOG = TableSchema(
    name="per_log",
    title="Costs by log",
    caption="The mean cost of each policy on each log, its ratio to the cost of the baseline on the"
    " same log, and the share of trials solved.",
    alt="A table of policies by log.",
    columns=(c.COSTS, c.POLICY, c.LOG, c.COST, c.RATIO, c.SOLVED),
    compares="log",
    spread=("cost", "ratio", "solved"),
)


def add_comparison(rows: RowCollector, name: str, comparison: Comparison) -> None:
    """One row per policy and price list, in each of the three tables; the cheapest first."""
    prices = list(dict.fromkeys(row.prices for row in comparison.rows))
    for row in sorted(comparison.rows, key=lambda row: (prices.index(row.prices), row.cost)):
        costs = price_name(row.costs)
        ratio = (row.ratio, row.low, row.high)
        means = (row.generated, row.verified, row.cost)
        pair = (row.m, row.k, row.trials)
        rows.add(SUMMARY, name, costs, row.policy, *means, *ratio, row.solved, *pair)
        brief = (row.cost, row.ratio, row.solved)
        rows.add(BY_PRICES, name, row.policy, costs, *brief)
        rows.add(BY_LOG, costs, row.policy, name, *brief)
    if all(row.ratio is None for row in comparison.rows):
        rows.note(PART.tables, f"{name}: there are no ratios, because there is no baseline.")
        return
    rows.note(PART.tables, f"{name}: ratios are relative to {comparison.baseline}.")
    if all(row.low is None for row in comparison.rows):
        rows.note_no_interval(SUMMARY, name)


def note_measured(rows: RowCollector, dataset: Dataset) -> None:
    """Say what measured costs are on average."""
    if None in dataset.request.costs:
        measured = dataset.log.measured
        text = f"{dataset.name}: on average a candidate cost {measured.generate:.3g} to generate"
        rows.note(SUMMARY, f"{text} and {measured.verify:.3g} to verify, as measured.")
    if advice := _failure_price(dataset):
        rows.note(SUMMARY, f"{dataset.name}: {advice}")


def _failure_price(dataset: Dataset) -> str:
    """Which price list to give, if the log has costs of verifications."""
    log = dataset.log
    passed = log.mean_pass_cost
    failed = log.mean_failure_cost
    if not (passed and failed):
        return ""
    generate = log.mean_costs[0]
    prices = [f"{generate:.3g}" if generate else "G", f"{max(passed, failed):.3g}"]
    prices += [f"{failed:.3g}"] if failed < passed else []
    return (
        f"on average a verification that passed cost {passed:.3g}, and one that failed"
        f" {failed:.3g}. A search pays for one pass and for many failures, so policies decide by"
        f" the price of a failure: give --costs {','.join(prices)}."
    )


PART = Part("costs", (SUMMARY, BY_PRICES, BY_LOG), add_comparison, note_measured)
