"""Any OpenAI-compatible endpoint as a generator: chats, and plain completions."""

from __future__ import annotations

from typing import Any

from ..http.service import OPENAI
from .completions import first_token, reduced, texts, usage
from .dialect import KEY_INSIDE as KEY_INSIDE
from .dialect import Dialect, DialectGenerator, Request
from .sampling import Sampling

NAMES = {
    "logprobs": ("logprobs", "top_logprobs"),
    "n": (
        "n",
        "n_cmpl",
        "best_of",
        "multiple choices",
        "multiple completions",
        "multiple outputs",
        "multiple candidates",
        "number of completions",
        "number of choices",
    ),
    "seed": ("seed",),
    "stop": ("stop",),
    "temperature": ("temperature",),
    "top_p": ("top_p",),
}


def _common(request: Request) -> dict[str, Any]:
    """The fields that chats and completions share."""
    body: dict[str, Any] = {"model": request.model}
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if request.stop:
        body["stop"] = list(request.stop)
    if request.response_format is not None:
        body["response_format"] = dict(request.response_format)
    if request.n > 1:
        body["n"] = request.n
    if request.max_tokens is not None:
        body[request.limit_name] = request.max_tokens
    if request.seed is not None:
        body["seed"] = request.seed
    return body


def chat_body(request: Request) -> dict[str, Any]:
    """The body of a chat."""
    body = _common(request) | {"messages": list(request.messages)}
    if request.logprobs:  # with top_logprobs 0, llama.cpp sends none at all
        body |= {"logprobs": True, "top_logprobs": request.tops}
    if request.effort is not None:
        body["reasoning_effort"] = request.effort
    return body


def text_body(request: Request) -> dict[str, Any]:
    """The body of a plain completion."""
    body = _common(request) | {"prompt": request.prompt}
    if request.logprobs:
        body["logprobs"] = 1
    return body


CHAT = Dialect(
    name="openai",
    service=OPENAI,
    path="/chat/completions",
    body=chat_body,
    texts=texts,
    usage=usage,
    names=NAMES,
    likely=first_token,
    reduced=reduced,
    tools=True,
)
TEXT = Dialect(
    name="openai-text",
    service=OPENAI,
    path="/completions",
    body=text_body,
    texts=texts,
    usage=usage,
    names=NAMES,
    chat=False,
    reduced=reduced,
)


class OpenaiGenerator(DialectGenerator):
    """Requests candidates from an OpenAI-compatible endpoint, with one request per call.

    Choose it for OpenAI, and for every server with the same interface, such as vLLM, llama.cpp or
    Ollama. The environment variable OPENAI_API_KEY holds the key; your own server may need none.

    Args:
        model: the model's name.
        chat: whether the prompt is a user's message; otherwise the model goes on with its text,
            which base models need.
        base_url: such as http://localhost:8000/v1; None is OpenAI.
        sampling: temperature, seed and so on. Without a seed, candidates differ from run to run.
        logprobs: whether to ask for the tokens' log-probabilities.
        batch: how many candidates to ask for in one request at most.
        options: the fields of `Sampling`, instead of `sampling`.

    Raises:
        UsageError: a parameter makes no sense, or there is neither a key nor an address.

    Examples:
        >>> import grv
        >>> model = grv.generators.OpenAI(
        ...     "gpt-oss-20b", base_url="http://localhost:8000/v1", temperature=0.8
        ... )
        >>> model.sampling.temperature
        0.8
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
        super().__init__(
            CHAT if chat else TEXT,
            model,
            base_url=base_url,
            sampling=sampling,
            logprobs=logprobs,
            batch=batch,
            **options,
        )
        self.chat = chat

    def __repr__(self) -> str:
        """Everything that decides what the candidates are, and no secret."""
        return (
            f"OpenaiGenerator({self.model!r}, chat={self.chat}, base_url={self._endpoint.shown!r}, "
            f"{self.sampling}, logprobs={self.logprobs})"
        )
