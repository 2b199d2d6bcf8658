"""What a comparison says about the cheapest policy, in sentences and in a notebook."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .. import html
from ..text import counted
from .comparison import Comparison, Row
from .rows import PolicyRow, kind_of
from .significance import SIGNIFICANT, shown_p


def advice(comparison: Comparison, prices: str) -> Iterator[str]:
    """Which policy to use at one price list, and how certain that is: the one rule for advice.

    Only policies that can run live take part. If a solved problem has a value, the best policy is
    the one with the highest net value; otherwise it is the cheapest of those that solve most. If
    labels are missing, a policy is named only if it is the cheapest whatever they are.
    """
    ranked = _live_rows(comparison, prices)
    if not ranked:
        return
    if comparison.is_bounded:
        yield _bounded_words(prices, ranked)
        return
    best = ranked[0]
    what = (
        "the cheapest policy that can run live is"
        if best.net is None
        else "the policy with the highest net that can run live is"
    )
    line = f"At {prices} {what} {best.policy}: it solves {best.solved:.1%} of the trials"
    yield f"{line} for {best.shown(best.cost)} each."
    others = [row for row in ranked[1:] if not _are_same(best, row)]
    if others:
        yield _difference(comparison, best, others[0])


def conclusion(comparison: Comparison, prices: str) -> Iterator[str]:
    """The advice at one price list, and what else the comparison says about that policy."""
    yield from advice(comparison, prices)
    ranked = _live_rows(comparison, prices)
    if not ranked or comparison.is_bounded:
        return
    best = ranked[0]
    rows = [row for row in comparison.rows if row.prices == prices]
    single = next((row for row in rows if row.policy == "difficulty-1"), None)
    if single is not None and single.cost > best.cost > 0:
        yield (
            f"The cheapest single pair that solves as many as possible ({single.m} generated,"
            f" {single.k} verified) costs {single.cost / best.cost:.1f} times that."
        )
    if best.unsolvable_cost is not None:
        spent = best.shown(best.unsolvable_cost)
        yield f"On each problem without any pass it spends {spent}, without a result."


def _bounded_words(prices: str, rows: list[Row]) -> str:
    """Which policy is cheapest whatever the missing labels are, if any is."""
    best = min(rows, key=lambda row: row.cost)
    others = [row for row in rows if not _are_same(best, row)]
    least = min((row.least_cost or 0.0 for row in others), default=math.inf)
    solves = all(best.solved >= (row.most_solved or 0.0) for row in others)
    if others and solves and best.cost < least:
        return f"At {prices} {best.policy} is the cheapest policy, whatever the missing labels are."
    return (
        f"At {prices} the known labels do not tell which policy is cheapest. A log with all labels"
        " does: see grv collect."
    )


def _live_rows(comparison: Comparison, prices: str) -> list[Row]:
    """The policies that can run live, at one price list, from best to worst."""
    rows = [row for row in comparison.rows if row.prices == prices]
    return _ranked([row for row in rows if _is_live(row)])


def _is_live(row: Row) -> bool:
    """Whether the row is a policy that can run live; a name of the caller's own is one."""
    kind = kind_of(row.policy)
    return kind is None or (isinstance(kind, PolicyRow) and not kind.whole_steps)


def _are_same(one: Row, other: Row) -> bool:
    """Whether two rows are the same policy under two names."""
    kind = kind_of(one.policy)
    return kind is not None and kind == kind_of(other.policy)


def _ranked(rows: list[Row]) -> list[Row]:
    """The rows from best to worst; those that solve less than the most come last."""
    most = max((row.solved for row in rows), default=0.0)
    return sorted(
        rows,
        key=lambda row: (
            (row.solved < most - 1e-12, row.cost) if row.net is None else (False, -row.net)
        ),
    )


def _difference(comparison: Comparison, best: Row, other: Row) -> str:
    """How the next policy differs, and whether the difference is significant."""
    pair = comparison.pair(other.policy, best.policy, best.prices)
    if pair.ratio is None:
        return f"The next is {other.policy}."
    is_equal = pair.adjusted is None and pair.ratio == 1
    much = "as much" if is_equal else f"{pair.ratio:.2f} times as much"
    line = f"The next, {other.policy}, costs {much}"
    if abs(pair.solved) > 1e-12:
        line += f" and solves {other.solved:.1%}"
    if pair.adjusted is None:
        return f"{line}, on every problem." if is_equal else f"{line}."
    sure = "significant" if pair.adjusted < SIGNIFICANT else "not significant"
    return (
        f"{line}: the difference in cost is {sure} (p {shown_p(pair.adjusted)}, paired over"
        f" {len(comparison.problems)} problems, corrected for all pairs of rows)."
    )


def comparison_html(comparison: Comparison) -> str:
    """The table, what was left out, and the conclusion."""
    log = comparison.log
    settings = comparison.settings
    head, rows = comparison.cells()
    about = (
        f"{counted(log.problems, 'problem')}, {log.solvable} solvable,"
        f" {counted(log.candidates, 'candidate')}, score {settings.get('score')};"
        f" {settings.get('orders')} orders"
    )
    if comparison.baseline is not None:
        about += f"; ratios to {comparison.baseline}"
    left_out = f"Left out, without a known pass: {counted(len(log.excluded), 'problem')}."
    bounds = "Labels are missing: each number is a range, from all of them pass to all fail."
    prices = dict.fromkeys(row.prices for row in comparison.rows)
    sentences = [] if not comparison.problems else [
        sentence for each in prices for sentence in conclusion(comparison, each)
    ]  # fmt: skip
    return html.whole(
        html.title(f"Comparison: {settings['log']}" if settings.get("log") else "Comparison"),
        html.paragraph(about),
        html.paragraph(left_out) if log.excluded else "",
        html.paragraph(bounds) if comparison.is_bounded else "",
        html.table(head, rows, left=2),
        *(html.paragraph(sentence) for sentence in sentences),
    )
