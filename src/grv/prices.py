"""Prices in dollars: what calls really cost.

A `Meter` computes the cost of each call from a price list, `Prices`, and from its `Usage`: tokens,
seconds and dollars. The costs of the search are then `grv.core.Measured`, a first guess.

    >>> import grv
    >>> prices = grv.prices.Prices({"small": {"prompt": 0.05, "completion": 0.20}})
    >>> usage = grv.prices.Usage(prompt_tokens=1000, completion_tokens=500)
    >>> round(grv.prices.Meter(prices, "small").cost("generate", usage), 6)
    0.00015
"""

from .backends.protocols import Usage
from .runtime.prices import Meter, Prices

__all__ = ["Meter", "Prices", "Usage"]
