"""What each of several generators contributes, and which problems need it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...comparing.portfolio import GeneratorComparison, compare_generators
from ...comparing.settings import ComparisonSettings
from ...core.values import Costs
from .. import columns as c
from ..part import Dataset, Part, RowCollector, TableSchema, price_name

_GENERATOR = c.text("generator", "generator", "the generator, as the log names it")

TOGETHER = TableSchema(
    name="generators_together",
    title="How should several generators be used together?",
    caption="Portfolios, single generators and orders of them, on the problems that any of them"
    " solves. portfolio-learned decides by what the problems before it showed.",
    alt="A table of costs, one row per way to use the generators.",
    columns=(
        c.LOG,
        c.COSTS,
        c.text("way", "way", "how the generators are used"),
        c.COST,
        c.cost("cost_low", "from", "lower end of the 95 % interval of the cost"),
        c.cost("cost_high", "to", "upper end of the 95 % interval of the cost"),
        c.RATIO,
        c.LOW,
        c.HIGH,
        c.SOLVED,
    ),
)
CONTRIBUTIONS = TableSchema(
    name="generators",
    title="What does each generator contribute?",
    caption="Each generator alone, and its part in the learned portfolio. A generator without"
    " answers that no problem needs is not worth buying.",
    alt="A table with one row per generator.",
    columns=(
        c.LOG,
        c.COSTS,
        _GENERATOR,
        c.cost("price", "price", "the cost of one candidate"),
        c.percent("alone", "solves alone", "the share of trials that it solves alone"),
        c.cost("cost_alone", "cost alone", "the mean cost of a trial if it is used alone"),
        c.percent("answers", "answers", "its share of the answers of the learned portfolio"),
        c.percent("spent", "of the cost", "its share of the cost of the learned portfolio"),
        c.number("needed", "need it", "the problems that no other generator solves"),
    ),
)
NEEDED = TableSchema(
    name="generators_needed",
    title="Which problems need which generator?",
    caption="The problems that only one of the generators solves.",
    alt="A list of problems with the generator that solves each.",
    columns=(c.LOG, c.PROBLEM, _GENERATOR),
)


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """The rows of each price list."""
    request = dataset.request
    tables = PART.tables
    if not request.generators:
        rows.note(tables, f"{dataset.name}: --generator NAME=COST compares several generators.")
        return
    if request.width != 1 or len(dataset.plain_costs) < len(dataset.costs):
        rows.note(tables, f"{dataset.name}: only for width 1 and price lists.")
    settings = ComparisonSettings(
        orders=request.orders, seed=request.seed, keys=request.keys, value=request.value
    )
    needed: Mapping[str, Sequence[str]] = {}
    for costs in dataset.plain_costs if request.width == 1 else ():
        prices = {
            name: Costs(price, costs.verify, failure=costs.failure)
            for name, price in request.generators
        }
        found = compare_generators(dataset.log, prices, settings)
        _add(rows, dataset.name, price_name(costs), found)
        needed = found.needed
    for name, problems in needed.items():
        for problem in problems:
            rows.add(NEEDED, dataset.name, problem, name)


def _add(rows: RowCollector, log: str, costs: str, found: GeneratorComparison) -> None:
    for row in found.rows:
        numbers = (row.cost, row.cost_low, row.cost_high, row.ratio, row.low, row.high)
        rows.add(TOGETHER, log, costs, row.name, *numbers, row.solved)
    mixed = found["portfolio-learned"]
    for name, (price, *_) in found.settings["costs"].items():
        alone = found[f"only({name})"]
        needed = len(found.needed[name])
        shares = (mixed.answers[name], mixed.spent[name] / mixed.cost)
        head = (log, costs, name, price)
        rows.add(CONTRIBUTIONS, *head, alone.solved, alone.cost, *shares, needed)


PART = Part("advice", (TOGETHER, CONTRIBUTIONS, NEEDED), of_log=add_log)
