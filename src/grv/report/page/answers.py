"""What the first screen of a page says in words: the three questions people come with."""

from __future__ import annotations

from dataclasses import dataclass

from ..report import Report
from ..table import Cell

_NAMES = {
    "adaptive": "adaptive",
    "verify-all": "verifying in order of arrival",
    "difficulty-1": "the cheapest single pair that solves as many as possible",
}


_SURE = 0.8  # of resamples; below, nobody is told that one policy is the cheapest


@dataclass(frozen=True)
class Answer:
    """A question and what the log says to it."""

    question: str
    sentences: tuple[str, ...]


def answers(report: Report) -> tuple[Answer, ...]:
    """The first screen, in order."""
    return (
        Answer("What does it cost?", _costs(report)),
        Answer("Is the score any good?", _score(report)),
        Answer("What should I do?", _advice(report)),
    )


def _number(value: Cell) -> float:
    assert isinstance(value, int | float)
    return float(value)


def _where(report: Report, log: Cell) -> str:
    return f"{log}: " if len(report.logs) > 1 else ""


def _first_prices(report: Report) -> Cell:
    """The price list that the first screen speaks of."""
    rows = report["summary"].records()
    return rows[0]["costs"] if rows else None


def _costs(report: Report) -> tuple[str, ...]:
    """A sentence for each log."""
    prices = _first_prices(report)
    found: dict[Cell, dict[Cell, dict[str, Cell]]] = {}
    for row in report["summary"].only(costs=prices).records():
        found.setdefault(row["log"], {})[row["policy"]] = row
    sentences: list[str] = []
    for log, rows in found.items():
        named = {_NAMES[name]: rows[name] for name in _NAMES if name in rows}
        said = named or {str(name): row for name, row in list(rows.items())[:4]}
        parts = [f"{words} {_amount(row['cost'])}{_unsolved(row)}" for words, row in said.items()]
        where = _briefly(prices) if sentences else _at(prices)
        text = f"{_where(report, log)}{where}, a problem takes {', '.join(parts)}."
        if "hindsight" in rows:
            text += f" Knowing all verdicts: {_amount(rows['hindsight']['cost'])}."
        sentences.append(text)
    return tuple(sentences) or ("No problem of this log has a candidate that passes.",)


def _at(prices: Cell) -> str:
    """A price list for those who read of it for the first time."""
    if prices == "measured":
        return "At the costs that were measured"
    generate, _, verify = str(prices).partition(",")
    return f"Where a candidate costs {generate} to generate and {verify} to verify"


def _briefly(prices: Cell) -> str:
    return "At measured costs" if prices == "measured" else f"At {prices}"


def _amount(cost: Cell) -> str:
    value = _number(cost)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _unsolved(row: dict[str, Cell]) -> str:
    solved = _number(row["solved"])
    return "" if solved >= 1 else f" (solving {_percent(solved, 1)})"


def _percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%".replace("-", "\N{MINUS SIGN}")


def _interval(row: dict[str, Cell], what: str = "") -> str:
    if row["low"] is None or row["high"] is None:
        return ""
    low, high = _percent(_number(row["low"])), _percent(_number(row["high"]))
    return f" (95 % interval: {what}{low} to {high})"


def _score(report: Report) -> tuple[str, ...]:
    sentences = []
    for row in report["auc_summary"].records():
        if row["mean"] is None:
            continue
        text = f"{_quality(row)}: a candidate that passes outscores one that fails in"
        text += f" {_percent(_number(row['mean']))} of the cases{_interval(row)}; chance is 50 %."
        sentences.append(_where(report, row["log"]) + text)
    unknown = "Nobody can tell from this log: no problem has both passes and failures with scores."
    return (*(sentences or [_saved(report) or unknown]), *_savings(report))


def _saved(report: Report) -> str:
    """What to say where there is nothing but saved comparisons."""
    alone = all(log.kind == "comparison" for log in report.logs)
    return "A saved comparison does not say: give the log itself." if alone else ""


def _savings(report: Report) -> list[str]:
    """What ranking saves, with the best of the policies that rank."""
    prices = _first_prices(report)
    found: dict[Cell, list[dict[str, Cell]]] = {}
    for row in report["pays_for_itself"].only(costs=prices).records():
        if row["saving"] is not None:
            found.setdefault(row["log"], []).append(row)
    sentences = []
    for log, rows in found.items():
        best = max(rows, key=lambda row: _number(row["saving"]))
        saving = _number(best["saving"])
        share = _percent(abs(saving))
        what = f"saves {share} against" if saving >= 0 else f"costs {share} more than"
        text = f"{_where(report, log)}{_briefly(prices)} ranking by it ({best['policy']}) {what}"
        text += f" verifying in order of arrival{_interval(best, 'saving ')}."
        sentences.append(text)
    return sentences


def _advice(report: Report) -> tuple[str, ...]:
    """Which policy at which prices, then what would be worth buying."""
    found: dict[tuple[Cell, Cell], list[dict[str, Cell]]] = {}
    for row in report["which_policy"].records():
        found.setdefault((row["log"], row["costs"]), []).append(row)
    sentences = []
    for (log, costs), rows in found.items():
        best = rows[0]  # the cheapest comes first
        equal = [row for row in rows if row["cost"] == best["cost"] and row["cheapest"] is not None]
        text = f"{_briefly(costs)} use {best['policy']}, {_amount(best['cost'])} a problem"
        text += _unsolved(best)
        if len(equal) > 1:
            *some, last = [str(row["policy"]) for row in equal[1:]]
            others = f"{', '.join(some)} and {last} cost" if some else f"{last} costs"
            text += f" ({others} the same)"
        if equal:
            text += _how_sure(sum(_number(row["cheapest"]) for row in equal))
        sentences.append(f"{_where(report, log)}{text}.")
    unknown = "This log does not say: there is nothing to compare in it."
    return (*(sentences or [_saved(report) or unknown]), *_purchases(report))


def _how_sure(share: float) -> str:
    """What resampling the problems says of the cheapest policy."""
    if share >= _SURE:
        return f": the cheapest in {_percent(share)} of resamples of the problems"
    return (
        f"; but others come close: in {_percent(1 - share)} of resamples of the problems another"
        " one is cheaper"
    )


def _purchases(report: Report) -> list[str]:
    """What a perfect score and a cheaper verifier would save, with the policies that rank."""
    prices = _first_prices(report)
    halves = {
        (row["log"], row["policy"]): row["saving"]
        for row in report["cheaper_verifier"].only(costs=prices, price=0.5).records()
    }
    perfect = {
        (row["log"], row["policy"]): row["saving"]
        for row in report["better_score"].only(costs=prices, change="perfect").records()
    }
    sentences: dict[Cell, str] = {}
    for row in report["which_policy"].only(costs=prices).records():  # the cheapest first
        log, place = row["log"], (row["log"], row["policy"])
        if log in sentences or perfect.get(place) is None or halves.get(place) is None:
            continue
        text = f"{_where(report, log)}With {row['policy']} a perfect score would save"
        text += f" {_percent(_number(perfect[place]))}, a verifier at half the price"
        sentences[log] = f"{text} {_percent(_number(halves[place]))}."
    return list(sentences.values())


def _quality(row: dict[str, Cell]) -> str:
    """A word for a mean AUC, careful where its interval holds one half."""
    mean = _number(row["mean"])
    low, high = (mean if row[end] is None else _number(row[end]) for end in ("low", "high"))
    if low <= 0.5 <= high:
        return "No better than chance, as far as one can tell"
    if mean < 0.5:
        return "Misleading"
    return "Very good" if mean >= 0.9 else "Good" if mean >= 0.75 else "Weak"
