"""How servers with OpenAI's interface differ from OpenAI's own, as data for `FakeOpenai`.

    with FakeOpenai(text=lambda prompt, index: "42", like="Ollama") as server:
        ...  # --generator openai:fake --base-url server.url

Each difference names the page that it was made from.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

# What a server may refuse: the key, the model, the prompt, a field of the request, more candidates
# than it makes at once, and any request while it is overloaded.
Refused = Literal["key", "model", "prompt", "field", "n", "load"]


@dataclass(frozen=True)
class Error:
    """An error response: its status, its body and its headers.

    MODEL and FIELD in a message stand for the model and the field of the request.
    """

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Compatible:
    """How a server with OpenAI's interface differs from it.

    Attributes:
        root: where the base URL ends.
        key_headers: the headers that may have the key, with what stands before it; none if the
            server takes every key.
        query: a parameter that the address must have.
        any_model: whether the name of the model makes no difference.
        any_field: whether fields that the server does not know are ignored, not refused.
        ignored: fields of OpenAI's interface that are ignored.
        slots: the most candidates of a request; more of them are refused.
        thoughts: the field of a message with what the model thought.
        usage: the fields of the usage besides the tokens of prompt and completion.
        says_cost: whether the usage has what the request cost.
        moderates: whether prompts are moderated.
        choice: fields of each choice besides those of OpenAI.
        errors: what differs from OpenAI's errors.
    """

    root: str = "/v1"
    key_headers: Mapping[str, str] = field(default_factory=lambda: {"authorization": "Bearer "})
    query: str = ""
    any_model: bool = False
    any_field: bool = True
    ignored: Collection[str] = ()
    slots: int | None = None
    thoughts: str = "reasoning_content"
    usage: Collection[str] = ("prompt_tokens_details",)
    says_cost: bool = False
    moderates: bool = False
    choice: Mapping[str, Any] = field(default_factory=dict)
    errors: Mapping[Refused, Error] = field(default_factory=dict)


OPENAI = Compatible(
    any_field=False,
    usage=("prompt_tokens_details", "completion_tokens_details"),
    moderates=True,
)

# https://learn.microsoft.com/en-us/azure/foundry/openai/api-version-lifecycle: the base URL ends in
# /openai/v1 and needs no api-version. https://learn.microsoft.com/en-us/azure/foundry/openai/latest:
# the key is in api-key, or in Authorization as OpenAI's client sends it; the model is the name of a
# deployment. https://learn.microsoft.com/en-us/azure/foundry/openai/concepts/content-filter: the
# error of a filtered prompt, and the results of the filter in each choice.
AZURE = Compatible(
    root="/openai/v1",
    key_headers={"api-key": "", "authorization": "Bearer "},
    any_field=False,
    usage=("prompt_tokens_details", "completion_tokens_details"),
    moderates=True,
    choice={"content_filter_results": {"violence": {"filtered": False, "severity": "safe"}}},
    errors={
        "key": Error(
            401,
            {
                "error": {
                    "code": "401",
                    "message": "Access denied due to invalid subscription key or wrong API"
                    " endpoint. Make sure to provide a valid key for an active subscription.",
                }
            },
        ),
        "model": Error(
            404,
            {
                "error": {
                    "code": "DeploymentNotFound",
                    "message": "The API deployment for this resource does not exist. If you created"
                    " the deployment within the last 5 minutes, please wait and try again.",
                }
            },
        ),
        "prompt": Error(
            400,
            {
                "error": {
                    "message": "The response was filtered due to the prompt triggering Azure"
                    " OpenAI's content management policy. Please modify your prompt and retry.",
                    "type": None,
                    "param": "prompt",
                    "code": "content_filter",
                    "status": 400,
                    "innererror": {"code": "ResponsibleAIPolicyViolation"},
                }
            },
        ),
        "load": Error(
            429,
            {"error": {"code": "429", "message": "Requests have exceeded the call rate limit."}},
            {"retry-after": "0", "retry-after-ms": "50"},
        ),
    },
)

# https://learn.microsoft.com/en-us/azure/foundry/openai/reference: the dated versions. The address
# names the deployment and needs api-version; a key goes into api-key only.
AZURE_DATED = replace(
    AZURE,
    root="/openai/deployments/DEPLOYMENT",
    key_headers={"api-key": ""},
    query="api-version",
    any_model=True,
)

# https://openrouter.ai/docs/api-reference/overview: parameters that a model does not support are
# ignored, and there is one choice. https://openrouter.ai/docs/use-cases/usage-accounting: every
# answer has its cost. https://openrouter.ai/docs/api/reference/errors-and-debugging: errors have a
# number as their code; 403 is a flagged prompt.
# https://openrouter.ai/docs/use-cases/reasoning-tokens: thoughts are in `reasoning`.
OPENROUTER = Compatible(
    root="/api/v1",
    ignored=("n",),
    thoughts="reasoning",
    usage=("prompt_tokens_details", "completion_tokens_details"),
    says_cost=True,
    moderates=True,
    choice={"native_finish_reason": "stop"},
    errors={
        "key": Error(401, {"error": {"message": "No auth credentials found", "code": 401}}),
        "model": Error(400, {"error": {"message": "MODEL is not a valid model ID", "code": 400}}),
        "prompt": Error(
            403,
            {
                "error": {
                    "message": "The chosen model requires moderation and your input was flagged",
                    "code": 403,
                    "metadata": {"reasons": ["violence"], "flagged_input": "..."},
                }
            },
        ),
        "field": Error(400, {"error": {"message": "FIELD is not supported", "code": 400}}),
        "load": Error(
            429, {"error": {"message": "Rate limit exceeded", "code": 429}}, {"retry-after": "0"}
        ),
    },
)

# https://docs.ollama.com/api/openai-compatibility: the key is ignored, and so are fields that the
# page does not list: n is one of them. https://docs.ollama.com/api/errors: 404, no such model; its
# message says what to do. Thoughts are in `reasoning`.
OLLAMA = Compatible(
    key_headers={},
    ignored=("n", "logit_bias", "max_completion_tokens", "user"),
    thoughts="reasoning",
    usage=(),
    errors={
        "model": Error(
            404,
            {
                "error": {
                    "message": 'model "MODEL" not found, try pulling it first',
                    "type": "api_error",
                    "param": None,
                    "code": None,
                }
            },
        ),
        "field": Error(
            400,
            {
                "error": {
                    "message": "invalid FIELD",
                    "type": "invalid_request_error",
                    "param": None,
                    "code": None,
                }
            },
        ),
        "load": Error(
            503,
            {
                "error": {
                    "message": "server busy, please try again. maximum pending requests exceeded",
                    "type": "api_error",
                    "param": None,
                    "code": None,
                }
            },
        ),
    },
)

# https://docs.vllm.ai/en/stable/serving/openai_compatible_server/: parameters of OpenAI's interface
# and further ones; unknown ones are ignored. https://docs.vllm.ai/en/stable/features/
# reasoning_outputs/: thoughts are in `reasoning`. Details of the usage need
# --enable-prompt-tokens-details.
VLLM = Compatible(
    thoughts="reasoning",
    usage=(),
    choice={"stop_reason": None, "token_ids": None},
    errors={
        "key": Error(401, {"error": "Unauthorized"}),
        "model": Error(
            404,
            {
                "error": {
                    "message": "The model `MODEL` does not exist.",
                    "type": "NotFoundError",
                    "param": "model",
                    "code": 404,
                }
            },
        ),
        "field": Error(
            400,
            {
                "error": {
                    "message": "FIELD is not supported",
                    "type": "BadRequestError",
                    "param": "FIELD",
                    "code": 400,
                }
            },
        ),
        "load": Error(503, {"error": "Service Unavailable"}),
    },
)

# https://docs.sglang.ai/basic_usage/openai_api_completions.html: OpenAI's parameters; the name of
# the model makes no difference, since a server has one. Errors are not inside a field `error`.
# Details of the usage need --enable-cache-report.
SGLANG = Compatible(
    any_model=True,
    usage=(),
    choice={"matched_stop": None},
    errors={
        "key": Error(401, {"error": "Unauthorized"}),
        "field": Error(
            400,
            {
                "object": "error",
                "message": "FIELD is not supported",
                "type": "BadRequestError",
                "param": "FIELD",
                "code": 400,
            },
        ),
        "load": Error(
            503,
            {
                "object": "error",
                "message": "The request queue is full.",
                "type": "ServiceUnavailableError",
                "param": None,
                "code": 503,
            },
        ),
    },
)

# https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md: one model, whatever its
# name; n is `n_cmpl`, and cannot be larger than the number of slots (-np); while the model is
# loaded, the answer is 503.
LLAMA_CPP = Compatible(
    any_model=True,
    slots=4,
    errors={
        "key": Error(
            401,
            {
                "error": {
                    "code": 401,
                    "message": "Invalid API Key",
                    "type": "authentication_error",
                }
            },
        ),
        "n": Error(
            400,
            {
                "error": {
                    "code": 400,
                    "message": "n_cmpl cannot be greater than the number of slots, please increase"
                    " -np",
                    "type": "invalid_request_error",
                }
            },
        ),
        "field": Error(
            400,
            {
                "error": {
                    "code": 400,
                    "message": "Unsupported param: FIELD",
                    "type": "invalid_request_error",
                }
            },
        ),
        "load": Error(
            503,
            {
                "error": {
                    "code": 503,
                    "message": "Loading model",
                    "type": "unavailable_error",
                }
            },
        ),
    },
)

COMPATIBLE: Mapping[str, Compatible] = {
    "OpenAI": OPENAI,
    "Azure": AZURE,
    "Azure, dated versions": AZURE_DATED,
    "OpenRouter": OPENROUTER,
    "Ollama": OLLAMA,
    "vLLM": VLLM,
    "SGLang": SGLANG,
    "llama.cpp": LLAMA_CPP,
}
