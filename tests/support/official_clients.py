# mypy: ignore-errors
# It runs in an environment of its own, whose packages mypy does not see here.
"""A program that asks a server with the official client of its provider.

It runs in an environment that has the clients, and not grv. `python official_clients.py KIND URL
KEY MODEL PROMPT MOST` prints what the client has read, as JSON. `python official_clients.py check
KIND` reads bodies of requests from stdin, as a JSON list, and fails if the client's own types do
not allow one of them.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def chat(url: str, key: str, model: str, prompt: str, most: int) -> dict[str, Any]:
    """OpenAI's client, chat completions."""
    import openai

    return _chat(openai.OpenAI(base_url=url, api_key=key, max_retries=0), model, prompt, most)


def azure(url: str, key: str, model: str, prompt: str, most: int) -> dict[str, Any]:
    """OpenAI's client for the dated versions of Azure, which makes the address itself."""
    import openai

    client = openai.AzureOpenAI(
        azure_endpoint=url.partition("/openai/")[0],
        api_key=key,
        api_version="2024-10-21",
        max_retries=0,
    )
    return _chat(client, model, prompt, most)


def _chat(client: Any, model: str, prompt: str, most: int) -> dict[str, Any]:
    """What a client of OpenAI's reads of a chat."""
    import openai

    try:
        answer = client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": prompt}],
            max_completion_tokens=most,
            logprobs=True,
            top_logprobs=2,
        )
    except openai.APIStatusError as error:
        return _refused(error)
    validated = type(answer).model_validate(answer.model_dump())
    choice = validated.choices[0]
    return {
        "text": choice.message.content,
        "ended": choice.finish_reason,
        "logprobs": [token.logprob for token in choice.logprobs.content],
        **_used(validated.usage),
    }


def _used(usage: Any) -> dict[str, Any]:
    """The tokens of a usage in OpenAI's format; servers may leave the details out."""
    prompt = usage.prompt_tokens_details
    completion = usage.completion_tokens_details
    return {
        "prompt": usage.prompt_tokens,
        "cached": None if prompt is None else prompt.cached_tokens,
        "written": None if prompt is None else prompt.cache_write_tokens,
        "completion": usage.completion_tokens,
        "reasoning": None if completion is None else completion.reasoning_tokens,
        "cost": getattr(usage, "cost", None),
    }


def text(url: str, key: str, model: str, prompt: str, most: int) -> dict[str, Any]:
    """OpenAI's client, plain completions."""
    import openai

    client = openai.OpenAI(base_url=url, api_key=key, max_retries=0)
    try:
        answer = client.completions.create(model=model, prompt=prompt, max_tokens=most, logprobs=1)
    except openai.APIStatusError as error:
        return _refused(error)
    validated = type(answer).model_validate(answer.model_dump())
    choice = validated.choices[0]
    return {
        "text": choice.text or None,
        "ended": choice.finish_reason,
        "logprobs": choice.logprobs.token_logprobs,
        **_used(validated.usage),
    }


def responses(url: str, key: str, model: str, prompt: str, most: int) -> dict[str, Any]:
    """OpenAI's client, responses."""
    import openai

    client = openai.OpenAI(base_url=url, api_key=key, max_retries=0)
    try:
        answer = client.responses.create(
            model=model,
            input=prompt,
            max_output_tokens=most,
            include=["message.output_text.logprobs"],
        )
    except openai.APIStatusError as error:
        return _refused(error)
    validated = type(answer).model_validate(answer.model_dump())
    usage = validated.usage
    details = validated.incomplete_details
    return {
        "text": validated.output_text or None,
        "ended": validated.status if details is None else details.reason,
        "prompt": usage.input_tokens,
        "cached": usage.input_tokens_details.cached_tokens,
        "written": usage.input_tokens_details.cache_write_tokens,
        "completion": usage.output_tokens,
        "reasoning": usage.output_tokens_details.reasoning_tokens,
        "logprobs": [
            token.logprob
            for item in validated.output
            if item.type == "message"
            for token in item.content[0].logprobs
        ],
    }


def anthropic(url: str, key: str, model: str, prompt: str, most: int) -> dict[str, Any]:
    """Anthropic's client."""
    import anthropic

    client = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)
    try:
        answer = client.messages.create(
            model=model, max_tokens=most, messages=[{"role": "user", "content": prompt}]
        )
    except anthropic.APIStatusError as error:
        return _refused(error)
    validated = type(answer).model_validate(answer.model_dump())
    usage = validated.usage
    texts = [block.text for block in validated.content if block.type == "text"]
    return {
        "text": "".join(texts) or None,
        "ended": validated.stop_reason,
        "prompt": usage.input_tokens
        + usage.cache_read_input_tokens
        + usage.cache_creation_input_tokens,
        "cached": usage.cache_read_input_tokens,
        "written": usage.cache_creation_input_tokens,
        "completion": usage.output_tokens,
        "reasoning": usage.output_tokens_details.thinking_tokens,
    }


def gemini(url: str, key: str, model: str, prompt: str, most: int) -> dict[str, Any]:
    """Google's client."""
    from google import genai
    from google.genai import errors, types

    client = genai.Client(api_key=key, http_options=types.HttpOptions(base_url=url))
    config = types.GenerateContentConfig(max_output_tokens=most, response_logprobs=True)
    try:
        answer = client.models.generate_content(model=model, contents=prompt, config=config)
    except errors.APIError as error:
        return {"status": error.code, "kind": error.status, "message": error.message}
    usage = answer.usage_metadata
    counted = {
        "prompt": usage.prompt_token_count,
        "cached": usage.cached_content_token_count or 0,
        "completion": (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0),
        "reasoning": usage.thoughts_token_count or 0,
    }
    if not answer.candidates:
        return {"ended": answer.prompt_feedback.block_reason.value, **counted}
    candidate = answer.candidates[0]
    return {
        "text": answer.text,
        "ended": candidate.finish_reason.value,
        **counted,
        "logprobs": [
            token.log_probability for token in candidate.logprobs_result.chosen_candidates
        ],
    }


def _refused(error: Any) -> dict[str, Any]:
    """An error as the client has read it."""
    body = error.body if isinstance(error.body, dict) else {}
    inner = body.get("error", body)
    return {
        "status": error.status_code,
        "error": type(error).__name__,
        "kind": inner.get("type"),
        "param": inner.get("param"),
        "code": inner.get("code"),
        "message": inner.get("message"),
    }


def check(kind: str, bodies: list[dict[str, Any]]) -> None:
    """Read bodies of requests as the types of a client."""
    import pydantic

    for body in bodies:
        if kind == "gemini":
            from google.genai import types

            for content in body["contents"]:
                types.Content.model_validate(content)
            if "systemInstruction" in body:
                types.Content.model_validate(body["systemInstruction"])
            types.GenerationConfig.model_validate(body.get("generationConfig", {}))
            continue
        if kind == "openai-text":
            from openai.types import completion_create_params

            of = completion_create_params.CompletionCreateParamsNonStreaming
        elif kind == "openai":
            from openai.types.chat import completion_create_params as params

            of = params.CompletionCreateParamsNonStreaming
        elif kind == "responses":
            from openai.types.responses import response_create_params

            of = response_create_params.ResponseCreateParamsNonStreaming
        else:
            from anthropic.types import message_create_params

            of = message_create_params.MessageCreateParamsNonStreaming
        pydantic.TypeAdapter(of).validate_python(body)


if __name__ == "__main__":
    KINDS = {
        "openai": chat,
        "openai-text": text,
        "azure": azure,
        "responses": responses,
        "anthropic": anthropic,
        "gemini": gemini,
    }
    if sys.argv[1] == "check":
        check(sys.argv[2], json.load(sys.stdin))
    else:
        kind, url, key, model, prompt, most = sys.argv[1:]
        print(json.dumps(KINDS[kind](url, key, model, prompt, int(most))))
