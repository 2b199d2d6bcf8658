"""What a call used: tokens, seconds, dollars. Backends report it, and the ledger records it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .files import is_number


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call used, as far as it is known. `Costs` are prices; this is a measurement.

    Attributes:
        prompt_tokens: all tokens of the prompt, also those read from a cache or written to it.
        completion_tokens: all tokens that the model wrote, also those of its reasoning.
        seconds: how long the call took.
        dollars: what the call cost, as its server says; None if nobody says. 0 means free.
        cached_tokens: those tokens of the prompt that were read from a cache.
        cache_write_tokens: those tokens of the prompt that were written to a cache.
        reasoning_tokens: those tokens of the completion that are reasoning.
        price_share: the share of the list price that the tokens cost: 0.5 in a batch. A sum has
            none of its own, so price its parts.

    Examples:
        >>> import grv
        >>> total = grv.prices.Usage(prompt_tokens=10) + grv.prices.Usage(prompt_tokens=5)
        >>> total.prompt_tokens
        15
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    dollars: float | None = None
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    price_share: float = 1.0

    def __add__(self, other: Usage) -> Usage:
        """The sum; its dollars are unknown if those of one part are."""
        usages = (self, other)
        return self.total(usages, [usage.dollars for usage in usages])

    @classmethod
    def total(cls, usages: Sequence[Usage], dollars: Sequence[float | None]) -> Usage:
        """The sum of calls that cost these dollars; unknown dollars of one make all unknown."""
        return cls(
            sum([usage.prompt_tokens for usage in usages]),
            sum([usage.completion_tokens for usage in usages]),
            sum([usage.seconds for usage in usages], 0.0),
            total_of(dollars),
            sum([usage.cached_tokens for usage in usages]),
            sum([usage.cache_write_tokens for usage in usages]),
            sum([usage.reasoning_tokens for usage in usages]),
        )

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Usage:
        """The inverse of `as_data`; values that are not numbers count as missing.

        A record without `cached_tokens` was written when unknown dollars were recorded as 0. There
        0 dollars for a call with tokens mean that the dollars are unknown.
        """
        usage = cls(**{n: data[n] for n in cls.__slots__ if is_number(data.get(n))})
        has_tokens = usage.prompt_tokens or usage.completion_tokens
        if "cached_tokens" not in data and has_tokens and usage.dollars == 0:
            return replace(usage, dollars=None)
        return usage

    def as_data(self) -> dict[str, float | None]:
        """The fields by name; without the share of the list price if that is the whole."""
        data = {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "seconds": self.seconds,
            "dollars": self.dollars,
            "cached_tokens": self.cached_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "reasoning_tokens": self.reasoning_tokens,
        }
        if self.price_share != 1.0:
            data["price_share"] = self.price_share
        return data


def total_of(dollars: Sequence[float | None]) -> float | None:
    """The sum of amounts; None, which is unknown, if one of them is."""
    known = [amount for amount in dollars if amount is not None]
    return sum(known, 0.0) if len(known) == len(dollars) else None


UNUSED = Usage()  # nothing is known
NOTHING = Usage(dollars=0.0)  # where a sum starts
