"""Options of live runs: how calls are made, and what may be spent."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..core.values import Costs
from ..options import Family, option
from ..parsing import parse_costs, parse_prices, parse_value

_LEAST_SECONDS, _LONGEST = 1e-9, 1e8


@dataclass(frozen=True)
class Calls(Family):
    """How calls are made.

    If a server says when to try again, grv waits until then. Otherwise pauses double, from
    `first_pause` up to `longest_pause`. Outages do not count as attempts: see `patience`.
    """

    concurrency: int = option(
        16, "Calls in flight at once, over the whole run.", least=1, most=10_000
    )
    attempts: int = option(
        6, "How often a call is tried before it counts as failed.", least=1, most=1000
    )
    first_pause: float = option(
        0.5,
        "Seconds before the second attempt; each further pause is twice as long.",
        least=0,
        most=_LONGEST,
    )
    call_timeout: float = option(
        600.0, "Seconds until a call counts as failed.", least=_LEAST_SECONDS, most=_LONGEST
    )
    patience: float = option(
        300.0,
        "Seconds to wait for a server that is out of service or busy (status 429 or 5xx, no"
        " connection). 0 does not wait: each such response counts as an attempt.",
        least=0,
        most=_LONGEST,
    )
    longest_pause: float = 60.0


@dataclass(frozen=True)
class Spending(Family):
    """What things cost, and what may be spent."""

    costs: Costs = option(
        Costs(),
        "Cost of generating one candidate, and of verifying one. measured counts real dollars (see"
        " --prices); G,V is then the first guess.",
        metavar="G,V|measured:G,V",
        parse=parse_prices,
        shown="1,10",
        named="generators",
    )
    value: float = option(
        math.inf,
        "Value of a solved problem. A search gives up when the expected cost to continue exceeds"
        " it.",
        metavar="V",
        parse=parse_value,
    )
    most: Costs | None = option(
        None,
        "The highest possible cost of one candidate and of one verification. A budget over measured"
        " costs needs it.",
        metavar="G,V",
        parse=parse_costs,
    )
    budget: float = option(math.inf, "The most that one problem may cost.", least=0)
    total_budget: float = option(math.inf, "The most that the whole run may cost.", least=0)
    prices: str | None = option(
        None, "A TOML file with prices in dollars, per token, second or call.", metavar="FILE"
    )

    @property
    def at_most(self) -> float:
        """The most that one problem costs."""
        return min(self.budget, self.value)
