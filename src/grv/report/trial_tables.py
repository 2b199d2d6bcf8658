"""What policies cost, trial by trial: the tables that look into a comparison, or replay orders."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.values import Costs, Measured
from ..experiments.compare import LARGEST_TABLE
from ..experiments.rows import REFERENCE
from ..replay.hindsight import hindsight_trials, least_checks_of, paid_checks_of
from ..replay.orders import OrderBatch
from ..theory.uniform import PairTable
from .dataset import HINDSIGHT, IN_ORDER, MATCHED, Study, Tried, price_name
from .rows import Sheets
from .table import Cell, points, significant

_MOST_TRIALS = 1000  # points of a curve over trials
_MOST_STEPS = 150  # steps of a curve over budgets
UNIFORM = "best uniform pair"


def trial_tables(sheets: Sheets, study: Study) -> None:
    """The tables of one log."""
    _trials(sheets, study)
    _budget_curve(sheets, study)
    _optimal_pairs(sheets, study)
    _sensitivity(sheets, study)


def _trials(sheets: Sheets, study: Study) -> None:
    main = {
        (row.costs, row.policy): Tried(row, trials)
        for row, trials in zip(study.main.rows, study.main.trials, strict=True)
    }
    pairs = []
    for costs in study.costs:
        needed = {policy: main.get((costs, policy)) for policy in (HINDSIGHT, REFERENCE, MATCHED)}
        found = [tried for tried in needed.values() if tried is not None]
        if len(found) < len(needed):
            missing = ", ".join(policy for policy, tried in needed.items() if tried is None)
            text = f"{study.name}: this needs the rows {missing}, which nobody asked for."
            sheets.note("trials", text)
            return
        prices, (_, _, matched) = price_name(costs), found
        rows = _sorted_trials(study, *found)
        sheets.add("trials", [(study.name, prices, *row) for row in rows])
        pairs.append(
            f"at {prices} it generates {matched.row.m} and verifies the best {matched.row.k},"
            f" solving {matched.row.solved:.1%}"
        )
    sheets.note("trials", f"{study.name}: of the matched pair: {'; '.join(pairs)}.")
    trials = int(np.prod(found[0].spent.shape))
    text = f"the median and the quartiles are over {2 * _reach(trials) + 1} neighbouring trials"
    if trials > _MOST_TRIALS:
        text += f"; each point is the mean of about {trials / _MOST_TRIALS:.1f} trials"
    sheets.note("trials", f"{study.name}: {text}.")


def _sorted_trials(
    study: Study, hindsight: Tried, adaptive: Tried, matched: Tried
) -> list[tuple[Cell, ...]]:
    """By hindsight, those that the pair fails last of equals; neighbours averaged where many."""
    least, spent = hindsight.spent.ravel(), adaptive.spent.ravel()
    failed = ~matched.trials.solved.ravel()
    order = np.lexsort((failed, least))
    orders = hindsight.spent.shape[1]
    reach = _reach(len(order))
    rows: list[tuple[Cell, ...]] = []
    for part in np.array_split(order, min(len(order), _MOST_TRIALS)):
        names = {study.main.problems[at // orders] for at in part.tolist()}
        problem = names.pop() if len(names) == 1 else ""
        place = (rows[-1][0] if rows else 0) or 0
        assert isinstance(place, int)
        means = points([least[part].mean(), spent[part].mean(), failed[part].mean()])
        start, end = max(place + len(part) // 2 - reach, 0), place + len(part) // 2 + reach + 1
        around = points(np.quantile(spent[order[start:end]], [0.5, 0.25, 0.75]))
        rows.append((place + len(part), len(part), problem, *means, *around))
    return rows


def _reach(trials: int) -> int:
    """How many neighbours on each side a rolling median takes in."""
    return max(trials // 40, 2)


def _budget_curve(sheets: Sheets, study: Study) -> None:
    for row in study.main.rows:
        pair = (row.m, row.k)
        mark = (study.name, price_name(row.costs), row.policy, "mark", row.cost, row.solved, *pair)
        sheets.add("budget_curve", [mark])
    size = max(len(problem) for problem in study.problems)
    if size > LARGEST_TABLE:
        sheets.note(
            "budget_curve",
            f"{study.name}: no curve of all pairs, as a problem has {size} candidates and all pairs"
            f" of more than {LARGEST_TABLE} do not fit into memory.",
        )
        return
    table = PairTable(size)
    with study.progress.stage() as tell:
        for done, batch in enumerate(study.batches(), 1):
            least = least_checks_of(batch)
            table.add(least, paid_checks_of(batch, least, width=study.request.width))
            tell(done, len(study.problems))
    solved = table.solved()
    for costs in study.costs:
        if type(costs) is not Costs:
            text = f"{study.name}: no curve where costs are measured, as pairs have no one price."
            sheets.note("budget_curve", text)
            continue
        steps = best_within_each(table.prices(costs), solved)
        head = (study.name, price_name(costs), UNIFORM, "curve")
        sheets.add("budget_curve", [(*head, *step) for step in steps])


def best_within_each(
    prices: NDArray[np.float64], solved: NDArray[np.float64]
) -> list[tuple[float, float, int, int]]:
    """The steps of the best share solved within a budget: cost, share, m, k.

    Both arrays are `[m - 1, k - 1]`. Steps that raise the share least are left out where there are
    more than a drawing shows; the first and the last are always there.
    """
    m, k = np.tril_indices(len(prices))
    cost, share = prices[m, k], solved[m, k]
    order = np.lexsort((k, m, -share, cost))
    best = np.maximum.accumulate(share[order])
    rises = np.flatnonzero(np.diff(best, prepend=-1.0) > 1e-12)
    if len(rises) > _MOST_STEPS:
        # Evenly in the share solved: where the curve is steep there are many steps.
        wanted = np.linspace(best[rises[0]], best[rises[-1]], _MOST_STEPS)
        rises = rises[np.unique(np.searchsorted(best[rises], wanted - 1e-12))]
    return [
        (significant(cost[at]), significant(share[at]), int(m[at]) + 1, int(k[at]) + 1)
        for at in order[rises].tolist()
    ]


def _optimal_pairs(sheets: Sheets, study: Study) -> None:
    rows: dict[str, dict[str, tuple[Cell, ...]]] = {price_name(c): {} for c in study.costs}
    most = study.request.many_orders
    with study.progress.stage() as tell:
        for done, batch in enumerate(study.batches(most), 1):
            problem = batch.problem
            if not problem.solvable:
                continue
            least = least_checks_of(batch)
            for costs in study.costs:
                # Where each candidate has its own cost, pairs are replayed one by one.
                orders = min(most, study.request.orders) if isinstance(costs, Measured) else most
                part = (
                    OrderBatch(problem, batch.orders[:orders], batch.keyed)
                    if orders < most
                    else batch
                )
                found = hindsight_trials(part, least[:orders], costs)
                means = found.generated.mean(), found.verified.mean(), found.costs(costs).mean()
                rate = significant(problem.pass_rate)
                rows[price_name(costs)][problem.id] = (rate, *points(means), orders)
            tell(done, len(study.problems))
    for prices, found_rows in rows.items():
        for problem in study.problems:
            if problem.id in found_rows:
                row = (study.name, prices, problem.id, *found_rows[problem.id])
                sheets.add("optimal_pairs", [row])


def _sensitivity(sheets: Sheets, study: Study) -> None:
    for policy in study.curves:
        for costs in study.range_of_costs:
            tried, in_order = study.tried[costs, policy], study.tried[costs, IN_ORDER]
            row = tried.row
            against = study.interval(tried, in_order)
            adaptive = study.tried[costs, REFERENCE]
            relation = study.interval(tried, adaptive)
            sheets.add(
                "sensitivity",
                [
                    (
                        *(study.name, policy, costs.ratio, row.cost / costs.candidate),
                        *(row.cost / adaptive.row.cost, *(relation or (None, None))),
                        *(row.cost / in_order.row.cost, *(against or (None, None)), row.solved),
                    )
                ],
            )
    if len(study.problems) < 2:
        sheets.note("sensitivity", f"{study.name}: one problem alone has no interval.")
