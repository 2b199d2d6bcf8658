"""Servers on loopback for tests of backends: one with a real model, and one that fails as scripted.

`FaultyServer` implements the part of OpenAI's and vLLM's formats that the backends use, and records
its requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

_WORDS = ("so", "it", "is", "seven", "then", "add", "two", "and", "carry", "one")


@dataclass(frozen=True, slots=True)
class Status:
    """An error response, optionally with a Retry-After header."""

    code: int
    retry_after: str | None = None
    message: str = "not now"


@dataclass(frozen=True, slots=True)
class Hang:
    """No response at all."""


@dataclass(frozen=True, slots=True)
class Drop:
    """The server closes the connection, before the response or in the middle of it."""

    midway: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """A correct response without its second half."""


@dataclass(frozen=True, slots=True)
class Say:
    """A given body, with status 200."""

    body: str = "<html>not JSON</html>"


@dataclass(frozen=True, slots=True)
class Fewer:
    """At most `n` choices."""

    n: int = 1


@dataclass(frozen=True, slots=True)
class Empty:
    """Empty texts without log-probabilities, as llama.cpp returns them."""


@dataclass(frozen=True, slots=True)
class Null:
    """`content: null`, as reasoning models return it when their tokens are used up."""


@dataclass(frozen=True, slots=True)
class NoLogprobs:
    """Texts without log-probabilities, although they were requested."""


@dataclass(frozen=True, slots=True)
class NotNumbers:
    """NaN in the place of every number."""


Fault = Status | Hang | Drop | Cut | Say | Fewer | Empty | Null | NoLogprobs | NotNumbers


@dataclass(frozen=True)
class Tariff:
    """What a server charges, in dollars per million tokens, and how it counts.

    Every second prompt of a kind is in a cache, but for its first word. A candidate thinks for
    `thinking` tokens per word that it says. The server says what it charged if `says_cost`.
    """

    prompt: float = 3.0
    cached: float = 0.3
    completion: float = 15.0
    reasoning: float = 20.0
    thinking: int = 2
    says_cost: bool = True

    def usage(self, prompt: int, completion: int, *, is_cached: bool) -> dict[str, Any]:
        """The field `usage` of a response."""
        cached = prompt - 1 if is_cached and prompt else 0
        reasoning = self.thinking * completion
        dollars = (prompt - cached) * self.prompt + cached * self.cached
        dollars += completion * self.completion + reasoning * self.reasoning
        counted: dict[str, Any] = {
            "prompt_tokens": prompt,
            "completion_tokens": completion + reasoning,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        }
        return {**counted, "cost": dollars / 1e6}


@dataclass(frozen=True)
class Received:
    """A request that the server received."""

    path: str
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(repr=False)

    @property
    def prompt(self) -> str:
        """The prompt of a completion, or the first message of a chat."""
        match self.body:
            case {"messages": [{"content": str(content)}, *_]}:
                return content
            case _:
                return str(self.body.get("prompt", ""))


class FaultyServer:
    """A server that fails as scripted: `with FaultyServer([Status(429), Hang()]) as server`.

    `received` has all requests, `in_flight` is the number of requests without a response, and
    `busiest` the highest number at any time.

    Args:
        script: the fault of each request in turn, None for no fault; after its end there are no
            faults. Or a function that returns the fault of a request.
        text: returns the text of a candidate, given a request and the candidate's seed. By default
            the text depends on prompt and seed only.
        most: the highest number of choices per request; more are refused with status 400.
        ignores_n: whether the server always returns one choice.
        seconds: how long a response takes; may be changed while it runs.
        port: the port to listen on; 0 chooses a free one.
        tariff: what completions cost. `charged` is what arrived, `charged_in_vain` what a fault has
            kept from arriving.
    """

    def __init__(
        self,
        script: Iterable[Fault | None] | Callable[[Received], Fault | None] = (),
        *,
        text: Callable[[Received, int], str] | None = None,
        most: int | None = None,
        ignores_n: bool = False,
        seconds: float = 0.0,
        port: int = 0,
        tariff: Tariff | None = None,
    ) -> None:
        self._tariff = tariff
        self.charged = 0.0
        self.charged_in_vain = 0.0
        if callable(script):
            self._fault = script
        else:
            faults = iter(script)
            self._fault = lambda _: next(faults, None)
        self._text = text or _text
        self._most, self._ignores_n, self.seconds = most, ignores_n, seconds
        self.received: list[Received] = []
        self.in_flight = self.busiest = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._port = port

    @property
    def root(self) -> str:
        """The address without a path, as for reward models."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def url(self) -> str:
        """The address for OpenAI's clients."""
        return f"{self.root}/v1"

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join()

    def _run(self, ready: threading.Event) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._serve(ready))

    async def _serve(self, ready: threading.Event) -> None:
        self._ending = asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", self._port, backlog=1024)
        self._port = server.sockets[0].getsockname()[1]
        ready.set()
        await self._ending.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._talk(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while (received := await _request(reader)) and await self._reply(received, writer):
                    pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _reply(self, received: Received, writer: asyncio.StreamWriter) -> bool:
        """Answer a request; False if the connection must be closed."""
        self.received.append(received)
        self.in_flight += 1
        self.busiest = max(self.busiest, self.in_flight)
        try:
            return await self._say(received, self._fault(received), writer)
        finally:
            self.in_flight -= 1

    async def _say(
        self, received: Received, fault: Fault | None, writer: asyncio.StreamWriter
    ) -> bool:
        if self.seconds:
            await asyncio.sleep(self.seconds)
        headers = ""
        match fault:
            case Hang():
                await asyncio.Event().wait()
            case Drop(midway=False):
                return False
            case Status(code, retry_after, message):
                status, body = code, json.dumps({"error": {"message": message, "code": code}})
                headers = "" if retry_after is None else f"Retry-After: {retry_after}\r\n"
            case Say(body):
                status = 200
            case _:
                status, answer = self._answer(received, fault)
                body = json.dumps(answer)
        content = body.encode()
        if isinstance(fault, Cut):
            content = content[: len(content) // 2]
        head = (
            f"HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\n{headers}"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        if isinstance(fault, Drop):
            content = content[: len(content) // 2]
        writer.write(head.encode() + content)
        await writer.drain()
        return not isinstance(fault, Drop)

    def _answer(self, received: Received, fault: Fault | None) -> tuple[int, dict[str, Any]]:
        number = float("nan") if isinstance(fault, NotNumbers) else None
        match received.path.partition("?")[0].rsplit("/", 1)[-1]:
            case "completions":
                asked = received.body.get("n", 1)
                if self._most is not None and asked > self._most:
                    return 400, {"error": {"message": f"n must be at most {self._most}"}}
                return 200, self._completions(received, 1 if self._ignores_n else asked, fault)
            case "score" | "classify" | "pooling" as kind:
                body = received.body
                texts = body.get("text_2") or body.get("input") or [body["messages"][-1]["content"]]
                if isinstance(fault, Fewer):
                    texts = texts[: fault.n]
                data = [_rewarded(kind, at, text, number) for at, text in enumerate(texts)]
                words = sum(len(text.split()) for text in texts)
                return 200, {"data": data, "usage": {"prompt_tokens": words}}
            case _:
                return 404, {"error": {"message": f"nothing at {received.path}"}}

    def _completions(self, received: Received, n: int, fault: Fault | None) -> dict[str, Any]:
        if isinstance(fault, Fewer):
            n = min(n, fault.n)
        body, chat = received.body, "/chat/completions" in received.path
        choices, tokens = [], 0
        for at in range(n):
            text = (
                "" if isinstance(fault, Empty) else self._text(received, body.get("seed", 0) + at)
            )
            words = text.split()[: body.get("max_tokens")]
            choice: dict[str, Any] = {"index": at, "finish_reason": "stop", "logprobs": None}
            content = None if isinstance(fault, Null) else text
            choice |= (
                {"message": {"role": "assistant", "content": content}} if chat else {"text": text}
            )
            if body.get("logprobs") and words and not isinstance(fault, NoLogprobs):
                values = [
                    float("nan") if isinstance(fault, NotNumbers) else -_unit(text, word)
                    for word in words
                ]
                choice["logprobs"] = (
                    _chat_logprobs(words, values)
                    if chat
                    else {
                        "tokens": words,
                        "token_logprobs": values,
                        "top_logprobs": [
                            {word: value} for word, value in zip(words, values, strict=True)
                        ],
                    }
                )
            choices.append(choice)
            tokens += len(words)
        prompt = len(received.prompt.split())
        usage: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": tokens}
        if self._tariff is not None:
            usage = self._tariff.usage(prompt, tokens, is_cached=len(self.received) % 2 == 0)
            if isinstance(fault, Drop | Cut):
                self.charged_in_vain += usage["cost"]
            else:
                self.charged += usage["cost"]
            if not self._tariff.says_cost:
                del usage["cost"]
        return {
            "object": "chat.completion" if chat else "text_completion",
            "model": body.get("model"),
            "choices": choices,
            "usage": usage,
        }


@contextlib.contextmanager
def embedded_server(parallel: int = 4) -> Iterator[str]:
    """The address of an OpenAI-compatible server of the embedded model; needs that extra."""
    from grv.backends.generators.embedded import serve

    server = serve(parallel)
    yield f"{server.listening_address}/v1"
    del server  # which ends it


async def _request(reader: asyncio.StreamReader) -> Received | None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])
    }
    content = await reader.readexactly(int(headers.get("content-length", 0)))
    return Received(head[0].split()[1], json.loads(content or b"{}"), headers)


def _text(received: Received, seed: int) -> str:
    """A few words that depend on prompt and seed only."""
    digest = hashlib.sha256(f"{received.prompt}\n{seed}".encode()).digest()
    return " ".join(_WORDS[byte % len(_WORDS)] for byte in digest[: 2 + digest[-1] % 7])


def _chat_logprobs(words: list[str], values: list[float]) -> dict[str, Any]:
    """Log-probabilities in chat format; for a judge, the first token has Yes and no on top."""
    yes = values[0]
    tops = [{"token": "Yes", "logprob": yes}, {"token": "no", "logprob": -1.0 - yes}]
    pairs = zip(words, values, strict=True)
    return {
        "content": [
            {"token": word, "logprob": value, "top_logprobs": tops if at == 0 else []}
            for at, (word, value) in enumerate(pairs)
        ]
    }


def _rewarded(kind: str, at: int, text: str, number: float | None) -> dict[str, Any]:
    value = _unit(text, "") if number is None else number
    match kind:
        case "score":
            return {"index": at, "score": value}
        case "classify":
            return {"index": at, "label": "LABEL_1", "probs": [1 - value, value]}
        case _:
            return {"index": at, "data": [[0.5, 0.5], [1 - value, value]]}


def _unit(*parts: str) -> float:
    """A number from 0 to 1 that depends on the texts only."""
    digest = hashlib.sha256("\n".join(parts).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
