"""Prices in dollars, read from a TOML file.

The file has one table per model, in dollars per million tokens, and a table for everything else.

    ["gpt-oss-20b"]
    prompt = 0.05
    completion = 0.20

    [other]
    verify_second = 0.0001
    verify_minute = 0.50   # a person's time
    verify_call = 0.0
    score_call = 0.0
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..backends.protocols import Usage
from ..core.errors import BackendError, UsageError
from ..files import is_number, read_toml
from ..ledger.entries import Call

_MODEL = ("prompt", "completion")
_OTHER = tuple(
    f"{call}_{unit}"
    for call in ("verify", "score", "rescore", "generate")
    for unit in ("second", "minute", "call")
)


@dataclass(frozen=True)
class Prices:
    """Dollars per million tokens for models; dollars per second, minute and call for the rest."""

    models: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    other: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def load(cls, path: str) -> Prices:
        """Read a file of prices."""
        tables = read_toml(path)
        for name, table in tables.items():
            allowed = _OTHER if name == "other" else _MODEL
            if not isinstance(table, dict):
                raise UsageError(f"{path}: {name} must be a table with {', '.join(allowed)}")
            for key, value in table.items():
                if key not in allowed or not is_number(value) or value < 0:
                    raise UsageError(
                        f"{path}: [{name}] {key} = {value}: allowed are {', '.join(allowed)},"
                        " each in dollars"
                    )
        return cls({n: t for n, t in tables.items() if n != "other"}, tables.get("other", {}))

    def has(self, call: Call, model: str) -> bool:
        """Whether calls of this kind have a price above zero."""
        per_token = self.models.get(model, {}) if call == "generate" else {}
        others = [price for name, price in self.other.items() if name.startswith(f"{call}_")]
        return any([*per_token.values(), *others])

    def dollars(self, call: Call, usage: Usage, model: str, calls: int) -> float:
        """The price of this usage in this number of calls; zero if no price is given."""
        per_token = self.models.get(model, {}) if call == "generate" else {}
        tokens = usage.prompt_tokens * per_token.get("prompt", 0.0)
        tokens += usage.completion_tokens * per_token.get("completion", 0.0)
        per_second = self.other.get(f"{call}_second", 0.0)
        per_second += self.other.get(f"{call}_minute", 0.0) / 60
        per_call = self.other.get(f"{call}_call", 0.0)
        return tokens / 1e6 + usage.seconds * per_second + calls * per_call


def model_of(generator: str) -> str:
    """The model in a generator's specification, such as openai:MODEL; prices are per model."""
    return generator.partition(":")[2]


@dataclass(frozen=True)
class Meter:
    """Computes the cost of a call in dollars: what its backend reports, plus its usage priced.

    Attributes:
        prices: the price list.
        model: the generator's model.
    """

    prices: Prices
    model: str = ""

    def cost(self, call: Call, usage: Usage) -> float:
        """The cost of one call for one candidate: finite and not negative."""
        dollars = usage.dollars + self.prices.dollars(call, usage, self.model, 1)
        if not (math.isfinite(dollars) and dollars >= 0):
            raise BackendError(f"the reported cost of a call to {call} is {dollars} dollars")
        return dollars
