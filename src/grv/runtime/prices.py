"""What a call cost in dollars: the only place that decides it.

The dollars of a call come from the first of these that knows them:

1. the price file of the user, if it names the model;
2. the server, if its response says what it charged;
3. the package `genai-prices`, if it is installed and knows the provider and the model. Its list is
   the one that is installed: nothing is fetched;
4. otherwise they are unknown: None, never 0.

What the file says in `[other]` about seconds, minutes and calls is added. A score or a verdict that
used no tokens costs nothing else: it was made on this machine. So were the candidates of the
embedded model.

The file has one table per model, in dollars per million tokens, and a table for everything else.

    ["gpt-oss-20b"]
    prompt = 0.05
    cached = 0.01          # tokens of the prompt that a cache had; by default as prompt
    cache_write = 0.06     # tokens of the prompt that were put into a cache; by default as prompt
    completion = 0.20
    reasoning = 0.20       # by default as completion

    [other]
    verify_second = 0.0001
    verify_minute = 0.50   # a person's time
    verify_call = 0.0
    score_call = 0.0
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..backends.protocols import Problem, Usage
from ..backends.scorers.bounded import BYTES_PER_TOKEN, Effort
from ..core.errors import BackendError, UsageError
from ..core.values import Costs, Measured
from ..files import is_number, read_toml
from ..ledger.entries import Call

# For the first guess of costs.
_LETTERS_PER_TOKEN = 4
_USUAL_LENGTH = 2000
_USUAL_TOKENS = 1000
_USUAL_SECONDS = 1.0
_NEARLY_FREE = 1e-6  # a verification without a price, in candidates
_TOKENS_AROUND = 200  # the most that a chat's format adds to a prompt

_CALLS: tuple[Call, ...] = ("verify", "score", "rescore", "generate")
_MODEL = ("prompt", "completion", "cached", "cache_write", "reasoning")
# by call: the names of its prices per second, per minute and per call
_NAMES = {call: (f"{call}_second", f"{call}_minute", f"{call}_call") for call in _CALLS}
_OTHER = tuple(name for names in _NAMES.values() for name in names)
_SCORING: tuple[Call, ...] = ("score", "rescore")
PRICING = "pricing"  # the field of a search's settings with `Meter.as_data` of each generator
_HERE = "embedded"  # the provider of models on this machine, which are free
# The providers of generators without a base URL, as genai-prices names them.
_PROVIDERS = {
    "openai": "openai",
    "openai-text": "openai",
    "responses": "openai",
    "anthropic": "anthropic",
    "gemini": "google",
    "embedded": _HERE,
    "embedded-chat": _HERE,
}


@dataclass(frozen=True)
class Prices:
    """Dollars per million tokens for models; dollars per second, minute and call for the rest.

    Examples:
        >>> import grv
        >>> prices = grv.prices.Prices(
        ...     {"small": {"prompt": 0.05, "completion": 0.2}}, {"verify_call": 0.01}
        ... )
        >>> grv.prices.Meter(prices, "small").dollars("verify", grv.prices.Usage())
        0.01
    """

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

    def of_tokens(self, usage: Usage, model: str) -> float | None:
        """The price of the tokens; None if the file does not name the model."""
        table = self.models.get(model)
        if table is None:
            return None
        prompt = table.get("prompt", 0.0)
        completion = table.get("completion", 0.0)
        plain = usage.prompt_tokens - usage.cached_tokens - usage.cache_write_tokens
        spoken = usage.completion_tokens - usage.reasoning_tokens
        dollars = plain * prompt + spoken * completion
        dollars += usage.cached_tokens * table.get("cached", prompt)
        dollars += usage.cache_write_tokens * table.get("cache_write", prompt)
        dollars += usage.reasoning_tokens * table.get("reasoning", completion)
        return usage.price_share * dollars / 1e6

    def of_call(self, call: Call, seconds: float) -> float | None:
        """The price of a call besides its tokens; None if the file has none for such calls."""
        second, minute, each = _NAMES[call]
        prices = self.other
        if not (second in prices or minute in prices or each in prices):
            return None
        per_second = prices.get(second, 0.0) + prices.get(minute, 0.0) / 60
        return seconds * per_second + prices.get(each, 0.0)


def model_of(generator: str) -> str:
    """The model in a generator's specification, such as openai:MODEL; prices are per model."""
    return generator.partition(":")[2]


@dataclass(frozen=True)
class Server:
    """Who serves a model, as genai-prices finds it.

    Attributes:
        provider: its name; empty if it is unknown, or if there is an address.
        url: the address, without credentials; empty if the provider's own is used.
    """

    provider: str = ""
    url: str = ""

    @classmethod
    def of(cls, generator: str, base_url: str | None) -> Server:
        """The server of a generator, from its specification."""
        if base_url:
            return cls(url=base_url)
        return cls(_PROVIDERS.get(generator.partition(":")[0], ""))


@dataclass(frozen=True)
class Meter:
    """Computes the dollars of a call from its usage.

    Attributes:
        prices: the price list of the user.
        model: the generator's model.
        server: who serves it.
        scorers: the same for the models that score, by kind of call: "score" and "rescore".
        price_share: the share of the list price that candidates are expected to cost: 0.5 in
            batches. What a candidate did cost is in its usage.
        unknown: what a candidate counts as, if nobody says what it cost; None stops the run then.
            It counts against budgets only: its dollars stay unknown.

    Examples:
        >>> import grv
        >>> meter = grv.prices.Meter(grv.prices.Prices(other={"verify_second": 0.001}))
        >>> meter.cost("verify", grv.prices.Usage(seconds=2))
        0.002
    """

    prices: Prices = field(default_factory=Prices)
    model: str = ""
    server: Server = field(default_factory=Server)
    scorers: Mapping[Call, Meter] = field(default_factory=dict)
    price_share: float = 1.0
    unknown: float | None = None

    def dollars(self, call: Call, usage: Usage) -> float | None:
        """What a call for one candidate cost; None if that is unknown."""
        tokens = self._of_tokens(call, usage)
        besides = self.prices.of_call(call, usage.seconds) if self.prices.other else None
        if tokens is None:
            return besides
        return tokens if besides is None else tokens + besides

    def as_data(self) -> dict[str, Any]:
        """What the ledger records, so that others compute the same dollars; empty if nothing."""
        data: dict[str, Any] = {"model": self.model, "provider": self.server.provider}
        data |= {"url": self.server.url, "other": dict(self.prices.other)}
        data["prices"] = dict(self.prices.models.get(self.model, {}))
        data["scorers"] = {call: meter.as_data() for call, meter in self.scorers.items()}
        known = {name: value for name, value in data.items() if value}
        return known if known.keys() - {"model"} else {}

    @classmethod
    def of(cls, data: object) -> Meter:
        """The inverse of `as_data`; what cannot be read is left out."""
        if not isinstance(data, Mapping):
            return cls()
        model = _text(data.get("model"))
        table = _table(data.get("prices"), _MODEL)
        prices = Prices({model: table} if table else {}, _table(data.get("other"), _OTHER))
        server = Server(_text(data.get("provider")), _text(data.get("url")))
        given = data.get("scorers")
        recorded = given if isinstance(given, Mapping) else {}
        scorers = {call: cls.of(recorded[call]) for call in _SCORING if call in recorded}
        return cls(prices, model, server, scorers)

    @property
    def may_know(self) -> bool:
        """Whether a list has the price of the model, or its server may say what it charges."""
        return bool(self.server.url) or self.dollars("generate", Usage(1, 1)) is not None

    @property
    def has_price(self) -> bool:
        """Whether a list has the price of the model."""
        return self.of_model(Usage(1, 1)) is not None

    def price(self, call: Call, usage: Usage) -> float | None:
        """The dollars of a call, if they are known; an amount that makes no sense is not."""
        dollars = self.dollars(call, usage)
        is_amount = dollars is not None and math.isfinite(dollars) and dollars >= 0
        return dollars if is_amount else None

    def cost(self, call: Call, usage: Usage) -> float:
        """The cost of one call for one candidate: finite and not negative.

        Raises:
            UsageError: it is unknown.
        """
        dollars = self.dollars(call, usage)
        if dollars is None and call == "generate":
            dollars = self.unknown
        if dollars is None:
            raise UsageError(f"measured costs: {self._unknown(call)}")
        if not (math.isfinite(dollars) and dollars >= 0):
            raise BackendError(f"the reported cost of a call to {call} is {dollars} dollars")
        return dollars

    def guess(
        self, problems: Sequence[Problem], max_tokens: int | None, judging: float = 0.0
    ) -> Measured | None:
        """The first guess of the costs; None if there is no price for the model.

        The tokens of a prompt are guessed from its length, and candidates are as long as they may
        be. A verification that has no price is nearly free.

        Args:
            problems: the problems.
            max_tokens: the most tokens of a candidate.
            judging: what models cost that verify a candidate.
        """
        lengths = [len(_sent(problem)) for problem in problems] or [_USUAL_LENGTH]
        prompt = math.ceil(sum(lengths) / len(lengths) / _LETTERS_PER_TOKEN)
        completion = max_tokens or _USUAL_TOKENS
        usual = Usage(max(1, prompt), completion, _USUAL_SECONDS, price_share=self.price_share)
        generate = self.dollars("generate", usual)
        if not generate:
            return None
        # A judge reads the prompt and the candidate, and says a word.
        read = Usage(max(1, prompt) + completion, 1)
        generate += (self.dollars("score", read) or 0.0) if "score" in self.scorers else 0.0
        verify = (self.dollars("verify", Usage(seconds=_USUAL_SECONDS)) or 0.0) + judging
        return Measured(generate, max(verify, generate * _NEARLY_FREE))

    def highest(
        self,
        problems: Sequence[Problem],
        max_tokens: int | None,
        scoring: Effort | None = None,
        judging: float | None = None,
    ) -> Costs | None:
        """The most that a candidate and a verification can cost; None if that has no bound.

        A prompt has at most one token per byte, and a few for each message. The tokens of an image
        do not depend on its bytes.

        Args:
            problems: the problems.
            max_tokens: the most tokens of a candidate.
            scoring: the most that the model that scores does for a candidate; None if none does.
            judging: the most that models cost that verify a candidate; None if that is unknown.
        """
        timed = [f"{call}_{unit}" for call in _CALLS for unit in ("second", "minute")]
        is_bounded = max_tokens is not None and not any(self.prices.other.get(n) for n in timed)
        if not problems or not is_bounded or any(map(_has_image, problems)):
            return None
        if judging is None and any(_asks_model(problem.check) for problem in problems):
            return None
        prompt = max(len(_sent(problem).encode("utf-8", "replace")) for problem in problems)
        prompt += _TOKENS_AROUND
        completion = max_tokens or 0
        generate = self._highest("generate", prompt, completion)
        score = self.prices.of_call("score", 0.0) or 0.0
        if scoring is not None:
            read = scoring.prompt_tokens(prompt, BYTES_PER_TOKEN * completion)
            bound = self._highest("score", read, scoring.answer_tokens)
            if bound is None:
                return None
            score = bound
        if not generate:
            return None
        verify = (self.prices.of_call("verify", 0.0) or 0.0) + (judging or 0.0)
        return Costs(generate, max(verify, generate * _NEARLY_FREE), score=score)

    def highest_second(
        self, problems: Sequence[Problem], max_tokens: int | None, scoring: Effort
    ) -> float | None:
        """The most that a second score can cost; None if that has no bound."""
        if not problems or max_tokens is None or any(map(_has_image, problems)):
            return None
        prompt = max(len(_sent(problem).encode("utf-8", "replace")) for problem in problems)
        read = scoring.prompt_tokens(prompt + _TOKENS_AROUND, BYTES_PER_TOKEN * max_tokens)
        return self._highest("rescore", read, scoring.answer_tokens)

    def highest_of_model(self, prompt: int, completion: int) -> float | None:
        """The most that this meter's own model charges for a request of this size, in bytes."""
        amounts = [
            self.of_model(
                Usage(
                    prompt + _TOKENS_AROUND,
                    completion,
                    cache_write_tokens=written,
                    reasoning_tokens=thought,
                )
            )
            for written in (0, prompt)
            for thought in (0, completion)
        ]
        return max((dollars for dollars in amounts if dollars is not None), default=None)

    def usual_of_model(self, prompt: int, completion: int) -> float | None:
        """What this meter's own model charges for a usual request of this size, in bytes."""
        return self.of_model(Usage(max(1, prompt // _LETTERS_PER_TOKEN), completion))

    def _highest(self, call: Call, prompt: int, completion: int) -> float | None:
        """The most that a call with these tokens can cost; None if that is unknown."""
        usages = [
            Usage(
                prompt,
                completion,
                cache_write_tokens=written,
                reasoning_tokens=thought,
                price_share=self.price_share if call == "generate" else 1.0,
            )
            for written in (0, prompt)
            for thought in (0, completion)
        ]
        amounts = [self.dollars(call, usage) for usage in usages]
        return max((dollars for dollars in amounts if dollars is not None), default=None)

    def _of_tokens(self, call: Call, usage: Usage) -> float | None:
        """What the model's server charges, or what it says; None if that is unknown."""
        has_tokens = bool(usage.prompt_tokens or usage.completion_tokens)
        if call == "generate":
            return self.of_model(usage)
        if has_tokens and call in self.scorers:
            return self.scorers[call].of_model(usage)
        if usage.dollars is not None:
            return usage.dollars
        return None if has_tokens else 0.0

    def of_model(self, usage: Usage) -> float | None:
        """The price of the tokens of this meter's own model."""
        has_tokens = bool(usage.prompt_tokens or usage.completion_tokens)
        listed = self.prices.of_tokens(usage, self.model) if has_tokens else None
        if listed is not None:
            return listed
        if usage.dollars is not None:
            return usage.dollars
        if self.server.provider == _HERE:
            return 0.0
        listed = _listed(self.model, self.server, usage) if has_tokens else None
        return None if listed is None else usage.price_share * listed

    def _unknown(self, call: Call) -> str:
        model = self.scorers[call].model if call in self.scorers else self.model
        is_priced_by_model = call == "generate" or call in self.scorers
        named = f'["{model}"], or ' if is_priced_by_model and model else ""
        return (
            f"nobody says what a call to {call} costs: give --prices FILE with {named}"
            f"{call}_call in [other]"
        )


def _sent(problem: Problem) -> str:
    """What is sent to a model, as one text."""
    return json.dumps(list(problem.messages)) if problem.messages else problem.prompt


def _has_image(problem: Problem) -> bool:
    """Whether a message has a part that is not text."""
    contents = [message.get("content") for message in problem.messages]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return any(part.get("type") != "text" for part in parts)


def _asks_model(check: object) -> bool:
    """Whether a check, or one within it, is a model's judgement."""
    if isinstance(check, Mapping):
        return check.get("kind") == "judge" or any(map(_asks_model, check.values()))
    return isinstance(check, list | tuple) and any(map(_asks_model, check))


def meters_of(about: Mapping[str, Any]) -> dict[str, Meter]:
    """What computes the dollars of a recorded search, by the name of the generator.

    A search of an older version has no prices on record; then only what servers said is known.
    """
    recorded = about.get(PRICING)
    if not isinstance(recorded, Mapping):
        generator = str(about.get("generator", ""))
        server = Server.of(generator, None)
        return {"": Meter(server=server)} if server.provider == _HERE else {}
    return {str(name): Meter.of(data) for name, data in recorded.items()}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _table(value: object, allowed: Sequence[str]) -> dict[str, float]:
    """The prices in a table; those that make no sense are left out."""
    if not isinstance(value, Mapping):
        return {}
    found = {name: value.get(name) for name in allowed}
    return {name: price for name, price in found.items() if is_number(price) and price >= 0}


def _listed(model: str, server: Server, usage: Usage) -> float | None:
    """The price of the tokens in the list of genai-prices; None if it has none."""
    if not (model and (server.provider or server.url)):
        return None
    return _looked_up(
        model,
        server,
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.cached_tokens,
        usage.cache_write_tokens,
    )


@functools.cache
def _calculator() -> Any:
    """The package genai-prices; None if it is not installed."""
    try:
        import genai_prices
    except ImportError:
        return None
    return genai_prices


@functools.lru_cache(maxsize=512)
def _looked_up(
    model: str, server: Server, prompt: int, completion: int, cached: int, cache_write: int
) -> float | None:
    """The price of these tokens in the list of genai-prices; None if it has none."""
    package = _calculator()
    if package is None:
        return None
    counts: dict[str, int] = {"input_tokens": prompt, "output_tokens": completion}
    if cached:
        counts["cache_read_tokens"] = cached
    if cache_write:
        counts["cache_write_tokens"] = cache_write
    where = {"provider_api_url": server.url} if server.url else {"provider_id": server.provider}
    try:
        found = package.calc_price(package.Usage(**counts), model, **where)
    except (LookupError, ValueError):
        return None
    return float(found.total_price)
