"""Options of live runs: how calls are made, and what may be spent."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from ..core.limits import Limits
from ..core.values import Cascade, Costs
from ..options import Family, option
from ..parsing import parse_budget, parse_concurrency, parse_most, parse_prices, parse_value

_LEAST_SECONDS = 1e-9
_LONGEST = 1e8
_DEFAULT = Limits()


@dataclass(frozen=True)
class Calls(Family):
    """How calls are made.

    If a server says when to try again, grv waits until then, unless its patience ends before.
    Otherwise pauses double, from `first_pause` up to `longest_pause`. Outages do not count as
    attempts: see `patience`.

    Examples:
        >>> import grv
        >>> grv.runtime.Calls(concurrency=8, call_timeout=60).attempts
        6
    """

    TITLE: ClassVar[str] = "Calls"

    concurrency: int | None = option(
        None,
        "Calls in flight at once, over the whole run. auto finds out for each server how many it"
        " takes without refusing, up to 256, and keeps to the requests and tokens per minute that"
        " it allows.",
        metavar="N|auto",
        parse=parse_concurrency,
        least=1,
        most=10_000,
        shown="auto",
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
    longest_candidate: int = option(
        1_000_000,
        "The most characters of a candidate. A longer one is paid for, and dropped as broken.",
        least=1,
        most=16_000_000,  # four bytes each: the limit of a record in a ledger
    )
    longest_pause: float = 60.0


@dataclass(frozen=True)
class Spending(Family):
    """What things cost, and what may be spent."""

    TITLE: ClassVar[str] = "Money"

    costs: Costs = option(
        Costs(),
        "Cost of generating one candidate, and of verifying one; F is the cost of a verification"
        " that fails, if that is less: a suite stops at the first test that fails. The policy"
        " decides by F. measured counts real dollars: what the server says, or known prices (see"
        " --prices). G,V,F is then the first guess; without it, the guess comes from the prices.",
        metavar="G,V[,F]|measured[:G,V[,F]]",
        parse=parse_prices,
        shown="1,10",
        named="generators",
        essential=True,
    )
    value: float = option(
        _DEFAULT.value,
        "Value of a solved problem. A search gives up when the expected cost to continue exceeds"
        " it.",
        metavar="V",
        parse=parse_value,
    )
    most: Costs | None = option(
        _DEFAULT.most,
        "The highest possible cost of one candidate and of one verification, if costs are measured."
        " By default it is what --max-tokens can cost, if the price is known.",
        metavar="G,V",
        parse=parse_most,
    )
    most_second: float | None = option(
        None,
        "The highest possible cost of a second score, if costs are measured. By default it is what"
        " its model can charge, if the price is known.",
        metavar="S",
        least=0,
    )
    budget: float = option(
        _DEFAULT.budget,
        "The most that one problem may cost; 5usd means dollars, with --costs measured.",
        metavar="N",
        parse=parse_budget,
        essential=True,
    )
    total_budget: float = option(
        math.inf,
        "The most that the whole run may cost; 5usd means dollars, with --costs measured.",
        metavar="N",
        parse=parse_budget,
        essential=True,
    )
    prices: str | None = option(
        None,
        "A TOML file with prices in dollars, per token, second or call. It comes before what"
        " servers say.",
        metavar="FILE",
    )

    def reserved(self, cascade: Cascade | None) -> Cascade | None:
        """The cascade, with the most that a second score can cost if costs are measured."""
        if cascade is None or self.most_second is None:
            return cascade
        return replace(cascade, cost=self.most_second)

    @property
    def at_most(self) -> float:
        """The most that one problem costs."""
        return min(self.budget, self.value)
