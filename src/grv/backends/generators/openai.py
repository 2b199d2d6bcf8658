"""Any OpenAI-compatible endpoint as a generator."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...core.errors import GeneratorError, UsageError
from ...options import from_arguments
from ..http.endpoint import Endpoint, status
from ..http.web import REFUSED
from ..protocols import Draft, Problem
from .chat import keys_in, messages_of
from .completions import drafts, seed_of
from .sampling import Sampling, check_batch


@dataclass
class _Learned:
    """What generators with the same connections have learned about their server."""

    batch: int | None


class OpenaiGenerator:
    """Requests candidates from a model, with one request per call.

    The environment variable OPENAI_API_KEY holds the key; your own server may need none.

    Args:
        model: the model's name.
        chat: whether the prompt is a user's message; otherwise the model goes on with its text,
            which base models need.
        base_url: such as http://localhost:8000/v1; None is OpenAI.
        sampling: temperature, seed and so on. Without a seed, candidates differ from run to run.
        logprobs: whether to ask for the tokens' log-probabilities.
        batch: how many candidates to ask for in one request at most. Becomes 1 when the server
            turns out to ignore or to refuse more.
        options: the fields of `Sampling`, instead of `sampling`.

    Raises:
        UsageError: a parameter makes no sense, or there is neither a key nor an address.
    """

    def __init__(
        self,
        model: str,
        *,
        chat: bool = True,
        base_url: str | None = None,
        sampling: Sampling | None = None,
        logprobs: bool = True,
        batch: int | None = None,
        **options: Any,
    ) -> None:
        if not model:
            raise UsageError("which model? as in openai:gpt-4o-mini")
        check_batch(batch)
        if sampling is None:
            options = {"seed": None, **options}
        self.sampling = from_arguments(Sampling, sampling, options)
        self.model, self.chat, self.logprobs = model, chat, logprobs
        self._learned = _Learned(batch)
        if self.sampling.system and not chat:
            raise UsageError(
                f"--system needs a chat model: openai:{model}, not openai-text:{model}"
            )
        self._endpoint = Endpoint(
            base_url,
            backend=f"openai:{model}",
            error=GeneratorError,
            hidden=keys_in(self.sampling.extra_body),
        )

    def __repr__(self) -> str:
        """Everything that decides what the candidates are, and no secret."""
        return (
            f"OpenaiGenerator({self.model!r}, chat={self.chat}, base_url={self._endpoint.shown!r}, "
            f"{self.sampling}, logprobs={self.logprobs})"
        )

    @property
    def batch(self) -> int | None:
        """How many candidates one request asks for at most."""
        return self._learned.batch

    @batch.setter
    def batch(self, batch: int | None) -> None:
        self._learned.batch = batch

    def sampled(self, sampling: Sampling) -> OpenaiGenerator:
        """The same model and connections, with another sampling."""
        made = copy.copy(self)
        made.sampling = sampling
        return made

    async def generate(self, problem: Problem, n: int, *, first: int = 0) -> Sequence[Draft]:
        """Up to `n` drafts, with one request; a GeneratorError if there is no readable answer."""
        if n < 1:
            raise UsageError(f"n must be at least 1, not {n}")
        asked = min(n, self.batch or n)
        try:
            made = await self._ask(problem, asked, first)
        except GeneratorError as error:
            if asked == 1 or status(error) not in REFUSED:
                raise
            made, asked = await self._ask(problem, 1, first), 1
            self.batch = 1  # the server refuses `n`
        if len(made) == 1 < asked:
            self.batch = 1
        return made

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def _ask(self, problem: Problem, n: int, first: int) -> list[Draft]:
        started = time.monotonic()
        path = "/chat/completions" if self.chat else "/completions"
        answer = await self._endpoint.ask(path, self._body(problem, n, first), problem.id)
        try:
            return drafts(answer, time.monotonic() - started)[:n]
        except ValueError as exc:
            raise self._endpoint.failure(str(exc), problem.id) from exc

    def _body(self, problem: Problem, n: int, first: int) -> dict[str, Any]:
        sampling = self.sampling
        body: dict[str, Any] = {"model": self.model, **sampling.request()}
        if self.chat:
            body["messages"] = messages_of(problem, sampling.system)
        else:
            body["prompt"] = problem.prompt
        if n > 1:
            body["n"] = n
        if self.logprobs:  # with top_logprobs 0, llama.cpp sends none at all
            body |= {"logprobs": True, "top_logprobs": 1} if self.chat else {"logprobs": 1}
        if sampling.max_tokens is not None:
            body |= self._endpoint.cut(sampling.max_tokens, chat=self.chat)
        if sampling.seed is not None:
            body["seed"] = seed_of(sampling.seed, problem.id, first)
        return body
