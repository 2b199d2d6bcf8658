"""Values as people write them: `1,10`, `measured:1,10`, `cascade(first, second, top=4)`, `all`.

Every function raises a UsageError that says what to write instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from .core.errors import UsageError
from .core.values import Cascade, Costs, Latency, Measured
from .options import MOST

MEASURED = "measured"

_LEAST, _MOST = 1e-100, 1e100  # sums of such costs are still numbers
_CASCADE = re.compile(r"\s*cascade\s*\((.*)\)\s*", re.DOTALL)


def parse_costs(text: str) -> Costs:
    """The price list `G,V`.

    >>> parse_costs("1,10")
    Costs(generate=1.0, verify=10.0, score=0.0)
    """
    numbers = _numbers(text)
    if len(numbers) != 2:
        raise UsageError("give two numbers, the cost to generate and to verify, as in 1,10")
    costs = Costs(*numbers)
    if not all(_LEAST <= cost <= _MOST for cost in numbers):
        raise UsageError(f"give costs from {_LEAST:g} to {_MOST:g}")
    return costs


def parse_prices(text: str) -> Costs:
    """The price list `G,V`, or `measured:G,V`: a first guess of costs that are measured."""
    name, _, guess = text.partition(":")
    if name != MEASURED:
        return parse_costs(text)
    costs = parse_costs(guess)
    return Measured(costs.generate, costs.verify)


def parse_log_prices(text: str) -> Costs | None:
    """As `parse_prices`; None for `measured`, which takes the first guess from the log."""
    return None if text == MEASURED else parse_prices(text)


def parse_named_cost(text: str) -> tuple[str, float]:
    """A generator of a log and what one of its candidates costs: `NAME=COST`.

    >>> parse_named_cost("gpt-4=20")
    ('gpt-4', 20.0)
    """
    name, given, cost = text.rpartition("=")
    numbers = _numbers(cost)
    if not (given and name.strip() and len(numbers) == 1):
        raise UsageError("give a generator of the log and the cost of a candidate, as in gpt-4=20")
    if not _LEAST <= numbers[0] <= _MOST:
        raise UsageError(f"give a cost from {_LEAST:g} to {_MOST:g}")
    return name.strip(), numbers[0]


def check_names(names: Sequence[str], flag: str) -> None:
    """Refuse a name that is given twice."""
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{flag} {name}: given twice")


def parse_latency(text: str) -> Latency:
    """The durations of rounds in seconds: `G,V`, or `G,V,S` with second scores."""
    seconds = _numbers(text)
    if len(seconds) not in (2, 3):
        raise UsageError(
            "give two numbers, the seconds that a batch generated and a round of verification take,"
            " as in 20,60; or three, the last for a round of second scores"
        )
    return Latency(*seconds)


def _numbers(text: str) -> list[float]:
    """The numbers between commas; none if one of them is no number."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return []


def parse_width(text: str) -> int | None:
    """The number of verifications in flight at once; None for `all`."""
    if text == "all":
        return None
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= MOST:
        raise UsageError(f"give a whole number from 1 to {MOST:,}, or all")
    return number


def parse_value(text: str) -> float:
    """The worth of a solved problem."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value >= 0:
        raise UsageError(
            "give what a solved problem is worth, in the unit of the costs, not negative"
        )
    return value


def parse_cascade(text: str | None) -> tuple[str, str, Cascade] | None:
    """The two scores and the rule of `cascade(first, second, top=4, cost=0.5)`; None if it is none.

    >>> parse_cascade("cascade(logprob, judge:m, top=4)")
    ('logprob', 'judge:m', Cascade(top=4, cost=0.0))
    """
    match = _CASCADE.fullmatch(text or "")
    if match is None:
        return None
    parts = [part.strip() for part in match[1].split(",")]
    named = dict(part.replace(" ", "").split("=", 1) for part in parts[2:] if "=" in part)
    wrong = f"--score {text}: write cascade(first, second, top=4, cost=0.5)"
    try:
        top, cost = int(named.pop("top")), float(named.pop("cost", "0"))
    except (KeyError, ValueError) as error:
        raise UsageError(wrong) from error
    if named or not all(parts[:2]) or not all("=" in part for part in parts[2:]):
        raise UsageError(wrong)
    try:
        return parts[0], parts[1], Cascade(top, cost)
    except UsageError as error:
        raise UsageError(f"--score {text}: {error}") from error


def parse_score(text: str) -> str:
    """A score's specification, if it can be read."""
    parse_cascade(text)
    return text
