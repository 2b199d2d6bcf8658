"""Fakes of the servers of model providers, on loopback, one for each dialect.

    with FakeAnthropic(text=lambda prompt, index: "42") as server:
        ...  # --generator anthropic:fake --base-url server.url

They refuse what the real servers refuse, and count tokens as those do. Each rule names the page of
the provider's documentation that it was made from; the official clients read their answers (see
`tests/backends/test_official_clients.py`). A token is a word. Servers that speak OpenAI's interface
with differences are data, in `compatible.py`.
"""

from __future__ import annotations

import json
import math
import re
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Literal, Self

from ..core.errors import UsageError
from .compatible import COMPATIBLE, Error, Refused
from .limits import Bucket, LimitReached, ServerLimits

Text = Callable[[str, int], str]
FORBIDDEN = "forbidden"  # a prompt with this word is moderated
_CREATED = 1_700_000_000

# What may happen to a request: the server is overloaded; its answer is charged, but cut off in the
# middle; its answer is charged, but the connection is closed before it.
Fault = Literal["overloaded", "cut", "lost"]


class Refusal(Exception):
    """An error response: its status, the fields of its error, and its headers.

    `body` is the whole body of a response that has another form than is usual for its server.
    """

    def __init__(self, status: int, headers: Mapping[str, str] | None = None, **error: Any) -> None:
        super().__init__(status)
        self.status = status
        self.error = error
        self.headers = dict(headers or {})
        self.body: dict[str, Any] | None = None


@dataclass(frozen=True)
class Received:
    """A request that a fake received, and the status of the response."""

    path: str
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(repr=False)
    status: int = 200
    query: str = ""


@dataclass(frozen=True)
class Counts:
    """The tokens of an answer. Those of the prompt include the cached and the written ones."""

    prompt: int = 0
    cached: int = 0
    written: int = 0
    completion: int = 0
    reasoning: int = 0

    def dollars(self, prices: Mapping[str, float]) -> float:
        """What they cost, at the prices of a price file, in dollars per million tokens."""
        prompt = prices.get("prompt", 0.0)
        completion = prices.get("completion", 0.0)
        total = (self.prompt - self.cached - self.written) * prompt
        total += self.cached * prices.get("cached", prompt)
        total += self.written * prices.get("cache_write", prompt)
        total += (self.completion - self.reasoning) * completion
        total += self.reasoning * prices.get("reasoning", completion)
        return total / 1e6


@dataclass(frozen=True)
class FakeReply:
    """One candidate: its text, its tokens with those of thinking, and whether it was cut."""

    text: str
    tokens: int
    thoughts: int
    is_cut: bool


class FakeServer:
    """What all fakes share. `received` has the requests, with the status of each response.

    `charged` is what the answers cost that were sent whole, `charged_in_vain` what the others cost.

    Args:
        text: returns the text of a candidate, given the prompt and the candidate's number.
        key: the key that requests must have; None takes any.
        model: the only model there is.
        refuses: fields that the model refuses with status 400, by their names in requests.
        thinks: tokens of thinking before each answer.
        overloaded: how many requests first get the response of an overloaded server.
        cached: tokens of each prompt that come from a cache.
        written: tokens of each prompt that are put into a cache.
        prices: what tokens cost, as in a price file.
        faults: returns what happens to a request, given its number from 0.
        root: where the interface begins; by default as at the provider.
        limits: what it takes at once and per minute; None takes all.
    """

    fields: ClassVar[Collection[str]] = ()  # the fields of a request
    root: ClassVar[str] = ""  # where the official client's base URL ends

    def __init__(
        self,
        text: Text = lambda prompt, index: f"answer {index}",
        *,
        key: str | None = None,
        model: str = "fake",
        refuses: Collection[str] = (),
        thinks: int = 0,
        overloaded: int = 0,
        cached: int = 0,
        written: int = 0,
        prices: Mapping[str, float] | None = None,
        faults: Callable[[int], Fault | None] = lambda number: None,
        root: str | None = None,
        limits: ServerLimits | None = None,
    ) -> None:
        self.text = text
        self.limits = limits
        self.key = key
        self.model = model
        self.refuses = frozenset(refuses)
        self.thinks = thinks
        self.overloaded = overloaded
        self.cached = cached
        self.written = written
        self.prices = prices or {}
        self.faults = faults
        self.prefix = self.root if root is None else root
        self.received: list[Received] = []
        self.made = 0
        self.charged = 0.0
        self.charged_in_vain = 0.0
        self._counts = Counts()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The base URL, as the official client takes it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}{self.prefix}"

    @property
    def bodies(self) -> list[Mapping[str, Any]]:
        """The bodies of the requests that were answered."""
        return [received.body for received in self.received if received.status == 200]

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def exchange(
        self, method: str, target: str, content: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes, dict[str, str], Fault | None]:
        """The status, the content and the headers of a response, and its fault."""
        if method != "POST":
            return 404, b'{"error": {"message": "Not Found"}}', {}, None
        status, answer, more, fault = self.serve(target, json.loads(content or b"{}"), headers)
        return status, json.dumps(answer).encode(), more, fault

    def serve(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> tuple[int, dict[str, Any], dict[str, str], Fault | None]:
        """As `respond`, within the limits of the server."""
        if self.limits is None:
            return self.respond(path, body, headers)
        reached = self.limits.admit(_size(body))
        if reached is not None:
            refusal = self.limited(reached)
            with self._lock:
                self.received.append(Received(path, body, headers, refusal.status))
            said = {**self.quotas(self.limits.buckets), **refusal.headers}
            return refusal.status, self.error(refusal), said, None
        try:
            said = self.quotas(self.limits.buckets)
            status, answer, more, fault = self.respond(path, body, headers)
            self.limits.work()
            return status, answer, {**more, **said}, fault
        finally:
            self.limits.release()

    def limited(self, reached: LimitReached) -> Refusal:
        """The response to a request beyond a limit."""
        raise NotImplementedError

    def quotas(self, buckets: Mapping[str, Bucket]) -> dict[str, str]:
        """The headers with what is left of limits per minute; none at some providers."""
        return {}

    def respond(
        self, target: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> tuple[int, dict[str, Any], dict[str, str], Fault | None]:
        """The status, the body and the headers of the response to a request, and its fault."""
        path, _, query = target.partition("?")
        with self._lock:
            fault = self.faults(len(self.received))
            self._counts = Counts()
            try:
                self.check_query(query)
                answer = self._answer(path, body, headers, fault)
                status = 200
                more = {"request-id": f"req_{len(self.received)}"}
            except Refusal as refusal:
                status = refusal.status
                answer = self.error(refusal) if refusal.body is None else refusal.body
                more = refusal.headers
                fault = None
            self.received.append(Received(path, body, headers, status, query))
            if fault is None:
                self.charged += self._counts.dollars(self.prices)
            else:
                self.charged_in_vain += self._counts.dollars(self.prices)
            return status, answer, more, fault

    def _answer(
        self,
        path: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        fault: Fault | None,
    ) -> dict[str, Any]:
        self.authorize(headers)
        if self.overloaded or fault == "overloaded":
            self.overloaded = max(0, self.overloaded - 1)
            raise self.overload()
        self.check(path, body)
        return self.answer(body)

    def reply(self, prompt: str, most: int | None) -> FakeReply:
        """The next candidate, after thinking, within a limit of tokens."""
        text = self.text(prompt, self.made)
        self.made += 1
        words = re.findall(r"\s*\S+", text)
        room = len(words) if most is None else max(0, most - self.thinks)
        kept = words[:room]
        thoughts = self.thinks if most is None else min(self.thinks, most)
        return FakeReply("".join(kept), thoughts + len(kept), thoughts, len(kept) < len(words))

    def count(self, prompt: str, *replies: FakeReply) -> Counts:
        """The tokens of an answer; the request is charged for them."""
        size = len(prompt.split())
        cached = min(size, self.cached)
        self._counts = Counts(
            size,
            cached,
            min(size - cached, self.written),
            sum(reply.tokens for reply in replies),
            sum(reply.thoughts for reply in replies),
        )
        return self._counts

    def error(self, refusal: Refusal) -> dict[str, Any]:
        """The body of an error response."""
        return {"error": refusal.error}

    def check_query(self, query: str) -> None:
        """Refuse what the query of an address lacks; most servers read none."""

    def authorize(self, headers: Mapping[str, str]) -> None:
        """Refuse a wrong key."""
        raise NotImplementedError

    def overload(self) -> Refusal:
        """The response of an overloaded server."""
        raise NotImplementedError

    def check(self, path: str, body: Mapping[str, Any]) -> None:
        """Refuse what the real server refuses."""
        raise NotImplementedError

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request that is in order."""
        raise NotImplementedError


class FakeOpenai(FakeServer):
    """OpenAI's chat completions, or those of a server with the same interface.

    Args:
        like: the server, such as "Ollama"; `compatible.COMPATIBLE` has how they differ.
        cost: dollars of each request.
        logprobs: whether answers have the log-probabilities that were asked for.
        most: the most candidates of a request that the server makes, whatever `n` says.
        likely: the words with their log-probabilities that the first token could have been.
        says_cost: whether the usage has what the request cost at `prices`.
        options: as in `FakeServer`.
    """

    # https://platform.openai.com/docs/api-reference/chat/create lists the fields.
    fields: ClassVar[Collection[str]] = [
        "audio",
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "metadata",
        "modalities",
        "model",
        "moderation",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    ]
    root = "/v1"
    path: ClassVar[str] = "/chat/completions"

    def __init__(
        self,
        *given: Any,
        like: str = "OpenAI",
        cost: float | None = None,
        logprobs: bool = True,
        most: int | None = None,
        likely: Mapping[str, float] | None = None,
        says_cost: bool = False,
        **options: Any,
    ) -> None:
        if like not in COMPATIBLE:
            raise UsageError(f"like={like!r}: give one of {', '.join(COMPATIBLE)}")
        self.like = COMPATIBLE[like]
        super().__init__(*given, **{"root": self.like.root, **options})
        self.cost = cost
        self.logprobs = logprobs
        self.most = most
        self.likely = dict(likely or {})
        self.says_cost = says_cost or self.like.says_cost

    def refusal(
        self, what: Refused, otherwise: Refusal, *, model: str = "", field: str = ""
    ) -> Refusal:
        """The refusal of the server that is faked; OpenAI's if it does not differ."""
        error = self.like.errors.get(what)
        if error is None:
            return otherwise
        refusal = Refusal(error.status, error.headers)
        refusal.body = _filled(error, model, field)
        return refusal

    def check_query(self, query: str) -> None:
        """The version of the interface, where the address needs it."""
        if self.like.query and f"{self.like.query}=" not in query:
            raise _openai(404, "Resource not found", code="404")

    def authorize(self, headers: Mapping[str, str]) -> None:
        """A key goes into the header Authorization."""
        # https://platform.openai.com/docs/guides/error-codes: 401, invalid authentication.
        right = {name: f"{before}{self.key}" for name, before in self.like.key_headers.items()}
        if self.key is None or not right:
            return
        if not any(headers.get(name) == value for name, value in right.items()):
            refusal = _openai(401, "Incorrect API key provided.", code="invalid_api_key")
            raise self.refusal("key", refusal)

    def overload(self) -> Refusal:
        """Too many requests."""
        # https://platform.openai.com/docs/guides/rate-limits: 429. The official client waits for
        # retry-after-ms, or else for retry-after.
        wait = {"retry-after": "0.05", "retry-after-ms": "50"}
        refusal = _openai(429, "Rate limit reached for requests.", wait, code="rate_limit_exceeded")
        refusal.error["type"] = "requests"
        return self.refusal("load", refusal)

    def limited(self, reached: LimitReached) -> Refusal:
        """A limit per minute with the pause; too many at once, as gateways say it, without one."""
        # https://platform.openai.com/docs/guides/error-codes: 429, a rate limit, with its kind.
        if reached.wait is None:
            return _openai(429, "Too many requests at once.", code="rate_limit_exceeded")
        per = {"requests": "requests per min (RPM)", "tokens": "tokens per min (TPM)"}[reached.of]
        wait = {"retry-after-ms": f"{1000 * reached.wait:.0f}"}
        message = f"Rate limit reached for {self.model} on {per}."
        refusal = _openai(429, message, wait, code="rate_limit_exceeded")
        refusal.error["type"] = reached.of
        return refusal

    def quotas(self, buckets: Mapping[str, Bucket]) -> dict[str, str]:
        """The headers x-ratelimit."""
        # https://platform.openai.com/docs/guides/rate-limits: the headers, with durations.
        said = {}
        for of, bucket in buckets.items():
            said[f"x-ratelimit-limit-{of}"] = f"{bucket.limit:.0f}"
            said[f"x-ratelimit-remaining-{of}"] = f"{max(0.0, bucket.left):.0f}"
            said[f"x-ratelimit-reset-{of}"] = _duration(bucket.reset)
        return said

    def check(self, path: str, body: Mapping[str, Any]) -> None:
        """The rules of the interface."""
        self.check_fields(path, body)
        if not isinstance(body.get("messages"), list) or not body["messages"]:
            raise _openai(400, "Missing required parameter: 'messages'.", param="messages")
        for message in body["messages"]:
            # The same page as the fields: the types of parts.
            for part in _parts(message["content"]):
                if part["type"] not in ("text", "image_url", "input_audio", "file", "refusal"):
                    raise _openai(400, f"Invalid value: '{part['type']}'.", param="messages")
        # The same page: log-probabilities of 0 to 20 other tokens, only with logprobs.
        if "top_logprobs" in body and not body.get("logprobs"):
            raise _openai(400, "'top_logprobs' needs 'logprobs'.", param="top_logprobs")
        if not 0 <= body.get("top_logprobs", 0) <= 20:
            raise _openai(400, "'top_logprobs' must be from 0 to 20.", param="top_logprobs")
        self.check_prompt(json.dumps(body["messages"]))

    def check_fields(self, path: str, body: Mapping[str, Any]) -> None:
        """The path, the fields and the model."""
        # https://platform.openai.com/docs/guides/error-codes: 404, an unknown address.
        if path != f"{self.prefix}{self.path}":
            raise _openai(404, f"Invalid URL (POST {path})")
        # The same page: 404, the model does not exist.
        if body.get("model") != self.model and not self.like.any_model:
            name = str(body.get("model"))
            message = f"The model `{name}` does not exist or you do not have access to it."
            refusal = _openai(404, message, code="model_not_found")
            raise self.refusal("model", refusal, model=name)
        for name in body:
            # The same page: 400, an unknown field.
            if name not in self.fields and not self.like.any_field:
                message = f"Unknown parameter: '{name}'."
                raise _openai(400, message, param=name, code="unknown_parameter")
            # https://platform.openai.com/docs/guides/reasoning: models that reason refuse these.
            if name in self.refuses:
                use = " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
                message = f"Unsupported parameter: '{name}' is not supported with this model.{use}"
                refusal = _openai(400, message, param=name, code="unsupported_parameter")
                raise self.refusal("field", refusal, field=name)
        if self.like.slots is not None and self.number(body) > self.like.slots:
            refusal = _openai(400, f"'n' must be at most {self.like.slots}.", param="n")
            raise self.refusal("n", refusal)

    def check_prompt(self, prompt: str) -> None:
        """A moderated prompt."""
        # https://platform.openai.com/docs/guides/reasoning: a prompt that was flagged.
        if FORBIDDEN in prompt and self.like.moderates:
            message = (
                "Invalid prompt: your prompt was flagged as potentially violating our usage policy."
                " Please try again with a different prompt."
            )
            raise self.refusal("prompt", _openai(400, message, code="invalid_prompt"))

    def number(self, body: Mapping[str, Any]) -> int:
        """The number of candidates of a request."""
        asked = 1 if "n" in self.like.ignored else body.get("n", 1)
        return min(asked, self.most or asked)

    def limit(self, body: Mapping[str, Any]) -> int | None:
        """The most tokens of a candidate; the newer name of the field wins."""
        names = ("max_completion_tokens", "max_tokens")
        given = [body[name] for name in names if name in body and name not in self.like.ignored]
        return given[0] if given else None

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Choices, and what they used."""
        prompt = _text_of(body["messages"][-1]["content"])
        replies = [self.reply(prompt, self.limit(body)) for _ in range(self.number(body))]
        choices = [self.choice(index, reply, body) for index, reply in enumerate(replies)]
        return {
            "id": f"chatcmpl-{self.made}",
            "object": "chat.completion",
            "created": _CREATED,
            "model": self.model,
            "choices": choices,
            "usage": self.usage(self.count(prompt, *replies)),
        }

    def choice(self, index: int, reply: FakeReply, body: Mapping[str, Any]) -> dict[str, Any]:
        """One choice of an answer."""
        message = {"role": "assistant", "content": reply.text or None, "refusal": None}
        if self.thinks:
            # OpenAI itself shows no thoughts; these do:
            # https://docs.vllm.ai/en/latest/features/reasoning_outputs.html
            message[self.like.thoughts] = "let me think"
        choice: dict[str, Any] = {"index": index, "message": message, "logprobs": None}
        choice |= self.like.choice
        choice["finish_reason"] = "length" if reply.is_cut else "stop"
        if body.get("logprobs") and self.logprobs:
            tokens = [_token(word) for word in reply.text.split()]
            if tokens and body.get("top_logprobs"):
                tokens[0]["top_logprobs"] = [_token(*pair) for pair in self.likely.items()]
            choice["logprobs"] = {"content": tokens, "refusal": None}
        return choice

    def usage(self, counts: Counts) -> dict[str, Any]:
        """What an answer used."""
        # https://platform.openai.com/docs/api-reference/chat/object: cached and written tokens are
        # part of the prompt's, those of reasoning part of the completion's.
        usage: dict[str, Any] = {
            "prompt_tokens": counts.prompt,
            "completion_tokens": counts.completion,
            "total_tokens": counts.prompt + counts.completion,
            "prompt_tokens_details": {
                "cached_tokens": counts.cached,
                "cache_write_tokens": counts.written,
            },
            "completion_tokens_details": {"reasoning_tokens": counts.reasoning},
        }
        kept = {
            name: value
            for name, value in usage.items()
            if name in self.like.usage or not name.endswith("_details")
        }
        return kept | self.cost_of(counts)

    def cost_of(self, counts: Counts) -> dict[str, float]:
        """The field with the price of a request, if the server says it."""
        # https://openrouter.ai/docs/use-cases/usage-accounting: the price is part of the usage.
        if self.cost is not None:
            return {"cost": self.cost}
        return {"cost": counts.dollars(self.prices)} if self.says_cost else {}


class FakeText(FakeOpenai):
    """OpenAI's plain completions, for models that continue a text."""

    # https://platform.openai.com/docs/api-reference/completions/create lists the fields.
    fields: ClassVar[Collection[str]] = [
        "best_of",
        "echo",
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "max_tokens",
        "model",
        "n",
        "presence_penalty",
        "prompt",
        "seed",
        "stop",
        "stream",
        "stream_options",
        "suffix",
        "temperature",
        "top_p",
        "user",
    ]
    path: ClassVar[str] = "/completions"

    def check(self, path: str, body: Mapping[str, Any]) -> None:
        """The rules of the interface."""
        self.check_fields(path, body)
        # The same page: the log-probabilities of at most 5 other tokens.
        if not 0 <= body.get("logprobs", 0) <= 5:
            raise _openai(400, "'logprobs' must be from 0 to 5.", param="logprobs")
        self.check_prompt(body.get("prompt", ""))

    def limit(self, body: Mapping[str, Any]) -> int | None:
        """The most tokens of a candidate."""
        # The same page: 16 by default.
        most: int = body.get("max_tokens", 16)
        return most

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Choices, and what they used."""
        prompt = body.get("prompt", "")
        replies = [self.reply(prompt, self.limit(body)) for _ in range(self.number(body))]
        choices = [self.choice(index, reply, body) for index, reply in enumerate(replies)]
        return {
            "id": f"cmpl-{self.made}",
            "object": "text_completion",
            "created": _CREATED,
            "model": self.model,
            "choices": choices,
            "usage": self.usage(self.count(prompt, *replies)),
        }

    def choice(self, index: int, reply: FakeReply, body: Mapping[str, Any]) -> dict[str, Any]:
        """One choice of an answer."""
        words = reply.text.split()
        logprobs = None
        if "logprobs" in body and self.logprobs:
            logprobs = {
                "tokens": words,
                "token_logprobs": [-0.5] * len(words),
                "top_logprobs": None,
                "text_offset": None,
            }
        return {
            "index": index,
            "text": reply.text,
            "logprobs": logprobs,
            "finish_reason": "length" if reply.is_cut else "stop",
        }


class FakeResponses(FakeOpenai):
    """OpenAI's Responses interface."""

    # https://platform.openai.com/docs/api-reference/responses/create lists the fields.
    fields: ClassVar[Collection[str]] = [
        "background",
        "context_management",
        "conversation",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "model",
        "moderation",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    ]
    path: ClassVar[str] = "/responses"

    def check(self, path: str, body: Mapping[str, Any]) -> None:
        """The rules of the interface."""
        self.check_fields(path, body)
        if not body.get("input"):
            raise _openai(400, "Missing required parameter: 'input'.", param="input")
        # The same page: the least value of max_output_tokens is 16.
        if body.get("max_output_tokens", 16) < 16:
            message = (
                "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16,"
                f" but got {body['max_output_tokens']} instead."
            )
            code = "integer_below_min_value"
            raise _openai(400, message, param="max_output_tokens", code=code)
        for item in self.items(body):
            for part in _parts(item["content"]):
                # The same page: the types of parts differ from those of chats.
                if part["type"] not in ("input_text", "input_image", "input_file", "output_text"):
                    raise _openai(400, f"Invalid value: '{part['type']}'.", param="input")
        self.check_prompt(json.dumps(body["input"]))

    def items(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The messages of a request; its input may be a text."""
        given = body["input"]
        return [{"role": "user", "content": given}] if isinstance(given, str) else given

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Items of output, and what they used."""
        prompt = _text_of(self.items(body)[-1]["content"])
        reply = self.reply(prompt, body.get("max_output_tokens"))
        status = "incomplete" if reply.is_cut else "completed"
        output: list[dict[str, Any]] = []
        if self.thinks:
            # https://platform.openai.com/docs/guides/reasoning: summaries only if asked for.
            is_asked = (body.get("reasoning") or {}).get("summary") is not None
            summary = [{"type": "summary_text", "text": "let me think"}] if is_asked else []
            output.append({"type": "reasoning", "id": f"rs_{self.made}", "summary": summary})
        if reply.text:
            part: dict[str, Any] = {"type": "output_text", "text": reply.text, "annotations": []}
            # The same page as the fields: log-probabilities are asked for in `include`.
            if "message.output_text.logprobs" in body.get("include", ()) and self.logprobs:
                part["logprobs"] = [_token(word) for word in reply.text.split()]
                if body.get("top_logprobs"):
                    part["logprobs"][0]["top_logprobs"] = [
                        _token(*pair) for pair in self.likely.items()
                    ]
            message = {"type": "message", "id": f"msg_{self.made}", "role": "assistant"}
            output.append({**message, "status": status, "content": [part]})
        return {
            "id": f"resp_{self.made}",
            "object": "response",
            "created_at": _CREATED,
            "model": self.model,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if reply.is_cut else None,
            "instructions": None,
            "metadata": {},
            "output": output,
            "parallel_tool_calls": True,
            "temperature": body.get("temperature"),
            "tool_choice": "auto",
            "tools": [],
            "top_p": body.get("top_p"),
            "usage": self.usage(self.count(prompt, reply)),
        }

    def usage(self, counts: Counts) -> dict[str, Any]:
        """What an answer used."""
        # https://platform.openai.com/docs/api-reference/responses/object: the names differ.
        usage: dict[str, Any] = {
            "input_tokens": counts.prompt,
            "input_tokens_details": {
                "cached_tokens": counts.cached,
                "cache_write_tokens": counts.written,
            },
            "output_tokens": counts.completion,
            "output_tokens_details": {"reasoning_tokens": counts.reasoning},
            "total_tokens": counts.prompt + counts.completion,
        }
        return usage | self.cost_of(counts)


class FakeAnthropic(FakeServer):
    """Anthropic's Messages interface."""

    # https://platform.claude.com/docs/en/api/messages/create lists the fields. The version
    # 2023-06-01, which grv asks for, has temperature, top_p and top_k besides:
    # https://platform.claude.com/docs/en/api/versioning
    fields: ClassVar[Collection[str]] = [
        "cache_control",
        "container",
        "diagnostics",
        "inference_geo",
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "service_tier",
        "speed",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    ]
    efforts: ClassVar[Collection[str]] = ("low", "medium", "high", "xhigh", "max")

    def error(self, refusal: Refusal) -> dict[str, Any]:
        """An error with a type."""
        # https://platform.claude.com/docs/en/api/errors: the shape of errors.
        request = f"req_{len(self.received)}"
        return {"type": "error", "error": refusal.error, "request_id": request}

    def authorize(self, headers: Mapping[str, str]) -> None:
        """A key goes into one of two headers, and a version into anthropic-version."""
        # https://platform.claude.com/docs/en/manage-claude/authentication: the official client
        # sends Authorization. https://platform.claude.com/docs/en/api/migration-2026-10-21 has
        # x-api-key.
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        # https://platform.claude.com/docs/en/api/errors: 401 authentication_error.
        if self.key is not None and headers.get("x-api-key", bearer) != self.key:
            raise Refusal(401, type="authentication_error", message="invalid x-api-key")
        # https://platform.claude.com/docs/en/api/versioning: the header is required.
        if "anthropic-version" not in headers:
            raise _anthropic("anthropic-version: header is required")

    def overload(self) -> Refusal:
        """The interface is overloaded."""
        # https://platform.claude.com/docs/en/api/errors: 529 overloaded_error.
        return Refusal(529, type="overloaded_error", message="Overloaded")

    def limited(self, reached: LimitReached) -> Refusal:
        """A limit per minute, with the pause in whole seconds; or too many connections."""
        # https://platform.claude.com/docs/en/api/rate-limits: 429 with retry-after.
        if reached.wait is None:
            message = "Number of concurrent connections has exceeded your rate limit."
            return Refusal(429, type="rate_limit_error", message=message)
        message = f"This request would exceed your rate limit of {reached.of} per minute."
        wait = {"retry-after": f"{math.ceil(reached.wait)}"}
        return Refusal(429, wait, type="rate_limit_error", message=message)

    def quotas(self, buckets: Mapping[str, Bucket]) -> dict[str, str]:
        """The headers anthropic-ratelimit."""
        # https://platform.claude.com/docs/en/api/rate-limits: the headers; a reset is a time.
        said = {}
        for of, bucket in buckets.items():
            full = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=int(bucket.reset))
            said[f"anthropic-ratelimit-{of}-limit"] = f"{bucket.limit:.0f}"
            said[f"anthropic-ratelimit-{of}-remaining"] = f"{max(0.0, bucket.left):.0f}"
            said[f"anthropic-ratelimit-{of}-reset"] = full.strftime("%Y-%m-%dT%H:%M:%SZ")
        return said

    def check(self, path: str, body: Mapping[str, Any]) -> None:
        """The rules of the interface."""
        # https://platform.claude.com/docs/en/api/errors: 404 not_found_error.
        if path != f"{self.prefix}/v1/messages":
            raise Refusal(404, type="not_found_error", message="Not Found")
        if body.get("model") != self.model:
            raise Refusal(404, type="not_found_error", message=f"model: {body.get('model')}")
        # https://platform.claude.com/docs/en/api/messages/create: required fields.
        for name in ("max_tokens", "messages"):
            if name not in body:
                raise _anthropic(f"{name}: Field required")
        for name in body:
            # The same page: fields that it does not list are refused.
            if name not in self.fields:
                raise _anthropic(f"{name}: Extra inputs are not permitted")
            # https://platform.claude.com/docs/en/about-claude/models/migration-guide: newer models
            # refuse how tokens are sampled.
            if name in self.refuses:
                raise _anthropic(f"`{name}` is deprecated for this model.")
        # The page of the fields: the range of temperature is from 0 to 1.
        if not 0 <= body.get("temperature", 1) <= 1:
            raise _anthropic("temperature: range: 0..1")
        # https://platform.claude.com/docs/en/build-with-claude/extended-thinking: with thinking,
        # temperature cannot be changed.
        thinking = body.get("thinking", {"type": "disabled"})["type"]
        if thinking != "disabled" and body.get("temperature", 1) != 1:
            raise _anthropic("`temperature` may only be set to 1 when thinking is enabled")
        # https://platform.claude.com/docs/en/build-with-claude/effort: the levels.
        effort = body.get("output_config", {}).get("effort")
        if effort is not None and effort not in self.efforts:
            expected = ", ".join(repr(level) for level in self.efforts)
            raise _anthropic(f"output_config.effort: Input should be {expected}")
        for message in body["messages"]:
            # The page of the fields: a system message is a field of its own.
            if message["role"] not in ("user", "assistant"):
                raise _anthropic(f"messages: Unexpected role {message['role']!r}")
            for part in _parts(message["content"]):
                if part["type"] not in ("text", "image", "document"):
                    raise _anthropic(f"messages: Input tag {part['type']!r} is not known")

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Blocks of content, and what they used."""
        prompt = _text_of(body["messages"][-1]["content"])
        message: dict[str, Any] = {
            "id": f"msg_{len(self.received)}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "stop_sequence": None,
            "stop_details": None,
        }
        # https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons: refusal.
        if FORBIDDEN in prompt:
            why = {
                "type": "refusal",
                "category": "general_harms",
                "explanation": "This request was declined.",
            }
            message |= {"stop_reason": "refusal", "stop_details": why}
            return {**message, "content": [], "usage": self.usage(self.count(prompt))}
        reply = self.reply(prompt, body["max_tokens"])
        content: list[dict[str, Any]] = []
        if self.thinks:
            # https://platform.claude.com/docs/en/build-with-claude/extended-thinking: the block.
            content.append({"type": "thinking", "thinking": "let me think", "signature": "s"})
        if reply.text:
            content.append({"type": "text", "text": reply.text, "citations": None})
        return {
            **message,
            "content": content,
            "stop_reason": "max_tokens" if reply.is_cut else "end_turn",
            "usage": self.usage(self.count(prompt, reply)),
        }

    def usage(self, counts: Counts) -> dict[str, Any]:
        """What an answer used."""
        # https://platform.claude.com/docs/en/build-with-claude/prompt-caching: input_tokens are
        # those that no cache has read or written.
        # https://platform.claude.com/docs/en/api/messages/create: thinking_tokens are part of
        # output_tokens.
        return {
            "input_tokens": counts.prompt - counts.cached - counts.written,
            "cache_read_input_tokens": counts.cached,
            "cache_creation_input_tokens": counts.written,
            "cache_creation": {
                "ephemeral_5m_input_tokens": counts.written,
                "ephemeral_1h_input_tokens": 0,
            },
            "output_tokens": counts.completion,
            "output_tokens_details": {"thinking_tokens": counts.reasoning},
            "service_tier": "standard",
        }


class FakeGemini(FakeServer):
    """Google's Gemini interface.

    Args:
        likely: the words with their log-probabilities that the first token could have been.
        options: as in `FakeServer`.
    """

    # https://ai.google.dev/api/generate-content lists the fields.
    fields: ClassVar[Collection[str]] = [
        "cachedContent",
        "contents",
        "generationConfig",
        "safetySettings",
        "serviceTier",
        "store",
        "systemInstruction",
        "toolConfig",
        "tools",
    ]
    config: ClassVar[Collection[str]] = [
        "candidateCount",
        "frequencyPenalty",
        "logprobs",
        "maxOutputTokens",
        "mediaResolution",
        "presencePenalty",
        "responseJsonSchema",
        "responseLogprobs",
        "responseMimeType",
        "responseModalities",
        "responseSchema",
        "seed",
        "stopSequences",
        "temperature",
        "thinkingConfig",
        "topK",
        "topP",
    ]
    levels: ClassVar[Collection[str]] = ("minimal", "low", "medium", "high", "xhigh")

    def __init__(
        self, *given: Any, likely: Mapping[str, float] | None = None, **options: Any
    ) -> None:
        super().__init__(*given, **options)
        self.likely = dict(likely or {})

    def authorize(self, headers: Mapping[str, str]) -> None:
        """A key goes into the header x-goog-api-key."""
        # https://ai.google.dev/gemini-api/docs/generate-content/api-errors: a wrong key is 400.
        if self.key is not None and headers.get("x-goog-api-key") != self.key:
            why = {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "API_KEY_INVALID",
                "domain": "googleapis.com",
            }
            message = "API key not valid. Please pass a valid API key."
            raise _gemini(400, "INVALID_ARGUMENT", message, details=[why])

    def overload(self) -> Refusal:
        """Too many requests; the pause is among the details."""
        # https://ai.google.dev/gemini-api/docs/rate-limits: 429 RESOURCE_EXHAUSTED.
        message = (
            "You exceeded your current quota, please check your plan and billing details."
            " Please retry in 0.05s."
        )
        pause = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.05s"}
        return _gemini(429, "RESOURCE_EXHAUSTED", message, details=[pause])

    def limited(self, reached: LimitReached) -> Refusal:
        """A limit per minute by its name, with the pause; or an overloaded model."""
        # https://ai.google.dev/gemini-api/docs/troubleshooting: 503 UNAVAILABLE, overloaded.
        if reached.wait is None:
            message = "The model is overloaded. Please try again later."
            return _gemini(503, "UNAVAILABLE", message)
        # https://ai.google.dev/gemini-api/docs/rate-limits; the names as in
        # https://github.com/google-gemini/gemini-cli/issues/8437.
        name = {
            "requests": "GenerateRequestsPerMinutePerProjectPerModel",
            "tokens": "GenerateContentInputTokensPerModelPerMinute",
        }[reached.of]
        delay = f"{reached.wait:.3f}s"
        kinds = "type.googleapis.com/google.rpc."
        details = [
            {"@type": f"{kinds}QuotaFailure", "violations": [{"quotaId": name}]},
            {"@type": f"{kinds}RetryInfo", "retryDelay": delay},
        ]
        message = f"You exceeded your current quota. Please retry in {delay}."
        return _gemini(429, "RESOURCE_EXHAUSTED", message, details=details)

    def check(self, path: str, body: Mapping[str, Any]) -> None:
        """The rules of the interface."""
        # https://ai.google.dev/gemini-api/docs/generate-content/api-errors: 404 NOT_FOUND.
        # https://ai.google.dev/gemini-api/docs/api-versions: v1 and v1beta.
        found = re.fullmatch(r"(.*)/(v1|v1beta)/models/([^/]+):generateContent", path)
        if found is None or found[1] != self.prefix or found[3] != self.model:
            name = path.rpartition("/")[2].partition(":")[0]
            message = (
                f"models/{name} is not found for API version v1beta, or is not supported for"
                " generateContent."
            )
            raise _gemini(404, "NOT_FOUND", message)
        config = body.get("generationConfig", {})
        given = [(name, self.fields) for name in body] + [(name, self.config) for name in config]
        for name, known in given:
            # https://ai.google.dev/api/generate-content: fields that it does not list are refused.
            if name not in known:
                message = (
                    f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
                )
                raise _gemini(400, "INVALID_ARGUMENT", message)
            # The same page: some models have no log-probabilities, or one candidate only.
            if name in self.refuses:
                what = {
                    "responseLogprobs": "Logprobs is not enabled for this model",
                    "candidateCount": "Multiple candidates is not enabled for this model",
                }
                message = what.get(name, f"{name} is not supported by this model")
                raise _gemini(400, "INVALID_ARGUMENT", message)
        # The same page: from 1 to 8 candidates, at most 5 stop sequences, 0 to 20 likely tokens.
        if not 1 <= config.get("candidateCount", 1) <= 8:
            raise _gemini(400, "INVALID_ARGUMENT", "candidateCount must be from 1 to 8.")
        if len(config.get("stopSequences", ())) > 5:
            raise _gemini(400, "INVALID_ARGUMENT", "stopSequences must be at most 5.")
        if "logprobs" in config and not config.get("responseLogprobs"):
            raise _gemini(400, "INVALID_ARGUMENT", "logprobs needs responseLogprobs.")
        # https://ai.google.dev/gemini-api/docs/thinking: levels, or a budget of tokens.
        level = config.get("thinkingConfig", {}).get("thinkingLevel")
        if level is not None and level.lower() not in self.levels:
            message = f"Invalid value at 'generation_config.thinking_config': \"{level}\""
            raise _gemini(400, "INVALID_ARGUMENT", message)
        for content in body.get("contents", ()):
            # The page of the fields: the roles are user and model.
            if content["role"] not in ("user", "model"):
                message = "Please use a valid role: user, model."
                raise _gemini(400, "INVALID_ARGUMENT", message)

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Candidates, and what they used."""
        prompt = _text_of(body["contents"][-1]["parts"])
        whole = {"modelVersion": self.model, "responseId": f"r{len(self.received)}"}
        # https://ai.google.dev/gemini-api/docs/safety-settings: a blocked prompt has no candidates.
        if FORBIDDEN in prompt:
            used = self.usage(self.count(prompt))
            return {**whole, "promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": used}
        config = body.get("generationConfig", {})
        replies = [
            self.reply(prompt, config.get("maxOutputTokens"))
            for _ in range(config.get("candidateCount", 1))
        ]
        candidates = [self.candidate(index, reply, config) for index, reply in enumerate(replies)]
        used = self.usage(self.count(prompt, *replies))
        return {**whole, "candidates": candidates, "usageMetadata": used}

    def candidate(self, index: int, reply: FakeReply, config: Mapping[str, Any]) -> dict[str, Any]:
        """One candidate of an answer."""
        parts: list[dict[str, Any]] = []
        # https://ai.google.dev/gemini-api/docs/thinking: thoughts are shown if asked for.
        if self.thinks and config.get("thinkingConfig", {}).get("includeThoughts"):
            parts.append({"text": "let me think", "thought": True})
        if reply.text:
            parts.append({"text": reply.text})
        content: dict[str, Any] = {"role": "model"}
        if parts:
            content["parts"] = parts
        candidate: dict[str, Any] = {
            "index": index,
            "content": content,
            "finishReason": "MAX_TOKENS" if reply.is_cut else "STOP",
        }
        if config.get("responseLogprobs"):
            chosen = [{"token": word, "logProbability": -0.5} for word in reply.text.split()]
            candidate["logprobsResult"] = {"chosenCandidates": chosen}
            if config.get("logprobs"):
                likely = [{"token": w, "logProbability": p} for w, p in self.likely.items()]
                candidate["logprobsResult"]["topCandidates"] = [{"candidates": likely}]
        return candidate

    def usage(self, counts: Counts) -> dict[str, Any]:
        """What an answer used."""
        # https://ai.google.dev/api/generate-content#UsageMetadata: thoughts are counted apart from
        # candidates; counts of 0 are left out. Nothing says what was put into a cache.
        used = {
            "promptTokenCount": counts.prompt,
            "cachedContentTokenCount": counts.cached,
            "candidatesTokenCount": counts.completion - counts.reasoning,
            "thoughtsTokenCount": counts.reasoning,
            "totalTokenCount": counts.prompt + counts.completion,
        }
        return {name: number for name, number in used.items() if number}


def _openai(
    status: int, message: str, headers: Mapping[str, str] | None = None, **more: Any
) -> Refusal:
    given = {"type": "invalid_request_error", "param": None, "code": None, **more}
    return Refusal(status, headers, message=message, **given)


def _filled(error: Error, model: str, field: str) -> dict[str, Any]:
    """The body of an error, with the model and the field of the request."""
    text = json.dumps(error.body)
    quoted = {"MODEL": json.dumps(model)[1:-1], "FIELD": json.dumps(field)[1:-1]}
    body: dict[str, Any] = json.loads(
        re.sub("MODEL|FIELD", lambda found: quoted[found.group()], text)
    )
    return body


def _anthropic(message: str) -> Refusal:
    return Refusal(400, type="invalid_request_error", message=message)


def _gemini(code: int, status: str, message: str, **more: Any) -> Refusal:
    refusal = Refusal(code, message=message, **more)
    refusal.error |= {"code": code, "status": status}
    return refusal


def _duration(seconds: float) -> str:
    """A duration as OpenAI writes it: 6m0s, 1.2s, 20ms."""
    if seconds < 1:
        return f"{1000 * seconds:.0f}ms"
    minutes = int(seconds // 60)
    return f"{minutes}m{seconds - 60 * minutes:.3f}s" if minutes else f"{seconds:.3f}s"


def _size(body: Mapping[str, Any]) -> int:
    """The tokens that a request counts as: its words, and the most that it allows."""
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    return len(json.dumps(body).split()) + sum(int(body.get(name) or 0) for name in names)


def _token(word: str, logprob: float = -0.5) -> dict[str, Any]:
    """A token with its log-probability, in OpenAI's format."""
    return {"token": word, "logprob": logprob, "bytes": list(word.encode()), "top_logprobs": []}


def _parts(content: Any) -> list[Mapping[str, Any]]:
    """The parts of the content of a message; none if it is a text."""
    return content if isinstance(content, list) else []


def _text_of(content: Any) -> str:
    """The text of the content of a message."""
    if isinstance(content, str):
        return content
    return " ".join(part["text"] for part in content if "text" in part)


class _Server(ThreadingHTTPServer):
    request_queue_size = 512  # connections that wait to be accepted

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print an error of the fake; a client that was killed is none."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _handler(fake: FakeServer) -> type[BaseHTTPRequestHandler]:
    class FakeHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # A response is sent at once: in two parts, the second would wait for the client's system
        # to acknowledge the first, which takes 40 ms.
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_POST(self) -> None:  # the name that http.server calls
            self._answer("POST")

        def do_GET(self) -> None:  # the name that http.server calls
            self._answer("GET")

        def _answer(self, method: str) -> None:
            length = int(self.headers.get("content-length", 0))
            body = self.rfile.read(length)
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, content, more, fault = fake.exchange(method, self.path, body, headers)
            if fault == "lost":
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in {"content-type": "application/json", **more}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            if fault == "cut":
                self.close_connection = True
                content = content[: len(content) // 2]
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing: `received` has the requests."""

    return FakeHandler
