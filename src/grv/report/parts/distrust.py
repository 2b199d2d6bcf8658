"""Which policies to distrust on problems where the score misleads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...comparing.rows import PolicyRow, parse_row
from ...core.search import Policy
from .. import columns as c
from ..dataset import IN_ORDER
from ..drawing import AT_X_1, POLICY_AXIS, Axis, Drawing, Layer
from ..part import Dataset, Part, RowCollector, TableSchema, price_name
from ..statistics import interval
from .auc import inverted
from .monotonicity import find_falls

DISTRUST = TableSchema(
    name="distrust",
    title="Which policy to distrust if the score misleads",
    caption="The cost divided by that of verifying in order of arrival, on the problems where the"
    " score misleads and on the others. The score misleads if its AUC is below one half, or if the"
    " pass rate falls with the score by more than chance explains.",
    alt="For each policy two points around 1: problems where the score misleads, and the others.",
    columns=(
        c.LOG,
        c.COSTS,
        c.POLICY,
        c.text("rests_on", "relies on", "what the bound of the policy assumes about the score"),
        c.number("misled", "× in order, misled", "cost ratio where the score misleads", 2),
        c.number("low", "from", "lower end of its 95 % interval over problems", 2),
        c.number("high", "to", "upper end of its 95 % interval over problems", 2),
        c.number("others", "× in order, others", "cost ratio on the other problems", 2),
        c.text("verdict", "verdict", "in words"),
    ),
    drawings=(
        Drawing(
            Axis("misled", "log", label="× cost of verifying in order"),
            POLICY_AXIS,
            (
                AT_X_1,
                Layer("interval", "low", "policy", x2="high", tone="second"),
                Layer("points", "misled", "policy", series="the score misleads", tone="second"),
                Layer("points", "others", "policy", series="elsewhere", tone="first", lane=1),
            ),
        ),
    ),
)


def relies_on(policy: str) -> str:
    """What the bound of a policy assumes about the score."""
    return str(getattr(_policy(policy), "relies_on", "not stated"))


def any_score(policy: str) -> bool:
    """Whether a bound on the cost of a policy holds for any score."""
    return bool(getattr(_policy(policy), "any_score", False))


def _policy(text: str) -> Policy:
    kind = parse_row(text)
    assert isinstance(kind, PolicyRow)
    return kind.policy


def add_log(rows: RowCollector, dataset: Dataset) -> None:
    """One row per policy and price list."""
    falls = dataset.once(find_falls)
    misled = inverted(dataset.log) | (falls.violated if falls else set())
    chosen = np.array([problem.id in misled for problem in dataset.problems])
    solvable = np.array([problem.solvable for problem in dataset.problems])
    counts = f"{int(chosen.sum())} of {int(solvable.sum())} problems"
    rows.note(DISTRUST, f"{dataset.name}: the score misleads on {counts}.")
    if chosen.any():
        rows.note(
            DISTRUST,
            "These problems were chosen by the same verdicts that the costs depend on. On new"
            " candidates the score would mislead less.",
        )
    for costs in dataset.costs:
        in_order = dataset.tried[costs, IN_ORDER].by_problem
        for policy in dataset.request.live:
            spent = dataset.tried[costs, policy].by_problem
            where = _ratio(dataset, spent, in_order, chosen)
            others = _ratio(dataset, spent, in_order, solvable & ~chosen)[0]
            verdict = "" if policy == IN_ORDER else _verdict(*where, bounded=any_score(policy))
            head = (dataset.name, price_name(costs), policy, relies_on(policy))
            rows.add(DISTRUST, *head, *where, others, verdict)


def _ratio(
    dataset: Dataset,
    above: NDArray[np.float64],
    below: NDArray[np.float64],
    chosen: NDArray[np.bool_],
) -> tuple[float | None, float | None, float | None]:
    """The ratio of sums over the chosen problems, and its interval over problems."""
    if not chosen.any():
        return None, None, None
    upper = above * chosen
    lower = below * chosen
    ratio = float(upper.sum() / lower.sum())
    if chosen.sum() < 2:
        return ratio, None, None
    down = dataset.resampled.totals(lower)
    there = down > 0
    return ratio, *interval(dataset.resampled.totals(upper)[there] / down[there])


def _verdict(ratio: float | None, low: float | None, high: float | None, *, bounded: bool) -> str:
    if ratio is None:
        return "the score misleads nowhere"
    if low is None or high is None:
        return "one problem is not enough to tell"
    if low > 1 and bounded:
        return "more expensive than in order there, within a bound that holds for any score"
    if low > 1:
        return "distrust: more expensive than in order where the score misleads"
    if high < 1:
        return "robust: cheaper than in order even there"
    return "undecided: no clear difference from in order"


PART = Part("score", (DISTRUST,), of_log=add_log)
