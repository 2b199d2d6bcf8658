"""How candidates are sampled."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from ...core.errors import UsageError
from ...options import Family, option
from .chat import parse_extra, parse_format, without_keys

NEWER = ("system", "response_format", "extra_body")  # fields that older ledgers do not have


@dataclass(frozen=True)
class Sampling(Family):
    """How a model samples candidates. The model's server decides what is None."""

    temperature: float = option(
        0.7, "Randomness of the tokens; 0 always takes the likeliest.", least=0, most=100
    )
    top_p: float | None = option(
        None,
        "Sample only from the likeliest tokens whose probabilities add up to this share.",
        least=1e-9,
        most=1,
    )
    max_tokens: int | None = option(
        None, "The most tokens that a candidate may have.", least=1, most=1 << 40
    )
    stop: tuple[str, ...] = option((), "A text that ends a candidate. Repeatable.")
    seed: int | None = option(0, "Seed of the candidates.")
    system: str = option("", "A system message for a chat model, before the prompt.")
    response_format: dict[str, Any] | None = option(
        None,
        'The form of the answers, as in json_object, or JSON such as {"type": "json_schema", ...}.',
        metavar="TYPE|JSON",
        parse=parse_format,
        tables=True,
    )
    extra_body: dict[str, Any] | None = option(
        None,
        'Further fields of the requests to an OpenAI-compatible endpoint, as in {"top_k": 20}.',
        metavar="JSON",
        parse=parse_extra,
        tables=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(self.stop):
            raise UsageError("--stop: a text that ends a candidate cannot be empty")

    def __str__(self) -> str:
        """The fields as the keyword arguments of a call, without keys."""
        return ", ".join(f"{name}={value!r}" for name, value in self.about().items())

    def about(self) -> dict[str, Any]:
        """The fields as ledgers store them, without keys. Newer ones only if they say something."""
        fields = dataclasses.asdict(self)
        newer = {name: without_keys(fields.pop(name)) for name in NEWER}
        return fields | {name: value for name, value in newer.items() if value}

    def request(self) -> dict[str, Any]:
        """The fields of a completion request that every server reads alike."""
        fields = dataclasses.asdict(self)
        sent = {name: fields[name] for name in ("temperature", "top_p") if fields[name] is not None}
        if self.stop:
            sent["stop"] = list(self.stop)
        if self.response_format is not None:
            sent["response_format"] = self.response_format
        return sent | (self.extra_body or {})


def check_batch(batch: int | None) -> None:
    """Refuse a batch of less than one candidate."""
    if batch is not None and batch < 1:
        raise UsageError(f"batch must be at least 1, not {batch}")
