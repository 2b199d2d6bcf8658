"""Any OpenAI-compatible endpoint as a generator."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from ...core.errors import GeneratorError, UsageError
from ..http.endpoint import Endpoint, status
from ..http.web import REFUSED
from ..protocols import Draft, Problem
from .completions import drafts, seed_of


class OpenaiGenerator:
    """Requests candidates from a model, with one request per call.

    The environment variable OPENAI_API_KEY holds the key; your own server may need none.

    Args:
        model: the model's name.
        chat: whether the prompt is a user's message; otherwise the model goes on with its text,
            which base models need.
        base_url: such as http://localhost:8000/v1; None is OpenAI.
        temperature: how freely tokens are chosen.
        top_p: the share of the probability that tokens are chosen from; None is the server's own.
        max_tokens: where a candidate is cut; None is the server's own.
        stop: texts that end a candidate.
        seed: makes candidates repeatable, as far as the server does; None does not.
        logprobs: whether to ask for the tokens' log-probabilities.
        batch: how many candidates to ask for in one request at most. Becomes 1 when the server
            turns out to ignore or to refuse more.

    Raises:
        UsageError: a parameter makes no sense, or there is neither a key nor an address.
    """

    def __init__(
        self,
        model: str,
        *,
        chat: bool,
        base_url: str | None = None,
        temperature: float = 0.7,
        top_p: float | None = None,
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
        seed: int | None = None,
        logprobs: bool = True,
        batch: int | None = None,
    ) -> None:
        if not model:
            raise UsageError("which model? as in openai:gpt-4o-mini")
        check_sampling(temperature, top_p, max_tokens, stop, batch)
        self.model, self.chat = model, chat
        self.temperature, self.top_p, self.max_tokens = temperature, top_p, max_tokens
        self.stop, self.seed, self.logprobs = tuple(stop), seed, logprobs
        self.batch = batch
        self._endpoint = Endpoint(base_url, backend=f"openai:{model}", error=GeneratorError)

    def __repr__(self) -> str:
        """Everything that decides what the candidates are, and no secret."""
        return (
            f"OpenaiGenerator({self.model!r}, chat={self.chat}, base_url={self._endpoint.shown!r}, "
            f"temperature={self.temperature}, top_p={self.top_p}, max_tokens={self.max_tokens}, "
            f"stop={self.stop}, seed={self.seed}, logprobs={self.logprobs})"
        )

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
        body: dict[str, Any] = {"model": self.model, "temperature": self.temperature}
        if self.chat:
            body["messages"] = [{"role": "user", "content": problem.prompt}]
        else:
            body["prompt"] = problem.prompt
        if n > 1:
            body["n"] = n
        if self.logprobs:  # with top_logprobs 0, llama.cpp sends none at all
            body |= {"logprobs": True, "top_logprobs": 1} if self.chat else {"logprobs": 1}
        if self.top_p is not None:
            body["top_p"] = self.top_p
        if self.max_tokens is not None:
            body |= self._endpoint.cut(self.max_tokens, chat=self.chat)
        if self.stop:
            body["stop"] = list(self.stop)
        if self.seed is not None:
            body["seed"] = seed_of(self.seed, problem.id, first)
        return body


def check_sampling(
    temperature: float,
    top_p: float | None,
    max_tokens: int | None,
    stop: Sequence[str],
    batch: int | None,
) -> None:
    """Raise a `UsageError` where a parameter of generation makes no sense."""
    if not (math.isfinite(temperature) and temperature >= 0):
        raise UsageError(f"temperature must be 0 or more, not {temperature}")
    if top_p is not None and not 0 < top_p <= 1:
        raise UsageError(f"top_p must be above 0 and at most 1, not {top_p}")
    if max_tokens is not None and max_tokens < 1:
        raise UsageError(f"max_tokens must be at least 1, not {max_tokens}")
    if isinstance(stop, str) or not all(isinstance(each, str) and each for each in stop):
        raise UsageError(f"stop must be a list of texts, none of them empty, not {stop!r}")
    if batch is not None and batch < 1:
        raise UsageError(f"batch must be at least 1, not {batch}")
