"""Finds out what a model's server can do, with one cheap question; `grv doctor` shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ...core.errors import GeneratorError
from ...files import is_number, parse_json
from ..http.endpoint import said, status
from ..http.faults import blamed
from ..http.web import REFUSED
from ..protocols import Problem
from .dialect import INSTEAD, DialectGenerator
from .sampling import Sampling

_QUESTION = Problem("doctor", 'What is 1 + 1? Answer with JSON such as {"sum": 5}.')
_SCHEMA = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
    "additionalProperties": False,
}
_FORMAT = {"type": "json_schema", "json_schema": {"name": "sum", "schema": _SCHEMA}}
_MOST_TOKENS = 512  # enough for a model that thinks first
_NAMES = {
    "schema": (
        "response_format",
        "json_schema",
        "text.format",
        "text",
        "output_config",
        "responseJsonSchema",
        "responseMimeType",
        "response_json_schema",
        "response_mime_type",
        "json schema",
        "json mode",
        "structured output",
    )
}
_WITH = {
    "n": "one request asks for several candidates",
    "logprobs": "--score auto, the default, ranks by them",
    "seed": "the server takes seeds",
    "schema": "--response-format with a schema works",
    "usage": "the tokens of each call are known",
    "cost": "the server says what a call costs",
    "cancel": "a cancelled call stops at the server",
}
_WITHOUT = {
    "n": INSTEAD["n"],
    "logprobs": INSTEAD["logprobs"],
    "seed": INSTEAD["seed"],
    "schema": "describe the form of the answer in the prompt; the check decides",
    "usage": "use fixed costs, as in --costs 1,10, not --costs measured",
    "cost": "give prices with --prices FILE to see dollars",
    "cancel": "a cancelled call counts as paid",
}


@dataclass(frozen=True)
class Abilities:
    """What a server can do. None is unknown.

    Attributes:
        n: several candidates from one request.
        logprobs: log-probabilities of tokens.
        seed: seeds are accepted.
        schema: answers follow a JSON schema.
        usage: tokens are reported.
        cost: dollars are reported.
        cancel: a call stops when its connection is closed. No answer tells.
    """

    n: bool | None
    logprobs: bool | None
    seed: bool | None
    schema: bool | None
    usage: bool | None
    cost: bool | None
    cancel: bool | None = None

    def as_data(self) -> dict[str, bool | None]:
        """The fields by name."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """For each, whether there is it and what that means for a run."""
        for name, value in self.as_data().items():
            word = {True: "yes", False: "no", None: "unknown"}[value]
            meaning = _WITH[name] if value else _WITHOUT[name]
            yield f"{name:<9} {word:<8} {meaning}"


def question(seed: int = 0) -> Sampling:
    """How the question is sampled."""
    return Sampling(max_tokens=_MOST_TOKENS, seed=seed, response_format=_FORMAT)


async def examine(generator: DialectGenerator) -> Abilities:
    """Ask a generator that samples as `question` says.

    Raises:
        GeneratorError: the server does not answer, or refuses the question itself.
    """
    accepts_schema = True
    try:
        answer, _ = await generator.answer(_QUESTION, 2)
    except GeneratorError as error:
        if status(error) not in REFUSED or blamed(said(error), _NAMES) is None:
            raise
        accepts_schema = False
        plain = generator.sampled(replace(generator.sampling, response_format=None))
        answer, _ = await plain.answer(_QUESTION, 2)
    return _abilities(generator, answer, accepts_schema)


def _abilities(generator: DialectGenerator, answer: Any, accepts_schema: bool) -> Abilities:
    dialect = generator.dialect
    missing = generator.refused | dialect.lacks
    try:
        drafts = dialect.texts(answer)
    except ValueError as error:
        raise GeneratorError(str(error), backend=f"{dialect.name}:{generator.model}") from None
    text = drafts[0].text
    known = any(draft.text.strip() for draft in drafts)
    return Abilities(
        n="n" not in missing and len(drafts) > 1,
        logprobs=any(draft.logprobs for draft in drafts) if known else None,
        seed="seed" not in missing,
        schema=accepts_schema and (_follows_schema(text) if known else None),
        usage=dialect.usage(answer).completion_tokens > 0,
        cost=_has_cost(answer),
    )


def _follows_schema(text: str) -> bool:
    try:
        found = parse_json(text)
    except ValueError:
        return False
    return isinstance(found, dict) and isinstance(found.get("sum"), int)


def _has_cost(answer: object) -> bool:
    """Whether the usage has dollars, as OpenRouter reports them."""
    usage = answer.get("usage") if isinstance(answer, Mapping) else None
    return isinstance(usage, Mapping) and is_number(usage.get("cost"))
