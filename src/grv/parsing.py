"""Values as people write them: `1,10`, `1,10,2`, `measured:1,10`, `cascade(a, b, top=4)`, `all`.

Every function raises a UsageError that says what to write instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from .core.errors import UsageError
from .core.values import Cascade, Costs, Latency, Measured
from .files import shown
from .options import MOST

MEASURED = "measured"

# sums of such costs are still numbers
LEAST_COST = 1e-100
LARGEST_COST = 1e100
_CASCADE = re.compile(r"\s*cascade\s*\((.*)\)\s*", re.DOTALL)


def parse_costs(text: str) -> Costs:
    """The price list `G,V`, or `G,V,F` if a verification that fails has a price of its own.

    >>> parse_costs("1,10") == Costs(1, 10)
    True
    >>> parse_costs("1,10,2") == Costs(1, 10, failure=2)
    True
    """
    numbers = _numbers(text)
    if len(numbers) not in (2, 3):
        raise UsageError(
            "give two numbers, the cost to generate and to verify, as in 1,10; or three, the last"
            " for a verification that fails, as in 1,10,2"
        )
    return _listed(numbers)


def parse_most(text: str) -> Costs:
    """The highest possible costs `G,V`: the failure's price is no bound on anything.

    >>> parse_most("2,20") == Costs(2, 20)
    True
    """
    numbers = _numbers(text)
    if len(numbers) != 2:
        raise UsageError("give two numbers, the most to generate and to verify, as in 2,20")
    return _listed(numbers)


def _listed(numbers: Sequence[float]) -> Costs:
    """The price list of two or three numbers, none of which is too small or too large."""
    costs = Costs(*numbers[:2], failure=numbers[2] if len(numbers) > 2 else None)
    if not all(LEAST_COST <= cost <= LARGEST_COST for cost in numbers):
        raise UsageError(f"give costs from {LEAST_COST:g} to {LARGEST_COST:g}")
    return costs


def parse_errors(text: str) -> tuple[float, float]:
    """The errors of a verifier `A,B`: how often it passes a wrong candidate, and fails a right one.

    >>> parse_errors(".05,.1")
    (0.05, 0.1)
    """
    numbers = _numbers(text)
    if len(numbers) != 2 or not all(0 <= each < 1 for each in numbers) or sum(numbers) >= 1:
        raise UsageError("give two shares whose sum is below 1, as in .05,.1")
    return numbers[0], numbers[1]


def written_costs(costs: Costs, digits: str = "g") -> str:
    """A price list as `--costs` reads it, for people: `1,10`, `1,10,2` or `measured:1,10`.

    >>> written_costs(Costs(1, 10, failure=2)), written_costs(Measured(1, 10))
    ('1,10,2', 'measured:1,10')
    """
    kind = f"{MEASURED}:" if isinstance(costs, Measured) else ""
    return kind + ",".join(format(price, digits) for price in list_of_prices(costs))


def list_of_prices(costs: Costs) -> list[float]:
    """The numbers of a price list: of a candidate, of a verification, of a failure if it differs.

    >>> list_of_prices(Costs(1, 10)), list_of_prices(Costs(1, 10, failure=2))
    ([1.0, 10], [1.0, 10, 2])
    """
    return [costs.candidate, costs.verify, *([costs.failure] if costs.has_failure else [])]


def costs_record(costs: Costs) -> dict[str, float | bool]:
    """A price list in a file of results. A failure's own price and `measured` are there if true.

    >>> costs_record(Costs(1, 10, failure=2))
    {'generate': 1.0, 'verify': 10, 'failure': 2}
    """
    record: dict[str, float | bool] = {"generate": costs.candidate, "verify": costs.verify}
    if costs.has_failure:
        record["failure"] = costs.failure
    if isinstance(costs, Measured):
        record["measured"] = True
    return record


class FromPrices(Measured):
    """Measured costs whose first guess comes from prices and prompts, not from the user."""


class Dollars(float):
    """An amount that is given in dollars: `5usd`."""

    def __str__(self) -> str:
        """The amount as it is written, so that it stays one when it is read again."""
        return f"{float(self)!r}usd"

    __repr__ = __str__


def parse_budget(text: str) -> float:
    """A budget in the unit of the costs, or in dollars.

    >>> parse_budget("5usd")
    5.0usd
    """
    plain = text.strip().lower()
    number = plain.removesuffix("usd")
    try:
        budget = float(number)
    except ValueError:
        budget = math.nan
    if not budget >= 0:
        raise UsageError("give a number of at least 0, or dollars, as in 5usd")
    return Dollars(budget) if plain != number else budget


def parse_concurrency(text: str) -> int | None:
    """How many calls are in flight at once; None if that is found out.

    >>> parse_concurrency("8"), parse_concurrency("auto")
    (8, None)
    """
    if text == "auto":
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError("give auto, or a whole number from 1 to 10,000") from None


def parse_prices(text: str) -> Costs:
    """The price list `G,V[,F]`, or `measured:G,V[,F]`: a first guess of costs that are measured.

    For `measured` alone, the guess is left open.
    """
    name, _, guess = text.partition(":")
    if name != MEASURED:
        return parse_costs(text)
    if text == MEASURED:
        return FromPrices()
    costs = parse_costs(guess)
    return Measured(costs.generate, costs.verify, failure=costs.failure)


def parse_log_prices(text: str) -> Costs | None:
    """As `parse_prices`; None for `measured`, which takes the first guess from the log."""
    return None if text == MEASURED else parse_prices(text)


def given_costs(given: object, name: str = "costs") -> Costs:
    """The price list that a Python caller gives: `Costs`, numbers, or text as in `--costs`.

    >>> given_costs((1, 10)) == given_costs("1,10") == Costs(1, 10)
    True
    >>> given_costs((1, 10, 2)) == given_costs("1,10,2") == Costs(1, 10, failure=2)
    True
    """
    if isinstance(given, Costs):
        return given
    accepted = (
        "give grv.Costs(1, 10), (1, 10) or '1,10': what generating and verifying cost;"
        " (1, 10, 2) if a verification that fails costs less"
    )
    try:
        if isinstance(given, str):
            return parse_prices(given)
        if isinstance(given, list | tuple) and len(given) in (2, 3):
            generate, verify, *failure = [given_number(each, name) for each in given]
            return Costs(generate, verify, failure=next(iter(failure), None))
    except UsageError as error:
        raise UsageError(f"{name}={shown(given)}: {error}") from error
    raise UsageError(f"{name}={shown(given)}: {accepted}")


def given_number(given: Any, name: str) -> float:
    """The number that a Python caller gives, by itself or as text.

    >>> given_number("100", "budget")
    100.0
    """
    number = math.nan
    if isinstance(given, str) or (hasattr(given, "__float__") and not isinstance(given, bool)):
        try:
            number = float(given)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
    if math.isnan(number):
        raise UsageError(f"{name}={shown(given)}: give a number, as in {name}=100")
    return number


def given_count(given: Any, name: str) -> int:
    """The whole number from 1 that a Python caller gives, by itself or as text."""
    try:
        number = given_number(given, name)
    except UsageError:
        number = math.nan
    if not (1 <= number <= MOST and number == int(number)):
        raise UsageError(f"{name}={shown(given)}: give a whole number from 1 to {MOST:,}")
    return int(number)


def parse_named_cost(text: str) -> tuple[str, float]:
    """A generator of a log and what one of its candidates costs: `NAME=COST`.

    >>> parse_named_cost("gpt-4=20")
    ('gpt-4', 20.0)
    """
    name, given, cost = text.rpartition("=")
    numbers = _numbers(cost)
    if not (given and name.strip() and len(numbers) == 1):
        raise UsageError("give a generator of the log and the cost of a candidate, as in gpt-4=20")
    if not LEAST_COST <= numbers[0] <= LARGEST_COST:
        raise UsageError(f"give a cost from {LEAST_COST:g} to {LARGEST_COST:g}")
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
        top = int(named.pop("top"))
        cost = float(named.pop("cost", "0"))
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
