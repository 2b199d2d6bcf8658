"""A reward model behind HTTP, as vLLM serves it: `/score`, `/classify` or `/pooling`.

The user names the endpoint, because it depends on the model and on the server's version. `/score`
takes pairs of prompt and candidate. `/classify` and `/pooling` take one conversation per request,
or many plain texts at once. `/pooling` returns one number per step, or several; one of them counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...core.errors import ScorerError, UsageError
from ..generators.completions import usage
from ..http.json_client import JsonClient
from ..http.secrets import key_in
from ..http.web import REFUSED, address, shown
from ..protocols import NOTHING, Draft, Problem, Score, Usage, scored
from .reward_options import Reward

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
_NO_STEPS = "there are no steps in an empty candidate"


class RewardScorer:
    """Scores with a reward model on a server. Choose it if you run a model that was made to score.

    The environment variable REWARD_API_KEY holds the key, if the server needs one.

    Args:
        url: the server, such as http://localhost:8000, with or without the endpoint's own path.
        endpoint: score, classify or pooling.
        how: combines the scores of several steps: last, min, mean or product.
        model: the model's name, if the server has several.
        chat: send the prompt and the candidate as two messages, which the server puts into the
            model's format; otherwise as one text. Not for `/score`.
        step: the marker at which the model returns a reward, added after each step of the
            candidate: "<extra_0>" for Qwen2.5-Math-PRM. Empty adds none.
        reward: what the model reads, and what it returns.
        column: the index of the number that counts, if there are several.
        extra: further fields of the request, such as {"priority": 1}.

    Examples:
        >>> import grv
        >>> grv.scorers.Reward("http://localhost:8000", endpoint="classify").url
        'http://localhost:8000/classify'
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
        reward: Reward = Reward(),  # noqa: B008 (a frozen value)
        column: int = -1,
        extra: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        if endpoint not in ENDPOINTS:
            raise UsageError(f"the endpoint must be {', '.join(ENDPOINTS)}, not {endpoint!r}")
        if how not in HOW:
            raise UsageError(f"how must be one of {', '.join(HOW)}, not {how!r}")
        if reward.score_system and (endpoint == "score" or not chat):
            raise UsageError("--score-system needs classify:URL or pooling:URL, with messages")
        base = address(url)
        self.url = base if base.endswith(f"/{endpoint}") else f"{base}/{endpoint}"
        self.endpoint = endpoint
        self.how = how
        self.model = model
        self.chat = chat
        self.step = step
        self.reward = reward
        self.column = column
        self.extra = MappingProxyType(dict(extra))
        backend = f"{endpoint}:{shown(base)}"
        key = key_in(KEY)
        self._client = JsonClient(self.url, key, key_name=KEY, backend=backend, error=ScorerError)

    def __repr__(self) -> str:
        names = ("endpoint", "how", "model", "chat", "step", "column")
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        more = "".join(f", {name}={value!r}" for name, value in self.reward.changed().items())
        return f"RewardScorer({shown(self.url)!r}, {fields}{more})"

    @property
    def server(self) -> str:
        """Whose limits hold for its requests."""
        return f"{self.endpoint} at {self._client.place}"

    async def score(self, problem: Problem, drafts: Sequence[Draft]) -> Sequence[Score]:
        """One score per draft; a ScorerError if there is no readable answer."""
        sent = [draft for draft in drafts if not self.step or self.reward.steps(draft.text)]
        if self.chat and self.endpoint != "score":
            found = [each for draft in sent for each in await self._ask(problem, [draft])]
        else:
            found = await self._ask(problem, sent) if sent else []
        if len(sent) == len(drafts):
            return found
        scores = iter(found)
        return [next(scores) if d in sent else Score(None, reason=_NO_STEPS) for d in drafts]

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        await self._client.aclose()

    async def _ask(self, problem: Problem, drafts: Sequence[Draft]) -> list[Score]:
        started = time.monotonic()
        client = self._client
        reply = await client.post(self._body(problem, drafts), problem.id)
        if reply.status in REFUSED and reply.cause.fault != "stop":  # perhaps one draft is too long
            if len(drafts) > 1:
                return [each for draft in drafts for each in await self._ask(problem, [draft])]
            return [Score(None, reason=client.brief(reply.message))]
        if reply.status != 200:
            raise client.failure(reply.message, problem.id, reply.cause)
        answer = client.data(reply, problem.id)
        match answer:
            case {"data": [*items]} if items:
                pass
            case _:
                raise client.failure(f"an answer without data: {reply.text}", problem.id)
        used = usage(answer, time.monotonic() - started)
        found = _indexed(items)
        return [self._score(found.get(at), NOTHING if at else used) for at in range(len(drafts))]

    def _body(self, problem: Problem, drafts: Sequence[Draft]) -> dict[str, Any]:
        body: dict[str, Any] = {} if self.model is None else {"model": self.model}
        texts = [self._marked(draft.text) for draft in drafts]
        asked = self.reward.asked(problem)
        system = self.reward.score_system
        if self.endpoint == "score":
            body |= {"text_1": asked, "text_2": texts}
        elif self.chat:
            body["messages"] = [
                *([{"role": "system", "content": system}] if system else []),
                *self.reward.messages(problem),
                {"role": "assistant", "content": texts[0]},
            ]
        else:
            body["input"] = [asked + text for text in texts]
        return body | self.reward.request() | dict(self.extra)

    def _marked(self, text: str) -> str:
        if not self.step:
            return text
        return "".join(f"{step}{self.step}" for step in self.reward.steps(text))

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
        """The number that counts."""
        if not isinstance(numbers, list):
            return numbers
        try:
            return numbers[self.column]
        except IndexError:
            return None


def _indexed(items: Sequence[object]) -> dict[int, Mapping[str, Any]]:
    """The items by their index, or by their position if they have none."""
    records = [item if isinstance(item, Mapping) else {} for item in items]
    places = [record.get("index", at) for at, record in enumerate(records)]
    return {at: record for at, record in zip(places, records, strict=True) if isinstance(at, int)}
