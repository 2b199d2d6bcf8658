"""What is to be said first: conclusions in sentences, drawn from the tables and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .dataset import IN_ORDER
from .table import Cell, Table

Record = Mapping[str, Cell]


def findings(tables: Mapping[str, Table], logs: Sequence[str]) -> tuple[str, ...]:
    """A few sentences a log, the most useful first."""
    found: list[str] = []
    for log in logs:
        of_log = {name: _records(table, log) for name, table in tables.items()}
        found += _policy(log, of_log)
        found += _score(log, of_log)
        found += _purchases(log, of_log)
        found += _hopeless(log, of_log)
    return tuple(found)


def _records(table: Table, log: str) -> list[dict[str, Cell]]:
    return [record for record in table.records() if record.get("log") == log]


def _prices(records: Sequence[Record]) -> list[Cell]:
    return list(dict.fromkeys(record["costs"] for record in records))


def _number(record: Record, name: str) -> float:
    value = record[name]
    assert isinstance(value, int | float)
    return float(value)


def _policy(log: str, tables: Mapping[str, list[dict[str, Cell]]]) -> Iterator[str]:
    """Which policy to use, at each price list."""
    rows = tables["which_policy"]
    for prices in _prices(rows):
        here = [row for row in rows if row["costs"] == prices]
        best = here[0]
        text = (
            f"{log}, {prices}: {best['policy']} is the cheapest policy, {_number(best, 'cost'):.1f}"
        )
        text += f" a trial with {_number(best, 'solved'):.1%} solved"
        if best["cheapest"] is not None and len(here) > 1:
            text += f"; so it is in {_number(best, 'cheapest'):.0%} of resamples of the problems"
        yield text + "."


def _score(log: str, tables: Mapping[str, list[dict[str, Cell]]]) -> Iterator[str]:
    """Whether the score ranks, and whether it pays."""
    for row in tables["auc_summary"]:
        text = f"{log}: a candidate that passes outscores one that fails with a chance of"
        text += f" {_number(row, 'mean'):.2f} on average"
        if row["low"] is not None:
            text += f" (95 % interval {_number(row, 'low'):.2f} to {_number(row, 'high'):.2f})"
        yield f"{text}, above one half on {_number(row, 'above_chance'):.0%} of problems."
    rows = tables["pays_for_itself"]
    for prices in _prices(rows):
        here = [row for row in rows if row["costs"] == prices]
        best = min(here, key=lambda row: _number(row, "cost"))
        yield _pays(log, prices, best)


def _pays(log: str, prices: Cell, best: Record) -> str:
    saving = _number(best, "saving")
    against = f"{_number(best, 'cost'):.1f} against {_number(best, 'in_order'):.1f} for verifying"
    sure = ""
    if best["low"] is not None:
        low, high = _number(best, "low"), _number(best, "high")
        sure = f" (95 % interval {low:.0%} to {high:.0%})"
    if saving > 0:
        text = (
            f"{log}, {prices}: the score saves {saving:.0%}{sure} with {best['policy']}, {against}"
        )
        worth = f"; it is worth up to {_number(best, 'worth'):.3g} a candidate"
        return f"{text} in order of arrival{worth}."
    text = f"{log}, {prices}: the score saves nothing: {best['policy']} costs {against}"
    return f"{text} in order of arrival."


def _purchases(log: str, tables: Mapping[str, list[dict[str, Cell]]]) -> Iterator[str]:
    """What a perfect score or a verifier at half the price would save the cheapest policy."""
    pays = tables["pays_for_itself"]
    for prices in _prices(pays)[:1]:
        here = [row for row in pays if row["costs"] == prices]
        policy = min(here, key=lambda row: _number(row, "cost"))["policy"]
        place = {"costs": prices, "policy": policy}
        perfect = _find(tables["better_score"], **place, change="perfect")
        cheaper = _find(tables["cheaper_verifier"], **place, price=0.5)
        if perfect is None or cheaper is None:
            continue
        yield (
            f"{log}, {prices}: with {policy} a perfect score would save"
            f" {_number(perfect, 'saving'):.0%}, a verifier at half the price"
            f" {_number(cheaper, 'saving'):.0%}."
        )


def _find(records: Sequence[Record], **values: Cell) -> Record | None:
    for record in records:
        if all(record[name] == value for name, value in values.items()):
            return record
    return None


def _hopeless(log: str, tables: Mapping[str, list[dict[str, Cell]]]) -> Iterator[str]:
    """What problems without any pass take."""
    best = tables["which_policy"][0]["policy"] if tables["which_policy"] else IN_ORDER
    row = _find(tables["unsolved"], policy=best)
    if row is not None:
        yield (
            f"{log}, {row['costs']}: {_number(row, 'problems'):.0f} problems have no candidate that"
            f" passes; with {best} and no budget they take {_number(row, 'share'):.0%} of all"
            " spending."
        )
