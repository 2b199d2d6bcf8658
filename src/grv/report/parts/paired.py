"""Each log compared with the first, on the problems that both have."""

from __future__ import annotations

from collections.abc import Sequence

from ...comparing.significance import Resampled
from .. import columns as c
from ..drawing import AT_X_1, POLICY_AXIS, Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema, price_name

PAIRED = TableSchema(
    name="paired",
    title="Logs compared with the first, on the problems they share",
    caption="The mean cost of each policy on this log divided by its mean cost on the first log, on"
    " the problems that are solvable in both, with a 95 % interval over those problems.",
    alt="For each policy a point and an interval per further log, around 1.",
    columns=(
        c.LOG,
        c.COSTS,
        c.POLICY,
        c.PROBLEMS,
        c.COST,
        c.cost("first_cost", "cost on the first", "the mean cost on the first log"),
        c.number("against", "× the first", "the cost divided by that on the first log", 2),
        c.LOW,
        c.HIGH,
    ),
    drawings=(
        Drawing(
            Axis("against", "log"),
            POLICY_AXIS,
            (
                AT_X_1,
                Layer("interval", "low", "policy", x2="high", by="log"),
                Layer("points", "against", "policy", by="log"),
            ),
        ),
    ),
    compares="log",
)


def add_logs(rows: RowCollector, datasets: Sequence[Dataset]) -> None:
    """Rows for each log with a solvable problem after the first such log."""
    solvable = [dataset for dataset in datasets if dataset.log.solvable]
    for dataset in solvable[1:]:
        first = solvable[0]
        own = {problem.id for problem in dataset.log.solvable}
        shared = [problem.id for problem in first.log.solvable if problem.id in own]
        if shared:
            _add_pair(rows, first, dataset, shared)
        else:
            rows.note(PAIRED, f"{dataset.name} and {first.name} share no solvable problem.")


def _add_pair(rows: RowCollector, first: Dataset, dataset: Dataset, shared: Sequence[str]) -> None:
    resampled = Resampled(len(shared), dataset.request.seed)
    places = []
    for each in (dataset, first):
        place = {id: at for at, id in enumerate(each.main.problems)}
        places.append([place[id] for id in shared])
    for row in dataset.main.rows:
        here = dataset.tried[row.costs, row.policy]
        there = first.tried[row.costs, row.policy]
        costs = here.by_problem[places[0]], there.by_problem[places[1]]
        mean = float(costs[0].mean())
        base = float(costs[1].mean())
        ends = resampled.ratio(*costs) or (None, None)
        head = (dataset.name, price_name(row.costs), row.policy, len(shared))
        rows.add(PAIRED, *head, mean, base, mean / base, *ends)


PART = Part("costs", (PAIRED,), of_logs=add_logs)
