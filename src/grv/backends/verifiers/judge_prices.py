"""What models that judge cost: known where the prices are, needed where the models are asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..protocols import Usage

# The dollars of a call to a model at an address (None is the provider's own); None if unknown.
CallPrice = Callable[[str, str | None, Usage], float | None]
# The same for a request of a given number of bytes, before it is made.
RequestPrice = Callable[[str, str | None, int], float | None]


@dataclass(frozen=True, slots=True)
class JudgePrices:
    """What models that judge cost, and how long an answer may be.

    Attributes:
        price: the dollars of a call.
        longest: the most bytes of an answer in a request, if a budget reserves what that costs;
            None if there is no limit.
    """

    price: CallPrice
    longest: int | None = None
