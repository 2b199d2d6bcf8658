"""The numbers of the overview: what runs, what was found, what it costs, what is left."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...core.values import Costs, Verdict, Verified, arrivals
from ...files import DEEPEST, parse_json
from ...ledger.entries import Entry, last_start, price_list
from ...ledger.view import SearchView
from ...logs.in_order import bounds
from .store import Store

VERDICTS = 20_000  # the newest entries among which verdicts are counted
COMPARED = 500  # the newest solved searches that are compared with the baselines
_WIDTHS = (60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600)  # seconds per bar
_BARS = 48


@dataclass(frozen=True)
class Baselines:
    """What the newest solved searches cost, beside two other ways to use their candidates.

    Attributes:
        searches: how many are compared.
        cost: what they cost.
        least: what verify-all costs if every candidate without a verdict passes (`logs.in_order`).
        most: what it costs if all of them fail.
        hindsight: the same candidates generated, and only the first known pass verified.
        unknown: candidates before the first known pass that verify-all would verify, and that have
            no verdict.
    """

    searches: int
    cost: float
    least: float
    most: float
    hindsight: float
    unknown: int


def overview(store: Store, total: float) -> dict[str, Any]:
    """All numbers of the overview, as JSON data; `total` is the budget of the ledger."""
    totals = store.ledger.totals(())
    outcomes: Counter[str] = Counter()
    for each in totals:
        outcomes[each.outcome or "unfinished"] += each.searches
    spent = sum(each.paid for each in totals)
    accounts = store.accounts()
    units = sorted({unit for _, unit, _ in accounts if unit})
    return {
        "now": time.time(),
        "searches": sum(outcomes.values()),
        "outcomes": dict(outcomes),
        **_unfinished(store, outcomes["unfinished"]),
        "unit": units[0] if len(units) == 1 else "",
        "spent": spent,
        "left": None if math.isinf(total) else max(0.0, total - spent),
        "total": None if math.isinf(total) else total,
        "accounts": [{"name": name, "paid": paid} for name, _, paid in accounts],
        "bars": _bars(store),
        "verdicts": _verdicts(store),
        "baselines": _baselines(store),
    }


def _unfinished(store: Store, count: int) -> dict[str, Any]:
    """How many unfinished searches run, wait for their turn, or are stopped.

    And how many candidates wait for a person.
    """
    ids = store.unfinished() if count else []
    waiting = store.waiting(ids)
    doing = Counter(store.ledger.doing(ids, waiting).values())
    return {
        "running": doing["running"],
        "waiting": sum(len(each) for each in waiting.values()),
        "in_turn": doing["waiting for its turn"],
        "stopped": doing["stopped"],
    }


def _bars(store: Store) -> dict[str, Any]:
    """What was spent over time: each search counts when it ended, an unfinished one at the end."""
    query = "SELECT MIN(started), MAX(started), MAX(ended), COUNT(*) - COUNT(ended) FROM searches"
    first, last, ended, going = store.ledger.select(query)[0]
    if first is None:
        return {"width": 60, "start": 0.0, "spent": [], "per_hour": 0.0, "seconds": 0.0}
    end = max(float(last), float(ended or 0.0))
    if going and store.ledger.claimed(store.unfinished()):
        end = max(end, time.time())
    width = next((each for each in _WIDTHS if end - float(first) <= each * _BARS), _WIDTHS[-1])
    last_bar = math.floor(end / width)
    first_bar = max(math.floor(float(first) / width), last_bar - _BARS + 1)
    rows = store.ledger.select(
        f"SELECT ROUND(COALESCE(ended, ?) / {width}.0 - 0.5), SUM(paid) FROM searches"
        " WHERE COALESCE(ended, ?) >= ? GROUP BY 1",
        (end, end, float(first_bar * width)),
    )
    spent: dict[int, float] = {}
    for bar, paid in rows:
        at = min(max(int(bar), first_bar), last_bar)
        spent[at] = spent.get(at, 0.0) + float(paid)
    hour = min(3600.0, max(end - float(first), 1.0))
    (recent,) = store.ledger.select(
        "SELECT COALESCE(SUM(paid), 0) FROM searches WHERE COALESCE(ended, ?) >= ?",
        (end, end - hour),
    )[0]
    return {
        "width": width,
        "start": first_bar * width,
        "spent": [spent.get(bar, 0.0) for bar in range(first_bar, last_bar + 1)],
        "per_hour": float(recent) * 3600 / hour,
        "seconds": end - float(first),
    }


def _verdicts(store: Store) -> dict[str, Any]:
    """The newest verdicts, counted."""
    position = store.ledger.position()
    rows = store.ledger.select(
        "SELECT body FROM entries WHERE position > ? AND kind = 'found'", (position - VERDICTS,)
    )
    counts: Counter[str] = Counter()
    shared = 0
    for (body,) in rows:
        try:  # not whole entries: there are many, and only two fields count
            found = parse_json(body, deepest=2 * DEEPEST)
        except (TypeError, ValueError):
            continue  # a damaged entry: grv runs check reports it
        if isinstance(found, dict) and isinstance(found.get("verdict"), str):
            counts[found["verdict"]] += 1
            shared += found.get("shared") is True
    return {
        **{verdict.value: counts[verdict.value] for verdict in Verdict},
        "shared": shared,
        "newest": position > VERDICTS,
    }


def _baselines(store: Store) -> dict[str, Any] | None:
    rows = store.ledger.select(
        "SELECT id, generated, total FROM searches WHERE outcome = 'solved'"
        " ORDER BY ended DESC LIMIT ?",
        (COMPARED,),
    )
    kinds = ("started", "made", "scored", "found")
    entries = store.entries_of([str(id) for id, _, _ in rows], *kinds)
    starts = {id: last_start(some) for id, some in entries.items()}
    measured = [id for id, start in starts.items() if start and start.about.get("measured")]
    entries |= store.entries_of(measured, *kinds, "told")
    compared = [
        one
        for id, generated, total in rows
        if (one := compare(entries[str(id)], int(generated or 0), float(total or 0.0)))
    ]
    return asdict(_sum(compared)) if compared else None


def _sum(rows: Sequence[Baselines]) -> Baselines:
    return Baselines(
        sum(each.searches for each in rows),
        sum(each.cost for each in rows),
        sum(each.least for each in rows),
        sum(each.most for each in rows),
        sum(each.hindsight for each in rows),
        sum(each.unknown for each in rows),
    )


def compare(entries: Sequence[Entry], generated: int, cost: float) -> Baselines | None:
    """One solved search beside the baselines.

    None if nothing in it passed, or if it has several generators: what verify-all would do with
    them depends on their order.
    """
    view = SearchView(entries)
    prices = _prices(view, generated)
    if prices is None:
        return None
    least, most = bounds(view, prices)
    if not most.solved:
        return None
    hindsight = prices.of(most.bill.generated, 1)
    return Baselines(1, cost, least.bill.total, most.bill.total, hindsight, most.asked)


def _prices(view: SearchView, generated: int) -> Costs | None:
    """What a candidate and a verification cost: by the price list, or on average."""
    about = view.about
    if about.get("generators"):
        return None
    if not about.get("measured"):
        return price_list(about)
    generating = 0.0
    verifying = {True: 0.0, False: 0.0}  # by whether a candidate of the step passed
    verified = {True: 0, False: 0}
    for told in view.told:
        event = told.event
        if isinstance(event, Verified):
            passed = Verdict.PASSED in event.verdicts.values()
            verifying[passed] += event.paid or 0.0
            verified[passed] += len(event.verdicts) - len(event.shared)
        generating += sum(batch.paid or 0.0 for batch in arrivals(event))
    means = [verifying[each] / verified[each] for each in (True, False) if verified[each]]
    try:
        return Costs(generating / generated, max(means), failure=means[-1])
    except (ValueError, ZeroDivisionError):
        return None
