"""A reward model behind HTTP, as vLLM serves it: `/score`, `/classify` or `/pooling`.

Which of the three a model has depends on the model and on the server's version, so the user names
it. `/score` is given prompts and candidates as pairs. `/classify` and `/pooling` are given
conversations, one a request, or plain texts, all of them at once. `/pooling` gives one number a
step, or several numbers of which one counts.
"""

from __future__ import annotations

import asyncio
import functools
import json
import math
import os
import re
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...core.errors import ScorerError, UsageError
from ...files import parse_json
from ..http.secrets import Secrets
from ..http.web import REFUSED, address, brief, complaint, seconds_to_wait, shown
from ..protocols import Draft, Problem, Score, Usage, scored

if TYPE_CHECKING:
    import httpx2

ENDPOINTS = ("score", "classify", "pooling")
HOW: Mapping[str, Callable[[Sequence[float]], float]] = MappingProxyType(
    {
        "last": lambda steps: steps[-1],
        "min": min,
        "mean": lambda steps: math.fsum(steps) / len(steps),
        "product": math.prod,
    }
)
KEY = "REWARD_API_KEY"
_SECONDS = 3600.0  # the runtime gives up long before
_STEPS = re.compile(r"\n\s*\n")


class RewardScorer:
    """Asks a reward model.

    A key, where the server wants one, is taken from REWARD_API_KEY.

    Args:
        url: the server, such as http://localhost:8000, with or without the endpoint's own path.
        endpoint: score, classify or pooling.
        how: what the score of several steps is: the last, the min, the mean or the product.
        model: the model's name, where the server has several.
        chat: whether the prompt and the candidate are two messages, for the server to put into the
            model's own format; otherwise the candidate goes on with the prompt's text. Not for
            `/score`.
        step: what the model reads its rewards at, put after each paragraph of the candidate:
            "<extra_0>" for Qwen2.5-Math-PRM. Empty leaves candidates as they are.
        column: which number counts where there are several: of two classes, the second.
        extra: more of the request, such as {"use_activation": False}.
    """

    def __init__(
        self,
        url: str,
        *,
        endpoint: str,
        how: str = "last",
        model: str | None = None,
        chat: bool = True,
        step: str = "",
        column: int = -1,
        extra: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        try:
            import httpx2
        except ImportError as exc:
            raise UsageError("a reward model needs httpx2: pip install 'grv[http]'") from exc
        if endpoint not in ENDPOINTS:
            raise UsageError(f"the endpoint must be {', '.join(ENDPOINTS)}, not {endpoint!r}")
        if how not in HOW:
            raise UsageError(f"how must be one of {', '.join(HOW)}, not {how!r}")
        self._httpx2 = httpx2
        base = address(url)
        self.url = base if base.endswith(f"/{endpoint}") else f"{base}/{endpoint}"
        self.endpoint, self.how, self.model = endpoint, how, model
        self.chat, self.step, self.column = chat, step, column
        self.extra = MappingProxyType(dict(extra))
        self.backend = f"{endpoint}:{shown(base)}"
        # Connections belong to the loop that opened them.
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient] = (
            weakref.WeakKeyDictionary()
        )

    def __repr__(self) -> str:
        return (
            f"RewardScorer({shown(self.url)!r}, endpoint={self.endpoint!r}, how={self.how!r}, "
            f"model={self.model!r}, chat={self.chat}, step={self.step!r}, column={self.column})"
        )

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """One score a draft.

        Raises:
            ScorerError: the server cannot be asked, or its answer cannot be read.
        """
        if self.chat and self.endpoint != "score":
            return [each for draft in drafts for each in await self._ask(problem, [draft])]
        return await self._ask(problem, drafts) if drafts else []

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def _ask(self, problem: Problem, drafts: Sequence[Draft]) -> list[Score]:
        started = time.monotonic()
        response = await self._post(problem, self._body(problem, drafts))
        if response.status_code in REFUSED:  # one of them is too long, perhaps
            if len(drafts) > 1:
                return [each for draft in drafts for each in await self._ask(problem, [draft])]
            return [Score(None, reason=self._said(response))]
        if response.status_code != 200:
            wait = seconds_to_wait(response.headers)
            raise self._error(self._said(response), problem, wait)
        try:
            answer = self._secrets().hide_all(parse_json(response.content))
        except ValueError:
            raise self._error(f"not JSON: {response.text}", problem) from None
        match answer:
            case {"data": [*items]} if items:
                pass
            case _:
                raise self._error(f"an answer without data: {response.text}", problem)
        used = Usage(_tokens(answer), 0, time.monotonic() - started)
        found = _indexed(items)
        return [self._score(found.get(at), Usage() if at else used) for at in range(len(drafts))]

    async def _post(self, problem: Problem, body: Mapping[str, Any]) -> httpx2.Response:
        try:
            content = json.dumps(body).encode()
            return await self._client().post(self.url, content=content)
        except foreign_errors() as exc:
            message = f"{type(exc).__name__} {exc}".rstrip()
            leaks = self._secrets().is_in(f"{exc!r} {exc.__cause__!r}")
            raise self._error(message, problem) from (None if leaks else exc)

    def _client(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            headers = {"content-type": "application/json"}
            if key := os.environ.get(KEY):
                headers["authorization"] = f"Bearer {key}"
            self._clients[loop] = self._httpx2.AsyncClient(
                headers=headers,
                timeout=self._httpx2.Timeout(_SECONDS, connect=60.0),
                limits=self._httpx2.Limits(max_connections=None),
            )
        return self._clients[loop]

    def _body(self, problem: Problem, drafts: Sequence[Draft]) -> dict[str, Any]:
        body: dict[str, Any] = {} if self.model is None else {"model": self.model}
        texts = [self._marked(draft.text) for draft in drafts]
        if self.endpoint == "score":
            body |= {"text_1": problem.prompt, "text_2": texts}
        elif self.chat:
            body["messages"] = [
                {"role": "user", "content": problem.prompt},
                {"role": "assistant", "content": texts[0]},
            ]
        else:
            body["input"] = [problem.prompt + text for text in texts]
        return body | dict(self.extra)

    def _marked(self, text: str) -> str:
        if not self.step:
            return text
        steps = [step.strip() for step in _STEPS.split(text.strip())]
        return "".join(f"{step}{self.step}" for step in steps)

    def _score(self, item: Mapping[str, Any] | None, used: Usage) -> Score:
        match self.endpoint, item:
            case "score", {"score": value}:
                return scored(value, used)
            case "classify", {"probs": [*numbers]}:
                return scored(self._picked(numbers), used)
            case "pooling", {"data": [*steps]} if steps:
                numbers = [scored(self._picked(step)).value for step in steps]
                known = [number for number in numbers if number is not None]
                if len(known) < len(steps):
                    return Score(None, used, "the reward of a step is not a number")
                return scored(HOW[self.how](known), used)
            case _:
                return Score(None, used, f"no score in the answer: {item!r}"[:120])

    def _picked(self, numbers: object) -> object:
        """The number that counts, of one or of several."""
        if not isinstance(numbers, list):
            return numbers
        try:
            return numbers[self.column]
        except IndexError:
            return None

    def _said(self, response: httpx2.Response) -> str:
        said = complaint(response.text)
        return brief(f"status {response.status_code}: {said}", self._secrets())

    def _secrets(self) -> Secrets:
        """Of the address, and the key as it is now."""
        return _known(self.url, os.environ.get(KEY))

    def _error(
        self, message: str, problem: Problem, retry_after: float | None = None
    ) -> ScorerError:
        return ScorerError(
            brief(message, self._secrets()),
            backend=self.backend,
            problem_id=problem.id,
            retry_after=retry_after,
        )


@functools.lru_cache(maxsize=16)
def _known(url: str, key: str | None) -> Secrets:
    return Secrets.of(url, key)


def foreign_errors() -> tuple[type[Exception], ...]:
    """Every kind of exception that httpx2 raises."""
    import httpx2

    return (httpx2.HTTPError, httpx2.InvalidURL, httpx2.CookieConflict, httpx2.StreamError)


def _indexed(items: Sequence[object]) -> dict[int, Mapping[str, Any]]:
    """The items by their index, or by their place where they have none."""
    records = [item if isinstance(item, Mapping) else {} for item in items]
    places = [record.get("index", at) for at, record in enumerate(records)]
    return {at: record for at, record in zip(places, records, strict=True) if isinstance(at, int)}


def _tokens(answer: Mapping[str, Any]) -> int:
    match answer:
        case {"usage": {"prompt_tokens": int(count)}} if count < 2**53:
            return max(0, count)
        case _:
            return 0
