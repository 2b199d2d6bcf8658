"""The conclusions of a report in words: what the page and `grv report` say first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..comparing.rows import DEFAULT_ROW
from ..schedules import SCHEDULES
from .dataset import HINDSIGHT, IN_ORDER
from .report import Conclusion, LogFacts
from .table import Cell, Table

Row = Mapping[str, Cell]

_FEW_STAGES = 6  # stages that are described one by one
# What is said about costs first, after the policy that is advised.
_MAIN_ROWS = {
    DEFAULT_ROW: f"{DEFAULT_ROW}, the default",
    "adaptive": "adaptive, the published algorithm",
    IN_ORDER: IN_ORDER,
    "difficulty-1": "the best single pair",
}


def conclusions(
    tables: Mapping[str, Table],
    logs: Sequence[LogFacts],
    advised: Mapping[str, Mapping[str, str]],
) -> tuple[Conclusion, ...]:
    """The answers to the three main questions.

    Args:
        tables: all tables, by name.
        logs: the logs.
        advised: for each log, which policy to use, by price list.
    """
    of_log = [
        _OfLog(tables, logs, at, advised.get(facts.name, {})) for at, facts in enumerate(logs)
    ]
    costs, score, advice = (
        [sentence for log in of_log for sentence in answer(log)]
        for answer in (_costs, _score, _advice)
    )
    if all(log.kind == "comparison" for log in logs):
        unknown = ["A saved comparison does not tell: report on the log itself."]
        score = score or unknown
        advice = advice or unknown
    return (
        Conclusion("What does it cost?", tuple(costs)),
        Conclusion(
            "Is the score any good?",
            tuple(score or ["Unknown: no problem has both passes and failures with scores."]),
        ),
        Conclusion(
            "What should I do?", tuple(advice or ["Unknown: this log has nothing to compare."])
        ),
    )


class _OfLog:
    """The rows of one log.

    Attributes:
        prefix: the name of the log, if there are several.
        prices: the price list that most sentences are about.
        advised: which policy to use, by price list.
        is_first: whether sentences explain the price list.
    """

    def __init__(
        self,
        tables: Mapping[str, Table],
        logs: Sequence[LogFacts],
        at: int,
        advised: Mapping[str, str],
    ) -> None:
        self.advised = advised
        self._tables = tables
        self._name = logs[at].name
        self.prefix = f"{self._name}: " if len(logs) > 1 else ""
        rows = self.rows("summary")
        self.prices = rows[0]["costs"] if rows else None
        self.is_first = at == 0

    def rows(self, table: str, **values: Cell) -> list[dict[str, Cell]]:
        """The rows of a table in which columns have these values."""
        return self._tables[table].only(log=self._name, **values).records()


def _costs(log: _OfLog) -> Iterator[str]:
    """The mean costs of a few policies, and the spending on unsolvable problems."""
    rows = {row["policy"]: row for row in log.rows("summary", costs=log.prices)}
    advised = [str(row["policy"]) for row in log.rows("which_policy", costs=log.prices)][:1]
    main = {name: name for name in advised} | _MAIN_ROWS
    named = {words: rows[name] for name, words in main.items() if name in rows}
    shown = named or {str(name): row for name, row in list(rows.items())[:4]}
    if not shown:
        yield f"{log.prefix}No problem has a candidate that passes."
        return
    parts = [f"{_amount(row['cost'])} with {words}{_solved(row)}" for words, row in shown.items()]
    where = _if(log.prices) if log.is_first else _at(log.prices)
    text = f"{log.prefix}{where}, the mean cost per problem is {_listed(parts)}."
    if HINDSIGHT in rows:
        known = _amount(rows[HINDSIGHT]["cost"])
        text += f" With all verdicts known in advance, it would be {known}."
    yield text
    best = [row["policy"] for row in log.rows("which_policy")] or [IN_ORDER]
    for row in log.rows("unsolved", policy=best[0])[:1]:
        count = _number(row["problems"])
        problems = "1 problem has" if count == 1 else f"{count:.0f} problems have"
        yield (
            f"{log.prefix}{problems} no candidate that passes. With {best[0]} and without a budget,"
            f" this takes {_percent(row['share'])} of all spending."
        )
    yield from _one_budget(log)


def _one_budget(log: _OfLog) -> Iterator[str]:
    """What half the money buys, if all problems share it."""
    rows = [row for row in log.rows("batch", costs=log.prices) if row["schedule"] in SCHEDULES]
    if not rows:
        return
    share = min((_number(row["share"]) for row in rows), key=lambda share: abs(share - 0.5))
    same = [row for row in rows if row["share"] == share and row["policy"] == rows[0]["policy"]]
    best = sorted(same, key=lambda row: -_number(row["solved"]))
    solved = [f"{row['schedule']} solves {_percent(row['solved'])}" for row in best]
    money = "half the money" if share == 0.5 else f"{_percent(share)} of the money"
    yield (
        f"{log.prefix}With {money} that solving all solvable problems costs, and one budget for all"
        f" problems, {_listed(solved)} of them."
    )


def _score(log: _OfLog) -> Iterator[str]:
    """How well the score ranks, and what ranking saves with the best policy that ranks."""
    for row in log.rows("auc_summary"):
        yield (
            f"{log.prefix}{_quality(row)}: a candidate that passes has a higher score than one that"
            f" fails in {_percent(row['mean'])} of cases{_interval(row)}. Chance is 50 %. The score"
            f" is better than chance on {_percent(row['above_chance'])} of the problems."
        )
    rows = log.rows("pays_for_itself", costs=log.prices)
    if not rows:
        return
    best = max(rows, key=lambda row: _number(row["saving"]))
    saving = _number(best["saving"])
    text = f"{log.prefix}{_at(log.prices)}, {best['policy']}"
    change = "less" if saving > 0 else "more"
    text += f" costs {_percent(abs(saving))} {change} than verifying in order of arrival"
    text += f"{_interval(best, 'of the saving ')}."
    if saving > 0:
        yield f"{text} The score is worth up to {_amount(best['worth'])} per candidate."
    else:
        yield f"{text} The score saves nothing."


def _stages(log: _OfLog) -> Iterator[str]:
    """What the stages of a verification refute, if there are few: those of a group of checks."""
    rows = log.rows("stages")
    if not 2 <= len(rows) <= _FEW_STAGES:
        return
    for row in rows:
        text = f"{log.prefix}The stage {row['stage']} refutes {_percent(row['refutes'])} for"
        text += f" {_percent(row['share'])} of the price"
        if row["least"] and row["spared"] is not None:
            pays = _number(row["spared"]) > _number(row["least"])
            text += "; as a screen it pays" if pays else "; as a screen it does not pay"
            text += (
                f" below a price of {_amount(row['least'])} for what follows" if not pays else ""
            )
        yield f"{text}."


def _advice(log: _OfLog) -> Iterator[str]:
    """The policy to use at each price list, then what is worth buying."""
    yield from (log.prefix + sentence for sentence in log.advised.values() if sentence)
    yield from _stages(log)
    for row in log.rows("which_policy", costs=log.prices):  # the cheapest first
        place = {"costs": log.prices, "policy": row["policy"]}
        perfect = log.rows("better_score", **place, change="perfect")
        half = log.rows("cheaper_verifier", **place, price=0.5)
        if perfect and half:
            yield (
                f"{log.prefix}With {row['policy']}, a perfect score would save"
                f" {_percent(perfect[0]['saving'])}, and a verifier at half the price"
                f" {_percent(half[0]['saving'])}."
            )
            return


def _quality(row: Row) -> str:
    """A word for a mean AUC."""
    mean = _number(row["mean"])
    low, high = (mean if row[end] is None else _number(row[end]) for end in ("low", "high"))
    if low <= 0.5 <= high:
        return "Not clearly better than chance"
    if mean < 0.5:
        return "Misleading"
    return "Very good" if mean >= 0.9 else "Good" if mean >= 0.75 else "Weak"


def _if(prices: Cell) -> str:
    """A price list in full."""
    if prices == "measured":
        return "At the measured costs"
    generate, _, verify = str(prices).partition(",")
    return f"If generating a candidate costs {generate} and verifying it costs {verify}"


def _at(prices: Cell) -> str:
    """A price list in short."""
    return "At the measured costs" if prices == "measured" else f"At {prices}"


def _number(value: Cell) -> float:
    assert isinstance(value, int | float)
    return float(value)


def _amount(cost: Cell) -> str:
    value = _number(cost)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _percent(share: Cell, digits: int = 0) -> str:
    text = f"{100 * _number(share):.{digits}f}\N{NO-BREAK SPACE}%"
    return text.replace("-", "\N{MINUS SIGN}")


def _solved(row: Row) -> str:
    """The share solved, if it is not everything."""
    return "" if _number(row["solved"]) >= 1 else f" (solving {_percent(row['solved'], 1)})"


def _interval(row: Row, of: str = "") -> str:
    if row["low"] is None or row["high"] is None:
        return ""
    return f" (95 % interval {of}{_percent(row['low'])} to {_percent(row['high'])})"


def _listed(words: Iterable[str]) -> str:
    """Words with commas and a final "and"."""
    *some, last = words
    return f"{', '.join(some)} and {last}" if some else last
