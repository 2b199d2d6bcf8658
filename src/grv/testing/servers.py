"""Fakes of the servers of model providers, on loopback, one for each dialect.

    with FakeAnthropic(text=lambda prompt, index: "42") as server:
        ...  # --generator anthropic:fake --base-url server.url

They refuse what the real servers refuse. Each rule names the page of the provider's documentation
that it was made from. A token is a word.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Self

Text = Callable[[str, int], str]
FORBIDDEN = "forbidden"  # a prompt with this word is moderated


class Refusal(Exception):
    """An error response: its status, the fields of its error, and its headers."""

    def __init__(self, status: int, headers: Mapping[str, str] | None = None, **error: Any) -> None:
        super().__init__(status)
        self.status = status
        self.error = error
        self.headers = dict(headers or {})


@dataclass(frozen=True)
class Received:
    """A request that a fake received, and the status of the response."""

    path: str
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(repr=False)
    status: int = 200


class FakeServer:
    """What all fakes share. `received` has the requests, with the status of each response.

    Args:
        text: returns the text of a candidate, given the prompt and the candidate's number.
        key: the key that requests must have; None takes any.
        model: the only model there is.
        refuses: fields that the model refuses with status 400, by their names in requests.
        thinks: tokens of thinking before each answer.
        overloaded: how many requests first get the response of an overloaded server.
        cached: tokens of each prompt that come from a cache.
    """

    fields: ClassVar[Collection[str]] = ()  # the fields of a request
    is_versioned: ClassVar[bool] = True  # whether a base URL ends in /v1

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
    ) -> None:
        self.text = text
        self.key = key
        self.model = model
        self.refuses = frozenset(refuses)
        self.thinks = thinks
        self.overloaded = overloaded
        self.cached = cached
        self.received: list[Received] = []
        self.made = 0
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The base URL, as the official client takes it."""
        root = f"http://127.0.0.1:{self._server.server_address[1]}"
        return f"{root}/v1" if self.is_versioned else root

    @property
    def bodies(self) -> list[Mapping[str, Any]]:
        """The bodies of the requests that were answered."""
        return [received.body for received in self.received if received.status == 200]

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
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

    def respond(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> tuple[int, dict[str, Any], dict[str, str]]:
        """The status, the body and the headers of the response to a request."""
        with self._lock:
            try:
                answer = self._answer(path, body, headers)
                status = 200
                more: dict[str, str] = {}
            except Refusal as refusal:
                status = refusal.status
                answer = self.error(refusal)
                more = refusal.headers
            self.received.append(Received(path, body, headers, status))
            return status, answer, more

    def _answer(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> dict[str, Any]:
        self.authorize(headers)
        if self.overloaded:
            self.overloaded -= 1
            raise self.overload()
        self.check(path, body)
        return self.answer(body)

    def new_text(self, prompt: str) -> str:
        """The text of the next candidate."""
        self.made += 1
        return self.text(prompt, self.made - 1)

    def cut(self, text: str, most: int | None) -> tuple[str, int, bool]:
        """What is left of a text after thinking within a limit; its tokens; whether it was cut."""
        words = re.findall(r"\s*\S+", text)
        room = len(words) if most is None else max(0, most - self.thinks)
        kept = words[:room]
        thoughts = self.thinks if most is None else min(self.thinks, most)
        return "".join(kept), thoughts + len(kept), len(kept) < len(words)

    def error(self, refusal: Refusal) -> dict[str, Any]:
        """The body of an error response."""
        return {"error": refusal.error}

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
    """OpenAI's chat completions; with `cost`, as OpenRouter adds it to the usage.

    Args:
        cost: dollars of each request.
        logprobs: whether answers have the log-probabilities that were asked for.
        most: the most candidates of a request that the server makes, whatever `n` says.
        options: as in `FakeServer`.
    """

    # https://platform.openai.com/docs/api-reference/chat/create lists the fields.
    fields: ClassVar[Collection[str]] = [
        "model",
        "messages",
        "n",
        "stop",
        "seed",
        "temperature",
        "top_p",
        "max_tokens",
        "max_completion_tokens",
        "logprobs",
        "top_logprobs",
        "response_format",
        "reasoning_effort",
        "stream",
        "store",
        "user",
        "metadata",
        "frequency_penalty",
        "presence_penalty",
    ]

    def __init__(
        self,
        *given: Any,
        cost: float | None = None,
        logprobs: bool = True,
        most: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*given, **options)
        self.cost = cost
        self.logprobs = logprobs
        self.most = most

    def authorize(self, headers: Mapping[str, str]) -> None:
        """A key goes into the header Authorization."""
        # https://platform.openai.com/docs/guides/error-codes: 401, invalid authentication.
        if self.key is not None and headers.get("authorization") != f"Bearer {self.key}":
            raise _openai(401, "Incorrect API key provided.", code="invalid_api_key")

    def overload(self) -> Refusal:
        """Too many requests."""
        # https://platform.openai.com/docs/guides/rate-limits: 429, with retry-after headers.
        wait = {"retry-after": "0.05", "retry-after-ms": "50"}
        return _openai(429, "Rate limit reached for requests.", wait, code="rate_limit_exceeded")

    def check(self, path: str, body: Mapping[str, Any]) -> None:
        """The rules of the interface."""
        self.check_fields(body)
        if not isinstance(body.get("messages"), list) or not body["messages"]:
            raise _openai(400, "Missing required parameter: 'messages'.", param="messages")
        self.check_prompt(json.dumps(body["messages"]))

    def check_fields(self, body: Mapping[str, Any]) -> None:
        """Fields and the model."""
        # https://platform.openai.com/docs/guides/error-codes: 404, the model does not exist.
        if body.get("model") != self.model:
            message = f"The model '{body.get('model')}' does not exist."
            raise _openai(404, message, code="model_not_found")
        for name in body:
            # https://platform.openai.com/docs/guides/error-codes: 400, an unknown field.
            if name not in self.fields:
                message = f"Unknown parameter: '{name}'."
                raise _openai(400, message, param=name, code="unknown_parameter")
            # https://platform.openai.com/docs/guides/reasoning: models that reason refuse these.
            if name in self.refuses:
                use = " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
                message = f"Unsupported parameter: '{name}' is not supported with this model.{use}"
                raise _openai(400, message, param=name, code="unsupported_parameter")

    def check_prompt(self, prompt: str) -> None:
        """A moderated prompt."""
        # https://platform.openai.com/docs/guides/safety-best-practices: a flagged prompt.
        if FORBIDDEN in prompt:
            message = "Invalid prompt: your prompt was flagged."
            raise _openai(400, message, code="invalid_prompt")

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Choices, and what they used."""
        prompt = _text_of(body["messages"][-1]["content"])
        limit = body.get("max_completion_tokens", body.get("max_tokens"))
        choices = []
        total = 0
        for index in range(min(body.get("n", 1), self.most or body.get("n", 1))):
            text, used, is_cut = self.cut(self.new_text(prompt), limit)
            total += used
            message = {"role": "assistant", "content": text or None}
            if self.thinks:
                message["reasoning_content"] = "let me think"
            choice: dict[str, Any] = {"index": index, "message": message}
            choice["finish_reason"] = "length" if is_cut else "stop"
            if body.get("logprobs") and self.logprobs:
                tokens = [{"token": word, "logprob": -0.5} for word in text.split()]
                choice["logprobs"] = {"content": tokens}
            choices.append(choice)
        usage: dict[str, Any] = {
            "prompt_tokens": len(prompt.split()),
            "completion_tokens": total,
            "prompt_tokens_details": {"cached_tokens": self.cached},
            "completion_tokens_details": {"reasoning_tokens": self.thinks * len(choices)},
        }
        if self.cost is not None:
            # https://openrouter.ai/docs/use-cases/usage-accounting: the price of the request.
            usage["cost"] = self.cost
        return {"object": "chat.completion", "choices": choices, "usage": usage}


class FakeResponses(FakeOpenai):
    """OpenAI's Responses interface."""

    # https://platform.openai.com/docs/api-reference/responses/create lists the fields.
    fields: ClassVar[Collection[str]] = [
        "model",
        "input",
        "instructions",
        "include",
        "max_output_tokens",
        "temperature",
        "top_p",
        "text",
        "reasoning",
        "store",
        "stream",
        "metadata",
        "top_logprobs",
        "tools",
        "tool_choice",
        "truncation",
        "previous_response_id",
    ]

    def check(self, path: str, body: Mapping[str, Any]) -> None:
        """The rules of the interface."""
        self.check_fields(body)
        if not body.get("input"):
            raise _openai(400, "Missing required parameter: 'input'.", param="input")
        # The same page: the least value of max_output_tokens is 16.
        if body.get("max_output_tokens", 16) < 16:
            message = "Invalid 'max_output_tokens': integer below minimum value. Expected >= 16."
            raise _openai(400, message, param="max_output_tokens")
        for message in body["input"]:
            parts = message["content"] if isinstance(message["content"], list) else []
            for part in parts:
                # The same page: the types of parts differ from those of chats.
                if part["type"] not in ("input_text", "input_image", "output_text"):
                    raise _openai(400, f"Invalid value: '{part['type']}'.", param="input")
        self.check_prompt(json.dumps(body["input"]))

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Items of output, and what they used."""
        prompt = _text_of(body["input"][-1]["content"])
        text, used, is_cut = self.cut(self.new_text(prompt), body.get("max_output_tokens"))
        output: list[dict[str, Any]] = []
        if self.thinks:
            summary = [{"type": "summary_text", "text": "let me think"}]
            output.append({"type": "reasoning", "summary": summary})
        if text:
            part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
            if "message.output_text.logprobs" in body.get("include", ()) and self.logprobs:
                part["logprobs"] = [{"token": word, "logprob": -0.5} for word in text.split()]
            output.append({"type": "message", "role": "assistant", "content": [part]})
        return {
            "object": "response",
            "status": "incomplete" if is_cut else "completed",
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            "output": output,
            "usage": {
                "input_tokens": len(prompt.split()),
                "input_tokens_details": {"cached_tokens": self.cached},
                "output_tokens": used,
                "output_tokens_details": {"reasoning_tokens": min(self.thinks, used)},
            },
        }


class FakeAnthropic(FakeServer):
    """Anthropic's Messages interface."""

    # https://platform.claude.com/docs/en/api/messages/create lists the fields.
    fields: ClassVar[Collection[str]] = [
        "model",
        "max_tokens",
        "messages",
        "system",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "thinking",
        "output_config",
        "metadata",
        "stream",
        "tools",
        "tool_choice",
        "service_tier",
    ]
    is_versioned = False

    def error(self, refusal: Refusal) -> dict[str, Any]:
        """An error with a type."""
        return {"type": "error", "error": refusal.error}

    def authorize(self, headers: Mapping[str, str]) -> None:
        """A key goes into the header x-api-key, and a version into anthropic-version."""
        # https://platform.claude.com/docs/en/api/errors: 401 authentication_error.
        if self.key is not None and headers.get("x-api-key") != self.key:
            raise Refusal(401, type="authentication_error", message="invalid x-api-key")
        # https://platform.claude.com/docs/en/api/versioning: the header is required.
        if "anthropic-version" not in headers:
            raise _anthropic("anthropic-version: header is required")

    def overload(self) -> Refusal:
        """The interface is overloaded."""
        # https://platform.claude.com/docs/en/api/errors: 529 overloaded_error.
        return Refusal(529, type="overloaded_error", message="Overloaded")

    def check(self, path: str, body: Mapping[str, Any]) -> None:
        """The rules of the interface."""
        # https://platform.claude.com/docs/en/api/errors: 404 not_found_error.
        if path != "/v1/messages" or body.get("model") != self.model:
            raise Refusal(404, type="not_found_error", message=f"model: {body.get('model')}")
        # https://platform.claude.com/docs/en/api/messages/create: required fields.
        for name in ("max_tokens", "messages"):
            if name not in body:
                raise _anthropic(f"{name}: Field required")
        for name in body:
            # The same page: fields that it does not list are refused.
            if name not in self.fields:
                raise _anthropic(f"{name}: Extra inputs are not permitted")
            if name in self.refuses:
                raise _anthropic(f"`{name}` is not supported by this model")
        # The same page: the range of temperature is from 0 to 1.
        if not 0 <= body.get("temperature", 1) <= 1:
            raise _anthropic("temperature: range: 0..1")
        # https://platform.claude.com/docs/en/build-with-claude/extended-thinking: with thinking,
        # temperature cannot be changed.
        thinking = body.get("thinking", {"type": "disabled"})["type"]
        if thinking != "disabled" and body.get("temperature", 1) != 1:
            raise _anthropic("`temperature` may only be set to 1 when thinking is enabled")
        for message in body["messages"]:
            # The same page as the fields: a system message is a field of its own.
            if message["role"] not in ("user", "assistant"):
                raise _anthropic(f"messages: Unexpected role {message['role']!r}")
            parts = message["content"] if isinstance(message["content"], list) else []
            for part in parts:
                if part["type"] not in ("text", "image", "document"):
                    raise _anthropic(f"messages: Input tag {part['type']!r} is not known")

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Blocks of content, and what they used."""
        prompt = _text_of(body["messages"][-1]["content"])
        # https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons: refusal.
        if FORBIDDEN in prompt:
            return {"content": [], "stop_reason": "refusal", "usage": {"input_tokens": 5}}
        text, used, is_cut = self.cut(self.new_text(prompt), body["max_tokens"])
        content: list[dict[str, Any]] = []
        if self.thinks:
            content.append({"type": "thinking", "thinking": "let me think", "signature": "s"})
        if text:
            content.append({"type": "text", "text": text})
        return {
            "type": "message",
            "role": "assistant",
            "content": content,
            "stop_reason": "max_tokens" if is_cut else "end_turn",
            # https://platform.claude.com/docs/en/build-with-claude/prompt-caching: input_tokens
            # are those that no cache has read or written.
            "usage": {
                "input_tokens": len(prompt.split()) - self.cached,
                "cache_read_input_tokens": self.cached,
                "cache_creation_input_tokens": 0,
                "output_tokens": used,
            },
        }


class FakeGemini(FakeServer):
    """Google's Gemini interface."""

    # https://ai.google.dev/api/generate-content lists the fields.
    fields: ClassVar[Collection[str]] = [
        "contents",
        "systemInstruction",
        "generationConfig",
        "safetySettings",
        "tools",
        "toolConfig",
        "cachedContent",
    ]
    config: ClassVar[Collection[str]] = [
        "temperature",
        "topP",
        "topK",
        "maxOutputTokens",
        "stopSequences",
        "seed",
        "candidateCount",
        "responseLogprobs",
        "logprobs",
        "thinkingConfig",
        "responseMimeType",
        "responseSchema",
        "responseJsonSchema",
        "presencePenalty",
        "frequencyPenalty",
    ]
    is_versioned = False

    def authorize(self, headers: Mapping[str, str]) -> None:
        """A key goes into the header x-goog-api-key."""
        # https://ai.google.dev/gemini-api/docs/troubleshooting: a wrong key is status 400.
        if self.key is not None and headers.get("x-goog-api-key") != self.key:
            raise _gemini(
                400,
                "INVALID_ARGUMENT",
                "API key not valid. Please pass a valid API key.",
                details=[{"reason": "API_KEY_INVALID"}],
            )

    def overload(self) -> Refusal:
        """Too many requests; the pause is among the details."""
        # https://ai.google.dev/gemini-api/docs/rate-limits: 429 RESOURCE_EXHAUSTED.
        message = "You exceeded your current quota, please check your plan."
        return _gemini(429, "RESOURCE_EXHAUSTED", message, details=[{"retryDelay": "0.05s"}])

    def check(self, path: str, body: Mapping[str, Any]) -> None:
        """The rules of the interface."""
        # https://ai.google.dev/gemini-api/docs/troubleshooting: 404 NOT_FOUND.
        if path != f"/v1beta/models/{self.model}:generateContent":
            raise _gemini(404, "NOT_FOUND", f"{path} is not found for API version v1beta.")
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
        # The same page: from 1 to 8 candidates, at most 5 stop sequences.
        if not 1 <= config.get("candidateCount", 1) <= 8:
            raise _gemini(400, "INVALID_ARGUMENT", "candidateCount must be from 1 to 8.")
        if len(config.get("stopSequences", ())) > 5:
            raise _gemini(400, "INVALID_ARGUMENT", "stopSequences must be at most 5.")
        for content in body.get("contents", ()):
            # The same page: the roles are user and model.
            if content["role"] not in ("user", "model"):
                message = "Please use a valid role: user, model."
                raise _gemini(400, "INVALID_ARGUMENT", message)

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Candidates, and what they used."""
        prompt = _text_of(body["contents"][-1]["parts"])
        used = {"promptTokenCount": len(prompt.split()), "cachedContentTokenCount": self.cached}
        # https://ai.google.dev/gemini-api/docs/safety-settings: a blocked prompt has no candidates.
        if FORBIDDEN in prompt:
            return {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": used}
        config = body.get("generationConfig", {})
        candidates = []
        total = 0
        for index in range(config.get("candidateCount", 1)):
            text, tokens, is_cut = self.cut(self.new_text(prompt), config.get("maxOutputTokens"))
            total += tokens
            parts = [{"text": "let me think", "thought": True}] if self.thinks else []
            candidate: dict[str, Any] = {
                "index": index,
                "content": {
                    "role": "model",
                    "parts": [*parts, *([{"text": text}] if text else [])],
                },
                "finishReason": "MAX_TOKENS" if is_cut else "STOP",
            }
            if config.get("responseLogprobs"):
                chosen = [{"token": word, "logProbability": -0.5} for word in text.split()]
                candidate["logprobsResult"] = {"chosenCandidates": chosen}
            candidates.append(candidate)
        thoughts = min(self.thinks * len(candidates), total)
        used |= {"candidatesTokenCount": total - thoughts, "thoughtsTokenCount": thoughts}
        return {"candidates": candidates, "usageMetadata": used}


def _openai(
    status: int, message: str, headers: Mapping[str, str] | None = None, **more: Any
) -> Refusal:
    kind = "invalid_request_error"
    return Refusal(status, headers, message=message, type=kind, **more)


def _anthropic(message: str) -> Refusal:
    return Refusal(400, type="invalid_request_error", message=message)


def _gemini(code: int, status: str, message: str, **more: Any) -> Refusal:
    refusal = Refusal(code, message=message, **more)
    refusal.error |= {"code": code, "status": status}
    return refusal


def _text_of(content: Any) -> str:
    """The text of the content of a message."""
    if isinstance(content, str):
        return content
    return " ".join(part["text"] for part in content if "text" in part)


def _handler(fake: FakeServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:  # the name that http.server calls
            length = int(self.headers.get("content-length", 0))
            body = json.loads(self.rfile.read(length) or b"{}")
            headers = {name.lower(): value for name, value in self.headers.items()}
            path = self.path.partition("?")[0]
            status, answer, more = fake.respond(path, body, headers)
            content = json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {**more, "content-type": "application/json"}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing: `received` has the requests."""

    return Handler
