"""How candidates are sampled."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...core.errors import UsageError
from ...options import Family, option
from ...text import checksum
from .chat import parse_extra, parse_format, without_keys

# The fields that ledgers of all versions store. Any other field is stored only if it is given, so
# that a field can be added: a search keeps its name, which is a hash of what is stored.
OLDEST = ("temperature", "top_p", "max_tokens", "stop", "seed")


EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def parse_effort(given: object) -> str:
    """A level of effort; a UsageError lists them."""
    if not isinstance(given, str) or given not in EFFORTS:
        raise UsageError(f"there is no effort {given!r}; choose one of {', '.join(EFFORTS)}")
    return given


@dataclass(frozen=True)
class Sampling(Family):
    """How a model samples candidates. The model's server decides what is None.

    Examples:
        >>> import grv
        >>> grv.generators.Sampling(temperature=0.8, max_tokens=500).max_tokens
        500
    """

    TITLE: ClassVar[str] = "Sampling"

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
    effort: str | None = option(
        None,
        f"How much a model that reasons thinks before it answers: {', '.join(EFFORTS)}.",
        metavar="LEVEL",
        parse=parse_effort,
    )
    response_format: dict[str, Any] | None = option(
        None,
        'The form of the answers, as in json_object, or JSON such as {"type": "json_schema", ...}.',
        metavar="TYPE|JSON",
        parse=parse_format,
        tables=True,
    )
    extra_body: dict[str, Any] | None = option(
        None,
        'Further fields of the requests to the model\'s server, as in {"top_k": 20}.',
        metavar="JSON",
        parse=parse_extra,
        tables=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(self.stop):
            raise UsageError("--stop: a text that ends a candidate cannot be empty")
        if not self.extra_body:
            object.__setattr__(self, "extra_body", None)  # no further fields are none

    def __str__(self) -> str:
        """The fields as the keyword arguments of a call, without keys."""
        return ", ".join(f"{name}={value!r}" for name, value in self.about().items())

    def about(self) -> dict[str, Any]:
        """The fields as ledgers store them, without keys. Newer ones only if they say something.

        The name of a search is a hash of these. So where something is hidden, a checksum says
        what it was: two schemas that differ only in a property `password` are two schemas.
        """
        fields = dataclasses.asdict(self)
        given = self.changed(NEWER)
        newer: dict[str, Any] = {}
        for name in NEWER:
            value = fields.pop(name)
            if name not in given:
                continue
            newer[name] = without_keys(value)
            # A key among further fields opens the server; it does not decide what it says.
            known = without_keys(value, addresses=False) if name == "extra_body" else value
            if known != newer[name]:
                newer[f"{name}_digest"] = checksum(json.dumps(known, sort_keys=True))[:32]
        return fields | newer

    def changed(self, names: Sequence[str]) -> list[str]:
        """Those of the fields that differ from their defaults."""
        default = Sampling()
        return [name for name in names if getattr(self, name) != getattr(default, name)]

    def request(self) -> dict[str, Any]:
        """The fields of a completion request that every server reads alike."""
        fields = dataclasses.asdict(self)
        sent = {name: fields[name] for name in ("temperature", "top_p") if fields[name] is not None}
        if self.stop:
            sent["stop"] = list(self.stop)
        if self.response_format is not None:
            sent["response_format"] = self.response_format
        return sent | (self.extra_body or {})


NEWER = tuple(each.name for each in dataclasses.fields(Sampling) if each.name not in OLDEST)


def check_batch(batch: int | None) -> None:
    """Refuse a batch of less than one candidate."""
    if batch is not None and batch < 1:
        raise UsageError(f"batch must be at least 1, not {batch}")
